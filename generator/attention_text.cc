// What the renderer writes into the attention kernel's entry file.
#include <string>

#include "generator/entry_text.h"
#include "generator/spec_text.h"

namespace pagejit {
namespace {

constexpr std::string_view kEntryFile = "attention/attention.cu.tmpl";

std::string causality_name(pagejit_shared::Causality causality) {
  switch (causality) {
    case pagejit_shared::Causality::kNone:
      return "kNone";
    case pagejit_shared::Causality::kCausal:
      return "kCausal";
    case pagejit_shared::Causality::kPerSequence:
      return "kPerSequence";
  }
  return "unknown";
}

std::string kv_table_name(pagejit_shared::KvTable table) {
  switch (table) {
    case pagejit_shared::KvTable::kBlocks:
      return "kBlocks";
    case pagejit_shared::KvTable::kCsr:
      return "kCsr";
    case pagejit_shared::KvTable::kContiguous:
      return "kContiguous";
    case pagejit_shared::KvTable::kSlots:
      return "kSlots";
    case pagejit_shared::KvTable::kPositions:
      return "kPositions";
  }
  return "unknown";
}

std::string kernel_name(const KernelSpec& spec) {
  std::string name = spec.queries == QueryLengths::kOne    ? "pagejit_decode_"
                     : spec.queries == QueryLengths::kFew  ? "pagejit_attention_few_"
                     : spec.queries == QueryLengths::kMany ? "pagejit_attention_many_"
                                                           : "pagejit_attention_shared_";
  name += data_type_name(spec.q_dtype);
  if (spec.kv_dtype != spec.q_dtype) name += "_kv_" + std::string(data_type_name(spec.kv_dtype));
  if (spec.out_dtype != spec.q_dtype) name += "_out_" + std::string(data_type_name(spec.out_dtype));
  name += "_d" + std::to_string(spec.head_size);
  if (value_head_size(spec) != spec.head_size) name += "_v" + std::to_string(spec.head_size_v);
  name += "_b" + std::to_string(spec.block_size);
  name += "_g" + std::to_string(spec.group_size);
  if (spec.causality == Causality::kCausal) name += "_causal";
  if (spec.causality == Causality::kPerSequence) name += "_maybe_causal";
  if (spec.kv_table == KvTable::kCsr) name += "_csr";
  if (spec.kv_table == KvTable::kContiguous) name += "_contiguous";
  if (spec.kv_table == KvTable::kSlots) name += "_slots";
  if (spec.kv_table == KvTable::kPositions) name += "_positions";
  if (spec.kv_layout == KvLayout::kVllm) name += "_vllm";
  if (spec.kv_layout == KvLayout::kDsMla) name += "_ds_mla";
  if (spec.latent) name += "_latent";
  if (spec.token_scales) name += "_token_scales";
  if (spec.kv_alignment != 16) name += "_by" + std::to_string(spec.kv_alignment);
  if (spec.window) name += "_window";
  if (spec.chunked) name += "_chunked";
  if (spec.custom_mask) name += "_mask";
  if (spec.bidirectional_ranges) name += "_ranges";
  if (spec.block_sparse) name += "_sparse";
  if (spec.soft_cap) name += "_cap";
  if (spec.alibi) name += "_alibi";
  if (spec.qq_bias) name += "_qq_bias";
  if (spec.sinks) name += "_sinks";
  if (spec.batch_invariant) name += "_invariant";
  if (spec.debug) name += "_debug";
  if (spec.pdl) name += "_pdl";
  return name;
}

// The banner names no target and no version: it belongs to the kernel text.
std::string banner_of(const KernelConfig& config) {
  const AttentionConfig& c = config.attention;
  std::string text = banner("Paged attention", canonical_text(config.spec)) + "\n";
  text += "// " + std::to_string(c.token_groups) + " groups x " + std::to_string(c.row_warps) +
          " warps; tiles of " + std::to_string(config.tile_tokens()) + " tokens in " +
          std::to_string(c.num_stages) + " stages; " + std::to_string(c.row_tiles * 8) +
          " rows per warp; " + std::to_string(c.shared_bytes) + " bytes of shared memory per CTA.";
  return text;
}

TemplateValues values_of(const KernelConfig& config) {
  const AttentionConfig& c = config.attention;
  const auto number = [](int value) { return std::to_string(value); };
  return {
      {"q_type", element_name(c.q_type)},
      {"kv_type", element_name(c.kv_type)},
      {"out_type", element_name(c.out_type)},
      {"causality", causality_name(c.causality)},
      {"kv_table", kv_table_name(c.kv_table)},
      {"head_size", number(c.head_size)},
      {"head_size_padded", number(c.head_size_padded)},
      {"head_size_v", number(c.head_size_v)},
      {"head_size_v_padded", number(c.head_size_v_padded)},
      {"kv_alignment", number(c.kv_alignment)},
      {"block_size", number(c.block_size)},
      {"group_size", number(c.group_size)},
      {"token_groups", number(c.token_groups)},
      {"row_warps", number(c.row_warps)},
      {"row_tiles", number(c.row_tiles)},
      {"group_tokens", number(c.group_tokens)},
      {"num_stages", number(c.num_stages)},
      {"q_in_registers", bool_text(c.q_in_registers)},
      {"min_ctas_per_sm", number(c.min_ctas_per_sm)},
      {"shared_bytes", number(c.shared_bytes)},
      {"num_threads", number(config.threads_per_cta())},
      {"kernel_name", kernel_name(config.spec)},
  };
}

// What the kernel text may ask with #if.
TextSwitches switches_of(const KernelConfig& config) {
  const AttentionConfig& c = config.attention;
  using pagejit_shared::Causality;
  using pagejit_shared::Element;
  using pagejit_shared::KvTable;
  return {
      {"PAGEJIT_BF16", pagejit_shared::computes_in_bf16(c)},
      {"PAGEJIT_CONVERT_Q", pagejit_shared::converts_q(c)},
      {"PAGEJIT_Q_F16", c.q_type == Element::kFloat16},
      {"PAGEJIT_Q_BF16", c.q_type == Element::kBFloat16},
      {"PAGEJIT_Q_F32", c.q_type == Element::kFloat32},
      {"PAGEJIT_Q_FP8", c.q_type == Element::kFloat8E4m3},
      {"PAGEJIT_Q_IN_REGISTERS", c.q_in_registers},
      {"PAGEJIT_SCALE_Q_ROWS", pagejit_shared::scales_q_rows(c)},
      {"PAGEJIT_KV_8BIT", pagejit_shared::kv_bytes(c) == 1 && c.kv_type != Element::kInt4},
      {"PAGEJIT_KV_F32", pagejit_shared::has_f32_kv(c)},
      {"PAGEJIT_KV_E5M2", c.kv_type == Element::kFloat8E5m2},
      {"PAGEJIT_KV_INT8", c.kv_type == Element::kInt8},
      {"PAGEJIT_KV_INT4", c.kv_type == Element::kInt4},
      {"PAGEJIT_UNPACK_E4M3",
       c.kv_type == Element::kFloat8E4m3 || c.q_type == Element::kFloat8E4m3},
      {"PAGEJIT_KV_HEAD_SCALES", pagejit_shared::has_kv_head_scales(c)},
      {"PAGEJIT_GROUP_TILES", pagejit_shared::group_tiles(c) > 1},
      {"PAGEJIT_LATENT", c.is_latent},
      {"PAGEJIT_TOKEN_SCALES", c.has_token_scales},
      {"PAGEJIT_QK_SCALE",
       pagejit_shared::has_kv_head_scales(c) || c.q_type == Element::kFloat8E4m3},
      {"PAGEJIT_FP8_CONVERT", c.has_fp8_convert},
      {"PAGEJIT_OUT_F32", c.out_type == Element::kFloat32},
      {"PAGEJIT_OUT_FP8", c.out_type == Element::kFloat8E4m3},
      {"PAGEJIT_OUT_BF16", c.out_type == Element::kBFloat16},
      {"PAGEJIT_RAGGED", c.is_ragged},
      {"PAGEJIT_ONE_STAGE", c.num_stages == 1},
      {"PAGEJIT_HEAVIEST_FIRST", config.spec.queries == QueryLengths::kMany},
      {"PAGEJIT_SPLIT_ROW_TILES", c.splits_row_tiles},
      {"PAGEJIT_SEES_ALL", pagejit_shared::sees_all(c)},
      {"PAGEJIT_CAUSAL", c.causality == Causality::kCausal},
      {"PAGEJIT_CAUSAL_FLAGS", c.causality == Causality::kPerSequence},
      {"PAGEJIT_KV_CSR", c.kv_table == KvTable::kCsr},
      {"PAGEJIT_KV_CONTIGUOUS", c.kv_table == KvTable::kContiguous},
      {"PAGEJIT_KV_LISTS", pagejit_shared::has_token_lists(c)},
      {"PAGEJIT_KV_BLOCK_IDS", c.kv_table == KvTable::kBlocks || c.kv_table == KvTable::kCsr ||
                                   c.kv_table == KvTable::kPositions},
      {"PAGEJIT_KV_POSITIONS", c.kv_table == KvTable::kPositions},
      {"PAGEJIT_DS_MLA", pagejit_shared::has_ds_mla_rows(c)},
      {"PAGEJIT_KV_VLLM", c.kv_layout == pagejit_shared::KvLayout::kVllm},
      {"PAGEJIT_EVEN_ROWS", pagejit_shared::has_even_rows(c)},
      {"PAGEJIT_WINDOW", c.has_window},
      {"PAGEJIT_CHUNKS", c.has_chunks},
      {"PAGEJIT_CUSTOM_MASK", c.has_custom_mask},
      {"PAGEJIT_BLOCK_SPARSE", c.is_block_sparse},
      {"PAGEJIT_RANGES", pagejit_shared::uses_bidirectional_ranges(c)},
      {"PAGEJIT_SOFT_CAP", c.has_soft_cap},
      {"PAGEJIT_ALIBI", c.has_alibi},
      {"PAGEJIT_QQ_BIAS", c.has_qq_bias},
      {"PAGEJIT_CHANGE_SCORES", pagejit_shared::changes_scores(c)},
      {"PAGEJIT_SINKS", c.has_sinks},
      {"PAGEJIT_BATCH_INVARIANT", c.is_batch_invariant},
      {"PAGEJIT_INVARIANT_BEGIN", c.is_batch_invariant && (c.has_window || c.has_chunks)},
      {"PAGEJIT_DEBUG", c.debug},
      {"PAGEJIT_PDL", config.spec.pdl},
  };
}

}  // namespace

EntryText entry_text(const KernelConfig& config) {
  return {kEntryFile,        kernel_name(config.spec), banner_of(config),
          values_of(config), switches_of(config),      config.spec.pdl};
}

}  // namespace pagejit
