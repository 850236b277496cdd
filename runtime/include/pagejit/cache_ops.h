// What an engine does with a paged cache beside attention and writing: copying blocks within the
// caches, gathering sequences into contiguous rows, converting to and from 8-bit floats, and moving
// blocks between device and host. Thread-safety: specs and arguments are plain values; a handle may
// be launched from any number of threads at once.
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

class CopyBlocksKernel;
class GatherCacheKernel;
class ConvertFloat8Kernel;

// ---- Copying blocks within caches, as copy-on-write needs it ----

struct PAGEJIT_EXPORT CopyBlocksSpec {
  using Handle = CopyBlocksKernel;

  // What the caches' addresses, block_bytes and block_stride_bytes are multiples of: 1, 2, 4, 8 or
  // 16.
  int alignment = 16;
  // Check every block and that no copy depends on another's order; report the lowest bad pair and
  // leave such pairs out.
  bool debug = false;

  bool operator==(const CopyBlocksSpec&) const = default;
};

// The canonical text is e.g. "copy_blocks alignment=16", with "debug=1" where it is set.
template <>
PAGEJIT_EXPORT Status validate(const CopyBlocksSpec& spec);
template <>
PAGEJIT_EXPORT Status supports(const CopyBlocksSpec& spec, const Target& target);
template <>
PAGEJIT_EXPORT std::string canonical_text(const CopyBlocksSpec& spec);

struct CopyBlocksArgs {
  // Device array of num_caches device pointers: K and V of every layer, each on its own.
  void* const* caches = nullptr;
  int32_t num_caches = 0;  // [0, 65535]; 0 launches nothing
  // A block is block_bytes in one piece; block i begins at i * block_stride_bytes. A block of a
  // latent cache is block_size rows: block_size * kDsMlaRowBytes bytes with MlaFormat::kDsMla.
  // block_bytes: [1, 65535 * 1024 * the spec's alignment], with 16 almost 1 GiB.
  int64_t block_bytes = 0;
  int64_t block_stride_bytes = 0;
  // Device int64 [num_pairs, 2]: from, to. The copies run in any order: no target may be another
  // pair's target, or any pair's source.
  const int64_t* pairs = nullptr;
  int32_t num_pairs = 0;  // 0 launches nothing

  // Where the spec has debug; debug_report as in CacheWriteArgs.
  int64_t num_blocks = 0;
  void* debug_report = nullptr;
};

// ---- Gathering the tokens of sequences into contiguous rows ----

struct PAGEJIT_EXPORT GatherCacheSpec {
  using Handle = GatherCacheKernel;

  DataType kv_dtype = DataType::kBFloat16;   // of the caches: any type
  DataType out_dtype = DataType::kBFloat16;  // f16, bf16 or f32
  KvScale scale = KvScale::kNone;  // kNone unless kv_dtype has 8 bits; kTokenHead where it is int4
  // With kDsMla (vLLM: cp_gather_and_upconvert_fp8_kv_cache) there is no V and one KV head;
  // kv_dtype is fp8_e4m3, scale kNone, head_size 576, head_size_v 0, row_alignment at least 4.
  // Latent caches of other formats are gathered as K of one head, of head_size kv_lora_rank +
  // qk_rope_head_dim.
  KvLayout layout = KvLayout::kRows;
  int head_size = 128;  // as in CacheWriteSpec
  int head_size_v = 0;
  int block_size = 16;
  // As in CacheWriteSpec, of the caches and the result; with int4 at least two elements of
  // out_dtype.
  int row_alignment = 16;
  bool debug = false;  // check every block id, report that of the lowest token

  bool operator==(const GatherCacheSpec&) const = default;
};

// Elements per head of V.
constexpr int value_head_size(const GatherCacheSpec& spec) {
  return spec.head_size_v == 0 ? spec.head_size : spec.head_size_v;
}

// The canonical text is e.g. "gather_cache kv=fp8_e4m3 out=bf16 scale=head head_size=128
// block_size=16"; head_size_v, layout=vllm (or layout=ds_mla), row_alignment and debug follow where
// they are not the default.
template <>
PAGEJIT_EXPORT Status validate(const GatherCacheSpec& spec);
template <>
PAGEJIT_EXPORT Status supports(const GatherCacheSpec& spec, const Target& target);
template <>
PAGEJIT_EXPORT std::string canonical_text(const GatherCacheSpec& spec);

