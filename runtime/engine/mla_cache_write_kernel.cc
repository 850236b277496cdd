#include <algorithm>

#include "pagejit/mla_cache.h"
#include "runtime/engine/argument_check.h"
#include "runtime/engine/debug_report.h"
#include "runtime/engine/loaded_kernel.h"
#include "runtime/format.h"
#include "runtime/guard.h"

namespace pagejit {
namespace {

using Constants = pagejit_shared::MlaCacheWriteConfig;
using Params = pagejit_shared::MlaCacheWriteParams;
using pagejit_shared::MlaFormat;

// With the parts of a cached row, of which there are at most 33, within a grid.
constexpr int kMostHeads = 65000;

const MlaCacheWriteConfig& config_of(const LoadedKernel& kernel) {
  return *std::get_if<MlaCacheWriteConfig>(&kernel.parts.config);
}

// Of one cache or of all layers'.
Status check_cache(const Constants& c, const MlaCacheWriteArgs& args) {
  // In the row of 656 bytes the widest vectors are those of bf16.
  const int vector = c.format == MlaFormat::kDsMla ? 2 * c.vector_elements : c.vector_elements;
  const uintptr_t alignment = static_cast<uintptr_t>(
      c.grouped ? alignof(void*) : pagejit_shared::elements_bytes(c.kv, vector));
  Status status = c.grouped ? check_pointer("caches", args.caches, alignment)
                            : check_pointer("cache", args.cache, alignment);
  if (status) status = check_stride("cache_stride_block", args.cache_stride_block, vector);
  if (status) status = check_stride("cache_stride_token", args.cache_stride_token, vector);
  return status;
}

Status check_layers(const Constants& c, const MlaCacheWriteArgs& args) {
  const int64_t most = std::min<int64_t>(kMaxGridYZ, INT32_MAX / args.num_tokens);
  Status status = check_count("num_layers", args.num_layers, 0, most);
  if (status) status = check_stride("kv_c_stride_layer", args.kv_c_stride_layer, c.vector_elements);
  if (status) status = check_stride("k_pe_stride_layer", args.k_pe_stride_layer, c.vector_elements);
  return status;
}

Status check_rope_args(const Constants& c, const MlaCacheWriteArgs& args) {
  Status status = check_pointer("positions", args.positions, alignof(int64_t));
  if (status) status = check_pointer("cos_sin", args.cos_sin, 16);
  if (status) status = check_count("num_q_heads", args.num_q_heads, 0, kMostHeads);
  if (!status || args.num_q_heads == 0) return status;
  return check_tensor(c.dtype, c.vector_elements,
                      {"q_pe",
                       args.q_pe,
                       {{"q_pe_stride_token", args.q_pe_stride_token},
                        {"q_pe_stride_head", args.q_pe_stride_head}}});
}

Status check_args(const Constants& c, const MlaCacheWriteArgs& args) {
  Status status = check_count("num_tokens", args.num_tokens, 0, kMaxGridX);
  if (status) {
    status = check_tensor(c.dtype, c.vector_elements,
                          {"kv_c", args.kv_c, {{"kv_c_stride_token", args.kv_c_stride_token}}});
  }
  if (status && c.rotary_dim > 0) {
    status = check_tensor(c.dtype, c.vector_elements,
                          {"k_pe", args.k_pe, {{"k_pe_stride_token", args.k_pe_stride_token}}});
  }
  if (status && c.grouped) status = check_layers(c, args);
  if (status) status = check_cache(c, args);
  if (status) status = check_pointer("slot_mapping", args.slot_mapping, alignof(int64_t));
  if (status && c.format == MlaFormat::kE4m3) {
    status = check_pointer("scale", args.scale, alignof(float));
  }
  if (status && c.rope != pagejit_shared::RopeStyle::kNone) status = check_rope_args(c, args);
  if (status && c.debug) status = check_pointer("debug_report", args.debug_report, 16);
  return status;
}

Params make_params(const Constants& c, const MlaCacheWriteArgs& args) {
  const bool rotates = c.rope != pagejit_shared::RopeStyle::kNone;
  return {
      .kv_c = args.kv_c,
      .k_pe = args.k_pe,
      .cache = args.cache,
      .caches = args.caches,
      .slot_mapping = reinterpret_cast<const long long*>(args.slot_mapping),
      .scale = args.scale,
      .q_pe = args.q_pe,
      .positions = reinterpret_cast<const long long*>(args.positions),
      .cos_sin = args.cos_sin,
      .report = static_cast<pagejit_shared::DebugReport*>(args.debug_report),
      .kv_c_stride_token = args.kv_c_stride_token,
      .k_pe_stride_token = args.k_pe_stride_token,
      .cache_stride_block = args.cache_stride_block,
      .cache_stride_token = args.cache_stride_token,
      .kv_c_stride_layer = args.kv_c_stride_layer,
      .k_pe_stride_layer = args.k_pe_stride_layer,
      .slot_stride_layer = args.slot_mapping_stride_layer,
      .q_pe_stride_token = args.q_pe_stride_token,
      .q_pe_stride_head = args.q_pe_stride_head,
      .num_blocks = args.num_blocks,
      .max_position = args.max_position,
      .num_q_heads = rotates ? args.num_q_heads : 0,
      .num_tokens = args.num_tokens,
  };
}

Status launch_write(const LoadedKernel& kernel, const MlaCacheWriteArgs& args, Stream stream) {
  const Constants& c = config_of(kernel).constants;
  if (args.num_tokens == 0 || (c.grouped && args.num_layers == 0)) return {};
  if (Status status = check_args(c, args); !status) return status;
  Params params = make_params(c, args);
  const int64_t parts = int64_t{pagejit_shared::cached_parts(c)} + params.num_q_heads;
  const int64_t per_cta = pagejit_shared::rows_per_cta(c);
  const Grid grid{.x = static_cast<unsigned>(args.num_tokens),
                  .y = static_cast<unsigned>((parts + per_cta - 1) / per_cta),
                  .z = c.grouped ? static_cast<unsigned>(args.num_layers) : 1};
  return kernel.launch(grid, &params, stream);
}

}  // namespace

Status MlaCacheWriteKernel::launch(const MlaCacheWriteArgs& args, Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_handle);
  return guarded([&] { return launch_write(*loaded_, args, stream); });
}

Status MlaCacheWriteKernel::init_debug_report(void* report, Stream stream) const {
  return pagejit::init_debug_report(loaded_.get(), report, stream);
}

Status MlaCacheWriteKernel::read_debug_report(void* report, Stream stream) const {
  return pagejit::read_debug_report(
      loaded_.get(), report, stream, [&](int fault, int index, int64_t value) {
        if (!spec().grouped) return write_sentence(fault, index, value);
        return format(
            "slot_mapping of layer * num_tokens + token = {} is {}: must be -1, or in [0, "
            "num_blocks * block_size)",
            index, value);
      });
}

const MlaCacheWriteSpec& MlaCacheWriteKernel::spec() const {
  static const MlaCacheWriteSpec empty;
  return loaded_ != nullptr ? config_of(*loaded_).spec : empty;
}

}  // namespace pagejit
