#line 1 "attention/attention.cu.tmpl"
#line 1 "shared/attention_params.h"
// What host and device agree on for the attention kernel: its configuration (compile time), its
// parameters (launch) and the layout of its workspace. Included by the host library and inlined
// into every rendered source; plain C++20 without includes.


// Set by the device preludes; host code needs no marker.
#ifndef PAGEJIT_HOST_DEVICE
#define PAGEJIT_HOST_DEVICE
#endif

namespace pagejit_shared {

// A row is one query token of one query head. The rows of a sequence and KV head are numbered token
// by token: row = query token * group_size + query head of the group.

// Rows of a merge unit: (sequence, KV head, up to this many rows). Splits are merged unit by unit,
// so that many splits of many heads do not all end on one SM.
constexpr int kMergeUnitRows = 16;

// Which keys a query token may see, by position: the last query token of a sequence stands at the
// last KV token.
enum class Causality : int {
  kNone,         // all of the sequence
  kCausal,       // up to its own position
  kPerSequence,  // one or the other, by a flag per sequence
};

// How the KV tokens of a sequence are found.
enum class KvTable : int {
  kBlocks,      // block_table, a row per sequence, and seq_lens
  kCsr,         // kv_indptr, kv_indices, kv_last_block_len
  kContiguous,  // kv_start_loc: token i of the sequence is row kv_start_loc + i
};

// How one attention kernel is built. Chosen by the planner; a constant in the rendered source.
//
// A CTA serves a tile of rows of one (sequence, KV head) over one split of its KV tokens. Its warps
// form `token_groups` groups of `row_warps` warps; a group owns a slice of each tile's tokens and a
// ring of `num_stages` stages in shared memory, its warps split the rows.
struct AttentionConfig {
  bool is_bfloat16;      // else float16: q, K, V and out
  bool is_ragged;        // query_start_loc gives each sequence's query tokens; else one each
  Causality causality;   // where is_ragged; one query token sees all
  KvTable kv_table;
  bool has_window;       // a sliding window: window_left and window_right hold
  bool has_chunks;       // a query token sees the keys of its own chunk: chunk_size holds
  bool has_custom_mask;  // a bit for each query token and key
  bool has_soft_cap;     // scores = soft_cap * tanh(scores / soft_cap)
  bool has_alibi;        // scores += slope of the head * (key position - query position)
  bool has_sinks;        // one more logit per head, without a value
  int head_size;         // elements, multiple of 8
  int head_size_padded;  // head_size rounded up to 16, the depth of one mma step; the pad is zero
                         // in shared memory
  int block_size;        // tokens per KV block
  int group_size;        // query heads per KV head
  int token_groups;      // groups of warps that split the tokens of a tile
  int row_warps;         // warps of a group, which split the rows
  int row_tiles;         // tiles of 8 rows per warp (the n of mma.m16n8k16)
  int group_tokens;      // tokens of one group in one stage: 16 or 32
  int num_stages;        // stages of the cp.async ring
  bool q_in_registers;   // query fragments live in registers, else they are read from shared memory
                         // in each tile
  int min_ctas_per_sm;   // for __launch_bounds__
  int shared_bytes;      // dynamic shared memory; the device asserts that its struct has this size
  bool debug;            // check block ids, lengths and the workspace
};

// Scores are scaled and changed before the softmax sees them; else the scale is applied to their
// differences.
PAGEJIT_HOST_DEVICE constexpr bool has_score_change(const AttentionConfig& c) {
  return c.has_soft_cap || c.has_alibi;
}

// Elements from one row of K, V or q in shared memory to the next: an odd number of 16-byte chunks,
// so that the eight rows of an ldmatrix matrix fall on eight different bank groups whatever the
// head size.
PAGEJIT_HOST_DEVICE constexpr int shared_row_pitch(int head_size_padded) {
  return ((head_size_padded / 8) | 1) * 8;
}
// Floats from one row to the next where accumulators are merged: 4 more than a multiple of 16, so
// that the 8 x 4 (dimension, row) pairs that a warp stores at once fall on 32 different banks.
PAGEJIT_HOST_DEVICE constexpr int merge_row_pitch(int head_size_padded) {
  return head_size_padded + 4;
}

// Rows of a CTA, whether they exist or not.
PAGEJIT_HOST_DEVICE constexpr int tile_rows(const AttentionConfig& c) {
  return c.row_warps * c.row_tiles * 8;
}
// Rows of a CTA that can exist, and so have partials.
PAGEJIT_HOST_DEVICE constexpr int partial_rows(const AttentionConfig& c) {
  return c.is_ragged ? tile_rows(c) : c.group_size;
}
// Rows that are merged at a time.
PAGEJIT_HOST_DEVICE constexpr int merge_rows(const AttentionConfig& c) {
  return tile_rows(c) < kMergeUnitRows ? tile_rows(c) : kMergeUnitRows;
}

// Dynamic shared memory: the larger of the K/V ring and the merge buffers that take its place, then
// q where it is not in registers. The device asserts that its struct has this size.
PAGEJIT_HOST_DEVICE constexpr int kv_ring_bytes(const AttentionConfig& c) {
  return c.token_groups * c.num_stages * 2 * c.group_tokens * shared_row_pitch(c.head_size_padded) *
         2;
}
PAGEJIT_HOST_DEVICE constexpr int merge_buffer_bytes(const AttentionConfig& c) {
  const int accumulators = c.token_groups * merge_rows(c) * merge_row_pitch(c.head_size_padded) * 4;
  const int statistics = c.token_groups * merge_rows(c) * 8;
  return (accumulators + statistics + 16 + 15) / 16 * 16;  // and one flag
}
PAGEJIT_HOST_DEVICE constexpr int shared_bytes(const AttentionConfig& c) {
  const int ring = kv_ring_bytes(c);
  const int merge = merge_buffer_bytes(c);
  const int query = c.q_in_registers ? 0 : tile_rows(c) * shared_row_pitch(c.head_size_padded) * 2;
  return (ring > merge ? ring : merge) + query;
}

// Strides count elements.
struct AttentionParams {
  const void* q;
  const void* k_cache;
  const void* v_cache;
  void* out;
  float* lse;  // [query tokens, query heads]; null: not wanted
  const int* block_table;
  const int* seq_lens;
  const int* kv_indptr;               // [num_seqs + 1] where KvTable::kCsr: into kv_indices
  const int* kv_indices;              // block ids
  const int* kv_last_block_len;       // [num_seqs]: tokens in the last block, 1 to block_size
  const int* kv_start_loc;            // [num_seqs + 1] where KvTable::kContiguous
  const int* query_start_loc;         // [num_seqs + 1] where is_ragged
  const unsigned char* causal_flags;  // [num_seqs] where Causality::kPerSequence
  const unsigned char* custom_mask;   // where has_custom_mask; bit query * seq_len + key
  const int* custom_mask_indptr;      // [num_seqs + 1]: bytes
  const float* alibi_slopes;          // [query heads] where has_alibi
  const float* sinks;                 // [query heads] where has_sinks
  void* workspace;
  long long q_stride_token, q_stride_head;
  long long k_stride_block, k_stride_token, k_stride_head;
  long long v_stride_block, v_stride_token, v_stride_head;
  long long out_stride_token, out_stride_head;
  long long block_table_stride;
  long long num_blocks;  // debug kernels: legal block ids are [0, num_blocks); 0 = unknown
  int max_blocks_per_seq;
  int num_seqs;
  int num_kv_heads;
  int num_query_tokens;  // debug kernels where is_ragged: rows of q and out
  int num_row_tiles;     // where is_ragged: see row_tiles_bound()
  int num_splits;
  int min_split_tokens;  // a split has at least this many tokens (a multiple of the tile), but for
                         // the last
  int window_left;       // where has_window: keys before and behind a query token's own position
  int window_right;      // that it sees; negative: all
  int chunk_size;        // where has_chunks: tokens, positive
  float scale;           // softmax scale
  float soft_cap;        // where has_soft_cap: positive
};

// Grid where each sequence has one query token: x = split, y = KV head, z = sequence.
//
// Grid where is_ragged: x = row tile or split, y = KV head. The first num_row_tiles CTAs of x are
// row tiles, the last tile of each sequence first, since under a causal mask it sees the most keys;
// each reads all keys that its rows see, or their first split. The others are the further splits,
// num_splits - 1 for each sequence; only sequences of one row tile have them, so that partials
// never take more than one tile of rows per sequence and KV head.

// The row tiles of sequence i stand at [first_row_tile(i), first_row_tile(i + 1)), where the last
// one may be missing: a sum of quotients, rounded up, without a sum over the sequences before it.
PAGEJIT_HOST_DEVICE constexpr int first_row_tile(int seq_idx, int query_begin, int group_size,
                                                 int rows_per_tile) {
  return static_cast<int>(static_cast<unsigned>(query_begin) * static_cast<unsigned>(group_size) /
                          static_cast<unsigned>(rows_per_tile)) +
         seq_idx;
}
// Upper bound of the row tiles of any num_seqs sequences with num_query_tokens in all.
PAGEJIT_HOST_DEVICE constexpr int row_tiles_bound(int num_seqs, int num_query_tokens,
                                                  int group_size, int rows_per_tile) {
  return first_row_tile(num_seqs, num_query_tokens, group_size, rows_per_tile);
}

// ---- Workspace ----
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
  kDebugBadSeqLen = 2,      // value = the length (negative, or beyond the block table)
  kDebugBadWorkspace = 3,   // value = the magic word found
  kDebugBadCounter = 4,     // value = the counter found; position = unit
  kDebugBadQueryRange = 5,  // value = query_start_loc[position], less than the one before or beyond
                            // the query tokens; position = seq_idx + 1
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

// Partial statistics: {greatest score; row sum} per (sequence, KV head, split, row). Partial
// accumulators: f32 [sequence, KV head, split, row, head_size], not normalised.
struct PartialStats {
  float row_max;
  float row_sum;
};

PAGEJIT_HOST_DEVICE constexpr int merge_units(int num_rows) {
  return (num_rows + kMergeUnitRows - 1) / kMergeUnitRows;
}

PAGEJIT_HOST_DEVICE constexpr long long partial_stats_offset() { return kPartialsOffset; }
PAGEJIT_HOST_DEVICE constexpr long long partial_acc_offset(long long num_seqs,
                                                           long long num_kv_heads,
                                                           long long num_splits,
                                                           long long num_rows) {
  long long bytes = num_seqs * num_kv_heads * num_splits * num_rows *
                    static_cast<long long>(sizeof(PartialStats));
  return kPartialsOffset + (bytes + 255) / 256 * 256;
}
PAGEJIT_HOST_DEVICE constexpr long long workspace_bytes(long long num_seqs, long long num_kv_heads,
                                                        long long num_splits, long long num_rows,
                                                        long long head_size) {
  return partial_acc_offset(num_seqs, num_kv_heads, num_splits, num_rows) +
         num_seqs * num_kv_heads * num_splits * num_rows * head_size * 4;
}

}  // namespace pagejit_shared
#line 2 "attention/attention.cu.tmpl"
#line 1 "attention/shared_memory.cuh"
// Shared memory of the attention kernel as one struct, and the constants that follow from its
// configuration.


