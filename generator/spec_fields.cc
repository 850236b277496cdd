#include "generator/spec_fields.h"

namespace pagejit {
namespace {

constexpr SpecField<KernelSpec> kAttention[] = {
    {"", "queries", &KernelSpec::queries},
    {"q", "q_dtype", &KernelSpec::q_dtype},
    {"kv", "kv_dtype", &KernelSpec::kv_dtype},
    {"out", "out_dtype", &KernelSpec::out_dtype},
    {"head_size", "head_size", &KernelSpec::head_size},
    {"head_size_v", "head_size_v", &KernelSpec::head_size_v},
    {"block_size", "block_size", &KernelSpec::block_size},
    {"group_size", "group_size", &KernelSpec::group_size},
    {"causal", "causality", &KernelSpec::causality},
    {"table", "kv_table", &KernelSpec::kv_table},
    {"layout", "kv_layout", &KernelSpec::kv_layout},
    {"kv_alignment", "kv_alignment", &KernelSpec::kv_alignment},
    {"latent", "latent", &KernelSpec::latent},
    {"token_scales", "token_scales", &KernelSpec::token_scales},
    {"window", "window", &KernelSpec::window},
    {"chunked", "chunked", &KernelSpec::chunked},
    {"custom_mask", "custom_mask", &KernelSpec::custom_mask},
    {"bidirectional_ranges", "bidirectional_ranges", &KernelSpec::bidirectional_ranges},
    {"block_sparse", "block_sparse", &KernelSpec::block_sparse},
    {"soft_cap", "soft_cap", &KernelSpec::soft_cap},
    {"alibi", "alibi", &KernelSpec::alibi},
    {"qq_bias", "qq_bias", &KernelSpec::qq_bias},
    {"sinks", "sinks", &KernelSpec::sinks},
    {"batch_invariant", "batch_invariant", &KernelSpec::batch_invariant},
    {"debug", "debug", &KernelSpec::debug},
    {"pdl", "pdl", &KernelSpec::pdl}};

constexpr SpecField<MergeStatesSpec> kMergeStates[] = {
    {"in", "in_dtype", &MergeStatesSpec::in_dtype},
    {"out", "out_dtype", &MergeStatesSpec::out_dtype},
    {"head_size", "head_size", &MergeStatesSpec::head_size},
    {"listed", "listed", &MergeStatesSpec::listed},
    {"pdl", "pdl", &MergeStatesSpec::pdl}};

constexpr SpecField<CacheWriteSpec> kCacheWrite[] = {
    {"dtype", "dtype", &CacheWriteSpec::dtype},
    {"kv", "kv_dtype", &CacheWriteSpec::kv_dtype},
    {"scale", "scale", &CacheWriteSpec::scale},
    {"head_size", "head_size", &CacheWriteSpec::head_size},
    {"head_size_v", "head_size_v", &CacheWriteSpec::head_size_v},
    {"block_size", "block_size", &CacheWriteSpec::block_size},
    {"layout", "layout", &CacheWriteSpec::layout},
    {"rope", "rope", &CacheWriteSpec::rope},
    {"rotary_dim", "rotary_dim", &CacheWriteSpec::rotary_dim},
    {"cos_sin", "cos_sin_dtype", &CacheWriteSpec::cos_sin_dtype},
    {"row_alignment", "row_alignment", &CacheWriteSpec::row_alignment},
    {"debug", "debug", &CacheWriteSpec::debug},
    {"pdl", "pdl", &CacheWriteSpec::pdl}};

constexpr SpecField<CopyBlocksSpec> kCopyBlocks[] = {
    {"alignment", "alignment", &CopyBlocksSpec::alignment},
    {"debug", "debug", &CopyBlocksSpec::debug}};

constexpr SpecField<GatherCacheSpec> kGatherCache[] = {
    {"kv", "kv_dtype", &GatherCacheSpec::kv_dtype},
    {"out", "out_dtype", &GatherCacheSpec::out_dtype},
    {"scale", "scale", &GatherCacheSpec::scale},
    {"head_size", "head_size", &GatherCacheSpec::head_size},
    {"head_size_v", "head_size_v", &GatherCacheSpec::head_size_v},
    {"block_size", "block_size", &GatherCacheSpec::block_size},
    {"layout", "layout", &GatherCacheSpec::layout},
    {"row_alignment", "row_alignment", &GatherCacheSpec::row_alignment},
    {"debug", "debug", &GatherCacheSpec::debug}};

constexpr SpecField<ConvertFloat8Spec> kConvertFloat8[] = {
    {"from", "from_dtype", &ConvertFloat8Spec::from_dtype},
    {"to", "to_dtype", &ConvertFloat8Spec::to_dtype}};

constexpr SpecField<MlaCacheWriteSpec> kMlaCacheWrite[] = {
    {"dtype", "dtype", &MlaCacheWriteSpec::dtype},
    {"format", "format", &MlaCacheWriteSpec::format},
    {"kv_lora_rank", "kv_lora_rank", &MlaCacheWriteSpec::kv_lora_rank},
    {"qk_rope_head_dim", "qk_rope_head_dim", &MlaCacheWriteSpec::qk_rope_head_dim},
    {"block_size", "block_size", &MlaCacheWriteSpec::block_size},
    {"rope", "rope", &MlaCacheWriteSpec::rope},
    {"cos_sin", "cos_sin_dtype", &MlaCacheWriteSpec::cos_sin_dtype},
    {"grouped", "grouped", &MlaCacheWriteSpec::grouped},
    {"row_alignment", "row_alignment", &MlaCacheWriteSpec::row_alignment},
    {"debug", "debug", &MlaCacheWriteSpec::debug},
    {"pdl", "pdl", &MlaCacheWriteSpec::pdl}};

constexpr SpecField<IndexKeyWriteSpec> kIndexKeyWrite[] = {
    {"dtype", "dtype", &IndexKeyWriteSpec::dtype},
    {"head_size", "head_size", &IndexKeyWriteSpec::head_size},
    {"quant_block_size", "quant_block_size", &IndexKeyWriteSpec::quant_block_size},
    {"block_size", "block_size", &IndexKeyWriteSpec::block_size},
    {"power_of_two_scale", "power_of_two_scale", &IndexKeyWriteSpec::power_of_two_scale},
    {"row_alignment", "row_alignment", &IndexKeyWriteSpec::row_alignment},
    {"debug", "debug", &IndexKeyWriteSpec::debug}};

constexpr SpecField<IndexKeyGatherSpec> kIndexKeyGather[] = {
    {"head_size", "head_size", &IndexKeyGatherSpec::head_size},
    {"quant_block_size", "quant_block_size", &IndexKeyGatherSpec::quant_block_size},
    {"block_size", "block_size", &IndexKeyGatherSpec::block_size},
    {"row_alignment", "row_alignment", &IndexKeyGatherSpec::row_alignment},
    {"debug", "debug", &IndexKeyGatherSpec::debug}};

constexpr SpecField<TopKSpec> kTopK[] = {
    {"row_alignment", "row_alignment", &TopKSpec::row_alignment},
    {"debug", "debug", &TopKSpec::debug}};

constexpr SpecField<IndexLogitsSpec> kIndexLogits[] = {
    {"num_heads", "num_heads", &IndexLogitsSpec::num_heads},
    {"head_size", "head_size", &IndexLogitsSpec::head_size},
    {"block_size", "block_size", &IndexLogitsSpec::block_size},
    {"clean", "clean", &IndexLogitsSpec::clean},
    {"debug", "debug", &IndexLogitsSpec::debug}};

}  // namespace

template <>
std::span<const SpecField<KernelSpec>> fields_of() {
  return kAttention;
}
template <>
std::span<const SpecField<MergeStatesSpec>> fields_of() {
  return kMergeStates;
}
template <>
std::span<const SpecField<CacheWriteSpec>> fields_of() {
  return kCacheWrite;
}
template <>
std::span<const SpecField<CopyBlocksSpec>> fields_of() {
  return kCopyBlocks;
}
template <>
std::span<const SpecField<GatherCacheSpec>> fields_of() {
  return kGatherCache;
}
template <>
std::span<const SpecField<ConvertFloat8Spec>> fields_of() {
  return kConvertFloat8;
}
template <>
std::span<const SpecField<MlaCacheWriteSpec>> fields_of() {
  return kMlaCacheWrite;
}
template <>
std::span<const SpecField<IndexKeyWriteSpec>> fields_of() {
  return kIndexKeyWrite;
}
template <>
std::span<const SpecField<IndexKeyGatherSpec>> fields_of() {
  return kIndexKeyGather;
}
template <>
std::span<const SpecField<TopKSpec>> fields_of() {
  return kTopK;
}
template <>
std::span<const SpecField<IndexLogitsSpec>> fields_of() {
  return kIndexLogits;
}

}  // namespace pagejit
