
#include "pagejit/cache_write.h"
#include "runtime/engine/argument_check.h"
#include "runtime/engine/debug_report.h"
#include "runtime/engine/loaded_kernel.h"
#include "runtime/format.h"
#include "runtime/guard.h"

namespace pagejit {
namespace {

using Constants = pagejit_shared::CacheWriteConfig;
using Params = pagejit_shared::CacheWriteParams;
using SharedScale = pagejit_shared::KvScale;

const CacheWriteConfig& config_of(const LoadedKernel& kernel) {
  return *std::get_if<CacheWriteConfig>(&kernel.parts.config);
}

// The caches' strides. V of kVllm is stored element by element.
Status check_caches(const Constants& c, const CacheWriteArgs& args) {
  Status status = check_tensor(
      c.kv, c.vector_elements,
      {"k_cache",
       args.k_cache,
       {{"k_strides.block", args.k_strides.block}, {"k_strides.head", args.k_strides.head}}});
  if (status) {
    status = check_tensor(
        c.kv, c.vector_elements,
        {"v_cache",
         args.v_cache,
         {{"v_strides.block", args.v_strides.block}, {"v_strides.head", args.v_strides.head}}});
  }
  if (c.layout == pagejit_shared::KvLayout::kVllm) return status;
  if (status) status = check_stride("k_strides.token", args.k_strides.token, c.vector_elements);
  if (status) status = check_stride("v_strides.token", args.v_strides.token, c.vector_elements);
  return status;
}

Status check_rope_args(const Constants& c, const CacheWriteArgs& args) {
  Status status = check_pointer("positions", args.positions, alignof(int64_t));
  if (status) status = check_pointer("cos_sin", args.cos_sin, 16);
  if (status) status = check_count("num_q_heads", args.num_q_heads, 0, kMaxGridYZ);
  if (!status || args.num_q_heads == 0) return status;
  return check_tensor(
      c.dtype, c.vector_elements,
      {"q",
       args.q,
       {{"q_stride_token", args.q_stride_token}, {"q_stride_head", args.q_stride_head}}});
}

Status check_args(const Constants& c, const CacheWriteArgs& args) {
  Status status = check_count("num_tokens", args.num_tokens, 0, kMaxGridX);
  if (status) status = check_count("num_kv_heads", args.num_kv_heads, 1, kMaxGridYZ);
  if (status) {
    status = check_tensor(
        c.dtype, c.vector_elements,
        {"key",
         args.key,
         {{"key_stride_token", args.key_stride_token}, {"key_stride_head", args.key_stride_head}}});
  }
  if (status) {
    status = check_tensor(c.dtype, c.vector_elements,
                          {"value",
                           args.value,
                           {{"value_stride_token", args.value_stride_token},
                            {"value_stride_head", args.value_stride_head}}});
  }
  if (status) status = check_caches(c, args);
  if (status) status = check_pointer("slot_mapping", args.slot_mapping, alignof(int64_t));
  if (c.scale != SharedScale::kNone) {
    if (status) status = check_pointer("k_scale", args.k_scale, alignof(float));
    if (status) status = check_pointer("v_scale", args.v_scale, alignof(float));
  }
  if (status && c.rope != pagejit_shared::RopeStyle::kNone) status = check_rope_args(c, args);
  if (status && c.debug) status = check_pointer("debug_report", args.debug_report, 16);
  return status;
}

Params make_params(const Constants& c, const CacheWriteArgs& args) {
  const bool rotates = c.rope != pagejit_shared::RopeStyle::kNone;
  return {
      .key = args.key,
      .value = args.value,
      .k_cache = args.k_cache,
      .v_cache = args.v_cache,
      .slot_mapping = reinterpret_cast<const long long*>(args.slot_mapping),
      .k_scale = args.k_scale,
      .v_scale = args.v_scale,
      .q = args.q,
      .positions = reinterpret_cast<const long long*>(args.positions),
      .cos_sin = args.cos_sin,
      .report = static_cast<pagejit_shared::DebugReport*>(args.debug_report),
      .key_stride_token = args.key_stride_token,
      .key_stride_head = args.key_stride_head,
      .value_stride_token = args.value_stride_token,
      .value_stride_head = args.value_stride_head,
      .k_stride_block = args.k_strides.block,
      .k_stride_token = args.k_strides.token,
      .k_stride_head = args.k_strides.head,
      .v_stride_block = args.v_strides.block,
      .v_stride_token = args.v_strides.token,
      .v_stride_head = args.v_strides.head,
      .q_stride_token = args.q_stride_token,
      .q_stride_head = args.q_stride_head,
      .num_blocks = args.num_blocks,
      .max_position = args.max_position,
      .num_kv_heads = args.num_kv_heads,
      .num_q_heads = rotates ? args.num_q_heads : 0,
  };
}

Status launch_write(const LoadedKernel& kernel, const CacheWriteArgs& args, Stream stream) {
  if (args.num_tokens == 0) return {};
  const Constants& c = config_of(kernel).constants;
  if (Status status = check_args(c, args); !status) return status;
  Params params = make_params(c, args);
  const int64_t rows = int64_t{2} * params.num_kv_heads + params.num_q_heads;
  const int64_t per_cta = pagejit_shared::rows_per_cta(c);
  const Grid grid{.x = static_cast<unsigned>(args.num_tokens),
                  .y = static_cast<unsigned>((rows + per_cta - 1) / per_cta)};
  if (grid.y > static_cast<unsigned>(kMaxGridYZ)) {
    return invalid(format("num_kv_heads {} and num_q_heads {}: must be {} rows at most",
                          args.num_kv_heads, args.num_q_heads, kMaxGridYZ * per_cta));
  }
  return kernel.launch(grid, &params, stream);
}

}  // namespace

Status CacheWriteKernel::launch(const CacheWriteArgs& args, Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_handle);
  return guarded([&] { return launch_write(*loaded_, args, stream); });
}

Status CacheWriteKernel::init_debug_report(void* report, Stream stream) const {
  return pagejit::init_debug_report(loaded_.get(), report, stream);
}

Status CacheWriteKernel::read_debug_report(void* report, Stream stream) const {
  return pagejit::read_debug_report(loaded_.get(), report, stream, write_sentence);
}

const CacheWriteSpec& CacheWriteKernel::spec() const {
  static const CacheWriteSpec empty;
  return loaded_ != nullptr ? config_of(*loaded_).spec : empty;
}

}  // namespace pagejit