using pagejit_shared::AttentionConfig;
using pagejit_shared::AttentionParams;

template <AttentionConfig C>
struct AttentionTraits {
  static constexpr int kWarps = C.token_groups * C.row_warps;
  static constexpr int kThreads = kWarps * 32;
  // Tokens of one stage of the whole CTA.
  static constexpr int kTileTokens = C.token_groups * C.group_tokens;
  // mma tiles of 16 tokens per group and stage, and of 16 elements along the head.
  static constexpr int kTokenTiles = C.group_tokens / 16;
  static constexpr int kDepthTiles = C.head_size_padded / 16;
  // Rows of one warp and of the CTA, whether they exist or not.
  static constexpr int kWarpRows = C.row_tiles * 8;
  static constexpr int kTileRows = pagejit_shared::tile_rows(C);
  static constexpr int kMergeRows = pagejit_shared::merge_rows(C);
  static constexpr int kPitch = pagejit_shared::shared_row_pitch(C.head_size_padded);
  static constexpr int kMergePitch = pagejit_shared::merge_row_pitch(C.head_size_padded);
  // 16-byte chunks of a row in global memory, and the rows that one warp copies at a time.
  static constexpr int kRowChunks = C.head_size / 8;
  static constexpr int kRowsPerPass = 32 / kRowChunks;
};

// 16-byte rows: an element is the 16 bits of an f16 or a bf16.
template <AttentionConfig C>
struct alignas(16) KvStage {
  uint16_t k[C.group_tokens][AttentionTraits<C>::kPitch];
  uint16_t v[C.group_tokens][AttentionTraits<C>::kPitch];
};

template <AttentionConfig C>
struct alignas(16) MergeBuffer {
  float acc[C.token_groups][AttentionTraits<C>::kMergeRows][AttentionTraits<C>::kMergePitch];
  pagejit_shared::PartialStats stats[C.token_groups][AttentionTraits<C>::kMergeRows];
  int is_last_split;  // this CTA finished a merge unit's last split
};

template <AttentionConfig C>
union RingOrMerge {
  KvStage<C> ring[C.token_groups][C.num_stages];  // while tokens are streamed
  MergeBuffer<C> merge;                           // afterwards
};

template <AttentionConfig C, bool kQueryInRegisters = C.q_in_registers>
struct AttentionShared {
  RingOrMerge<C> u;
};
template <AttentionConfig C>
struct AttentionShared<C, false> {
  RingOrMerge<C> u;
  alignas(16) uint16_t q[AttentionTraits<C>::kTileRows][AttentionTraits<C>::kPitch];
};
#line 3 "attention/attention.cu.tmpl"
#line 1 "attention/work.cuh"
// What one CTA does: its sequence, KV head, rows and range of KV tokens, found from the lengths on
// the device; and what a debug kernel says when it finds something wrong.


constexpr float kLog2E = 1.44269504088896341f;

// The first finder's report stays; thread-safe across the grid.
PAGEJIT_DEVICE void report_debug(const AttentionParams& params, pagejit_shared::DebugCode code,
                                 int seq_idx, int position, int64_t value) {
  auto* header = static_cast<pagejit_shared::WorkspaceHeader*>(params.workspace);
  if (dev::atomic_cas(&header->debug_code, pagejit_shared::kDebugOk, code) !=
      pagejit_shared::kDebugOk) {
    return;
  }
  dev::store_global(&header->debug_seq_idx, seq_idx);
  dev::store_global(&header->debug_position, position);
  dev::store_global(&header->debug_value, static_cast<long long>(value));
}

// The softmax scale without its sign, which is q's. Never 0, since the score of a token that takes
// no part, -inf, must stay -inf: the least normal number makes all others equal as well.
PAGEJIT_DEVICE float positive_scale(const AttentionParams& params) {
  constexpr float kLeast = 0x1p-126f;
  const float scale = params.scale < 0.0f ? -params.scale : params.scale;
  return scale < kLeast ? kLeast : scale;
}

// What scores are multiplied with where they become powers of 2.
template <AttentionConfig C>
PAGEJIT_DEVICE float score_scale_log2(const AttentionParams& params) {
  if constexpr (pagejit_shared::has_score_change(C)) return kLog2E;  // scaled already
  return positive_scale(params) * kLog2E;
}

struct AttentionWork {
  int seq_idx;
  int kv_head_idx;
  int split_idx;
  int seq_len;      // KV tokens of the sequence
  int query_begin;  // its first query token in q and out
  int query_len;    // its query tokens
  int row_begin;    // this CTA's rows are [row_begin, row_begin + num_rows)
  int num_rows;
  int num_active_splits;  // splits that have tokens; 0 or 1 where there is none
  int token_begin;
  int token_end;  // this CTA's KV tokens are [token_begin, token_end)

  PAGEJIT_DEVICE bool has_tokens() const { return token_begin < token_end; }
};

// The KV tokens that a query token sees: [begin, end).
struct VisibleRange {
  int begin;
  int end;
};

// Positions and sights of the query tokens of one sequence. The last query token stands at the last
// KV token.
template <AttentionConfig C>
struct QuerySight {
  int first_position;  // of query token 0; negative where there are more queries than KV tokens
  int seq_len;
  int left;  // KV tokens before and behind a position that it sees
  int right;
  int chunk_size;

  static constexpr bool kSeesAll = C.causality == pagejit_shared::Causality::kNone &&
                                   !C.has_window && !C.has_chunks;
  // A row may begin to see behind token 0.
  static constexpr bool kHasBegin = C.has_window || C.has_chunks;

  PAGEJIT_DEVICE QuerySight(const AttentionParams& params, int seq_idx, int query_len,
                            int kv_len)
      : first_position(kv_len - query_len), seq_len(kv_len) {
    constexpr int kAll = 0x7fffffff;
    left = right = kAll;
    if constexpr (C.has_window) {
      if (params.window_left >= 0) left = params.window_left;
      if (params.window_right >= 0) right = params.window_right;
    }
    if constexpr (C.has_chunks) chunk_size = params.chunk_size;
    if constexpr (C.causality == pagejit_shared::Causality::kCausal) right = 0;
    if constexpr (C.causality == pagejit_shared::Causality::kPerSequence) {
      if (dev::load_global_nc(params.causal_flags + seq_idx) != 0) right = 0;
    }
  }

  PAGEJIT_DEVICE int position(int row) const {
    return first_position + (C.is_ragged ? row / C.group_size : 0);
  }

