// The kernels of a sparse-attention indexer (DeepSeek-V3.2): quantising index keys into a paged
// cache, gathering them back, and the greatest values of rows of logits. Thread-safety: specs and
// arguments are plain values; a handle may be launched from any number of threads at once.
//
// The format of a page is vLLM's (indexer_k_quant_and_cache): block_size * head_size codes of e4m3,
// token by token, then block_size * (head_size / quant_block_size) scales of f32; value = code *
// scale.
#pragma once

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
class TopKKernel;

// Bytes of a page.
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
  int block_size = 64;  // tokens per page: [1, 65536]
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
  // Pages, page i at i * block_stride_bytes. Both are multiples of 4 and of the greatest power of
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
  // cu_seq_lens[i + 1]).
  const int32_t* cu_seq_lens = nullptr;
  // int32 [num_seqs]: the token of the sequence that its first row is. Null: 0 for all.
  const int32_t* seq_starts = nullptr;
  int32_t num_seqs = 0;
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
  int32_t num_columns = 0;     // ranges are cut off here
  int32_t k = 0;               // at least 1
  int32_t* indices = nullptr;  // [num_rows, k]
  int64_t indices_stride = 0;

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

class PAGEJIT_EXPORT TopKKernel : public KernelHandle {
 public:
  Status launch(const TopKArgs& args, Stream stream) const;
  Status init_debug_report(void* report, Stream stream) const;
  Status read_debug_report(void* report, Stream stream) const;
};

}  // namespace pagejit
