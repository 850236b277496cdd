//! The sizes of the attention layer that this program serves: those of a small model with grouped
//! query heads.

pub const NUM_HEADS: usize = 8; // of q
pub const NUM_KV_HEADS: usize = 2; // of K and V
pub const HEAD_SIZE: usize = 64;
pub const GROUP_SIZE: usize = NUM_HEADS / NUM_KV_HEADS;
pub const BLOCK_SIZE: usize = 16; // tokens per block of the paged cache
pub const SCALE: f32 = 0.125; // 1 / sqrt(HEAD_SIZE)

/// The bits of a bfloat16.
pub type Bf16 = u16;

pub const Q_ELEMENTS: usize = NUM_HEADS * HEAD_SIZE; // of a token's query, and of its result
pub const KV_ELEMENTS: usize = NUM_KV_HEADS * HEAD_SIZE; // of a token's K, and of its V
pub const BLOCK_ELEMENTS: usize = BLOCK_SIZE * KV_ELEMENTS; // of K, and of V
pub const BLOCK_BYTES: usize = 2 * BLOCK_ELEMENTS;