  PAGEJIT_DEVICE VisibleRange of_row(int row) const {
    if constexpr (kSeesAll) return {0, seq_len};
    const int at = position(row);
    // Without overflow: 0 <= left and right, and a position is at least -2^31 + 1.
    int begin = left < at ? at - left : 0;
    int end = right < seq_len - at ? at + right + 1 : seq_len;
    if constexpr (C.has_chunks) {
      if (at < 0) return {0, 0};  // in a chunk before all keys
      const int in_chunk = at % chunk_size;
      begin = at - in_chunk;
      if (chunk_size - in_chunk < end - at) end = at + chunk_size - in_chunk;
    }
    return {begin, end < 0 ? 0 : end};
  }
};

// The sequence's length by its table.
template <AttentionConfig C>
PAGEJIT_DEVICE int load_table_len(const AttentionParams& params, int seq_idx) {
  using pagejit_shared::KvTable;
  if constexpr (C.kv_table == KvTable::kBlocks) {
    return dev::load_global_nc(params.seq_lens + seq_idx);
  } else if constexpr (C.kv_table == KvTable::kCsr) {
    const int num_blocks = dev::load_global_nc(params.kv_indptr + seq_idx + 1) -
                           dev::load_global_nc(params.kv_indptr + seq_idx);
    const int in_last = dev::load_global_nc(params.kv_last_block_len + seq_idx);
    return num_blocks == 0 ? 0 : (num_blocks - 1) * C.block_size + in_last;
  } else {
    return dev::load_global_nc(params.kv_start_loc + seq_idx + 1) -
           dev::load_global_nc(params.kv_start_loc + seq_idx);
  }
}

// The sequence's length; a debug kernel reports a length that its table cannot hold and takes 0 for
// it.
template <AttentionConfig C>
PAGEJIT_DEVICE int load_seq_len(const AttentionParams& params, int seq_idx) {
  const int seq_len = load_table_len<C>(params, seq_idx);
  if constexpr (C.debug) {
    const int64_t capacity = C.kv_table == pagejit_shared::KvTable::kBlocks
                                 ? static_cast<int64_t>(params.max_blocks_per_seq) * C.block_size
                                 : 0x7fffffff;
    if (seq_len < 0 || seq_len > capacity) {
      if (dev::thread_idx() == 0) {
        report_debug(params, pagejit_shared::kDebugBadSeqLen, seq_idx, 0, seq_len);
      }
      return 0;
    }
  }
  return seq_len < 0 ? 0 : seq_len;
}

// The last sequence whose row tiles begin at or before `row_tile`; -1 where there is none. The tile
// may lie behind its last row. All lanes of a warp search together: one round of loads for 32
// sequences, two for 1,024.
template <AttentionConfig C>
PAGEJIT_DEVICE int find_sequence(const AttentionParams& params, int row_tile) {
  constexpr int kTileRows = AttentionTraits<C>::kTileRows;
  int begin = 0;
  int count = params.num_seqs;
  while (count > 1) {
    const int step = (count + 31) / 32;
    const int probe = begin + dev::lane_idx() * step;
    bool is_before = false;
    if (probe < begin + count) {
      const int query_begin = dev::load_global_nc(params.query_start_loc + probe);
      is_before = pagejit_shared::first_row_tile(probe, query_begin, C.group_size, kTileRows) <=
                  row_tile;
    }
    const int num_before = dev::count_lanes(is_before);
    if (num_before == 0) return -1;  // only where query_start_loc does not begin with 0
    const int end = begin + count;
    begin += (num_before - 1) * step;
    count = end - begin < step ? end - begin : step;
  }
  return begin;
}

// Sequence, split and rows of this CTA. False where it has nothing to do.
template <AttentionConfig C>
PAGEJIT_DEVICE bool find_rows(const AttentionParams& params, AttentionWork& work) {
  work.kv_head_idx = dev::block_idx_y();
  if constexpr (!C.is_ragged) {
    work.split_idx = dev::block_idx_x();
    work.seq_idx = dev::block_idx_z();
    work.query_begin = work.seq_idx;
    work.query_len = 1;
    work.row_begin = 0;
    work.num_rows = C.group_size;
    return true;
  } else {
    constexpr int kTileRows = AttentionTraits<C>::kTileRows;
    const int index = dev::block_idx_x();
    const bool is_row_tile = index < params.num_row_tiles;
    int row_tile = 0;
    if (is_row_tile) {
      // From the last tile on; see the grid in attention_params.h.
      row_tile = params.num_row_tiles - 1 - index;
      work.seq_idx = find_sequence<C>(params, row_tile);
      work.split_idx = 0;
      if (work.seq_idx < 0) return false;
    } else {
      const uint32_t further = static_cast<uint32_t>(index - params.num_row_tiles);
      const uint32_t splits_each = static_cast<uint32_t>(params.num_splits - 1);
      work.seq_idx = static_cast<int>(further / splits_each);
      work.split_idx = static_cast<int>(1 + further % splits_each);
    }
    work.query_begin = dev::load_global_nc(params.query_start_loc + work.seq_idx);
    const int query_end = dev::load_global_nc(params.query_start_loc + work.seq_idx + 1);
    work.query_len = query_end - work.query_begin;
    if constexpr (C.debug) {
      if (work.query_len < 0 || work.query_begin < 0 || query_end > params.num_query_tokens) {
        if (dev::thread_idx() == 0) {
          report_debug(params, pagejit_shared::kDebugBadQueryRange, work.seq_idx,
                       work.seq_idx + 1, query_end);
        }
        return false;
      }
    }
    if (is_row_tile) {
      row_tile -= pagejit_shared::first_row_tile(work.seq_idx, work.query_begin, C.group_size,
                                                 kTileRows);
    }
    work.row_begin = row_tile * kTileRows;
    const int rows_left = work.query_len * C.group_size - work.row_begin;
    work.num_rows = rows_left < kTileRows ? rows_left : kTileRows;
    return work.num_rows > 0;
  }
}

// Whether the sequence's KV tokens may be split: all its rows are in one tile.
template <AttentionConfig C>
PAGEJIT_DEVICE bool may_split(const AttentionWork& work) {
  return !C.is_ragged || work.query_len * C.group_size <= AttentionTraits<C>::kTileRows;
}

// Every CTA of a sequence computes the same split from the same lengths, so no plan has to exist
// before the launch. False where this CTA has nothing to do and nothing to write.
template <AttentionConfig C>
PAGEJIT_DEVICE bool find_work(const AttentionParams& params, AttentionWork& work) {
  constexpr int kTileTokens = AttentionTraits<C>::kTileTokens;
  if (!find_rows<C>(params, work)) return false;
  work.seq_len = load_seq_len<C>(params, work.seq_idx);
  VisibleRange range = {0, work.seq_len};
  if constexpr (C.is_ragged || !QuerySight<C>::kSeesAll) {
    const QuerySight<C> sight(params, work.seq_idx, work.query_len, work.seq_len);
    range.begin = sight.of_row(work.row_begin).begin;
    range.end = sight.of_row(work.row_begin + work.num_rows - 1).end;
    if (range.begin > range.end) range.begin = range.end;
  }
  work.num_active_splits = 1;
  work.token_begin = range.begin;
  work.token_end = range.end;
  if (params.num_splits > 1 && may_split<C>(work)) {
    // Unsigned: rounding up cannot overflow below 2^32.
    const uint32_t length = static_cast<uint32_t>(range.end - range.begin);
    const uint32_t num_splits = static_cast<uint32_t>(params.num_splits);
    const uint32_t even = (length + num_splits - 1) / num_splits;
    const uint32_t whole_tiles = (even + kTileTokens - 1) / kTileTokens * kTileTokens;
    const uint32_t least = static_cast<uint32_t>(params.min_split_tokens);
    const uint32_t split_tokens = whole_tiles < least ? least : whole_tiles;
    const uint32_t skipped = split_tokens * static_cast<uint32_t>(work.split_idx);
    const uint32_t begin = skipped < length ? skipped : length;
    work.num_active_splits = static_cast<int>((length + split_tokens - 1) / split_tokens);
    work.token_begin = range.begin + static_cast<int>(begin);
    if (length - begin > split_tokens) {
      work.token_end = work.token_begin + static_cast<int>(split_tokens);
    }
  } else if (work.split_idx > 0) {
    return false;
  }
  // Later splits of a short sequence have nothing to do. The first one writes the result of no
  // tokens.
  return work.split_idx == 0 || work.has_tokens();
}
#line 4 "attention/attention.cu.tmpl"
#line 1 "attention/load_kv.cuh"
// Streaming K and V: from block ids to rows in shared memory. A group of warps owns a ring of
// stages; its lanes look up the block ids of a stage one tile ahead, and hand each other the row
// offsets when they issue the copies.


