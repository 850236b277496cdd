// A cascade's spec: a composition of kernels of other families, without a text of its own.
#include "pagejit/cascade.h"

#include <string>

namespace pagejit {
namespace {

Status refuse(const char* field, const char* reason) {
  return Status(StatusCode::kUnsupported,
                std::string(field) + " 1: must be 0 in a cascade, " + reason);
}

// What depends on where a token stands in its whole sequence. A level's kernel knows the level's
// own tokens only, and lengths stay on the device.
Status check_positions(const KernelSpec& attention) {
  if (attention.window) {
    return refuse("window", "whose levels do not know how far a query token is from their keys");
  }
  if (attention.chunked) {
    return refuse("chunked", "whose levels do not know in which chunk their keys are");
  }
  if (attention.alibi) {
    return refuse("alibi", "whose levels do not know how far a query token is from their keys");
  }
  if (attention.bidirectional_ranges) {
    return refuse("bidirectional_ranges",
                  "whose levels do not know at which positions their keys are");
  }
  if (attention.qq_bias) {
    return refuse(
        "qq_bias",
        "whose arguments have none; a custom mask of the suffixes hides the branches of a "
        "tree");
  }
  if (attention.latent) {
    return refuse("latent", "which was not tried over rows that hold K and V");
  }
  if (attention.block_sparse) {
    return refuse("block_sparse", "whose levels do not know in which block a query token is");
  }
  return {};
}

Status check_composition(const KernelSpec& attention) {
  if (attention.batch_invariant) {
    return refuse("batch_invariant", "whose results depend on what is taken for a prefix");
  }
  if (attention.pdl) return refuse("pdl", "whose kernels follow each other as usual");
  if (data_type_bytes(attention.out_dtype) == 1) {
    return Status(StatusCode::kUnsupported,
                  "out_dtype " + std::string(data_type_name(attention.out_dtype)) +
                      ": must be f16, bf16 or f32 in a cascade, whose merge has no scales");
  }
  return {};
}

}  // namespace

CascadeParts cascade_parts(const CascadeSpec& spec) {
  CascadeParts parts;
  parts.suffix = spec.attention;
  // Rounded once, by the merge.
  parts.suffix.out_dtype = DataType::kFloat32;
  parts.prefix = parts.suffix;
  parts.prefix.queries = QueryLengths::kShared;
  parts.prefix.causality = Causality::kNone;
  parts.prefix.custom_mask = false;
  parts.prefix.sinks = false;  // the last level adds them, once
  parts.merge = {.in_dtype = DataType::kFloat32,
                 .out_dtype = spec.attention.out_dtype,
                 .head_size = value_head_size(spec.attention)};
  return parts;
}

template <>
Status validate(const CascadeSpec& spec) {
  if (Status s = validate(spec.attention); !s) return s;
  Status status = check_positions(spec.attention);
  if (status) status = check_composition(spec.attention);
  return status;
}

template <>
Status supports(const CascadeSpec& spec, const Target& target) {
  if (Status s = validate(spec); !s) return s;
  const CascadeParts parts = cascade_parts(spec);
  Status status = supports(parts.prefix, target);
  if (status) status = supports(parts.suffix, target);
  if (status) status = supports(parts.merge, target);
  return status;
}

template <>
std::string canonical_text(const CascadeSpec& spec) {
  return "cascade " + canonical_text(spec.attention);
}

}  // namespace pagejit
