// Writing the keys and values of new tokens into a paged cache (vLLM: reshape_and_cache), for any
// layout, quantised on the way where the cache's type is smaller, with K and q rotated by their
// positions where asked for. Thread-safety: specs and arguments are plain values; a handle may be
// launched from any number of threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "pagejit/export.h"
#include "pagejit/kernel_handle.h"
#include "pagejit/launch.h"
#include "pagejit/spec.h"
#include "pagejit/status.h"
#include "pagejit/target.h"

namespace pagejit {

class CacheWriteKernel;

// How a quantised cache is scaled: value = code * scale.
enum class KvScale : uint8_t {
  kNone = 0,       // not quantised: kv_dtype equals dtype
  kTensor = 1,     // one factor for K, one for V, given
  kHead = 2,       // one per KV head, given
  kTokenHead = 3,  // one per token and KV head, found from the row's greatest magnitude and written
};

// Which elements of a row turn together: i and i + rotary_dim / 2, or 2 i and 2 i + 1.
enum class RopeStyle : uint8_t { kNone = 0, kNeox = 1, kInterleaved = 2 };

// Only what changes the code.
struct PAGEJIT_EXPORT CacheWriteSpec {
  using Handle = CacheWriteKernel;

  DataType dtype = DataType::kBFloat16;  // of key, value and q: f16, bf16 or f32
  // Of the caches: dtype, an 8-bit float, int8 or int4.
  DataType kv_dtype = DataType::kBFloat16;
  // kNone where kv_dtype is dtype; int8 and int4 only with kTokenHead.
  KvScale scale = KvScale::kNone;
  KvLayout layout = KvLayout::kRows;  // int4 only with kRows
  // Elements per head of K and q, and of V unless head_size_v says otherwise: [1, 4096]; with kVllm
  // a multiple of 16 bytes of kv_dtype, with int4 even.
  int head_size = 128;
  int head_size_v = 0;  // elements per head of V: 0 or head_size for the same; with int4 even
  int block_size = 16;  // tokens per KV block: [1, 65536]
  RopeStyle rope = RopeStyle::kNone;
  // With a rope: even, [2, head_size], with int4 and kNeox a multiple of 4; else 0.
  int rotary_dim = 0;
  DataType cos_sin_dtype = DataType::kFloat32;  // f16, bf16 or f32; f32 where there is no rope
  // What all pointers and strides of key, value, q and the caches are multiples of, in bytes: 1, 2,
  // 4, 8 or 16. Less makes narrower accesses. With int4 at least two elements of dtype: what these
  // become, a byte or more, is what the caches are aligned to.
  int row_alignment = 16;
  // Check every slot and position on the device, report the first bad one of each.
  bool debug = false;
  bool pdl = false;  // programmatic dependent launch, as in KernelSpec

  bool operator==(const CacheWriteSpec&) const = default;
};

// The canonical text is e.g. "cache_write dtype=bf16 kv=fp8_e4m3 scale=head head_size=128
// block_size=16"; head_size_v, layout=vllm, rope=neox (or interleaved), rotary_dim, cos_sin,
// row_alignment, debug and pdl follow where they are not the default.
template <>
PAGEJIT_EXPORT Status validate(const CacheWriteSpec& spec);
template <>
PAGEJIT_EXPORT Status supports(const CacheWriteSpec& spec, const Target& target);
template <>
PAGEJIT_EXPORT std::string canonical_text(const CacheWriteSpec& spec);

// Bytes of device memory, aligned to 16, that a debug kernel of the cache operations reports to.
inline constexpr size_t kDebugReportBytes = 64;

// Elements per head of V.
constexpr int value_head_size(const CacheWriteSpec& spec) {
  return spec.head_size_v == 0 ? spec.head_size : spec.head_size_v;
}

// Device pointers; strides count elements of their own tensor, int4 too. The rows of key, value and
// q are contiguous.
struct CacheWriteArgs {
  // [num_tokens, num_kv_heads, head_size], of value head_size_v. They are not changed: a rotated K
  // is only in the cache.
  const void* key = nullptr;
  const void* value = nullptr;
  int64_t key_stride_token = 0;
  int64_t key_stride_head = 0;
  int64_t value_stride_token = 0;
  int64_t value_stride_head = 0;

  // Where the layout is kVllm, only the strides of block and head are used.
  void* k_cache = nullptr;
  void* v_cache = nullptr;
  KvStrides k_strides;
  KvStrides v_strides;

  // int64 [num_tokens]: block * block_size + token of the block; negative: the token has no slot
  // and is not written. Two tokens must not have one slot. num_tokens is the length of this array;
  // key and value may have more rows.
  const int64_t* slot_mapping = nullptr;
  int32_t num_tokens = 0;  // 0 launches nothing
  int32_t num_kv_heads = 0;

  // f32: [1] where the scale is kTensor, [num_kv_heads] where it is kHead, both read and not 0;
  // where it is kTokenHead [num_blocks, block_size, num_kv_heads], written. A row of zeros gets
  // scale 1. A value beyond the type's range becomes its greatest, NaN stays NaN (0 in int8
  // and int4).
  float* k_scale = nullptr;
  float* v_scale = nullptr;

  // Where there is a rope: K and q are rotated in f32 and rounded to dtype, K before it is
  // quantised.
  // q [num_tokens, num_q_heads, head_size], rotated in place, for tokens without a slot as well.
  // Null: there is none.
  void* q = nullptr;
  int64_t q_stride_token = 0;
  int64_t q_stride_head = 0;
  int32_t num_q_heads = 0;
  const int64_t* positions = nullptr;  // int64 [num_tokens], in [0, max_position)
  // [max_position, rotary_dim]: rotary_dim / 2 cosines, then as many sines. 16-byte aligned.
  const void* cos_sin = nullptr;

  // Where the spec has debug: what slots and positions are checked against, and kDebugReportBytes
  // to report to, initialised by init_debug_report().
  int64_t num_blocks = 0;
  int64_t max_position = 0;
  void* debug_report = nullptr;
};

// A launchable cache write on one device, made by Engine::prepare().
class PAGEJIT_EXPORT CacheWriteKernel : public KernelHandle {
 public:
  // Enqueues one launch on `stream`. Never allocates, locks or reads device memory on success; safe
  // during stream capture. kInvalidArgument, kDriverError.
  Status launch(const CacheWriteArgs& args, Stream stream) const;

  // Enqueues the initialisation of a debug report. kInvalidArgument (it is null or not 16-byte
  // aligned, here and below), kDriverError.
  Status init_debug_report(void* report, Stream stream) const;
  // Synchronises `stream` and reads what debug kernels found: ok, or kDeviceCheckFailed with the
  // lowest token that has a bad slot, or else a bad position. The report is cleared.
  // kInvalidArgument, kDriverError.
  Status read_debug_report(void* report, Stream stream) const;

  // Of an empty handle: default values.
  const CacheWriteSpec& spec() const;
};

}  // namespace pagejit