// Where one token's row starts in the caches, in elements; 0 where there is no token, whose row is
// filled with zeros.
struct KvRowOffsets {
  int64_t k;
  int64_t v;
};

template <AttentionConfig C>
class KvStream {
 public:
  using Traits = AttentionTraits<C>;
  static constexpr int kStages = C.num_stages;

  PAGEJIT_DEVICE KvStream(const AttentionParams& params, const AttentionWork& work,
                          KvStage<C> (&ring)[C.num_stages], int token_group, int row_warp)
      : params_(params),
        work_(work),
        ring_(ring),
        token_group_(token_group),
        row_warp_(row_warp) {
    const int64_t kv_head_idx = work.kv_head_idx;
    k_ = static_cast<const uint16_t*>(params.k_cache) + kv_head_idx * params.k_stride_head;
    v_ = static_cast<const uint16_t*>(params.v_cache) + kv_head_idx * params.v_stride_head;
    using pagejit_shared::KvTable;
    if constexpr (C.kv_table == KvTable::kBlocks) {
      block_ids_ =
          params.block_table + work.seq_idx * static_cast<int64_t>(params.block_table_stride);
    } else if constexpr (C.kv_table == KvTable::kCsr) {
      block_ids_ = params.kv_indices + dev::load_global_nc(params.kv_indptr + work.seq_idx);
    } else {
      first_row_ = dev::load_global_nc(params.kv_start_loc + work.seq_idx);
    }
    num_tiles_ =
        (work.token_end - work.token_begin + Traits::kTileTokens - 1) / Traits::kTileTokens;
  }

  PAGEJIT_DEVICE int num_tiles() const { return num_tiles_; }
  // The first token of this group in a tile.
  PAGEJIT_DEVICE int first_token(int tile_idx) const {
    return work_.token_begin + tile_idx * Traits::kTileTokens + token_group_ * C.group_tokens;
  }
  // Tokens of this group in a tile; beyond group_tokens where the split goes on, 0 or less where it
  // has ended.
  PAGEJIT_DEVICE int num_valid(int tile_idx) const {
    return work_.token_end - first_token(tile_idx);
  }

  // The stages are taken in turn: the oldest copied one is read next, the next one to fill is the
  // one read before.
  PAGEJIT_DEVICE const KvStage<C>& next_stage() {
    const KvStage<C>& stage = ring_[read_stage_];
    read_stage_ = read_stage_ + 1 == kStages ? 0 : read_stage_ + 1;
    return stage;
  }

  // Clears the pad behind each row, which copies never touch: q is zero there, but 0 * NaN is NaN.
  PAGEJIT_DEVICE void clear_pad() {
    if constexpr (C.head_size != C.head_size_padded) {
      constexpr int kRows = kStages * 2 * C.group_tokens;
      uint16_t* rows =
          reinterpret_cast<uint16_t*>(&ring_);  // K and V rows of all stages follow each other
      for (int row = row_warp_ * 32 + dev::lane_idx(); row < kRows; row += C.row_warps * 32) {
        // 8 elements: head_size is a multiple of 8, the padded one of 16.
        *reinterpret_cast<Chunk*>(rows + row * Traits::kPitch + C.head_size) = Chunk{};
      }
    }
  }

  // The row of token `lane` of this group in a tile. One load of a block id per lane, coalesced.
  PAGEJIT_DEVICE KvRowOffsets locate(int tile_idx) const {
    const int lane = dev::lane_idx();
    const int token = first_token(tile_idx) + lane;
    if (tile_idx >= num_tiles_ || lane >= C.group_tokens || token >= work_.token_end) return {0, 0};
    if constexpr (C.kv_table == pagejit_shared::KvTable::kContiguous) {
      const int64_t row = static_cast<int64_t>(first_row_) + token;
      return {row * params_.k_stride_token, row * params_.v_stride_token};
    }
    const int block_position = static_cast<int>(static_cast<uint32_t>(token) / C.block_size);
    const int64_t token_in_block = static_cast<uint32_t>(token) % C.block_size;
    const int block_id = dev::load_global_nc(block_ids_ + block_position);
    if constexpr (C.debug) {
      if (block_id < 0 || (params_.num_blocks > 0 && block_id >= params_.num_blocks)) {
        report_debug(params_, pagejit_shared::kDebugBadBlockId, work_.seq_idx, block_position,
                     block_id);
        return {0, 0};
      }
    }
    return {block_id * static_cast<int64_t>(params_.k_stride_block) +
                token_in_block * params_.k_stride_token,
            block_id * static_cast<int64_t>(params_.v_stride_block) +
                token_in_block * params_.v_stride_token};
  }

  // Issues the copies of a tile into the next stage, as two groups of asynchronous copies, K then
  // V. Past the last tile both are empty, so that the count of groups stays what the waits expect.
  PAGEJIT_DEVICE void issue(int tile_idx, const KvRowOffsets& rows) {
    KvStage<C>& stage = ring_[write_stage_];
    write_stage_ = write_stage_ + 1 == kStages ? 0 : write_stage_ + 1;
    const bool has_tile = tile_idx < num_tiles_;
    const int valid = num_valid(tile_idx);
    if (has_tile) copy_rows(stage.k, k_, rows.k, valid);
    dev::cp_async_commit();
    if (has_tile) copy_rows(stage.v, v_, rows.v, valid);
    dev::cp_async_commit();
  }

 private:
  struct alignas(16) Chunk {
    uint32_t word[4];
  };

  // rows [group_tokens][pitch] <- cache rows; lane i holds the offset of row i. A warp copies whole
  // rows, kRowsPerPass at a time, so that each lane keeps one column.
  PAGEJIT_DEVICE void copy_rows(uint16_t (&rows)[C.group_tokens][Traits::kPitch],
                                const uint16_t* cache, int64_t offset_of_lane,
                                int num_valid) const {
    constexpr int kRowsAtOnce = Traits::kRowsPerPass * C.row_warps;
    constexpr int kPasses = (C.group_tokens + kRowsAtOnce - 1) / kRowsAtOnce;
    const int lane = dev::lane_idx();
    const int first_row = row_warp_ * Traits::kRowsPerPass + lane / Traits::kRowChunks;
    const int column = lane % Traits::kRowChunks * 8;
    const bool has_column =
        32 % Traits::kRowChunks == 0 || lane < Traits::kRowsPerPass * Traits::kRowChunks;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int row = first_row + pass * kRowsAtOnce;
      const int64_t offset = dev::shuffle(offset_of_lane, row % 32);
      const bool has_row = C.group_tokens % kRowsAtOnce == 0 || row < C.group_tokens;
      if (has_column && has_row) {
        dev::cp_async_16(&rows[row][column], cache + offset + column, row < num_valid);
      }
    }
  }

  const AttentionParams& params_;
  const AttentionWork& work_;
  KvStage<C> (&ring_)[C.num_stages];
  const uint16_t* k_;  // [num_blocks, block_size, head_size] of this KV head, by strides
  const uint16_t* v_;
  const int* block_ids_ = nullptr;  // of this sequence's blocks
  int first_row_ = 0;               // of this sequence, where there are no blocks
  int token_group_;
  int row_warp_;
  int num_tiles_;
  int read_stage_ = 0;
  int write_stage_ = 0;
};
#line 5 "attention/attention.cu.tmpl"
#line 1 "attention/query.cuh"
// The rows of q that a CTA serves, as b operands of the first product.


// A row's query token, counted from the sequence's first, and its query head, from the group's
// first.
struct RowPlace {
  int token;
  int head;
};

template <AttentionConfig C>
PAGEJIT_DEVICE RowPlace place_of_row(int row) {
  if constexpr (!C.is_ragged) return {0, row};
  return {row / C.group_size, row % C.group_size};
}

// What is read of q: the rows of one sequence and KV head.
struct QuerySource {
  const uint16_t* q;  // [query tokens of the sequence, group_size, head_size] by strides
  int64_t stride_token;
  int64_t stride_head;
  uint32_t sign_bits;  // 0, or the sign bits of a pair of elements to flip both
  int row_begin;       // the CTA's rows are [row_begin, row_begin + num_rows)
  int num_rows;

  PAGEJIT_DEVICE QuerySource(const AttentionParams& params, const AttentionWork& work,
                             int group_size)
      : stride_token(params.q_stride_token),
        stride_head(params.q_stride_head),
        // A negative scale is a positive one and -q: the greatest score stays the greatest logit.
        sign_bits(params.scale < 0.0f ? 0x80008000u : 0u),
        row_begin(work.row_begin),
        num_rows(work.num_rows) {
    const int64_t first_head = work.kv_head_idx * static_cast<int64_t>(group_size);
    q = static_cast<const uint16_t*>(params.q) + work.query_begin * stride_token +
        first_head * stride_head;
  }

  // `row` counts from the CTA's first.
  template <AttentionConfig C>
  PAGEJIT_DEVICE const uint16_t* row_start(int row) const {
    const RowPlace place = place_of_row<C>(row_begin + row);
    return q + place.token * stride_token + place.head * stride_head;
  }
};