// Device pointers; strides count elements of their own tensor.
struct GatherCacheArgs {
  const void* k_cache = nullptr;
  const void* v_cache = nullptr;  // null: only K is gathered
  KvStrides k_strides;            // as in CacheWriteArgs
  KvStrides v_strides;

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
  int32_t num_kv_heads = 0;  // [1, 65535]; 1 with kDsMla

  // f32, as CacheWriteArgs says for each kind of scale; value = code * scale.
  const float* k_scale = nullptr;
  const float* v_scale = nullptr;

  // [num_tokens, num_kv_heads, head_size], of V head_size_v.
  void* k_out = nullptr;
  void* v_out = nullptr;
  int64_t out_stride_token = 0;
  int64_t out_stride_head = 0;
  // Of v_out where head_size_v is not head_size; else both have the strides above.
  int64_t v_out_stride_token = 0;
  int64_t v_out_stride_head = 0;

  // Where the spec has debug; debug_report as in CacheWriteArgs.
  int64_t num_blocks = 0;
  void* debug_report = nullptr;
};

// ---- Converting to and from 8-bit floats ----

struct PAGEJIT_EXPORT ConvertFloat8Spec {
  using Handle = ConvertFloat8Kernel;

  // One of them an 8-bit float, the other f16, bf16 or f32.
  DataType from_dtype = DataType::kBFloat16;
  DataType to_dtype = DataType::kFloat8E4m3;

  bool operator==(const ConvertFloat8Spec&) const = default;
};

// The canonical text is e.g. "convert_float8 from=bf16 to=fp8_e4m3".
template <>
PAGEJIT_EXPORT Status validate(const ConvertFloat8Spec& spec);
template <>
PAGEJIT_EXPORT Status supports(const ConvertFloat8Spec& spec, const Target& target);
template <>
PAGEJIT_EXPORT std::string canonical_text(const ConvertFloat8Spec& spec);

struct ConvertFloat8Args {
  // Device memory, 16-byte aligned, contiguous.
  const void* from = nullptr;
  void* to = nullptr;
  int64_t count = 0;   // elements, a multiple of 4 (8 between 16 and 8 bits); 0 launches nothing
  float scale = 1.0f;  // code = value / scale, value = code * scale; finite, not 0
};

// ---- Handles, made by Engine::prepare() ----

// launch() enqueues one launch on `stream`: it never allocates, locks or reads device memory on
// success and is safe during stream capture; kInvalidArgument, kDriverError. The debug report works
// as that of a CacheWriteKernel.

class PAGEJIT_EXPORT CopyBlocksKernel : public KernelHandle {
 public:
  Status launch(const CopyBlocksArgs& args, Stream stream) const;
  Status init_debug_report(void* report, Stream stream) const;
  Status read_debug_report(void* report, Stream stream) const;
};

class PAGEJIT_EXPORT GatherCacheKernel : public KernelHandle {
 public:
  Status launch(const GatherCacheArgs& args, Stream stream) const;
  Status init_debug_report(void* report, Stream stream) const;
  Status read_debug_report(void* report, Stream stream) const;
};

class PAGEJIT_EXPORT ConvertFloat8Kernel : public KernelHandle {
 public:
  Status launch(const ConvertFloat8Args& args, Stream stream) const;
};

// ---- Moving blocks between device and host: no kernel, Engine::swap_blocks() ----

enum class SwapDirection : uint8_t { kDeviceToHost = 0, kHostToDevice = 1, kDeviceToDevice = 2 };

struct SwapBlocksArgs {
  SwapDirection direction = SwapDirection::kDeviceToHost;
  // The host's side should be pinned (cuMemHostAlloc, cuMemHostRegister): from and to other memory
  // the driver copies through a buffer of its own, and the call may wait.
  const void* from = nullptr;
  void* to = nullptr;
  int64_t block_bytes = 0;        // at least 1
  int64_t from_stride_bytes = 0;  // block i begins at i * stride
  int64_t to_stride_bytes = 0;
  // Host int64 [num_pairs, 2]: from block, to block; read by the call and not kept.
  const int64_t* pairs = nullptr;
  int32_t num_pairs = 0;
};

}  // namespace pagejit
