#include "tools/models/layer_support.h"

#include <cstdio>
#include <vector>

#include "tools/models/layer_kinds.h"

namespace pagejit::models {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.5g", value);
  return text;
}

std::string mask_text(const LayerAttention& attention) {
  const std::string window = std::to_string(attention.window);
  switch (attention.mask) {
    case MaskKind::kCausal:
      return "causal";
    case MaskKind::kSlidingWindow:
      return "sliding window of " + window + " keys";
    case MaskKind::kChunked:
      return "chunks of " + window + " keys";
    case MaskKind::kBidirectional:
      return attention.window == 0 ? "bidirectional attention"
                                   : "bidirectional window of |q - k| < " + window;
    case MaskKind::kPrefix:
      return "bidirectional attention over a prefix";
  }
  return "causal";
}

std::string mla_text(const MlaDims& mla) {
  std::string text = "latent attention (MLA) of " + std::to_string(mla.kv_lora_rank) + " + " +
                     std::to_string(mla.qk_rope_head_dim);
  if (mla.index_topk > 0) text += " over the best " + std::to_string(mla.index_topk) + " tokens";
  return text;
}

// Whether kernels have this mask for one query token per sequence, or for several.
bool has_mask(MaskKind mask, QueryLengths queries) {
  switch (mask) {
    case MaskKind::kCausal:
    case MaskKind::kSlidingWindow:
    case MaskKind::kChunked:
      return true;
    case MaskKind::kBidirectional:
      // What decodes token by token is not bidirectional.
      return queries != QueryLengths::kOne;
    case MaskKind::kPrefix:
      return true;  // a range from 0 on
  }
  return false;
}

// What the kernels of this version do not do, each as a noun.
std::vector<std::string> missing_features(const LayerAttention& attention, QueryLengths queries) {
  std::vector<std::string> missing;
  if (attention.family == LayerFamily::kLinear) missing.push_back(attention.layer_type + " layers");
  if (attention.family == LayerFamily::kUnknown) {
    missing.push_back("layer type \"" + attention.layer_type + "\"");
  }
  if (!has_mask(attention.mask, queries)) missing.push_back(mask_text(attention));
  return missing;
}

// Where queries are many a latent vector's heads are computed from it once for all of them, and K
// and V of each head are rows without blocks; else q is brought into the latent space.
bool expands_latent(const MlaDims& mla, QueryLengths queries) {
  return queries == QueryLengths::kMany && mla.index_topk == 0;
}

std::string join(const std::vector<std::string>& parts, const std::string& last) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == parts.size() ? last : ", ") + parts[i];
  }
  return text;
}

}  // namespace

int kv_heads_of_kind(const LayerKind& kind, QueryLengths queries) {
  const LayerAttention& attention = kind.attention;
  return attention.mla && expands_latent(*attention.mla, queries) ? attention.num_heads
                                                                  : attention.num_kv_heads;
}

bool needs_no_kernel(const LayerKind& kind) { return kind.attention.family == LayerFamily::kNone; }

Result<KernelSpec> spec_of_kind(const ModelShape& shape, const LayerKind& kind, int block_size,
                                QueryLengths queries) {
  const LayerAttention& attention = kind.attention;
  const std::string where = describe_layers(kind.layers, shape.num_layers);
  const std::vector<std::string> missing = missing_features(attention, queries);
  if (!missing.empty()) {
    return Status(StatusCode::kUnsupported,
                  where + ": not supported yet: " + join(missing, " and "));
  }
  KernelSpec spec;
  spec.q_dtype = spec.kv_dtype = spec.out_dtype = shape.dtype;
  spec.head_size = attention.head_size;
  spec.block_size = block_size;
  spec.group_size = attention.group_size();
  if (attention.mla && expands_latent(*attention.mla, queries)) {
    const MlaDims& mla = *attention.mla;
    spec.head_size = mla.qk_nope_head_dim + mla.qk_rope_head_dim;
    spec.head_size_v = mla.v_head_dim;
    spec.group_size = 1;
    spec.kv_table = KvTable::kContiguous;
    spec.block_size = 1;
  } else if (attention.mla) {
    spec.latent = true;
    spec.head_size_v = attention.mla->kv_lora_rank;
  }
  spec.queries = queries;
  if (queries != QueryLengths::kOne && attention.mask != MaskKind::kBidirectional) {
    spec.causality = Causality::kCausal;
  }
  spec.bidirectional_ranges = queries != QueryLengths::kOne && attention.mask == MaskKind::kPrefix;
  spec.chunked = attention.mask == MaskKind::kChunked;
  spec.window = !spec.chunked && attention.mask != MaskKind::kCausal && attention.window > 0;
  spec.soft_cap = attention.soft_cap > 0;
  spec.alibi = attention.alibi;
  spec.sinks = attention.sinks;
  if (attention.mla && attention.mla->index_topk > 0) {
    // Each query token has its own list, however many its sequence has.
    spec.kv_table = KvTable::kPositions;
    spec.queries = QueryLengths::kOne;
    spec.causality = Causality::kNone;
  }
  // A block size that is never legal is the caller's mistake, not the model's.
  KernelSpec usual;
  usual.block_size = block_size;
  if (const Status status = validate(usual); !status) return status;
  if (const Status status = validate(spec); !status) {
    return Status(StatusCode::kUnsupported, where + ": not supported yet: " + status.message());
  }
  return spec;
}

std::string describe_attention(const LayerAttention& attention) {
  if (attention.family == LayerFamily::kNone) return "no attention (" + attention.layer_type + ")";
  if (attention.family != LayerFamily::kSoftmax && attention.family != LayerFamily::kMla) {
    return attention.layer_type;
  }
  std::vector<std::string> parts = {std::to_string(attention.num_heads) + "/" +
                                    std::to_string(attention.num_kv_heads) + " heads of " +
                                    std::to_string(attention.head_size)};
  if (attention.mask == MaskKind::kCausal) parts.push_back("causal");
  if (attention.mla) parts.push_back(mla_text(*attention.mla));
  if (attention.mask != MaskKind::kCausal) parts.push_back(mask_text(attention));
  if (attention.soft_cap > 0) parts.push_back("soft cap " + number(attention.soft_cap));
  if (attention.sinks) parts.push_back("attention sinks");
  if (attention.alibi) {
    parts.push_back("ALiBi of maximum bias " + number(attention.alibi_max_bias));
  }
  parts.push_back("scale " + number(attention.scale));
  return join(parts, ", ");
}

std::string describe_model(const ModelShape& shape) {
  std::string text = shape.model_type;
  if (shape.file_model_type != shape.model_type) text += " (" + shape.file_model_type + ")";
  text += ", " + std::to_string(shape.num_layers) + " layers, " +
          std::string(data_type_name(shape.dtype));
  if (shape.tensor_parallel > 1) {
    text += ", one of " + std::to_string(shape.tensor_parallel) + " GPUs";
  }
  text += "\n";
  for (const LayerKind& kind : shape.kinds) {
    text += "  " + describe_layers(kind.layers, shape.num_layers) + ": " +
            describe_attention(kind.attention) + "\n";
  }
  if (!shape.defaulted.empty()) text += "  not in the file: " + join(shape.defaulted, ", ") + "\n";
  for (const std::string& note : shape.notes) text += "  note: " + note + "\n";
  return text;
}

}  // namespace pagejit::models
