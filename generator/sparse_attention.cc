// The spec of sparse attention: a composition of kernels of other families, without a text of its
// own.
#include "pagejit/sparse_attention.h"

#include <string>

#include "generator/spec_text.h"

namespace pagejit {
namespace {

// The fields of the logits have the names of the whole's without "index_".
Status with_index_name(const Status& status) {
  return status.with_message("index_" + status.message());
}

}  // namespace

SparseAttentionParts sparse_attention_parts(const SparseAttentionSpec& spec) {
  const bool debug = spec.attention.debug;
  return {.logits = {.num_heads = spec.index_num_heads,
                     .head_size = spec.index_head_size,
                     .block_size = spec.contiguous_index_keys ? 0 : spec.attention.block_size,
                     .debug = debug},
          .top_k = {.debug = debug},
          .attention = spec.attention};
}

template <>
Status validate(const SparseAttentionSpec& spec) {
  if (Status s = validate(spec.attention); !s) return s;
  if (spec.attention.kv_table != KvTable::kPositions) {
    return invalid_spec("kv_table " + std::to_string(static_cast<int>(spec.attention.kv_table)) +
                        ": must be positions (4) in sparse attention, whose lists are what the "
                        "indexer chooses");
  }
  return with_index_name(validate(sparse_attention_parts(spec).logits));
}

template <>
Status supports(const SparseAttentionSpec& spec, const Target& target) {
  if (Status s = validate(spec); !s) return s;
  const SparseAttentionParts parts = sparse_attention_parts(spec);
  Status status = supports(parts.attention, target);
  if (status) status = with_index_name(supports(parts.logits, target));
  if (status) status = supports(parts.top_k, target);
  return status;
}

template <>
std::string canonical_text(const SparseAttentionSpec& spec) {
  return "sparse_attention" + text_field("index_num_heads", spec.index_num_heads) +
         text_field("index_head_size", spec.index_head_size) +
         text_switch("contiguous_index_keys", spec.contiguous_index_keys) + " " +
         canonical_text(spec.attention);
}

}  // namespace pagejit
