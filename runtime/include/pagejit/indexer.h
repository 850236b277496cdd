// The kernels of a sparse-attention indexer (DeepSeek-V3.2): quantising index keys into a paged
// cache, gathering them back, logits of queries and keys, and the greatest values of rows of
// logits. Thread-safety: specs and arguments are plain values; a handle may be launched from any
// number of threads at once.
//
// The format of a block is vLLM's (indexer_k_quant_and_cache): block_size * head_size codes of
// e4m3, token by token, then block_size * (head_size / quant_block_size) scales of f32; value =
// code * scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "pagejit/cache_write.h"
#include "pagejit/export.h"
#include "pagejit/kernel_handle.h"
#include "pagejit/launch.h"
#include "pagejit/spec.h"
#include "pagejit/status.h"
#include "pagejit/target.h"

namespace pagejit {

class IndexKeyWriteKernel;
class IndexKeyGatherKernel;
class IndexLogitsKernel;
class TopKKernel;

// Bytes of a block of keys, which vLLM calls a page.
constexpr int64_t index_page_bytes(int block_size, int head_size, int quant_block_size) {
  return int64_t{block_size} * (head_size + head_size / quant_block_size * int64_t{4});
}

// ---- Quantising keys into the cache ----

struct PAGEJIT_EXPORT IndexKeyWriteSpec {
  using Handle = IndexKeyWriteKernel;

  DataType dtype = DataType::kBFloat16;  // of k: f16, bf16 or f32
  int head_size = 128;                   // [4, 4096]
  int quant_block_size =
      128;              // elements that share a scale: a multiple of 4 that divides head_size
  int block_size = 64;  // tokens per block: [1, 65536]
  // Scales are rounded up to a power of two (ue8m0), still stored as f32.
  bool power_of_two_scale = false;
  // What k and its stride are multiples of, in bytes: 1, 2, 4, 8 or 16, at least an element.
  int row_alignment = 16;
  bool debug = false;  // check every slot, report that of the lowest token

  bool operator==(const IndexKeyWriteSpec&) const = default;
};

// The canonical text is e.g. "index_key_write dtype=bf16 head_size=128 quant_block_size=128
// block_size=64"; power_of_two_scale, row_alignment and debug follow where they are not the
// default.
template <>
PAGEJIT_EXPORT Status validate(const IndexKeyWriteSpec& spec);
template <>
PAGEJIT_EXPORT Status supports(const IndexKeyWriteSpec& spec, const Target& target);
template <>
PAGEJIT_EXPORT std::string canonical_text(const IndexKeyWriteSpec& spec);

// Device pointers. The scale of a quant block is max(greatest magnitude, 1e-4) / 448, rounded up to
// a power of two where the spec asks for it; code = value / scale, to nearest even. NaN stays NaN
// and does not count for the scale; an infinite value makes the scale infinite.
struct IndexKeyWriteArgs {
  const void* k = nullptr;     // [num_tokens, head_size], contiguous rows
  int64_t k_stride_token = 0;  // elements
  // Blocks, block i at i * block_stride_bytes. Both are multiples of 4 and of the greatest power of
  // two, at most 16, that divides index_page_bytes().
  void* cache = nullptr;
  int64_t block_stride_bytes = 0;
  // int64 [num_tokens]: block * block_size + token of the block; negative: the token is not
  // written. Two tokens must not have one slot. num_tokens is the length of this array; k may have
  // more rows.
  const int64_t* slot_mapping = nullptr;
  int32_t num_tokens = 0;  // 0 launches nothing

  // Where the spec has debug; debug_report as in CacheWriteArgs.
  int64_t num_blocks = 0;
  void* debug_report = nullptr;
};

// ---- Gathering keys into contiguous rows ----

struct PAGEJIT_EXPORT IndexKeyGatherSpec {
  using Handle = IndexKeyGatherKernel;

  int head_size = 128;  // these three as in IndexKeyWriteSpec
  int quant_block_size = 128;
  int block_size = 64;
  // What k_out and its stride are multiples of, in bytes: 4, 8 or 16.
  int row_alignment = 16;
  bool debug = false;  // check every block id, report that of the lowest token

  bool operator==(const IndexKeyGatherSpec&) const = default;
};

// The canonical text is e.g. "index_key_gather head_size=128 quant_block_size=128 block_size=64";
// row_alignment and debug follow where they are not the default.
template <>
PAGEJIT_EXPORT Status validate(const IndexKeyGatherSpec& spec);
template <>
PAGEJIT_EXPORT Status supports(const IndexKeyGatherSpec& spec, const Target& target);
template <>
PAGEJIT_EXPORT std::string canonical_text(const IndexKeyGatherSpec& spec);

// Device pointers.
struct IndexKeyGatherArgs {
  const void* cache = nullptr;  // as in IndexKeyWriteArgs
  int64_t block_stride_bytes = 0;
  // int32 [num_seqs, at least as many blocks as a sequence has], row stride block_table_stride.
  const int32_t* block_table = nullptr;
  int64_t block_table_stride = 0;
  // int32 [num_seqs + 1], from 0 on, not decreasing: sequence i becomes the rows [cu_seq_lens[i],
  // cu_seq_lens[i + 1]). vLLM's name for a kv_start_loc (launch.h).
  const int32_t* cu_seq_lens = nullptr;
  // int32 [num_seqs]: the token of the sequence that its first row is. Null: 0 for all.
  const int32_t* seq_starts = nullptr;
  int32_t num_seqs = 0;  // 0 launches nothing
  // Upper bound of cu_seq_lens[num_seqs]: the grid. 0 launches nothing.
  int32_t num_tokens = 0;

