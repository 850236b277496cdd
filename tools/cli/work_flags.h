// The flags that say which kernels: a model's config.json or a spec of one's own, and the
// architectures. And the list of kernels that they come to, each once. Thread-safety: plain values
// and free functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "generator/config.h"
#include "pagejit/launch.h"
#include "pagejit/spec.h"
#include "pagejit/target.h"
#include "tools/cli/spec_flags.h"
#include "tools/models/model_config.h"

namespace pagejit::cli {

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

// kInvalidArgument, kUnsupported or kCacheError (a file) with one sentence. Layer kinds without a
// kernel are no error.
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
// Of another family: its canonical text.
std::string short_spec(const AnySpec& spec);

// "llama-3.1-8b" for ".../llama-3.1-8b/config.json" and ".../llama-3.1-8b.json".
std::string model_name(const std::string& path);

}  // namespace pagejit::cli
