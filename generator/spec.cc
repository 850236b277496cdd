#include "pagejit/spec.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>

#include "generator/planner.h"
#include "generator/spec_text.h"

namespace pagejit {
namespace {

// The first word of a canonical text.
struct Kind {
  std::string_view name;
  QueryLengths queries;
};
constexpr Kind kKinds[] = {{"decode", QueryLengths::kOne},
                           {"few", QueryLengths::kFew},
                           {"many", QueryLengths::kMany},
                           {"shared", QueryLengths::kShared}};

std::string_view kind_name(QueryLengths queries) {
  for (const Kind& kind : kKinds) {
    if (kind.queries == queries) return kind.name;
  }
  return "unknown";
}

// By their numbers.
constexpr std::string_view kTableNames[] = {"blocks", "csr", "contiguous", "slots", "positions"};

// The fields that are written only where they are set.
struct Switch {
  std::string_view name;
  bool KernelSpec::*field;
};
constexpr Switch kSwitches[] = {{"latent", &KernelSpec::latent},
                                {"token_scales", &KernelSpec::token_scales},
                                {"window", &KernelSpec::window},
                                {"chunked", &KernelSpec::chunked},
                                {"custom_mask", &KernelSpec::custom_mask},
                                {"bidirectional_ranges", &KernelSpec::bidirectional_ranges},
                                {"block_sparse", &KernelSpec::block_sparse},
                                {"soft_cap", &KernelSpec::soft_cap},
                                {"alibi", &KernelSpec::alibi},
                                {"qq_bias", &KernelSpec::qq_bias},
                                {"sinks", &KernelSpec::sinks},
                                {"batch_invariant", &KernelSpec::batch_invariant},
                                {"debug", &KernelSpec::debug},
                                {"pdl", &KernelSpec::pdl}};

}  // namespace

std::string_view data_type_name(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return "f16";
    case DataType::kBFloat16:
      return "bf16";
    case DataType::kFloat32:
      return "f32";
    case DataType::kFloat8E4m3:
      return "fp8_e4m3";
    case DataType::kFloat8E5m2:
      return "fp8_e5m2";
    case DataType::kInt8:
      return "int8";
    case DataType::kInt4:
      return "int4";
  }
  return "unknown";
}

Result<DataType> parse_data_type(std::string_view text) {
  struct Name {
    std::string_view text;
    DataType type;
  };
  static constexpr Name kNames[] = {{"f16", DataType::kFloat16},
                                    {"fp16", DataType::kFloat16},
                                    {"float16", DataType::kFloat16},
                                    {"half", DataType::kFloat16},
                                    {"bf16", DataType::kBFloat16},
                                    {"bfloat16", DataType::kBFloat16},
                                    {"f32", DataType::kFloat32},
                                    {"fp32", DataType::kFloat32},
                                    {"float32", DataType::kFloat32},
                                    {"float", DataType::kFloat32},
                                    {"fp8_e4m3", DataType::kFloat8E4m3},
                                    {"fp8", DataType::kFloat8E4m3},
                                    {"e4m3", DataType::kFloat8E4m3},
                                    {"float8_e4m3fn", DataType::kFloat8E4m3},
                                    {"fp8_e5m2", DataType::kFloat8E5m2},
                                    {"e5m2", DataType::kFloat8E5m2},
                                    {"float8_e5m2", DataType::kFloat8E5m2},
                                    {"int8", DataType::kInt8},
                                    {"int4", DataType::kInt4}};
  for (const Name& name : kNames) {
    if (text == name.text) return name.type;
  }
  if (text == "nvfp4") {
    return Status(
        StatusCode::kUnsupported,
        "nvfp4 is not served yet: of 4 bits there is int4 with a scale for each token and "
        "head");
  }
  return invalid_spec(
      "data type \"" + std::string(text) +
      "\": legal are f16 (fp16, float16, half), bf16 (bfloat16), f32 (fp32, float32, "
      "float), fp8_e4m3 (fp8, e4m3, float8_e4m3fn), fp8_e5m2 (e5m2, float8_e5m2), int8 and "
      "int4");
}

Status supports(const KernelSpec& spec, const Target& target) {
  return plan(spec, target).status();
}

