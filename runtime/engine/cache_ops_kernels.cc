
#include <algorithm>
#include <cmath>

#include "pagejit/cache_ops.h"
#include "runtime/engine/argument_check.h"
#include "runtime/engine/debug_report.h"
#include "runtime/engine/loaded_kernel.h"
#include "runtime/format.h"
#include "runtime/guard.h"

namespace pagejit {
namespace {

using SharedScale = pagejit_shared::KvScale;

uintptr_t bytes_of(int elements, pagejit_shared::Element element) {
  return static_cast<uintptr_t>(pagejit_shared::elements_bytes(element, elements));
}

Status launch_copies(const LoadedKernel& kernel, const CopyBlocksArgs& args, Stream stream) {
  if (args.num_pairs == 0 || args.num_caches == 0) return {};
  const pagejit_shared::CopyBlocksConfig& c = constants_of<CopyBlocksConfig>(kernel);
  const int64_t part = pagejit_shared::part_bytes(c);
  Status status = check_count("num_pairs", args.num_pairs, 0, kMaxGridX);
  if (status) status = check_count("num_caches", args.num_caches, 0, kMaxGridYZ);
  if (status) status = check_count("block_bytes", args.block_bytes, 1, kMaxGridYZ * part);
  if (status) status = check_multiple("block_bytes", args.block_bytes, c.vector_bytes);
  if (status)
    status = check_multiple("block_stride_bytes", args.block_stride_bytes, c.vector_bytes);
  if (status) status = check_pointer("caches", args.caches, alignof(void*));
  if (status) status = check_pointer("pairs", args.pairs, alignof(int64_t));
  if (status && c.debug) status = check_pointer("debug_report", args.debug_report, 16);
  if (!status) return status;
  pagejit_shared::CopyBlocksParams params{
      .caches = args.caches,
      .pairs = reinterpret_cast<const long long*>(args.pairs),
      .report = static_cast<pagejit_shared::DebugReport*>(args.debug_report),
      .block_bytes = args.block_bytes,
      .block_stride_bytes = args.block_stride_bytes,
      .num_blocks = args.num_blocks,
      .num_pairs = args.num_pairs};
  const Grid grid{.x = static_cast<unsigned>(args.num_pairs),
                  .y = static_cast<unsigned>(args.num_caches),
                  .z = static_cast<unsigned>((args.block_bytes + part - 1) / part)};
  return kernel.launch(grid, &params, stream);
}

std::string copy_sentence(int fault, int index, int64_t value) {
  if (fault == pagejit_shared::kOverlap) {
    return format(
        "pairs[{}]: its target, block {}, is another pair's target or a pair's source; the copies "
        "run in any order",
        index, value);
  }
  return format("pairs[{}][{}] is {}: must be in [0, num_blocks)", index,
                fault == pagejit_shared::kBadSourceBlock ? 0 : 1, value);
}

// One of K and V.
struct GatheredSide {
  const char* cache_name;
  const void* cache;
  const char* out_name;
  const void* out;
  const char* scale_name;
  const float* scale;
  KvStrides strides;
};

bool is_ds_mla(const pagejit_shared::GatherCacheConfig& c) {
  return c.layout == pagejit_shared::KvLayout::kDsMla;
}

Status check_side(const pagejit_shared::GatherCacheConfig& c, const GatheredSide& side) {
  // In the row of 656 bytes vectors of bf16 and single scales are wider than those of codes.
  const int vector = is_ds_mla(c) ? std::max(2 * c.vector_elements, 4) : c.vector_elements;
  Status status = check_pointer(side.cache_name, side.cache, bytes_of(vector, c.kv));
  if (status) status = check_pointer(side.out_name, side.out, bytes_of(c.vector_elements, c.out));
  if (status && c.scale != SharedScale::kNone) {
    status = check_pointer(side.scale_name, side.scale, alignof(float));
  }
  const std::pair<const char*, int64_t> strides[] = {
      {"block", side.strides.block}, {"head", side.strides.head}, {"token", side.strides.token}};
  for (const auto& [name, stride] : strides) {
    // Tokens have no stride of their own in the other layout.
    if (name[0] == 't' && c.layout == pagejit_shared::KvLayout::kVllm) continue;
    if (status) status = check_stride(name, stride, vector);
    if (!status && stride % vector != 0) {
      return status.with_context(format("strides of {}", side.cache_name));
    }
  }
  return status;
}

Status check_gather(const pagejit_shared::GatherCacheConfig& c, const GatherCacheArgs& args) {
  Status status = check_count("num_tokens", args.num_tokens, 0, kMaxGridX);
  if (status) status = check_count("num_seqs", args.num_seqs, 1, INT32_MAX);
  const int most_heads = is_ds_mla(c) ? 1 : kMaxGridYZ;
  if (status) status = check_count("num_kv_heads", args.num_kv_heads, 1, most_heads);
  if (status && is_ds_mla(c) && args.v_cache != nullptr) {
    status = invalid("v_cache: must be null where layout is ds_mla");
  }
  if (status) {
    status = check_side(
        c, {"k_cache", args.k_cache, "k_out", args.k_out, "k_scale", args.k_scale, args.k_strides});
  }
  if (status && args.v_cache != nullptr) {
    status = check_side(
        c, {"v_cache", args.v_cache, "v_out", args.v_out, "v_scale", args.v_scale, args.v_strides});
  }
  if (status) status = check_pointer("block_table", args.block_table, alignof(int32_t));
  if (status) status = check_pointer("cu_seq_lens", args.cu_seq_lens, alignof(int32_t));
  if (status && misaligned(args.seq_starts, alignof(int32_t))) {
    status = bad_pointer("seq_starts", args.seq_starts, alignof(int32_t));
  }
  if (status) status = check_stride("out_stride_token", args.out_stride_token, c.vector_elements);
  if (status) status = check_stride("out_stride_head", args.out_stride_head, c.vector_elements);
  if (c.head_size_v != c.head_size) {
    if (status) {
      status = check_stride("v_out_stride_token", args.v_out_stride_token, c.vector_elements);
    }
    if (status) {
      status = check_stride("v_out_stride_head", args.v_out_stride_head, c.vector_elements);
    }
  }
  if (status && c.debug) status = check_pointer("debug_report", args.debug_report, 16);
  return status;
}

Status launch_gather(const LoadedKernel& kernel, const GatherCacheArgs& args, Stream stream) {
  if (args.num_tokens == 0 || args.num_seqs == 0) return {};
  const pagejit_shared::GatherCacheConfig& c = constants_of<GatherCacheConfig>(kernel);
  if (Status status = check_gather(c, args); !status) return status;
  const bool one_size = c.head_size_v == c.head_size;
  const int rows = args.v_cache == nullptr ? args.num_kv_heads : 2 * args.num_kv_heads;
  const int per_cta = pagejit_shared::rows_per_cta(c);
  pagejit_shared::GatherCacheParams params{
      .k_cache = args.k_cache,
      .v_cache = args.v_cache,
      .k_out = args.k_out,
      .v_out = args.v_out,
      .block_table = args.block_table,
      .cu_seq_lens = args.cu_seq_lens,
      .seq_starts = args.seq_starts,
      .k_scale = args.k_scale,
      .v_scale = args.v_scale,
      .report = static_cast<pagejit_shared::DebugReport*>(args.debug_report),
      .block_table_stride = args.block_table_stride,
      .k_stride_block = args.k_strides.block,
      .k_stride_token = args.k_strides.token,
      .k_stride_head = args.k_strides.head,
      .v_stride_block = args.v_strides.block,
      .v_stride_token = args.v_strides.token,
      .v_stride_head = args.v_strides.head,
      .k_out_stride_token = args.out_stride_token,
      .k_out_stride_head = args.out_stride_head,
      .v_out_stride_token = one_size ? args.out_stride_token : args.v_out_stride_token,
      .v_out_stride_head = one_size ? args.out_stride_head : args.v_out_stride_head,
      .num_blocks = args.num_blocks,
      .num_seqs = args.num_seqs,
      .num_kv_heads = args.num_kv_heads,
      .tokens_per_cta = std::max(per_cta / rows, 1)};
  const Grid grid{
      .x = static_cast<unsigned>((int64_t{args.num_tokens} + params.tokens_per_cta - 1) /
                                 params.tokens_per_cta),
      .y = static_cast<unsigned>((rows + per_cta - 1) / per_cta)};
  return kernel.launch(grid, &params, stream);
}

Status launch_convert(const LoadedKernel& kernel, const ConvertFloat8Args& args, Stream stream) {
  if (args.count == 0) return {};
  const pagejit_shared::ConvertFloat8Config& c = constants_of<ConvertFloat8Config>(kernel);
  const int64_t per_cta = int64_t{c.num_threads} * c.vector_elements;
  Status status = check_count("count", args.count, 0, kMaxGridX * per_cta);
  if (status) status = check_multiple("count", args.count, c.vector_elements);
  if (status) status = check_pointer("from", args.from, bytes_of(c.vector_elements, c.from));
  if (status) status = check_pointer("to", args.to, bytes_of(c.vector_elements, c.to));
  if (status && (!std::isfinite(args.scale) || args.scale == 0)) {
    status = invalid(format("scale {}: must be finite and not 0", args.scale));
  }
  if (!status) return status;
  pagejit_shared::ConvertFloat8Params params{
      .from = args.from, .to = args.to, .count = args.count, .scale = args.scale};
  const Grid grid{.x = static_cast<unsigned>((args.count + per_cta - 1) / per_cta)};
  return kernel.launch(grid, &params, stream);
}

}  // namespace

Status CopyBlocksKernel::launch(const CopyBlocksArgs& args, Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_handle);
  return guarded([&] { return launch_copies(*loaded_, args, stream); });
}
Status CopyBlocksKernel::init_debug_report(void* report, Stream stream) const {
  return pagejit::init_debug_report(loaded_.get(), report, stream);
}
Status CopyBlocksKernel::read_debug_report(void* report, Stream stream) const {
  return pagejit::read_debug_report(loaded_.get(), report, stream, copy_sentence);
}

Status GatherCacheKernel::launch(const GatherCacheArgs& args, Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_handle);
  return guarded([&] { return launch_gather(*loaded_, args, stream); });
}
Status GatherCacheKernel::init_debug_report(void* report, Stream stream) const {
  return pagejit::init_debug_report(loaded_.get(), report, stream);
}
Status GatherCacheKernel::read_debug_report(void* report, Stream stream) const {
  return pagejit::read_debug_report(loaded_.get(), report, stream, bad_block_sentence);
}

Status ConvertFloat8Kernel::launch(const ConvertFloat8Args& args, Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_handle);
  return guarded([&] { return launch_convert(*loaded_, args, stream); });
}

}  // namespace pagejit