// Fragments in registers: this warp's rows.
template <AttentionConfig C, bool kInRegisters = C.q_in_registers>
class Query {
 public:
  using Traits = AttentionTraits<C>;

  PAGEJIT_DEVICE void load(const QuerySource& source, AttentionShared<C>&, int row_warp) {
    const int column = dev::lane_idx() % 4 * 2;
#pragma unroll
    for (int row_tile = 0; row_tile < C.row_tiles; ++row_tile) {
      // Rows and elements that do not exist are zero and add nothing. A tile of 8 elements is
      // inside the head or beyond it.
      const int row = row_warp * Traits::kWarpRows + row_tile * 8 + dev::lane_idx() / 4;
      const bool exists = row < source.num_rows;
      // Held, or each of the loads below would have its address multiplied out from the strides.
      const uint16_t* start = dev::hold(source.row_start<C>(row) + column);
#pragma unroll
      for (int depth = 0; depth < Traits::kDepthTiles; ++depth) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int element = depth * 16 + half * 8;
          uint32_t& pair = fragments_[row_tile][depth][half];
          pair = 0;
          if (exists && element < C.head_size) {
            pair = source.sign_bits ^
                   dev::load_global_nc(reinterpret_cast<const uint32_t*>(start + element));
          }
        }
      }
    }
  }

  PAGEJIT_DEVICE void fragment(uint32_t (&b)[2], int row_tile, int depth) const {
    b[0] = fragments_[row_tile][depth][0];
    b[1] = fragments_[row_tile][depth][1];
  }

 private:
  uint32_t fragments_[C.row_tiles][Traits::kDepthTiles][2];
};

// The same where registers would not hold it: in shared memory, read again for every tile.
template <AttentionConfig C>
class Query<C, false> {
 public:
  using Traits = AttentionTraits<C>;

  PAGEJIT_DEVICE void load(const QuerySource& source, AttentionShared<C>& shared, int row_warp) {
    constexpr int kChunks = C.head_size_padded / 8;
    for (int i = dev::thread_idx(); i < Traits::kTileRows * kChunks; i += Traits::kThreads) {
      const int row = i / kChunks;
      const int element = i % kChunks * 8;
      Chunk chunk = {};
      if (row < source.num_rows && element < C.head_size) {
        chunk = dev::load_global_nc(
            reinterpret_cast<const Chunk*>(source.row_start<C>(row) + element));
#pragma unroll
        for (int w = 0; w < 4; ++w) chunk.word[w] ^= source.sign_bits;
      }
      *reinterpret_cast<Chunk*>(&shared.q[row][element]) = chunk;
    }
    rows_ =
        &shared
             .q[row_warp * Traits::kWarpRows + dev::lane_idx() % 8][dev::lane_idx() / 8 % 2 * 8];
    dev::sync_cta();  // q, written by all threads, is read by every warp
  }

  PAGEJIT_DEVICE void fragment(uint32_t (&b)[2], int row_tile, int depth) const {
    dev::ldmatrix_x2(b, rows_ + row_tile * 8 * Traits::kPitch + depth * 16);
  }

 private:
  struct alignas(16) Chunk {
    uint32_t word[4];
  };
  const uint16_t* rows_;  // the row and half that this lane addresses
};

#line 6 "attention/attention.cu.tmpl"
#line 1 "attention/scores.cuh"
// Scores of one warp on one stage, from the product K q to what the softmax sees: scaled, capped,
// biased and masked as far as the configuration asks for it.
//
// Fragment places used here and in softmax.cuh, for lane = 4 * r + c: an f32 result tile [16
// tokens or elements][8 rows] has the first index r and r + 8, the second 2c and 2c + 1: {(r,2c),
// (r,2c+1), (r+8,2c), (r+8,2c+1)}; a 16-bit b operand [16][8 rows] has row r, first index {2c,
// 2c+1} and {2c+8, 2c+9}.


constexpr float kLn2 = 0.693147180559945309f;
constexpr float kMinusInfinity = __builtin_bit_cast(float, 0xff800000u);

template <AttentionConfig C>
PAGEJIT_DEVICE void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (C.is_bfloat16) {
    dev::mma_m16n8k16_bf16(d, a, b0, b1);
  } else {
    dev::mma_m16n8k16_f16(d, a, b0, b1);
  }
}

template <AttentionConfig C>
PAGEJIT_DEVICE uint32_t pack(float low, float high) {
  if constexpr (C.is_bfloat16) {
    return dev::pack_bf16x2(low, high);
  } else {
    return dev::pack_f16x2(low, high);
  }
}

// Scores of a stage: [tokens][rows] as result tiles.
template <AttentionConfig C>
using Scores = float[AttentionTraits<C>::kTokenTiles][C.row_tiles][4];

template <AttentionConfig C>
PAGEJIT_DEVICE void compute_scores(Scores<C>& scores, const KvStage<C>& stage,
                                   const Query<C>& query) {
  using Traits = AttentionTraits<C>;
#pragma unroll
  for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
    for (int j = 0; j < C.row_tiles; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) scores[i][j][e] = 0.0f;
    }
  }
  // K is the a operand as it lies: rows are tokens. Matrices: (tokens 0-7, 8-15) x (elements 0-7,
  // 8-15).
  const int row = dev::lane_idx() % 16;
  const int column = dev::lane_idx() / 16 * 8;
#pragma unroll
  for (int depth = 0; depth < Traits::kDepthTiles; ++depth) {
    uint32_t b[C.row_tiles][2];
#pragma unroll
    for (int j = 0; j < C.row_tiles; ++j) query.fragment(b[j], j, depth);
#pragma unroll
    for (int i = 0; i < Traits::kTokenTiles; ++i) {
      uint32_t a[4];
      dev::ldmatrix_x4(a, &stage.k[i * 16 + row][depth * 16 + column]);
#pragma unroll
      for (int j = 0; j < C.row_tiles; ++j) mma<C>(scores[i][j], a, b[j][0], b[j][1]);
    }
  }
}

// tanh(x) = 1 - 2 / (1 + e^2x): right at both ends, however large x is.
PAGEJIT_DEVICE float tanh_by_exp2(float x) {
  return 1.0f - 2.0f * dev::rcp_approx(1.0f + dev::exp2_approx(x * (2.0f * kLog2E)));
}

// What becomes of one warp's scores before the softmax.
template <AttentionConfig C>
class ScoreChange {
 public:
  using Traits = AttentionTraits<C>;

