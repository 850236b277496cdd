// What this version has kernels for: the spec of a layer kind, or the sentence that says why there
// is none. Thread-safety: free functions without state.
#pragma once

#include <string>

#include "tools/models/model_config.h"

namespace pagejit::models {

// The kernel of layers of this kind for launches of these query lengths. kUnsupported with one
// sentence that names the layers and everything that is missing; nothing is left out to make a
// kernel fit. Softmax scale, width of a window, soft cap, slopes and sinks are launch arguments.
// Latent attention is over the cache's latent rows, and where queries are many over contiguous K
// and V of all heads, as they are computed from the latent rows before. Over the best tokens it is
// one kernel for all query lengths.
Result<KernelSpec> spec_of_kind(const ModelShape& shape, const LayerKind& kind, int block_size,
                                QueryLengths queries);

// KV heads of those launches.
int kv_heads_of_kind(const LayerKind& kind, QueryLengths queries);

// Layers that need no attention kernel at all (an MLP or a mixture of experts alone).
bool needs_no_kernel(const LayerKind& kind);

// "32/8 heads of 128, causal, scale 0.08839"; "sliding window of 4096 keys, soft cap 50, ...".
std::string describe_attention(const LayerAttention& attention);

// The whole shape for people, several lines.
std::string describe_model(const ModelShape& shape);

}  // namespace pagejit::models
