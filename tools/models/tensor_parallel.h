// The share of one GPU when a model's heads are spread over several.
// Thread-safety: free functions without state.
#pragma once

#include "tools/models/model_config.h"

namespace pagejit::models {

// The shape that each of `tensor_parallel` GPUs sees: query heads divided; KV heads divided, or
// repeated where there are fewer than GPUs; one latent KV head for MLA. kInvalidArgument, with the
// values, where they do not divide. `shape` must be that of a whole model (tensor_parallel 1).
Result<ModelShape> apply_tensor_parallel(const ModelShape& shape, int tensor_parallel);

}  // namespace pagejit::models