  PAGEJIT_DEVICE ScoreChange(const AttentionParams& params, const AttentionWork& work,
                             int row_warp)
      : params_(params),
        sight_(params, work.seq_idx, work.query_len, work.seq_len),
        token_end_(work.token_end),
        warp_row_(work.row_begin + row_warp * Traits::kWarpRows) {
    const int rows_left = work.num_rows - row_warp * Traits::kWarpRows;
    num_rows_ = rows_left < Traits::kWarpRows ? rows_left : Traits::kWarpRows;
    if constexpr (C.has_custom_mask) {
      mask_bits_ =
          params.custom_mask + dev::load_global_nc(params.custom_mask_indptr + work.seq_idx);
    }
    if constexpr (C.has_alibi) {
#pragma unroll
      for (int j = 0; j < C.row_tiles; ++j) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int head = work.kv_head_idx * C.group_size + place_of_row<C>(lane_row(j, h)).head;
          const bool exists = lane_row(j, h) < warp_row_ + num_rows_;
          slopes_[j][h] = exists ? dev::load_global_nc(params.alibi_slopes + head) : 0.0f;
        }
      }
    }
  }

  // Whether a row of this warp sees one of the tokens from first_token on. Warps of which no row
  // exists only help to copy.
  PAGEJIT_DEVICE bool sees(int first_token) const {
    if constexpr (!C.is_ragged) return true;
    return num_rows_ > 0 && first_token < sight_.of_row(warp_row_ + num_rows_ - 1).end;
  }

  // The scores of tokens [first_token, first_token + group_tokens): scale, soft cap, ALiBi, mask.
  PAGEJIT_DEVICE void apply(Scores<C>& scores, int first_token) const {
    if constexpr (pagejit_shared::has_score_change(C)) change(scores, first_token);
    if (needs_mask(first_token)) mask(scores, first_token);
    if constexpr (C.has_custom_mask) mask_by_bits(scores, first_token);
  }

 private:
  // The row of result column 2c + h of tile j, in the sequence.
  PAGEJIT_DEVICE int lane_row(int j, int h) const {
    return warp_row_ + j * 8 + dev::lane_idx() % 4 * 2 + h;
  }

  PAGEJIT_DEVICE void change(Scores<C>& scores, int first_token) const {
    const float scale = positive_scale(params_);
    [[maybe_unused]] const int lane_token = first_token + dev::lane_idx() / 4;
#pragma unroll
    for (int j = 0; j < C.row_tiles; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
#pragma unroll
        for (int i = 0; i < Traits::kTokenTiles; ++i) {
          float score = scores[i][j][e] * scale;
          if constexpr (C.has_soft_cap) {
            score = params_.soft_cap * tanh_by_exp2(score * dev::rcp_approx(params_.soft_cap));
          }
          if constexpr (C.has_alibi) {
            const int token = lane_token + i * 16 + e / 2 * 8;
            const int distance = token - sight_.position(lane_row(j, e % 2));
            score += slopes_[j][e % 2] * static_cast<float>(distance);
          }
          scores[i][j][e] = score;
        }
      }
    }
  }

  // The same for all lanes. Later rows see at least as far and begin no earlier, so the first row
  // and the last one decide.
  PAGEJIT_DEVICE bool needs_mask(int first_token) const {
    const int end = first_token + C.group_tokens;
    if constexpr (QuerySight<C>::kSeesAll) return end > token_end_;
    const VisibleRange first = sight_.of_row(warp_row_);
    return end > token_end_ || end > first.end ||
           (QuerySight<C>::kHasBegin &&
            first_token < sight_.of_row(warp_row_ + num_rows_ - 1).begin);
  }

  // The score of what a row does not see becomes -inf, its probability 0.
  PAGEJIT_DEVICE void mask(Scores<C>& scores, int first_token) const {
    const int lane_token = first_token + dev::lane_idx() / 4;
#pragma unroll
    for (int j = 0; j < C.row_tiles; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        VisibleRange range = {0, token_end_};
        if constexpr (!QuerySight<C>::kSeesAll) {
          range = sight_.of_row(lane_row(j, h));
          if (range.end > token_end_) range.end = token_end_;
        }
#pragma unroll
        for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int token = lane_token + i * 16 + half * 8;
            const bool is_seen =
                token < range.end && (!QuerySight<C>::kHasBegin || token >= range.begin);
            if (!is_seen) scores[i][j][half * 2 + h] = kMinusInfinity;
          }
        }
      }
    }
  }

  // The bits of rows and tokens that do not exist are not read.
  PAGEJIT_DEVICE void mask_by_bits(Scores<C>& scores, int first_token) const {
    const int lane_token = first_token + dev::lane_idx() / 4;
#pragma unroll
    for (int j = 0; j < C.row_tiles; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = lane_row(j, h);
        const bool row_exists = row < warp_row_ + num_rows_;
        const int64_t first_bit =
            place_of_row<C>(row).token * static_cast<int64_t>(sight_.seq_len);
#pragma unroll
        for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int token = lane_token + i * 16 + half * 8;
            const int64_t bit = first_bit + token;
            bool is_seen = false;
            if (row_exists && token < token_end_) {
              is_seen = dev::load_global_nc(mask_bits_ + bit / 8) >> (bit % 8) & 1;
            }
            if (!is_seen) scores[i][j][half * 2 + h] = kMinusInfinity;
          }
        }
      }
    }
  }

  const AttentionParams& params_;
  QuerySight<C> sight_;
  const unsigned char* mask_bits_ = nullptr;  // of this sequence
  int token_end_;
  int warp_row_;  // the warp's first row, in the sequence
  int num_rows_;  // of this warp; 0 or less: none
  float slopes_[C.has_alibi ? C.row_tiles : 1][2];
};
#line 7 "attention/attention.cu.tmpl"
#line 1 "attention/softmax.cuh"
// The online softmax of one warp and the second product: accumulators += V^T p. Fragment places as
// in scores.cuh.


// Running softmax and accumulators of one warp: its rows over the tokens it has seen.
template <AttentionConfig C>
struct OnlineSoftmax {
  using Traits = AttentionTraits<C>;

  float acc[Traits::kDepthTiles][C.row_tiles][4];  // [head elements][rows]
  // Rows 2c, 2c+1: the greatest score, the same in all lanes of a column; and the sum, of this
  // lane's tokens only until finish().
  float row_max[C.row_tiles][2];
  float row_sum[C.row_tiles][2];

  PAGEJIT_DEVICE void clear() {
#pragma unroll
    for (int j = 0; j < C.row_tiles; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        row_max[j][h] = kMinusInfinity;
        row_sum[j][h] = 0.0f;
      }
#pragma unroll
      for (int depth = 0; depth < Traits::kDepthTiles; ++depth) {
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[depth][j][e] = 0.0f;
      }
    }
  }

  // Turns scores into probabilities relative to the running maximum, as b operands of the second
  // product. scale_log2, positive, is applied to differences of scores. What a row does not see has
  // the score -inf, and in shared memory zeros or another token's row.
  PAGEJIT_DEVICE void step(Scores<C>& scores, float scale_log2,
                           uint32_t (&p)[Traits::kTokenTiles][C.row_tiles][2]) {
    float new_max[C.row_tiles][2];
    bool grew = false;
#pragma unroll
    for (int j = 0; j < C.row_tiles; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float m = row_max[j][h];
#pragma unroll
        for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            m = dev::max2(m, scores[i][j][half * 2 + h]);
          }
        }
        // Lanes 4r + c of one c hold the same rows.
        m = dev::max2(m, dev::shuffle_xor(m, 4));
        m = dev::max2(m, dev::shuffle_xor(m, 8));
        m = dev::max2(m, dev::shuffle_xor(m, 16));
        new_max[j][h] = m;
        grew |= m > row_max[j][h];
      }
    }
    // The maximum rarely grows after the first tiles: one vote saves the rescaling.
    if (dev::any(grew)) rescale(new_max, scale_log2);
#pragma unroll
    for (int j = 0; j < C.row_tiles; ++j) {
      // No token so far: any finite reference makes the probabilities 0, where -inf would make NaN.
      const float reference[2] = {row_max[j][0] == kMinusInfinity ? 0.0f : row_max[j][0],
                                  row_max[j][1] == kMinusInfinity ? 0.0f : row_max[j][1]};
#pragma unroll
      for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          // The difference first: it is exact near the maximum, so that logits of 1e5 keep the
          // digits that matter and the greatest probability is 1.
          const float exponent = (scores[i][j][e] - reference[e % 2]) * scale_log2;
          scores[i][j][e] = dev::exp2_approx(exponent);
          row_sum[j][e % 2] += scores[i][j][e];
        }
        // A result tile has tokens in rows, a b operand has them in columns.
        p[i][j][0] = dev::movmatrix_trans(pack<C>(scores[i][j][0], scores[i][j][1]));
        p[i][j][1] = dev::movmatrix_trans(pack<C>(scores[i][j][2], scores[i][j][3]));
      }
    }
  }

  PAGEJIT_DEVICE void accumulate(const uint32_t (&p)[Traits::kTokenTiles][C.row_tiles][2],
                                 const KvStage<C>& stage) {
    // V^T is the a operand: rows are head elements. Matrices as stored: (tokens 0-7, 8-15) x
    // (elements 0-7, 8-15).
    const int row = dev::lane_idx() / 16 * 8 + dev::lane_idx() % 8;
    const int column = dev::lane_idx() / 8 % 2 * 8;
#pragma unroll
    for (int depth = 0; depth < Traits::kDepthTiles; ++depth) {
#pragma unroll
      for (int i = 0; i < Traits::kTokenTiles; ++i) {
        uint32_t a[4];
        dev::ldmatrix_x4_trans(a, &stage.v[i * 16 + row][depth * 16 + column]);
#pragma unroll
        for (int j = 0; j < C.row_tiles; ++j) mma<C>(acc[depth][j], a, p[i][j][0], p[i][j][1]);
      }
    }
  }

  // Adds up the lanes' sums.
  PAGEJIT_DEVICE void finish() {
#pragma unroll
    for (int j = 0; j < C.row_tiles; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        row_sum[j][h] += dev::shuffle_xor(row_sum[j][h], 4);
        row_sum[j][h] += dev::shuffle_xor(row_sum[j][h], 8);
        row_sum[j][h] += dev::shuffle_xor(row_sum[j][h], 16);
      }
    }
  }

 private:
  PAGEJIT_DEVICE void rescale(const float (&new_max)[C.row_tiles][2], float scale_log2) {
#pragma unroll
    for (int j = 0; j < C.row_tiles; ++j) {
      float factor[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        // A first maximum finds nothing to keep.
        factor[h] = row_max[j][h] == kMinusInfinity
                        ? 0.0f
                        : dev::exp2_approx((row_max[j][h] - new_max[j][h]) * scale_log2);
        row_max[j][h] = new_max[j][h];
        row_sum[j][h] *= factor[h];
      }
#pragma unroll
      for (int depth = 0; depth < Traits::kDepthTiles; ++depth) {
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[depth][j][e] *= factor[e % 2];
      }
    }
  }
};
#line 8 "attention/attention.cu.tmpl"
#line 1 "attention/merge.cuh"
// Putting partial results together: the token groups of a CTA through shared memory, then the
// splits of a sequence through the workspace. Both combine (maximum, sum, accumulators) triples in
// a fixed order, so that a result does not depend on timing.


