#include "tools/cli/work_flags.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <variant>

#include "generator/families.h"
#include "tools/models/layer_support.h"
#include "tools/models/tensor_parallel.h"

namespace pagejit::cli {
namespace {

constexpr int kDefaultBlockSize = 16;  // vLLM's, and the smallest that most systems use

Status usage(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

Result<DataType> dtype_of(const SpecFlags& flags) {
  if (!flags.dtype) return DataType::kBFloat16;
  Result<DataType> type = parse_data_type(*flags.dtype);
  if (type && data_type_bytes(*type) == 1) {
    return usage(
        std::string(data_type_name(*type)) +
        ": must be bf16, f16 or f32; other types have --q-dtype, --kv-dtype and --out-dtype");
  }
  return type;
}

Status check_heads(const char* flag, const std::optional<int>& value) {
  if (!value || *value >= 1) return Status::ok();
  return usage(std::string(flag) + " " + std::to_string(*value) + ": must be at least 1");
}

// The heads of one GPU from --num-heads, --num-kv-heads and --tp.
struct Heads {
  int group_size = 1;
  int num_kv_heads = 0;  // not known
};

Result<Heads> resolve_heads(const SpecFlags& flags) {
  if (Status s = check_heads("--num-heads", flags.num_heads); !s) return s;
  if (Status s = check_heads("--num-kv-heads", flags.num_kv_heads); !s) return s;
  if (flags.tensor_parallel.size() > 1) return usage("--tp: several numbers need --model");
  if (flags.num_heads.has_value() && flags.num_kv_heads.has_value()) {
    if (*flags.num_heads % *flags.num_kv_heads != 0) {
      return usage("--num-heads " + std::to_string(*flags.num_heads) +
                   ": must be a multiple of --num-kv-heads " + std::to_string(*flags.num_kv_heads));
    }
    models::ModelShape shape;
    models::LayerAttention attention;
    attention.num_heads = *flags.num_heads;
    attention.num_kv_heads = *flags.num_kv_heads;
    shape.kinds.push_back({attention, {0}});
    const auto share = models::apply_tensor_parallel(
        shape, flags.tensor_parallel.empty() ? 1 : flags.tensor_parallel.front());
    if (!share) return share.status();
    const models::LayerAttention& on_gpu = share->kinds[0].attention;
    if (flags.group_size && *flags.group_size != on_gpu.group_size()) {
      return usage("--group-size " + std::to_string(*flags.group_size) + ": must be " +
                   std::to_string(on_gpu.group_size()) +
                   ", which --num-heads and --num-kv-heads give");
    }
    return Heads{on_gpu.group_size(), on_gpu.num_kv_heads};
  }
  if (flags.num_heads) return usage("--num-heads needs --num-kv-heads");
  if (!flags.tensor_parallel.empty())
    return usage("--tp needs --model, or --num-heads and --num-kv-heads");
  if (!flags.group_size)
    return usage("--group-size is missing; or give --num-heads and --num-kv-heads");
  return Heads{*flags.group_size, flags.num_kv_heads.value_or(0)};
}

// Query lengths, mask and score changes.
Status set_queries(const SpecFlags& flags, WorkItem* item) {
  const Result<QueryLengths> queries = queries_of(flags);
  if (!queries) return queries.status();
  KernelSpec& spec = item->spec;
  spec.queries = *queries;
  if (flags.causal) spec.causality = Causality::kCausal;
  if (flags.window) {
    if (*flags.window < 1) {
      return usage("--window " + std::to_string(*flags.window) + ": must be at least 1");
    }
    spec.window = true;
    item->window_left = *flags.window - 1;
  }
  if (flags.chunk) {
    if (*flags.chunk < 1) {
      return usage("--chunk " + std::to_string(*flags.chunk) + ": must be at least 1");
    }
    spec.chunked = true;
    item->chunk_size = *flags.chunk;
  }
  if (!flags.block_sparse.empty()) {
    const std::vector<int>& numbers = flags.block_sparse;
    if (numbers.size() < 2 || numbers.size() > 4) {
      return usage("--block-sparse: must be LOCAL,STRIDE[,TOKENS[,STEP]]");
    }
    BlockSparseArgs& sparse = item->block_sparse;
    spec.block_sparse = true;
    sparse.local_blocks = numbers[0];
    sparse.vert_stride = numbers[1];
    if (numbers.size() > 2) sparse.block_size = numbers[2];
    if (numbers.size() > 3) sparse.head_sliding_step = numbers[3];
  }
  if (flags.soft_cap) {
    if (!(*flags.soft_cap > 0 && std::isfinite(*flags.soft_cap))) {
      return usage("--soft-cap " + std::to_string(*flags.soft_cap) +
                   ": must be positive and finite");
    }
    spec.soft_cap = true;
    item->soft_cap = *flags.soft_cap;
  }
  spec.alibi = flags.alibi;
  spec.sinks = flags.sinks;
  return Status::ok();
}

// The types and the layout that are asked for instead of the usual ones.
Status set_elements(const SpecFlags& flags, KernelSpec* spec) {
  struct Field {
    const char* flag;
    const std::optional<std::string>& text;
    DataType* type;
  };
  const Field fields[] = {{"--q-dtype", flags.q_dtype, &spec->q_dtype},
                          {"--kv-dtype", flags.kv_dtype, &spec->kv_dtype},
                          {"--out-dtype", flags.out_dtype, &spec->out_dtype}};
  for (const Field& field : fields) {
    if (!field.text) continue;
    const Result<DataType> type = parse_data_type(*field.text);
    if (!type) return type.status().with_context(field.flag);
    *field.type = *type;
  }
  constexpr std::string_view kLayouts[] = {"rows", "vllm", "ds_mla"};  // by their numbers
  const auto* layout = std::find(std::begin(kLayouts), std::end(kLayouts), flags.kv_layout);
  if (layout == std::end(kLayouts)) {
    return usage("--kv-layout " + flags.kv_layout + ": must be rows, vllm or ds_mla");
  }
  spec->kv_layout = static_cast<KvLayout>(layout - std::begin(kLayouts));
  spec->token_scales = flags.token_scales;
  if (flags.kv_alignment) spec->kv_alignment = *flags.kv_alignment;
  return validate(*spec);
}

// What holds for a model's kernels and for a spec of one's own alike.
Status set_open_fields(const SpecFlags& flags, WorkItem* item) {
  KernelSpec& spec = item->spec;
  spec.debug = flags.debug;
  spec.batch_invariant = flags.batch_invariant;
  spec.pdl = flags.pdl;
  spec.custom_mask = flags.custom_mask;
  spec.qq_bias = flags.qq_bias;
  spec.bidirectional_ranges |= flags.bidirectional_ranges;
  if (flags.ranges_within_window && !flags.bidirectional_ranges) {
    return usage("--ranges-within-window needs --bidirectional-ranges");
  }
  item->ranges_within_window = flags.ranges_within_window;
  return set_elements(flags, &spec);
}

Result<WorkItem> make_item(const SpecFlags& flags) {
  if (!flags.head_size) return usage("--head-size is missing");
  const Result<DataType> dtype = dtype_of(flags);
  if (!dtype) return dtype.status().with_context("--dtype");
  const Result<Heads> heads = resolve_heads(flags);
  if (!heads) return heads.status();
  WorkItem item;
  item.spec.q_dtype = item.spec.kv_dtype = item.spec.out_dtype = *dtype;
  item.spec.head_size = *flags.head_size;
  item.spec.head_size_v = flags.head_size_v.value_or(0);
  item.spec.latent = flags.latent;
  item.spec.block_size = flags.block_size.value_or(kDefaultBlockSize);
  item.spec.group_size = heads->group_size;
  if (const Status status = set_queries(flags, &item); !status) return status;
  item.num_kv_heads = heads->num_kv_heads;
  if (const Status status = set_open_fields(flags, &item); !status) return status;
  return item;
}

void add_item(WorkItem item, WorkList* list) {
  for (WorkItem& known : list->items) {
    if (known.is_same_kernel(item)) {
      const std::string& name = item.model;
      if (!name.empty() && known.model != name) known.model += ", " + name;
      return;
    }
  }
  list->items.push_back(std::move(item));
}

}  // namespace

std::vector<KernelSpec> WorkList::specs() const {
  std::vector<KernelSpec> distinct;
  for (const WorkItem& item : items) {
    if (std::find(distinct.begin(), distinct.end(), item.spec) == distinct.end()) {
      distinct.push_back(item.spec);
    }
  }
  return distinct;
}

bool WorkItem::is_same_kernel(const WorkItem& other) const {
  return spec == other.spec && num_kv_heads == other.num_kv_heads && scale == other.scale &&
         window_left == other.window_left && window_right == other.window_right &&
         chunk_size == other.chunk_size && block_sparse == other.block_sparse &&
         ranges_within_window == other.ranges_within_window && soft_cap == other.soft_cap;
}

Result<QueryLengths> queries_of(const SpecFlags& flags) {
  if (flags.queries == "one") return QueryLengths::kOne;
  if (flags.queries == "few") return QueryLengths::kFew;
  if (flags.queries == "many") return QueryLengths::kMany;
  if (flags.queries == "shared") return QueryLengths::kShared;
  return usage("--queries " + flags.queries + ": must be one, few, many or shared");
}

Status add_model(const models::ModelShape& shape, const std::string& name, const SpecFlags& flags,
                 WorkList* list) {
  const Result<QueryLengths> queries = queries_of(flags);
  if (!queries) return queries.status();
  const int block_size = flags.block_size.value_or(kDefaultBlockSize);
  list->description += name + ": " + models::describe_model(shape);
  for (const models::LayerKind& kind : shape.kinds) {
    if (models::needs_no_kernel(kind)) continue;
    Result<KernelSpec> spec = models::spec_of_kind(shape, kind, block_size, *queries);
    if (!spec) {
      if (spec.status().code() != StatusCode::kUnsupported) return spec.status();
      list->unsupported.push_back(name + ": " + spec.status().message());
      continue;
    }
    WorkItem item = {.spec = *spec,
                     .num_kv_heads = models::kv_heads_of_kind(kind, *queries),
                     .scale = kind.attention.scale,
                     .chunk_size = spec->chunked ? static_cast<int>(kind.attention.window) : 0,
                     .soft_cap = kind.attention.soft_cap,
                     .model = name};
    if (Status s = set_open_fields(flags, &item); !s) return s.with_context(name);
    if (spec->window) {
      item.window_left = static_cast<int>(kind.attention.window - 1);
      if (spec->causality == Causality::kNone) item.window_right = item.window_left;
    }
    const double usual = 1.0 / std::sqrt(static_cast<double>(spec->head_size));
    if (item.scale == usual) item.scale = 0;
    add_item(std::move(item), list);
  }
  return Status::ok();
}

Result<WorkList> make_work_list(const SpecFlags& flags) {
  WorkList list;
  if (flags.models.empty()) {
    if (!flags.has_spec())
      return usage("which kernels is not said: give --model FILE, or --head-size and --group-size");
    Result<WorkItem> item = make_item(flags);
    if (!item) return item.status();
    add_item(*item, &list);
    return list;
  }
  if (flags.has_spec()) {
    return usage(
        "--model excludes --head-size, --head-size-v, --latent, --group-size, --num-heads, "
        "--num-kv-heads, "
        "--causal, "
        "--window, --chunk, --block-sparse, --soft-cap, --alibi and --sinks");
  }
  models::ParseOptions options;
  if (flags.dtype) {
    const Result<DataType> dtype = dtype_of(flags);
    if (!dtype) return dtype.status().with_context("--dtype");
    options.dtype = *dtype;
  }
  std::vector<int> numbers_of_gpus = flags.tensor_parallel;
  if (numbers_of_gpus.empty()) numbers_of_gpus = {1};
  for (const std::string& path : flags.models) {
    const Result<models::ModelShape> shape = models::load_model_config(path, options);
    if (!shape) return shape.status();
    for (const int num_gpus : numbers_of_gpus) {
      const Result<models::ModelShape> share = models::apply_tensor_parallel(*shape, num_gpus);
      if (!share) return share.status().with_context(path);
      if (Status s = add_model(*share, model_name(path), flags, &list); !s) return s;
    }
  }
  return list;
}

Result<KernelSpec> make_spec(const SpecFlags& flags) {
  const Result<WorkItem> item = make_item(flags);
  if (!item) return item.status();
  return item->spec;
}

Result<std::vector<Target>> parse_targets(const std::vector<std::string>& texts) {
  std::vector<Target> targets;
  for (const std::string& text : texts) {
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      const Result<Target> target = parse_target(text.substr(begin, end - begin));
      if (!target) return target.status().with_context("--arch");
      if (std::find(targets.begin(), targets.end(), *target) == targets.end()) {
        targets.push_back(*target);
      }
      begin = end + 1;
    }
  }
  return targets;
}

std::string short_spec(const KernelSpec& spec) {
  std::string text = spec.queries == QueryLengths::kOne    ? ""
                     : spec.queries == QueryLengths::kFew  ? "few "
                     : spec.queries == QueryLengths::kMany ? "many "
                                                           : "shared ";
  text += std::string(data_type_name(spec.q_dtype)) + " d" + std::to_string(spec.head_size) +
          (value_head_size(spec) != spec.head_size ? "/" + std::to_string(spec.head_size_v) : "") +
          " b" + std::to_string(spec.block_size) + " g" + std::to_string(spec.group_size);
  if (spec.kv_dtype != spec.q_dtype) text += " kv " + std::string(data_type_name(spec.kv_dtype));
  if (spec.out_dtype != spec.q_dtype) text += " out " + std::string(data_type_name(spec.out_dtype));
  if (spec.kv_layout == KvLayout::kVllm) text += " vllm";
  if (spec.kv_layout == KvLayout::kDsMla) text += " ds_mla";
  if (spec.token_scales) text += " token scales";
  if (spec.kv_alignment != 16) text += " by " + std::to_string(spec.kv_alignment) + " bytes";
  if (spec.causality == Causality::kCausal) text += " causal";
  if (spec.causality == Causality::kPerSequence) text += " causal by flag";
  if (spec.kv_table == KvTable::kCsr) text += " csr";
  if (spec.kv_table == KvTable::kContiguous) text += " contiguous";
  if (spec.kv_table == KvTable::kSlots) text += " slots";
  if (spec.kv_table == KvTable::kPositions) text += " positions";
  if (spec.window) text += " window";
  if (spec.chunked) text += " chunked";
  if (spec.custom_mask) text += " mask";
  if (spec.bidirectional_ranges) text += " ranges";
  if (spec.block_sparse) text += " sparse";
  if (spec.soft_cap) text += " cap";
  if (spec.alibi) text += " alibi";
  if (spec.qq_bias) text += " qq bias";
  if (spec.sinks) text += " sinks";
  if (spec.latent) text += " latent";
  if (spec.batch_invariant) text += " invariant";
  if (spec.debug) text += " debug";
  if (spec.pdl) text += " pdl";
  return text;
}

std::string short_spec(const AnySpec& spec) {
  const auto* attention = std::get_if<KernelSpec>(&spec);
  return attention != nullptr ? short_spec(*attention) : text_of(spec);
}

std::string model_name(const std::string& path) {
  namespace fs = std::filesystem;
  fs::path file = fs::path(path).lexically_normal();
  if (!file.has_filename()) file = file.parent_path();  // a folder with a slash after it
  if (file.filename() == "config.json") {
    file = file.has_parent_path() ? file.parent_path() : fs::path("config");
  }
  return file.extension() == ".json" ? file.stem().string() : file.filename().string();
}

}  // namespace pagejit::cli