std::string canonical_text(const KernelSpec& spec) {
  std::string text(kind_name(spec.queries));
  text += " q=" + std::string(data_type_name(spec.q_dtype));
  text += " kv=" + std::string(data_type_name(spec.kv_dtype));
  text += " out=" + std::string(data_type_name(spec.out_dtype));
  text += " head_size=" + std::to_string(spec.head_size);
  if (value_head_size(spec) != spec.head_size)
    text += " head_size_v=" + std::to_string(spec.head_size_v);
  text += " block_size=" + std::to_string(spec.block_size);
  text += " group_size=" + std::to_string(spec.group_size);
  if (spec.causality == Causality::kCausal) text += " causal=1";
  if (spec.causality == Causality::kPerSequence) text += " causal=sequence";
  if (spec.kv_table != KvTable::kBlocks) {
    text += " table=" + std::string(kTableNames[static_cast<size_t>(spec.kv_table)]);
  }
  if (spec.kv_layout != KvLayout::kRows) {
    text += " layout=" + std::string(layout_text(spec.kv_layout));
  }
  if (spec.kv_alignment != 16) text += " kv_alignment=" + std::to_string(spec.kv_alignment);
  for (const Switch& option : kSwitches) {
    if (spec.*option.field) text += " " + std::string(option.name) + "=1";
  }
  return text;
}

namespace {

Status set_field(KernelSpec& spec, const std::string& name, const std::string& value) {
  const auto set_type = [&](DataType& field) {
    Result<DataType> type = parse_data_type(value);
    if (type) field = *type;
    return type.status();
  };
  const auto set_int = [&](int& field) {
    const char* end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, field);
    if (error == std::errc() && stop == end) return Status::ok();
    return invalid_spec(name + " \"" + value + "\": must be a whole number");
  };
  if (name == "q") return set_type(spec.q_dtype);
  if (name == "kv") return set_type(spec.kv_dtype);
  if (name == "out") return set_type(spec.out_dtype);
  if (name == "head_size") return set_int(spec.head_size);
  if (name == "head_size_v") return set_int(spec.head_size_v);
  if (name == "kv_alignment") return set_int(spec.kv_alignment);
  if (name == "block_size") return set_int(spec.block_size);
  if (name == "group_size") return set_int(spec.group_size);
  if (name == "causal") {
    if (value != "0" && value != "1" && value != "sequence") {
      return invalid_spec("causal \"" + value + "\": must be 0, 1 or sequence");
    }
    spec.causality = value == "0"   ? Causality::kNone
                     : value == "1" ? Causality::kCausal
                                    : Causality::kPerSequence;
    return Status::ok();
  }
  if (name == "table") {
    const auto* table = std::find(std::begin(kTableNames), std::end(kTableNames), value);
    if (table == std::end(kTableNames)) {
      return invalid_spec("table \"" + value +
                          "\": must be blocks, csr, contiguous, slots or positions");
    }
    spec.kv_table = static_cast<KvTable>(table - std::begin(kTableNames));
    return Status::ok();
  }
  if (name == "layout") {
    const auto* layout = std::find(std::begin(kLayoutNames), std::end(kLayoutNames), value);
    if (layout == std::end(kLayoutNames)) {
      return invalid_spec("layout \"" + value + "\": must be rows, vllm or ds_mla");
    }
    spec.kv_layout = static_cast<KvLayout>(layout - std::begin(kLayoutNames));
    return Status::ok();
  }
  for (const Switch& option : kSwitches) {
    if (name != option.name) continue;
    if (value != "0" && value != "1")
      return invalid_spec(name + " \"" + value + "\": must be 0 or 1");
    spec.*option.field = value == "1";
    return Status::ok();
  }
  return invalid_spec(
      "spec field \"" + name +
      "\": legal are q, kv, out, head_size, head_size_v, block_size, group_size, "
      "causal, table, layout, kv_alignment, latent, token_scales, window, chunked, custom_mask, "
      "bidirectional_ranges, block_sparse, soft_cap, alibi, qq_bias, sinks, "
      "batch_invariant, debug, pdl");
}

}  // namespace

Result<KernelSpec> parse_spec(std::string_view text) {
  KernelSpec spec;
  std::set<std::string> seen;
  bool first = true;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string word(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (first) {
      first = false;
      const auto* kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                      [&](const Kind& known) { return known.name == word; });
      if (kind == std::end(kKinds)) {
        return invalid_spec("spec kind \"" + word + "\": legal are decode, few, many and shared");
      }
      spec.queries = kind->queries;
      continue;
    }
    const size_t equals = word.find('=');
    if (equals == std::string::npos)
      return invalid_spec("spec word \"" + word + "\": must be field=value");
    const std::string name = word.substr(0, equals);
    if (!seen.insert(name).second) return invalid_spec("spec field \"" + name + "\": given twice");
    if (Status s = set_field(spec, name, word.substr(equals + 1)); !s) return s;
  }
  if (first)
    return invalid_spec("spec \"\": must begin with its kind, decode, few, many or shared");
  if (Status s = validate(spec); !s) return s;
  return spec;
}

}  // namespace pagejit