using pagejit_shared::PartialStats;

// Where the results of one CTA's rows go: those of one sequence and KV head.
template <AttentionConfig C>
struct AttentionOutput {
  static constexpr int kPartialRows = pagejit_shared::partial_rows(C);

  uint16_t* out;  // [query tokens of the sequence, group_size, head_size] by strides
  int64_t out_stride_token;
  int64_t out_stride_head;
  float* lse;       // [query tokens of the sequence, num_heads] from this KV head's first, or null
  int64_t num_heads;  // of the model
  const float* sinks;  // [group_size]
  int row_begin;       // the CTA's first row
  int num_rows;
  PartialStats* stats;  // [num_splits, kPartialRows]
  float* acc;           // [num_splits, kPartialRows, head_size]
  uint32_t* counters;   // [merge units]
  float scale_log2;     // of differences of maxima; positive

  PAGEJIT_DEVICE AttentionOutput(const AttentionParams& params, const AttentionWork& work) {
    const int64_t num_kv_heads = params.num_kv_heads;
    const int64_t head = work.kv_head_idx * static_cast<int64_t>(C.group_size);
    const int64_t query_begin = work.query_begin;
    row_begin = work.row_begin;
    num_rows = work.num_rows;
    num_heads = num_kv_heads * C.group_size;
    scale_log2 = score_scale_log2<C>(params);
    out_stride_token = params.out_stride_token;
    out_stride_head = params.out_stride_head;
    out = static_cast<uint16_t*>(params.out) + query_begin * out_stride_token +
          head * out_stride_head;
    lse = params.lse == nullptr ? nullptr : params.lse + query_begin * num_heads + head;
    sinks = C.has_sinks ? params.sinks + head : nullptr;
    const int64_t sequence_head = work.seq_idx * num_kv_heads + work.kv_head_idx;
    auto* workspace = static_cast<unsigned char*>(params.workspace);
    const int64_t partial = sequence_head * params.num_splits * kPartialRows;
    stats = reinterpret_cast<PartialStats*>(workspace + pagejit_shared::partial_stats_offset()) +
            partial;
    acc = reinterpret_cast<float*>(
              workspace + pagejit_shared::partial_acc_offset(params.num_seqs, num_kv_heads,
                                                             params.num_splits, kPartialRows)) +
          partial * C.head_size;
    counters = reinterpret_cast<uint32_t*>(workspace + pagejit_shared::kCountersOffset) +
               sequence_head * pagejit_shared::merge_units(kPartialRows);
  }

  // Merge units that have rows.
  PAGEJIT_DEVICE int num_units() const { return pagejit_shared::merge_units(num_rows); }
  // Rows of a merge unit; the last one may have fewer.
  PAGEJIT_DEVICE int rows_of_unit(int unit) const {
    const int rows_left = num_rows - unit * pagejit_shared::kMergeUnitRows;
    return rows_left < pagejit_shared::kMergeUnitRows ? rows_left : pagejit_shared::kMergeUnitRows;
  }
};

// Four consecutive elements of one head: 16 bytes of f32, 8 bytes of the output.
struct alignas(16) Quad {
  float v[4];
};
struct alignas(8) HalfQuad {
  uint32_t word[2];
};

// A running (maximum, sum, 4 accumulators).
struct Partial {
  float row_max = kMinusInfinity;
  float row_sum = 0.0f;
  Quad acc = {};

  // Adds a batch; a missing one is {-inf, 0} with any finite accumulators. Maxima are scores: the
  // weights are 2^(difference * scale_log2).
  template <int kCount>
  PAGEJIT_DEVICE void add(const PartialStats (&stats)[kCount], const Quad (&others)[kCount],
                          float scale_log2) {
    float new_max = row_max;
#pragma unroll
    for (int i = 0; i < kCount; ++i) new_max = dev::max2(new_max, stats[i].row_max);
    // Where there is no token at all any finite reference makes the weights 0; -inf would make NaN.
    const float reference = new_max == kMinusInfinity ? 0.0f : new_max;
    const float mine = dev::exp2_approx((row_max - reference) * scale_log2);
    row_max = new_max;
    row_sum *= mine;
#pragma unroll
    for (int e = 0; e < 4; ++e) acc.v[e] *= mine;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float theirs = dev::exp2_approx((stats[i].row_max - reference) * scale_log2);
      row_sum += stats[i].row_sum * theirs;
#pragma unroll
      for (int e = 0; e < 4; ++e) acc.v[e] += others[i].v[e] * theirs;
    }
  }
};

// The sink takes part in the sum, without a value.
template <AttentionConfig C>
PAGEJIT_DEVICE void add_sink(const AttentionOutput<C>& output, int head, Partial& partial) {
  const PartialStats sink[1] = {
      {dev::load_global_nc(output.sinks + head) * kLog2E / output.scale_log2, 1.0f}};
  const Quad no_value[1] = {};
  partial.add(sink, no_value, output.scale_log2);
}

// Writes 4 elements of the final result of a row of the CTA, and its lse with the first ones.
template <AttentionConfig C>
PAGEJIT_DEVICE void store_result(const AttentionOutput<C>& output, int row, int element,
                                 Partial partial) {
  const RowPlace place = place_of_row<C>(output.row_begin + row);
  if constexpr (C.has_sinks) add_sink<C>(output, place.head, partial);
  // A sum of 0 means no token, or none above -inf: out = 0, lse = -inf. A NaN stays one.
  const float inverse = partial.row_sum == 0.0f ? 0.0f : dev::rcp_approx(partial.row_sum);
  const HalfQuad packed = {{pack<C>(partial.acc.v[0] * inverse, partial.acc.v[1] * inverse),
                            pack<C>(partial.acc.v[2] * inverse, partial.acc.v[3] * inverse)}};
  uint16_t* start =
      output.out + place.token * output.out_stride_token + place.head * output.out_stride_head;
  dev::store_global(reinterpret_cast<HalfQuad*>(start + element), packed);
  if (element == 0 && output.lse != nullptr) {
    const float lse_log2 =
        partial.row_max * output.scale_log2 + dev::log2_approx(partial.row_sum);
    dev::store_global(output.lse + place.token * output.num_heads + place.head, kLn2 * lse_log2);
  }
}

// Puts one unit's rows into shared memory, as far as this warp has them.
template <AttentionConfig C>
PAGEJIT_DEVICE void stage_unit(MergeBuffer<C>& merge, const OnlineSoftmax<C>& softmax, int unit,
                               int token_group, int row_warp) {
  using Traits = AttentionTraits<C>;
  const int element = dev::lane_idx() / 4;
  const int column = dev::lane_idx() % 4 * 2;
#pragma unroll
  for (int j = 0; j < C.row_tiles; ++j) {
    const int first_row =
        row_warp * Traits::kWarpRows + j * 8 - unit * pagejit_shared::kMergeUnitRows;
    if (first_row < 0 || first_row >= Traits::kMergeRows) continue;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = first_row + column + h;
      if (element == 0) {
        merge.stats[token_group][row] = {softmax.row_max[j][h], softmax.row_sum[j][h]};
      }
#pragma unroll
      for (int depth = 0; depth < Traits::kDepthTiles; ++depth) {
        merge.acc[token_group][row][depth * 16 + element] = softmax.acc[depth][j][h];
        merge.acc[token_group][row][depth * 16 + element + 8] = softmax.acc[depth][j][h + 2];
      }
    }
  }
}

// Merges the token groups of this CTA for one unit: into the result, or into the workspace where
// other splits follow.
template <AttentionConfig C>
PAGEJIT_DEVICE void merge_token_groups(const AttentionOutput<C>& output, const MergeBuffer<C>& merge,
                                       const AttentionWork& work, int unit) {
  constexpr int kRowQuads = C.head_size / 4;
  for (int i = dev::thread_idx(); i < output.rows_of_unit(unit) * kRowQuads;
       i += AttentionTraits<C>::kThreads) {
    const int row_in_unit = i / kRowQuads;
    const int element = i % kRowQuads * 4;
    PartialStats stats[C.token_groups];
    Quad acc[C.token_groups];
#pragma unroll
    for (int group = 0; group < C.token_groups; ++group) {
      stats[group] = merge.stats[group][row_in_unit];
      acc[group] = *reinterpret_cast<const Quad*>(&merge.acc[group][row_in_unit][element]);
    }
    Partial partial;
    partial.add(stats, acc, output.scale_log2);
    const int row = unit * pagejit_shared::kMergeUnitRows + row_in_unit;
    if (work.num_active_splits <= 1) {
      store_result<C>(output, row, element, partial);
    } else {
      const int64_t place = static_cast<int64_t>(work.split_idx) * output.kPartialRows + row;
      dev::store_global(reinterpret_cast<Quad*>(output.acc + place * C.head_size + element),
                        partial.acc);
      if (element == 0) {
        dev::store_global(output.stats + place, PartialStats{partial.row_max, partial.row_sum});
      }
    }
  }
}

