#include "pagejit/spec.h"

#include <iterator>
#include <variant>

#include "generator/planner.h"
#include "generator/spec_fields.h"
#include "generator/spec_text.h"

namespace pagejit {

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
  const auto queries = static_cast<size_t>(spec.queries);
  std::string text(queries < std::size(kQueriesNames) ? kQueriesNames[queries] : "unknown");
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
  for (const SpecField<KernelSpec>& field : fields_of<KernelSpec>()) {
    const auto* option = std::get_if<bool KernelSpec::*>(&field.pointer);
    if (option != nullptr) text += text_switch(field.name, spec.**option);
  }
  return text;
}

}  // namespace pagejit