  void* k_out = nullptr;  // codes [num_tokens, head_size], row stride in bytes
  int64_t k_out_stride_token = 0;
  float* scale_out = nullptr;  // [num_tokens, head_size / quant_block_size], row stride in elements
  int64_t scale_out_stride_token = 0;

  // Where the spec has debug; debug_report as in CacheWriteArgs.
  int64_t num_blocks = 0;
  void* debug_report = nullptr;
};

// ---- Which columns of the logits a row has ----

// One of two ways; device pointers.
struct IndexRowRanges {
  // As prefill has it: row r has the columns [row_begins[r], row_ends[r]); row_begins null: all 0.
  const int32_t* row_begins = nullptr;  // int32 [num_rows]
  const int32_t* row_ends = nullptr;    // int32 [num_rows]
  // As decode has it: row r is query token i = r % next_n of sequence s = r / next_n, which sees
  // the columns [0, seq_lens[s] - next_n + i + 1). The others are null.
  const int32_t* seq_lens = nullptr;  // int32 [num_rows / next_n]
  int32_t next_n = 1;                 // at least 1, divides num_rows
};

// ---- Logits (DeepGEMM: fp8_mqa_logits and fp8_paged_mqa_logits) ----

struct PAGEJIT_EXPORT IndexLogitsSpec {
  using Handle = IndexLogitsKernel;

  int num_heads = 64;   // a multiple of 8 in [8, 128]
  int head_size = 128;  // a multiple of 32 in [32, 256]
  // Tokens per block, [1, 65536]: keys lie in blocks with one scale per key (quant_block_size
  // equals head_size). 0: keys are contiguous.
  int block_size = 0;
  // Columns that a row does not have become -inf; else they are not written.
  bool clean = false;
  // Check every block id (report that of the lowest sequence), or, where keys are contiguous, every
  // row's range (report the lowest row).
  bool debug = false;

  bool operator==(const IndexLogitsSpec&) const = default;
};

// The canonical text is e.g. "index_logits num_heads=64 head_size=128 block_size=64"; clean and
// debug follow where they are set.
template <>
PAGEJIT_EXPORT Status validate(const IndexLogitsSpec& spec);
template <>
PAGEJIT_EXPORT Status supports(const IndexLogitsSpec& spec, const Target& target);
template <>
PAGEJIT_EXPORT std::string canonical_text(const IndexLogitsSpec& spec);

// A stride for rows of so many columns that suits TopKSpec{}.
constexpr int64_t index_logits_stride(int64_t num_columns) { return (num_columns + 3) / 4 * 4; }
// How many rows of so many columns fit in a buffer; 0: not one, and columns have to be divided too.
constexpr int64_t index_logits_rows(int64_t budget_bytes, int64_t num_columns) {
  return num_columns < 1 ? 0 : budget_bytes / (index_logits_stride(num_columns) * int64_t{4});
}

// Device pointers. Row r has the columns that `ranges` give it, and
//   logits[r, n - column_begin] = k_scale[n] * sum over heads h of weights[r, h] *
//                                 max(0, sum over i of q[r, h, i] * k[n, i])
// for each key n of them in [column_begin, column_begin + num_columns), summed in f32. A product
// that is NaN counts as 0. Logits need not hold all rows and columns at once: launch for a part of
// the rows with pointers that are moved to its first row (with blocks whole sequences: block_table
// and seq_lens move too), for a part of the columns with column_begin; index_logits_rows() tells
// how many rows fit.
struct IndexLogitsArgs {
  const void* q = nullptr;   // e4m3 [num_rows, num_heads, head_size]; 4-byte aligned
  int64_t q_stride_row = 0;  // bytes, multiples of 4
  int64_t q_stride_head = 0;
  // f32 [num_rows, num_heads], row stride in elements. What q was scaled by belongs in here.
  const float* weights = nullptr;
  int64_t weights_stride = 0;

  // Contiguous keys: e4m3 [num_keys, head_size] with row stride k_stride in bytes, both multiples
  // of 16, or of 8 where head_size is no multiple of 64; k_scale f32 [num_keys]. Blocks: as in
  // IndexKeyWriteArgs, k_stride is their stride in bytes; k_scale is not used.
  const void* k = nullptr;
  int64_t k_stride = 0;
  const float* k_scale = nullptr;
  int32_t num_keys = 0;  // contiguous keys; columns end here at the latest
  // Blocks: int32 [num_rows / ranges.next_n, at least as many blocks as the columns need].
  const int32_t* block_table = nullptr;
  int64_t block_table_stride = 0;

