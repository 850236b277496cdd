// Which specs of attention are legal, and the sentences for those that are not.
#include <algorithm>
#include <string>
#include <utility>

#include "generator/spec_text.h"
#include "pagejit/spec.h"

namespace pagejit {
namespace {

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
      return invalid_spec(
          "data type " + std::to_string(static_cast<int>(type)) +
          ": legal are f16 (0), bf16 (1), f32 (2), fp8_e4m3 (3), fp8_e5m2 (4), int8 (5) "
          "and int4 (6)");
    }
  }
  const bool is_integer = spec.kv_dtype == DataType::kInt8 || spec.kv_dtype == DataType::kInt4;
  if (is_integer && !spec.token_scales) {
    return invalid_spec("token_scales 0: must be 1 where kv_dtype is " +
                        std::string(data_type_name(spec.kv_dtype)));
  }
  if (spec.token_scales && !is_small(spec.kv_dtype)) {
    return invalid_spec("token_scales 1: must be 0 where kv_dtype is " +
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
    return invalid_spec("head_size " + std::to_string(k) + ": must be at most " +
                        std::to_string(kMostOfF32) + " where kv_dtype is f32");
  }
  if (value_head_size(spec) != spec.head_size) {
    if ((k == 192 && v == 128) || (k == 576 && v == 512)) return {};
    return invalid_spec("head_size_v " + std::to_string(v) + " with head_size " +
                        std::to_string(k) +
                        ": must be 0 or head_size, or 128 with 192, or 512 with 576");
  }
  if ((k >= 8 && k <= 256 && k % 8 == 0) || k == 512) return {};
  return invalid_spec("head_size " + std::to_string(k) +
                      ": must be a multiple of 8 in [8, 256], or 512, or 576 with head_size_v 512");
}

