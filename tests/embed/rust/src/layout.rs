//! That the structs of `sys.rs` are laid out as the C compiler lays out those of the library, on
//! 64-bit Linux: sizes at compile time; at run time the offsets of what follows a change of type,
//! since Rust 1.63 cannot do that earlier.

use crate::sys::*;

macro_rules! assert_sizes {
    ($($type:ty: $size:expr,)*) => {
        $(const _: [(); $size] = [(); std::mem::size_of::<$type>()];)*
    };
}
assert_sizes! {
    EngineOptions: 248,
    KernelSpec: 112,
    AttentionArgs: 504,
    CacheWriteSpec: 64,
    CacheWriteArgs: 224,
    CopyBlocksSpec: 16,
    CopyBlocksArgs: 72,
    SwapBlocksArgs: 72,
}

macro_rules! assert_offsets {
    ($type:ty, $($field:ident: $offset:expr,)*) => {{
        let value = std::mem::MaybeUninit::<$type>::uninit();
        let base = value.as_ptr();
        $(assert_eq!(
            unsafe { std::ptr::addr_of!((*base).$field) as usize } - base as usize,
            $offset,
            concat!(stringify!($type), ".", stringify!($field))
        );)*
    }};
}

/// Panics where a struct is not laid out as the library has it.
pub fn check() {
    assert_offsets!(EngineOptions, driver: 8, emulator_path: 24, cache_dir: 56, cache_max_bytes: 72, num_trusted_keys: 152, record_path: 176, log_callback: 208, tuned: 240,);
    assert_offsets!(KernelSpec, queries: 8, pdl: 108,);
    assert_offsets!(AttentionArgs, q: 8, k_strides: 48, kv_scale_stride: 120, block_table: 184, max_blocks_per_seq: 200, seq_lens: 208, query_seqs: 272, num_query_tokens: 288, out: 304, window_left: 344, block_sparse: 400, soft_cap: 420, sinks: 456, num_seqs: 464, scale: 472, workspace_bytes: 496,);
    assert_offsets!(CacheWriteSpec, dtype: 8, pdl: 56,);
    assert_offsets!(CacheWriteArgs, key: 8, k_strides: 72, slot_mapping: 120, num_tokens: 128, k_scale: 136, num_q_heads: 176, positions: 184, debug_report: 216,);
    assert_offsets!(CopyBlocksSpec, alignment: 8,);
    assert_offsets!(CopyBlocksArgs, caches: 8, num_caches: 16, block_bytes: 24, pairs: 40, num_pairs: 48, num_blocks: 56,);
    assert_offsets!(SwapBlocksArgs, direction: 8, from: 16, block_bytes: 32, pairs: 56, num_pairs: 64,);
}
