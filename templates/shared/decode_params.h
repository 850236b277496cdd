// What host and device agree on for the decode kernel: its configuration (compile time), its
// parameters (launch) and the layout of its workspace. Included by the host library and inlined
// into every rendered source; plain C++20 without includes.
#pragma once

// Set by the device preludes; host code needs no marker.
#ifndef PAGEJIT_HOST_DEVICE
#define PAGEJIT_HOST_DEVICE
#endif

namespace pagejit_shared {

// Query heads of a merge unit: (sequence, KV head, up to this many query heads). Splits are merged
// unit by unit, so that many splits of many heads do not all end on one SM.
constexpr int kMergeUnitHeads = 16;

// How one decode kernel is built. Chosen by the planner; a constant in the rendered source.
//
// A CTA serves one (sequence, KV head, split). Its warps form `token_groups` groups of `head_warps`
// warps; a group owns a slice of each tile's tokens and a ring of `num_stages` stages in shared
// memory, its warps split the query heads.
struct DecodeConfig {
  bool is_bfloat16;      // else float16: q, K, V and out
  int head_size;         // elements, multiple of 8
  int head_size_padded;  // head_size rounded up to 16, the depth of one mma step; the pad is zero
                         // in shared memory
  int block_size;        // tokens per KV block
  int group_size;        // query heads per KV head
  int token_groups;      // groups of warps that split the tokens of a tile
  int head_warps;        // warps of a group, which split the query heads
  int head_tiles;        // tiles of 8 query heads per warp (the n of mma.m16n8k16)
  int group_tokens;      // tokens of one group in one stage: 16 or 32
  int num_stages;        // stages of the cp.async ring
  bool q_in_registers;   // query fragments live in registers, else they are read from shared memory
                         // in each tile
  int min_ctas_per_sm;   // for __launch_bounds__
  int shared_bytes;      // dynamic shared memory; the device asserts that its struct has this size
  bool debug;            // check block ids, lengths and the workspace
};

// Elements from one row of K, V or q in shared memory to the next: an odd number of 16-byte chunks,
// so that the eight rows of an ldmatrix matrix fall on eight different bank groups whatever the
// head size.
PAGEJIT_HOST_DEVICE constexpr int shared_row_pitch(int head_size_padded) {
  return ((head_size_padded / 8) | 1) * 8;
}
// Floats from one query head to the next where accumulators are merged: 4 more than a multiple of
// 16, so that the 8 x 4 (dimension, head) pairs that a warp stores at once fall on 32 different
// banks.
PAGEJIT_HOST_DEVICE constexpr int merge_row_pitch(int head_size_padded) {
  return head_size_padded + 4;
}

PAGEJIT_HOST_DEVICE constexpr int padded_heads(const DecodeConfig& c) {
  return c.head_warps * c.head_tiles * 8;
}
// Query heads that are merged at a time.
PAGEJIT_HOST_DEVICE constexpr int merge_heads(const DecodeConfig& c) {
  return padded_heads(c) < kMergeUnitHeads ? padded_heads(c) : kMergeUnitHeads;
}

// Dynamic shared memory: the larger of the K/V ring and the merge buffers that take its place, then
// q where it is not in registers. The device asserts that its struct has this size.
PAGEJIT_HOST_DEVICE constexpr int kv_ring_bytes(const DecodeConfig& c) {
  return c.token_groups * c.num_stages * 2 * c.group_tokens * shared_row_pitch(c.head_size_padded) *
         2;
}
PAGEJIT_HOST_DEVICE constexpr int merge_buffer_bytes(const DecodeConfig& c) {
  const int accumulators =
      c.token_groups * merge_heads(c) * merge_row_pitch(c.head_size_padded) * 4;
  const int statistics = c.token_groups * merge_heads(c) * 8;
  return (accumulators + statistics + 16 + 15) / 16 * 16;  // and one flag
}
PAGEJIT_HOST_DEVICE constexpr int shared_bytes(const DecodeConfig& c) {
  const int ring = kv_ring_bytes(c);
  const int merge = merge_buffer_bytes(c);
  const int query =
      c.q_in_registers ? 0 : padded_heads(c) * shared_row_pitch(c.head_size_padded) * 2;
  return (ring > merge ? ring : merge) + query;
}

// Strides count elements.
struct DecodeParams {
  const void* q;
  const void* k_cache;
  const void* v_cache;
  void* out;
  float* lse;  // null: not wanted
  const int* block_table;
  const int* seq_lens;
  void* workspace;
  long long q_stride_seq, q_stride_head;
  long long k_stride_block, k_stride_token, k_stride_head;
  long long v_stride_block, v_stride_token, v_stride_head;
  long long out_stride_seq, out_stride_head;
  long long block_table_stride;
  long long num_blocks;  // debug kernels: legal block ids are [0, num_blocks); 0 = unknown
  int max_blocks_per_seq;
  int num_kv_heads;
  int num_splits;        // = gridDim.x
  int min_split_tokens;  // a split has at least this many tokens (a multiple of the tile), but for
                         // the last
  float scale_log2;      // softmax scale * log2(e)
};

// Grid: x = split, y = KV head, z = sequence.

// ---- Workspace
// -------------------------------------------------------------------------------------------------------
// header | counters (fixed offset, fixed capacity) | statistics of all partials | accumulators of
// all partials
//
// Contract: counters are zero before the first launch (workspace_init) and reset themselves; they
// lie at a fixed offset with a fixed capacity, so that no other batch size or spec ever puts
// partials where they are; a sequence that is not split does not touch them; one workspace serves
// one stream at a time.

// One counter per merge unit. 65,536 counters (256 KiB): more units than that keep every GPU busy
// without splitting, so they are never split.
constexpr int kMergeCounterCapacity = 65536;
constexpr unsigned kWorkspaceMagic = 0x504a5753u;  // "PJWS"

// What a debug kernel found first. code 0 = nothing.
enum DebugCode : int {
  kDebugOk = 0,
  kDebugBadBlockId =
      1,  // value = the block id; position = index into the sequence's block table row
  kDebugBadSeqLen = 2,     // value = the length (negative, or beyond the block table)
  kDebugBadWorkspace = 3,  // value = the magic word found
  kDebugBadCounter = 4,    // value = the counter found; position = unit
};

struct WorkspaceHeader {
  unsigned magic;
  int debug_code;  // written once, by the first finder, with an atomic compare-and-swap
  int debug_seq_idx;
  int debug_position;
  long long debug_value;
  int reserved[10];  // header fills 64 bytes
};
static_assert(sizeof(WorkspaceHeader) == 64);

constexpr long long kCountersOffset = 256;
constexpr long long kPartialsOffset = kCountersOffset + 4ll * kMergeCounterCapacity;

// Partial statistics: {greatest score, not scaled; row sum} per (sequence, KV head, split, query
// head of the group). Partial accumulators: f32 [sequence, KV head, split, group_size, head_size],
// not normalised.
struct PartialStats {
  float row_max;
  float row_sum;
};

PAGEJIT_HOST_DEVICE constexpr int merge_units(int group_size) {
  return (group_size + kMergeUnitHeads - 1) / kMergeUnitHeads;
}

PAGEJIT_HOST_DEVICE constexpr long long partial_stats_offset() { return kPartialsOffset; }
PAGEJIT_HOST_DEVICE constexpr long long partial_acc_offset(long long num_seqs,
                                                           long long num_kv_heads,
                                                           long long num_splits,
                                                           long long group_size) {
  long long bytes = num_seqs * num_kv_heads * num_splits * group_size *
                    static_cast<long long>(sizeof(PartialStats));
  return kPartialsOffset + (bytes + 255) / 256 * 256;
}
PAGEJIT_HOST_DEVICE constexpr long long workspace_bytes(long long num_seqs, long long num_kv_heads,
                                                        long long num_splits, long long group_size,
                                                        long long head_size) {
  return partial_acc_offset(num_seqs, num_kv_heads, num_splits, group_size) +
         num_seqs * num_kv_heads * num_splits * group_size * head_size * 4;
}

}  // namespace pagejit_shared