// Of rows that hold K and V.
Status check_latent(const KernelSpec& spec) {
  constexpr int kMostElements = 576;
  constexpr int kMostValueElements = 512;
  const int k = spec.head_size;
  const int v = value_head_size(spec);
  if (k < 16 || k > kMostElements || k % 16 != 0) {
    return invalid_spec("head_size " + std::to_string(k) + ": must be a multiple of 16 in [16, " +
                        std::to_string(kMostElements) + "] where latent is 1");
  }
  if (v < 16 || v > k || v > kMostValueElements || v % 16 != 0) {
    return invalid_spec("head_size_v " + std::to_string(v) + ": must be a multiple of 16 in [16, " +
                        std::to_string(std::min(k, kMostValueElements)) +
                        "] where latent is 1 and head_size is " + std::to_string(k));
  }
  if (spec.kv_dtype != DataType::kFloat16 && spec.kv_dtype != DataType::kBFloat16 &&
      spec.kv_dtype != DataType::kFloat8E4m3 && spec.kv_dtype != DataType::kFloat8E5m2) {
    return bad_type("kv_dtype", spec.kv_dtype, "f16, bf16, fp8_e4m3 or fp8_e5m2 where latent is 1");
  }
  if (spec.kv_layout == KvLayout::kVllm) {
    return invalid_spec("kv_layout 1: must be rows (0) or DS-MLA's (2) where latent is 1");
  }
  if (spec.kv_layout == KvLayout::kDsMla) {
    const std::string where = " where kv_layout is DS-MLA's (2)";
    if (k != 576) return invalid_spec("head_size " + std::to_string(k) + ": must be 576" + where);
    if (v != 512) return invalid_spec("head_size_v " + std::to_string(v) + ": must be 512" + where);
    if (spec.kv_dtype != DataType::kFloat8E4m3) {
      return bad_type("kv_dtype", spec.kv_dtype, ("fp8_e4m3" + where).c_str());
    }
    if (spec.q_dtype != DataType::kBFloat16) {
      return bad_type("q_dtype", spec.q_dtype, ("bf16" + where).c_str());
    }
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
    return invalid_spec("queries " + std::to_string(queries) +
                        ": legal are one (0), few (1), many (2) and shared (3)");
  }
  const int causality = static_cast<int>(spec.causality);
  if (causality < 0 || causality > static_cast<int>(Causality::kPerSequence)) {
    return invalid_spec("causality " + std::to_string(causality) +
                        ": legal are none (0), causal (1) and per sequence (2)");
  }
  if (spec.queries == QueryLengths::kOne && spec.causality != Causality::kNone) {
    return invalid_spec(
        "causality " + std::to_string(causality) +
        ": must be none (0) where queries is one (0), since a single query token sees all keys");
  }
  const int table = static_cast<int>(spec.kv_table);
  if (table < 0 || table > static_cast<int>(KvTable::kPositions)) {
    return invalid_spec(
        "kv_table " + std::to_string(table) +
        ": legal are blocks (0), CSR (1), contiguous (2), slots (3) and positions (4)");
  }
  if (has_token_lists(spec) && (!spec.latent || spec.queries != QueryLengths::kOne)) {
    return invalid_spec("kv_table " + std::to_string(table) + ": must be blocks (0), CSR (1) or " +
                        "contiguous (2) unless latent is 1 and queries is one (0)");
  }
  if (has_token_lists(spec)) {
    for (const auto& [name, is_set] : {std::pair{"window", spec.window},
                                       {"chunked", spec.chunked},
                                       {"bidirectional_ranges", spec.bidirectional_ranges},
                                       {"alibi", spec.alibi},
                                       {"qq_bias", spec.qq_bias}}) {
      if (is_set) {
        return invalid_spec(std::string(name) +
                            " 1: must be 0 where kv_table is slots (3) or positions " +
                            "(4): what a list names has no order");
      }
    }
  }
  if (spec.kv_table == KvTable::kContiguous && spec.block_size != 1) {
    return invalid_spec("block_size " + std::to_string(spec.block_size) +
                        ": must be 1 where kv_table is contiguous (2), which has no blocks");
  }
  const int layout = static_cast<int>(spec.kv_layout);
  if (layout < 0 || layout > static_cast<int>(KvLayout::kDsMla)) {
    return invalid_spec("kv_layout " + std::to_string(layout) +
                        ": legal are rows (0), vLLM's (1) and DS-MLA's (2)");
  }
  if (spec.kv_layout == KvLayout::kDsMla && !spec.latent) {
    return invalid_spec("kv_layout 2: must be rows (0) or vLLM's (1) where latent is 0");
  }
  const int alignment = spec.kv_alignment;
  if (alignment != 16 && alignment != 8 && alignment != 4) {
    return invalid_spec("kv_alignment " + std::to_string(alignment) + ": must be 16, 8 or 4 bytes");
  }
  if (spec.kv_layout == KvLayout::kVllm) {
    if (alignment != 16) {
      return invalid_spec("kv_alignment " + std::to_string(alignment) +
                          ": must be 16 where kv_layout is vLLM's (1)");
    }
    if (spec.kv_dtype == DataType::kInt8 || spec.kv_dtype == DataType::kInt4) {
      return bad_type("kv_dtype", spec.kv_dtype,
                      "f16, bf16, fp8_e4m3 or fp8_e5m2 where kv_layout is vLLM's (1)");
    }
    if (spec.token_scales) {
      return invalid_spec("token_scales 1: must be 0 where kv_layout is vLLM's (1)");
    }
    if (spec.block_size % 8 != 0) {
      return invalid_spec("block_size " + std::to_string(spec.block_size) +
                          ": must be a multiple of 8 where kv_layout is vLLM's (1)");
    }
    const int x = 16 / data_type_bytes(spec.kv_dtype);
    if (spec.head_size % x != 0) {
      return invalid_spec("head_size " + std::to_string(spec.head_size) +
                          ": must be a multiple of " + std::to_string(x) +
                          " where kv_layout is vLLM's (1) and kv_dtype is " +
                          std::string(data_type_name(spec.kv_dtype)));
    }
  }
  if (spec.batch_invariant && spec.queries == QueryLengths::kShared) {
    return invalid_spec("batch_invariant 1: must be 0 where queries is shared (3)");
  }
  if (spec.batch_invariant && spec.queries == QueryLengths::kOne) {
    return invalid_spec(
        "batch_invariant 1: must be 0 where queries is one (0); few (1) and many (2) take single "
        "query tokens too, by one kernel for all");
  }
  if (spec.window && spec.chunked) {
    return invalid_spec("window 1: must be 0 where chunked is 1; a chunk is a window of its own");
  }
  if (spec.bidirectional_ranges && spec.block_sparse) {
    return Status(
        StatusCode::kUnsupported,
        "bidirectional_ranges 1: must be 0 where block_sparse is 1, whose blocks are seen "
        "or not whatever range they are in");
  }
  return Status::ok();
}

}  // namespace

Status validate(const KernelSpec& spec) {
  if (Status s = check_types(spec); !s) return s;
  if (Status s = spec.latent ? check_latent(spec) : check_head_sizes(spec); !s) return s;
  if (Status s = check_range("block_size", spec.block_size, 1, 65536); !s) return s;
  if (Status s = check_range("group_size", spec.group_size, 1, 128); !s) return s;
  return check_queries(spec);
}

}  // namespace pagejit
