// The flags that say which kernels: a model's config.json or a spec of one's own. Thread-safety:
// plain values and free functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace pagejit::cli {

// Values as given; nothing means that the flag is absent.
struct SpecFlags {
  std::vector<std::string> models;  // config.json files or their folders
  std::optional<int> head_size;
  std::optional<int> head_size_v;
  bool latent = false;
  std::optional<int> block_size;
  std::optional<int> group_size;
  std::optional<int> num_heads;
  std::optional<int> num_kv_heads;
  std::optional<std::string> dtype;
  std::optional<std::string> q_dtype;  // instead of dtype
  std::optional<std::string> kv_dtype;
  std::optional<std::string> out_dtype;
  std::string kv_layout = "rows";   // rows, vllm, ds_mla
  std::optional<int> kv_alignment;  // bytes
  bool token_scales = false;
  std::vector<int> tensor_parallel;  // of a model several numbers, each by itself
  std::string queries = "one";       // one, few, many, shared
  bool causal = false;
  std::optional<int> window;      // keys, the query's own included
  std::optional<int> chunk;       // tokens
  std::vector<int> block_sparse;  // local blocks, stride, tokens per block, head step
  std::optional<double> soft_cap;
  bool alibi = false;
  bool sinks = false;
  // What a model leaves open.
  bool custom_mask = false;
  bool qq_bias = false;
  bool bidirectional_ranges = false;
  bool ranges_within_window = false;
  bool batch_invariant = false;
  bool debug = false;
  bool pdl = false;

  bool has_spec() const {
    return head_size || head_size_v || latent || group_size || num_heads || num_kv_heads ||
           causal || window || chunk || !block_sparse.empty() || soft_cap || alibi || sinks;
  }
};

// `with_models`: --model and --tp too.
void add_spec_flags(CLI::App& command, SpecFlags* flags, bool with_models);

}  // namespace pagejit::cli
