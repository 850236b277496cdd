// ModelShape: what a Hugging Face config.json says about a model's attention, layer by layer. Reads
// shapes, masks and scales only; never weights, and never the vision part of a file. What this
// version has kernels for is layer_support.h's answer, not this file's. Thread-safety: plain values
// and free functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pagejit/spec.h"
#include "pagejit/status.h"

namespace pagejit::models {

enum class MaskKind : uint8_t {
  kCausal = 0,         // keys k <= q
  kSlidingWindow = 1,  // q - window < k <= q: `window` keys, the query's own included
  kChunked = 2,        // k / window == q / window and k <= q
  kBidirectional = 3,  // all keys; |q - k| < window where window is not 0
  kPrefix = 4,         // bidirectional over the prompt, causal after it
};

enum class LayerFamily : uint8_t {
  kSoftmax = 0,
  kMla = 1,  // multi-head latent attention
  kLinear =
      2,  // linear attention, convolution, Mamba: no softmax attention and no KV cache of blocks
  kNone = 3,     // an MLP or a mixture of experts alone: nothing to do here
  kUnknown = 4,  // a layer type whose attention is not known
};

// Multi-head latent attention. Decode: one KV head, K = kv_lora_rank + qk_rope_head_dim, V = the
// first kv_lora_rank. Prefill: num_heads KV heads, K = qk_nope_head_dim + qk_rope_head_dim, V =
// v_head_dim.
struct MlaDims {
  int kv_lora_rank = 0;
  int qk_rope_head_dim = 0;
  int qk_nope_head_dim = 0;
  int v_head_dim = 0;
  // Sparse attention over the index_topk best tokens; 0: dense. The indexer has one K head of
  // index_head_dim.
  int index_topk = 0;
  int index_heads = 0;
  int index_head_dim = 0;

  bool operator==(const MlaDims&) const = default;
};

// What one layer computes; equal ones share a kernel and its launch arguments.
struct LayerAttention {
  LayerFamily family = LayerFamily::kSoftmax;
  std::string layer_type;  // as the file calls it, where the family is neither kSoftmax nor kMla
  int num_heads = 0;       // query heads
  int num_kv_heads = 0;    // at decode
  int head_size = 0;       // of q and K at decode
  MaskKind mask = MaskKind::kCausal;
  int64_t window = 0;   // tokens; see MaskKind
  double soft_cap = 0;  // cap * tanh(score / cap) before the softmax; 0: none
  bool sinks = false;   // one learned logit per query head in the denominator
  bool alibi = false;
  double alibi_max_bias = 0;
  bool alibi_scaled = false;  // the slope is multiplied by the softmax scale too (Falcon)
  double scale = 0;           // softmax scale; a launch argument
  std::optional<MlaDims> mla;

  int group_size() const { return num_kv_heads == 0 ? 0 : num_heads / num_kv_heads; }
  bool operator==(const LayerAttention&) const = default;
};

struct LayerKind {
  LayerAttention attention;
  std::vector<int> layers;  // indices from 0, ascending
};

struct ModelShape {
  std::string model_type;       // resolved: aliases and nested sections followed
  std::string file_model_type;  // as the file's top level says
  int num_layers = 0;
  std::vector<LayerKind> kinds;  // in order of their first layer
  DataType dtype = DataType::kBFloat16;
  int tensor_parallel = 1;
  // Values that the file leaves to the model's class: "head_dim 256 (default of gemma2)".
  std::vector<std::string> defaulted;
  // What was decided against the letter of the file, or beside it: one sentence each.
  std::vector<std::string> notes;
};

struct ParseOptions {
  // Instead of the file's dtype.
  std::optional<DataType> dtype;
};

// kInvalidArgument: malformed JSON, a wrong type, a value out of range, heads that do not divide,
// an unknown model_type, or a field without which the shape cannot be known. One sentence with the
// value and what is legal.
Result<ModelShape> parse_model_config(std::string_view json, const ParseOptions& options = {});

// Reads a config.json, or the one in a folder. kCacheError where it cannot be read; else as above,
// with the path before it.
Result<ModelShape> load_model_config(const std::string& path, const ParseOptions& options = {});

// Every model_type that is understood, aliases included, sorted.
std::vector<std::string> known_model_types();

}  // namespace pagejit::models
