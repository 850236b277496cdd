#include "pagejit/spec.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>

#include "generator/planner.h"
#include "generator/spec_text.h"

namespace pagejit {
namespace {

Status invalid(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

Status bad_type(const char* field, DataType value, const char* legal) {
  return Status(
      StatusCode::kUnsupported,
      std::string(field) + " " + std::string(data_type_name(value)) + ": must be " + legal);
}

bool has_token_lists(const KernelSpec& spec) {
  return spec.kv_table == KvTable::kSlots || spec.kv_table == KvTable::kPositions;
}

Status check_types(const KernelSpec& spec) {
  for (const DataType type : {spec.q_dtype, spec.kv_dtype, spec.out_dtype}) {
    if (static_cast<int>(type) > static_cast<int>(DataType::kInt4)) {
      return invalid("data type " + std::to_string(static_cast<int>(type)) +
                     ": legal are f16 (0), bf16 (1), f32 (2), fp8_e4m3 (3), fp8_e5m2 (4), int8 (5) "
                     "and int4 (6)");
    }
  }
  const bool is_integer = spec.kv_dtype == DataType::kInt8 || spec.kv_dtype == DataType::kInt4;
  if (is_integer && !spec.token_scales) {
    return invalid("token_scales 0: must be 1 where kv_dtype is " +
                   std::string(data_type_name(spec.kv_dtype)));
  }
  if (spec.token_scales && !is_small(spec.kv_dtype)) {
    return invalid("token_scales 1: must be 0 where kv_dtype is " +
                   std::string(data_type_name(spec.kv_dtype)) + ", which has no scales");
  }
  if (is_small(spec.out_dtype) && spec.out_dtype != DataType::kFloat8E4m3) {
    return bad_type("out_dtype", spec.out_dtype, "f16, bf16, f32 or fp8_e4m3");
  }
  if (is_small(spec.kv_dtype)) {
    if (!is_small(spec.q_dtype) || spec.q_dtype == DataType::kFloat8E4m3) return Status::ok();
    return bad_type("q_dtype", spec.q_dtype, "f16, bf16, f32 or fp8_e4m3");
  }
  if (spec.q_dtype == spec.kv_dtype || spec.q_dtype == DataType::kFloat32) return Status::ok();
  return bad_type("q_dtype", spec.q_dtype,
                  spec.kv_dtype == DataType::kFloat16    ? "f16 or f32 where kv_dtype is f16"
                  : spec.kv_dtype == DataType::kBFloat16 ? "bf16 or f32 where kv_dtype is bf16"
                                                         : "f32 where kv_dtype is f32");
}

Status check_head_sizes(const KernelSpec& spec) {
  const int k = spec.head_size;
  const int v = spec.head_size_v;
  // Larger ones have twice the accumulators that fit beside operands of three terms.
  constexpr int kMostOfF32 = 256;
  if (spec.kv_dtype == DataType::kFloat32 && k > kMostOfF32) {
    return invalid("head_size " + std::to_string(k) + ": must be at most " +
                   std::to_string(kMostOfF32) + " where kv_dtype is f32");
  }
  if (value_head_size(spec) != spec.head_size) {
    if ((k == 192 && v == 128) || (k == 576 && v == 512)) return {};
    return invalid("head_size_v " + std::to_string(v) + " with head_size " + std::to_string(k) +
                   ": must be 0 or head_size, or 128 with 192, or 512 with 576");
  }
  if ((k >= 8 && k <= 256 && k % 8 == 0) || k == 512) return {};
  return invalid("head_size " + std::to_string(k) +
                 ": must be a multiple of 8 in [8, 256], or 512, or 576 with head_size_v 512");
}

// Of rows that hold K and V.
Status check_latent(const KernelSpec& spec) {
  constexpr int kMostElements = 576;
  constexpr int kMostValueElements = 512;
  const int k = spec.head_size;
  const int v = value_head_size(spec);
  if (k < 16 || k > kMostElements || k % 16 != 0) {
    return invalid("head_size " + std::to_string(k) + ": must be a multiple of 16 in [16, " +
                   std::to_string(kMostElements) + "] where latent is 1");
  }
  if (v < 16 || v > k || v > kMostValueElements || v % 16 != 0) {
    return invalid("head_size_v " + std::to_string(v) + ": must be a multiple of 16 in [16, " +
                   std::to_string(std::min(k, kMostValueElements)) +
                   "] where latent is 1 and head_size is " + std::to_string(k));
  }
  if (spec.kv_dtype != DataType::kFloat16 && spec.kv_dtype != DataType::kBFloat16 &&
      spec.kv_dtype != DataType::kFloat8E4m3 && spec.kv_dtype != DataType::kFloat8E5m2) {
    return bad_type("kv_dtype", spec.kv_dtype, "f16, bf16, fp8_e4m3 or fp8_e5m2 where latent is 1");
  }
  if (spec.kv_layout == KvLayout::kVllm) {
    return invalid("kv_layout 1: must be rows (0) where latent is 1");
  }
  for (const auto& [name, is_set] : {std::pair{"token_scales", spec.token_scales},
                                     {"custom_mask", spec.custom_mask},
                                     {"block_sparse", spec.block_sparse}}) {
    if (is_set) {
      return Status(StatusCode::kUnsupported,
                    std::string(name) + " 1: must be 0 where latent is 1");
    }
  }
  return {};
}

Status check_queries(const KernelSpec& spec) {
  const int queries = static_cast<int>(spec.queries);
  if (queries < 0 || queries > static_cast<int>(QueryLengths::kShared)) {
    return invalid("queries " + std::to_string(queries) +
                   ": legal are one (0), few (1), many (2) and shared (3)");
  }
  const int causality = static_cast<int>(spec.causality);
  if (causality < 0 || causality > static_cast<int>(Causality::kPerSequence)) {
    return invalid("causality " + std::to_string(causality) +
                   ": legal are none (0), causal (1) and per sequence (2)");
  }
  if (spec.queries == QueryLengths::kOne && spec.causality != Causality::kNone) {
    return invalid(
        "causality " + std::to_string(causality) +
        ": must be none (0) where queries is one (0), since a single query token sees all keys");
  }
  const int table = static_cast<int>(spec.kv_table);
  if (table < 0 || table > static_cast<int>(KvTable::kPositions)) {
    return invalid("kv_table " + std::to_string(table) +
                   ": legal are blocks (0), CSR (1), contiguous (2), slots (3) and positions (4)");
  }
  if (has_token_lists(spec) && (!spec.latent || spec.queries != QueryLengths::kOne)) {
    return invalid("kv_table " + std::to_string(table) + ": must be blocks (0), CSR (1) or " +
                   "contiguous (2) unless latent is 1 and queries is one (0)");
  }
  if (has_token_lists(spec)) {
    for (const auto& [name, is_set] : {std::pair{"window", spec.window},
                                       {"chunked", spec.chunked},
                                       {"bidirectional_ranges", spec.bidirectional_ranges},
                                       {"alibi", spec.alibi},
                                       {"qq_bias", spec.qq_bias}}) {
      if (is_set) {
        return invalid(std::string(name) +
                       " 1: must be 0 where kv_table is slots (3) or positions " +
                       "(4): what a list names has no order");
      }
    }
  }
  if (spec.kv_table == KvTable::kContiguous && spec.block_size != 1) {
    return invalid("block_size " + std::to_string(spec.block_size) +
                   ": must be 1 where kv_table is contiguous (2), which has no blocks");
  }
  const int layout = static_cast<int>(spec.kv_layout);
  if (layout < 0 || layout > static_cast<int>(KvLayout::kVllm)) {
    return invalid("kv_layout " + std::to_string(layout) + ": legal are rows (0) and vLLM's (1)");
  }
  const int alignment = spec.kv_alignment;
  if (alignment != 16 && alignment != 8 && alignment != 4) {
    return invalid("kv_alignment " + std::to_string(alignment) + ": must be 16, 8 or 4 bytes");
  }
  if (spec.kv_layout == KvLayout::kVllm) {
    if (alignment != 16) {
      return invalid("kv_alignment " + std::to_string(alignment) +
                     ": must be 16 where kv_layout is vLLM's (1)");
    }
    if (spec.kv_dtype == DataType::kInt8 || spec.kv_dtype == DataType::kInt4) {
      return bad_type("kv_dtype", spec.kv_dtype,
                      "f16, bf16, fp8_e4m3 or fp8_e5m2 where kv_layout is vLLM's (1)");
    }
    if (spec.token_scales) {
      return invalid("token_scales 1: must be 0 where kv_layout is vLLM's (1)");
    }
    if (spec.block_size % 8 != 0) {
      return invalid("block_size " + std::to_string(spec.block_size) +
                     ": must be a multiple of 8 where kv_layout is vLLM's (1)");
    }
    const int x = 16 / data_type_bytes(spec.kv_dtype);
    if (spec.head_size % x != 0) {
      return invalid("head_size " + std::to_string(spec.head_size) + ": must be a multiple of " +
                     std::to_string(x) + " where kv_layout is vLLM's (1) and kv_dtype is " +
                     std::string(data_type_name(spec.kv_dtype)));
    }
  }
  if (spec.batch_invariant && spec.queries == QueryLengths::kShared) {
    return invalid("batch_invariant 1: must be 0 where queries is shared (3)");
  }
  if (spec.batch_invariant && spec.queries == QueryLengths::kOne) {
    return invalid(
        "batch_invariant 1: must be 0 where queries is one (0); few (1) and many (2) take single "
        "query tokens too, by one kernel for all");
  }
  if (spec.window && spec.chunked) {
    return invalid("window 1: must be 0 where chunked is 1; a chunk is a window of its own");
  }
  if (spec.bidirectional_ranges && spec.block_sparse) {
    return Status(
        StatusCode::kUnsupported,
        "bidirectional_ranges 1: must be 0 where block_sparse is 1, whose blocks are seen "
        "or not whatever range they are in");
  }
  return Status::ok();
}

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
  return invalid(
      "data type \"" + std::string(text) +
      "\": legal are f16 (fp16, float16, half), bf16 (bfloat16), f32 (fp32, float32, "
      "float), fp8_e4m3 (fp8, e4m3, float8_e4m3fn), fp8_e5m2 (e5m2, float8_e5m2), int8 and "
      "int4");
}

Status validate(const KernelSpec& spec) {
  if (Status s = check_types(spec); !s) return s;
  if (Status s = spec.latent ? check_latent(spec) : check_head_sizes(spec); !s) return s;
  if (Status s = check_range("block_size", spec.block_size, 1, 65536); !s) return s;
  if (Status s = check_range("group_size", spec.group_size, 1, 128); !s) return s;
  return check_queries(spec);
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
  if (spec.kv_layout == KvLayout::kVllm) text += " layout=vllm";
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
    return invalid(name + " \"" + value + "\": must be a whole number");
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
      return invalid("causal \"" + value + "\": must be 0, 1 or sequence");
    }
    spec.causality = value == "0"   ? Causality::kNone
                     : value == "1" ? Causality::kCausal
                                    : Causality::kPerSequence;
    return Status::ok();
  }
  if (name == "table") {
    const auto* table = std::find(std::begin(kTableNames), std::end(kTableNames), value);
    if (table == std::end(kTableNames)) {
      return invalid("table \"" + value +
                     "\": must be blocks, csr, contiguous, slots or positions");
    }
    spec.kv_table = static_cast<KvTable>(table - std::begin(kTableNames));
    return Status::ok();
  }
  if (name == "layout") {
    if (value != "rows" && value != "vllm") {
      return invalid("layout \"" + value + "\": must be rows or vllm");
    }
    spec.kv_layout = value == "rows" ? KvLayout::kRows : KvLayout::kVllm;
    return Status::ok();
  }
  for (const Switch& option : kSwitches) {
    if (name != option.name) continue;
    if (value != "0" && value != "1") return invalid(name + " \"" + value + "\": must be 0 or 1");
    spec.*option.field = value == "1";
    return Status::ok();
  }
  return invalid(
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
        return invalid("spec kind \"" + word + "\": legal are decode, few, many and shared");
      }
      spec.queries = kind->queries;
      continue;
    }
    const size_t equals = word.find('=');
    if (equals == std::string::npos)
      return invalid("spec word \"" + word + "\": must be field=value");
    const std::string name = word.substr(0, equals);
    if (!seen.insert(name).second) return invalid("spec field \"" + name + "\": given twice");
    if (Status s = set_field(spec, name, word.substr(equals + 1)); !s) return s;
  }
  if (first) return invalid("spec \"\": must begin with its kind, decode, few, many or shared");
  if (Status s = validate(spec); !s) return s;
  return spec;
}

}  // namespace pagejit
