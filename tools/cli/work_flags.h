// The flags that say which kernels: a model's config.json or a spec of one's own, and the
// architectures. And the list of kernels that they come to, each once. Thread-safety: plain values
// and free functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pagejit/launch.h"
#include "pagejit/spec.h"
#include "pagejit/target.h"
#include "tools/models/model_config.h"

namespace CLI {
class App;
}

namespace pagejit::cli {

// Values as given; nothing means that the flag is absent.
struct SpecFlags {
  std::vector<std::string> models;  // config.json files or their folders
  std::optional<int> head_size;
  std::optional<int> head_size_v;
  std::optional<int> block_size;
  std::optional<int> group_size;
  std::optional<int> num_heads;
  std::optional<int> num_kv_heads;
  std::optional<std::string> dtype;
  std::optional<std::string> q_dtype;  // instead of dtype
  std::optional<std::string> kv_dtype;
  std::optional<std::string> out_dtype;
  std::string kv_layout = "rows";   // rows, vllm
  std::optional<int> kv_alignment;  // bytes
  bool token_scales = false;
  std::optional<int> tensor_parallel;
  std::string queries = "one";  // one, few, many, shared
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
    return head_size || head_size_v || group_size || num_heads || num_kv_heads || causal ||
           window || chunk || !block_sparse.empty() || soft_cap || alibi || sinks;
  }
};

// `with_models`: --model and --tp too.
void add_spec_flags(CLI::App& command, SpecFlags* flags, bool with_models);

// One kernel to make, and who wants it.
struct WorkItem {
  KernelSpec spec;
  int num_kv_heads = 0;  // on one GPU; 0: not known
  double scale = 0;      // softmax scale; 0: 1 / sqrt(head_size)
  // Where the spec has them: the fields of AttentionArgs with these names.
  int window_left = -1;
  int window_right = -1;
  int chunk_size = 0;
  BlockSparseArgs block_sparse = {};
  bool ranges_within_window = false;
  double soft_cap = 0;
  std::string model = "";  // "llama-3.1-8b"; "" for a spec of one's own

  // But for the model.
  bool is_same_kernel(const WorkItem& other) const;
};

// The kernels of a command: distinct in spec, KV heads and launch values.
struct WorkList {
  std::vector<WorkItem> items;
  std::vector<std::string> unsupported;  // one sentence per layer kind without a kernel
  std::string description;               // of the models, several lines; "" without

  // The distinct specs, in order.
  std::vector<KernelSpec> specs() const;
};

// kInvalidArgument, kUnsupported or kNotFound with one sentence. Layer kinds without a kernel are
// no error.
Result<WorkList> make_work_list(const SpecFlags& flags);

// The kernels of one model, with the flags that a model leaves open, added to `list`.
Status add_model(const models::ModelShape& shape, const std::string& name, const SpecFlags& flags,
                 WorkList* list);

// --queries; kInvalidArgument with what is legal.
Result<QueryLengths> queries_of(const SpecFlags& flags);

// The one spec of a command that takes no model.
Result<KernelSpec> make_spec(const SpecFlags& flags);

// "sm_80,sm_90a" and "host", in any number of arguments, each target once. Empty: empty.
Result<std::vector<Target>> parse_targets(const std::vector<std::string>& texts);

// "bf16 d128 b16 g4", "many bf16 d128 b16 g4 causal window": a spec in few letters, for tables.
std::string short_spec(const KernelSpec& spec);

// "llama-3.1-8b" for ".../llama-3.1-8b/config.json" and ".../llama-3.1-8b.json".
std::string model_name(const std::string& path);

}  // namespace pagejit::cli