// The last CTA of a merge unit adds up the unit's splits, in their order.
template <AttentionConfig C>
PAGEJIT_DEVICE void merge_splits(const AttentionOutput<C>& output, int unit, int num_splits) {
  constexpr int kRowQuads = C.head_size / 4;
  // Loads in flight per thread: 8 x 24 bytes hide most of an L2 round trip within 48 registers.
  constexpr int kBatch = 8;
  for (int i = dev::thread_idx(); i < output.rows_of_unit(unit) * kRowQuads;
       i += AttentionTraits<C>::kThreads) {
    const int row = unit * pagejit_shared::kMergeUnitRows + i / kRowQuads;
    const int element = i % kRowQuads * 4;
    // The next splits' rows are at constant distances.
    const PartialStats* stats_of_row = output.stats + row;
    const float* acc_of_row = output.acc + row * C.head_size + element;
    Partial partial;
    for (int first = 0; first < num_splits; first += kBatch) {
      PartialStats stats[kBatch];
      Quad acc[kBatch];
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        stats[b] = {kMinusInfinity, 0.0f};
        acc[b] = {};
        if (first + b < num_splits) {
          stats[b] = dev::load_global(stats_of_row + b * output.kPartialRows);
          acc[b] = dev::load_global(
              reinterpret_cast<const Quad*>(acc_of_row + b * output.kPartialRows * C.head_size));
        }
      }
      partial.add(stats, acc, output.scale_log2);
      stats_of_row += kBatch * output.kPartialRows;
      acc_of_row += kBatch * output.kPartialRows * C.head_size;
    }
    store_result<C>(output, row, element, partial);
  }
}

// Counts this split in at the unit's counter; true in all threads of the CTA that comes last. The
// counter wraps to 0 by itself, ready for the next launch.
template <AttentionConfig C>
PAGEJIT_DEVICE bool arrive_last(const AttentionParams& params, const AttentionOutput<C>& output,
                                const AttentionWork& work, int unit, int& shared_flag) {
  dev::sync_cta();  // this split's partials are written before one thread publishes them
  if (dev::thread_idx() == 0) {
    const uint32_t limit = static_cast<uint32_t>(work.num_active_splits - 1);
    const uint32_t arrived = dev::atomic_inc_acq_rel(output.counters + unit, limit);
    if constexpr (C.debug) {
      if (arrived > limit) {
        report_debug(params, pagejit_shared::kDebugBadCounter, work.seq_idx, unit, arrived);
      }
    }
    shared_flag = arrived == limit;
  }
  dev::sync_cta();  // the flag, and with it the other splits' partials, are visible to all threads
  return shared_flag != 0;
}
#line 9 "attention/attention.cu.tmpl"
#line 1 "attention/attention.cuh"
// Paged attention over ragged queries, split-KV in one launch.
//
// A CTA serves a tile of rows of one (sequence, KV head) over one split of its tokens; see
// ../README.md for the schedule and the counts. K and V rows leave global memory once for all rows
// of the tile.


// Threads of a token group meet where one's copies become the others' input.
template <AttentionConfig C>
PAGEJIT_DEVICE void sync_group(int token_group) {
  if constexpr (C.row_warps == 1) {
    dev::sync_warp();
  } else if constexpr (C.token_groups == 1) {
    dev::sync_cta();
  } else {
    // Barrier 0 is the CTA's.
    dev::sync_named(1 + token_group, C.row_warps * 32);
  }
}

// Streams this CTA's tokens through the running softmax of each warp.
template <AttentionConfig C>
PAGEJIT_DEVICE void attend(const AttentionParams& params, const AttentionWork& work,
                           AttentionShared<C>& shared, OnlineSoftmax<C>& softmax, int token_group,
                           int row_warp) {
  using Traits = AttentionTraits<C>;
  constexpr int kStages = C.num_stages;
  KvStream<C> stream(params, work, shared.u.ring[token_group], token_group, row_warp);

  // All block ids of the first tiles at once: one latency, not one per stage.
  KvRowOffsets first_rows[kStages];
#pragma unroll
  for (int tile = 0; tile < kStages; ++tile) first_rows[tile] = stream.locate(tile);
  stream.clear_pad();

  Query<C> query;
  query.load(QuerySource(params, work, C.group_size), shared, row_warp);
  const ScoreChange<C> change(params, work, row_warp);
  const float scale_log2 = score_scale_log2<C>(params);

  KvRowOffsets rows = first_rows[0];
  // The first kStages - 1 rounds only fill the ring.
  for (int tile = 1 - kStages; tile < stream.num_tiles(); ++tile) {
    if (tile >= 0) {
      // Groups of copies so far: 2 per tile for tile + kStages - 1 tiles. K of this one is number
      // 2 * tile, so all but the newest 2 * (kStages - 1) - 1 must be there.
      dev::cp_async_wait<2 * (kStages - 1) - 1>();
      // K of this tile is there for all warps, and all are done with the tile before.
      sync_group<C>(token_group);
    }
    stream.issue(tile + kStages - 1, rows);
    if (tile < 0) {
      // A constant index for each round keeps first_rows in registers.
#pragma unroll
      for (int i = 1; i < kStages; ++i) {
        if (tile + kStages == i) rows = first_rows[i];
      }
      continue;
    }
    rows = stream.locate(tile + kStages);

    const KvStage<C>& stage = stream.next_stage();
    const int first_token = stream.first_token(tile);
    const bool sees = change.sees(first_token);
    uint32_t p[Traits::kTokenTiles][C.row_tiles][2];
    if (sees) {
      Scores<C> scores;
      compute_scores<C>(scores, stage, query);
      change.apply(scores, first_token);
      softmax.step(scores, scale_log2, p);
    }

    // Now tile + kStages tiles; V of this one is number 2 * tile + 1.
    dev::cp_async_wait<2 * (kStages - 1)>();
    sync_group<C>(token_group);  // V of this tile is there for all warps
    if (sees) softmax.accumulate(p, stage);
  }
  softmax.finish();
}

template <AttentionConfig C>
PAGEJIT_DEVICE void attention(const AttentionParams& params) {
  using Traits = AttentionTraits<C>;
  static_assert(sizeof(AttentionShared<C>) == C.shared_bytes,
                "host and device disagree on shared memory");
  auto& shared = *reinterpret_cast<AttentionShared<C>*>(dev::dynamic_shared());

  if constexpr (C.debug) {
    auto* header = static_cast<pagejit_shared::WorkspaceHeader*>(params.workspace);
    const uint32_t magic = dev::load_global(&header->magic);
    if (magic != pagejit_shared::kWorkspaceMagic) {
      // Nothing in this memory can be trusted, so there is no compare-and-swap: one thread of the
      // grid writes.
      if (dev::block_idx_x() + dev::block_idx_y() + dev::block_idx_z() + dev::thread_idx() == 0) {
        dev::store_global(&header->debug_value, static_cast<long long>(magic));
        dev::store_global(&header->debug_code,
                          static_cast<int>(pagejit_shared::kDebugBadWorkspace));
      }
      return;
    }
  }

  AttentionWork work;
  if (!find_work<C>(params, work)) return;

  const int warp = dev::thread_idx() / 32;
  const int token_group = warp / C.row_warps;
  const int row_warp = warp % C.row_warps;
  OnlineSoftmax<C> softmax;
  softmax.clear();
  attend<C>(params, work, shared, softmax, token_group, row_warp);

  const AttentionOutput<C> output(params, work);
  MergeBuffer<C>& merge = shared.u.merge;
  const int num_units = output.num_units();
  uint32_t units_to_merge = 0;
  for (int i = 0; i < num_units; ++i) {
    // Each split starts with another unit, so that splits which finish together are last at
    // different units.
    const int unit = (i + work.split_idx) % num_units;
    dev::sync_cta();  // the ring, or the unit before, has been read by all
    stage_unit<C>(merge, softmax, unit, token_group, row_warp);
    dev::sync_cta();  // the unit is there for all
    merge_token_groups<C>(output, merge, work, unit);
    if (work.num_active_splits > 1 &&
        arrive_last<C>(params, output, work, unit, merge.is_last_split)) {
      units_to_merge |= 1u << unit;
    }
  }
  // After all arrivals, so that no other CTA waits for this one's merging.
  for (int unit = 0; unit < num_units; ++unit) {
    if (units_to_merge >> unit & 1) merge_splits<C>(output, unit, work.num_active_splits);
  }
}
#line 10 "attention/attention.cu.tmpl"

