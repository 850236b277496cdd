#include "tools/models/tensor_parallel.h"

#include <algorithm>
#include <string>

namespace pagejit::models {
namespace {

// More GPUs than that share no attention layer; vLLM and transformers both stay far below.
constexpr int kMaxTensorParallel = 1024;

Status split_heads(LayerAttention* attention, int tensor_parallel) {
  const std::string degree = std::to_string(tensor_parallel);
  const int heads = attention->num_heads;
  const int kv_heads = attention->num_kv_heads;
  if (heads % tensor_parallel != 0) {
    return Status(StatusCode::kInvalidArgument, "tensor parallelism " + degree +
                                                    ": must divide the " + std::to_string(heads) +
                                                    " query heads");
  }
  attention->num_heads = heads / tensor_parallel;
  if (attention->family == LayerFamily::kMla) return Status::ok();
  if (std::max(kv_heads, tensor_parallel) % std::min(kv_heads, tensor_parallel) != 0) {
    return Status(StatusCode::kInvalidArgument,
                  "tensor parallelism " + degree + " and " + std::to_string(kv_heads) +
                      " KV heads: the larger must be a multiple of the smaller");
  }
  attention->num_kv_heads = std::max(1, kv_heads / tensor_parallel);
  return Status::ok();
}

}  // namespace

Result<ModelShape> apply_tensor_parallel(const ModelShape& shape, int tensor_parallel) {
  if (tensor_parallel < 1 || tensor_parallel > kMaxTensorParallel) {
    return Status(StatusCode::kInvalidArgument,
                  "tensor parallelism " + std::to_string(tensor_parallel) + ": must be in [1, " +
                      std::to_string(kMaxTensorParallel) + "]");
  }
  ModelShape share = shape;
  share.tensor_parallel = tensor_parallel;
  for (LayerKind& kind : share.kinds) {
    const LayerFamily family = kind.attention.family;
    if (family != LayerFamily::kSoftmax && family != LayerFamily::kMla) continue;
    if (const Status status = split_heads(&kind.attention, tensor_parallel); !status) return status;
  }
  return share;
}

}  // namespace pagejit::models