  // With blocks row r is of sequence r / next_n also where the ranges are begins and ends. Keys are
  // read from the first to the last that any of up to four neighbouring rows (of a sequence) has.
  IndexRowRanges ranges;
  int32_t num_rows = 0;  // 0 launches nothing
  int32_t column_begin = 0;
  // 0 launches nothing. At most 33,553,920, half of that where head_size is above 128, and with
  // column_begin at most 2,147,418,112.
  int32_t num_columns = 0;

  float* logits = nullptr;  // [num_rows, num_columns]
  int64_t logits_stride = 0;

  // Where the spec has debug; as in CacheWriteArgs. num_blocks: of keys in blocks.
  int64_t num_blocks = 0;
  void* debug_report = nullptr;
};

// ---- The greatest values of each row (vLLM: top_k_per_row_prefill and _decode) ----

struct PAGEJIT_EXPORT TopKSpec {
  using Handle = TopKKernel;

  // What logits and their stride are multiples of, in bytes: 4, 8 or 16.
  int row_alignment = 16;
  bool debug = false;  // check every row's range, report that of the lowest row

  bool operator==(const TopKSpec&) const = default;
};

// The canonical text is e.g. "top_k"; row_alignment and debug follow where they are not the
// default.
template <>
PAGEJIT_EXPORT Status validate(const TopKSpec& spec);
template <>
PAGEJIT_EXPORT Status supports(const TopKSpec& spec, const Target& target);
template <>
PAGEJIT_EXPORT std::string canonical_text(const TopKSpec& spec);

// Device pointers; strides count elements. Row r of the result holds the indices of the k greatest
// of the row's logits, counted from the row's begin, in rising order, and -1 behind them where the
// row has fewer than k. Of equal values those with the lowest indices are taken, so the result
// depends on the row alone. -0 equals 0. -inf is a value like any other; NaN is below all: both are
// taken where there is nothing greater. Logits outside of a row's range are not read.
struct TopKArgs {
  const float* logits = nullptr;  // [num_rows, num_columns]
  int64_t logits_stride = 0;
  IndexRowRanges ranges;
  int32_t num_rows = 0;        // 0 launches nothing
  int32_t num_columns = 0;     // ranges are cut off here; [0, 2147418112]
  int32_t k = 0;               // at least 1; at most 16,777,215 where rows are split
  int32_t* indices = nullptr;  // [num_rows, k]
  int64_t indices_stride = 0;

  // Where rows are few and long, several CTAs do a row with a workspace: device memory of at least
  // TopKKernel::workspace_bytes(), aligned to 16, initialised once by workspace_init(), used by one
  // stream at a time, by any launches of any TopKKernel. The result is the same. num_splits: CTAs
  // of a row, [0, 128]. 0: as choose_num_splits() says, 1 without a workspace. More than 1 only for
  // up to 128 rows.
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
  int32_t num_splits = 0;

  // Where the spec has debug; as in CacheWriteArgs.
  void* debug_report = nullptr;
};

// ---- Handles, made by Engine::prepare() ----

// launch() enqueues one launch on `stream`: it never allocates, locks or reads device memory on
// success and is safe during stream capture; kInvalidArgument, kDriverError. The debug report works
// as that of a CacheWriteKernel.

class PAGEJIT_EXPORT IndexKeyWriteKernel : public KernelHandle {
 public:
  Status launch(const IndexKeyWriteArgs& args, Stream stream) const;
  Status init_debug_report(void* report, Stream stream) const;
  Status read_debug_report(void* report, Stream stream) const;
};

class PAGEJIT_EXPORT IndexKeyGatherKernel : public KernelHandle {
 public:
  Status launch(const IndexKeyGatherArgs& args, Stream stream) const;
  Status init_debug_report(void* report, Stream stream) const;
  Status read_debug_report(void* report, Stream stream) const;
};

class PAGEJIT_EXPORT IndexLogitsKernel : public KernelHandle {
 public:
  Status launch(const IndexLogitsArgs& args, Stream stream) const;
  Status init_debug_report(void* report, Stream stream) const;
  Status read_debug_report(void* report, Stream stream) const;
};

// launch() also returns kWorkspace, where it needs more workspace than there is or it is
// misaligned.
class PAGEJIT_EXPORT TopKKernel : public KernelHandle {
 public:
  Status launch(const TopKArgs& args, Stream stream) const;

  // By the counts of `args`: how many CTAs do a row where num_splits is 0 and there is a workspace,
  // 1 where num_rows or k is below 1; and the bytes of workspace that its launch then needs, 0
  // where it needs none. With num_splits, the bytes for so many. No pointer is looked at.
  static int choose_num_splits(const TopKArgs& args);
  static size_t workspace_bytes(const TopKArgs& args);
  // Enqueues the one-time initialisation of a workspace: of its counters, the first 512 bytes.
  // kWorkspace where it is null, smaller or not 16-byte aligned; kInvalidArgument of an empty
  // handle; kDriverError.
  Status workspace_init(void* workspace, size_t workspace_bytes, Stream stream) const;

  Status init_debug_report(void* report, Stream stream) const;
  Status read_debug_report(void* report, Stream stream) const;
};

}  // namespace pagejit
