#include "tools/manifest/model_entry.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <utility>
#include <vector>

#include "generator/families.h"
#include "generator/spec_parser.h"
#include "tools/manifest/product.h"
#include "tools/models/config_reader.h"
#include "tools/models/layer_support.h"
#include "tools/models/tensor_parallel.h"

namespace pagejit::manifest {
namespace {

// What a model leaves open. The rest follows from its config.json.
constexpr std::string_view kOpenFields[] = {
    "q",           "kv",          "out",   "layout",          "kv_alignment",
    "custom_mask", "qq_bias",     "debug", "batch_invariant", "bidirectional_ranges",
    "pdl",         "token_scales"};

bool is_open_field(const std::string& name) {
  const AnySpec attention = KernelSpec();
  return std::any_of(std::begin(kOpenFields), std::end(kOpenFields),
                     [&](std::string_view open) { return is_same_field(attention, open, name); });
}

struct ModelEntry {
  std::vector<FieldValue> configs;
  std::vector<FieldValue> tensor_parallel = {{"1", ""}};
  std::vector<FieldValue> dtypes = {{"", ""}};  // "": the file's
  std::vector<Axis> shape;                      // queries, block_size
  std::vector<Axis> open;
};

Result<ModelEntry> read_entry(const EntryOptions& entry, const Json& object) {
  ModelEntry model;
  const AnySpec attention = KernelSpec();
  for (const auto& [key, value] : object.items()) {
    const std::string at = entry.path + "." + models::printable(key);
    if (key == "targets" || key == "skip_illegal") continue;
    if (key == "config" || key == "tp" || key == "dtype") {
      Result<std::vector<FieldValue>> values =
          key == "tp" ? read_values(at, value) : read_texts(at, value);
      if (!values) return values.status();
      (key == "config" ? model.configs
       : key == "tp"   ? model.tensor_parallel
                       : model.dtypes) = std::move(values).value();
      continue;
    }
    Status status;
    if (key == "queries" || key == "block_size") {
      status = add_axis(at, key, value, attention, &model.shape);
    } else if (is_open_field(key)) {
      status = add_axis(at, key, value, attention, &model.open);
    } else {
      status = fail_at(at,
                       "unknown field; legal are config, tp, dtype, targets, skip_illegal, "
                       "queries, block_size, q, kv, out, layout, kv_alignment, token_scales, "
                       "custom_mask, qq_bias, bidirectional_ranges, batch_invariant, debug, pdl");
    }
    if (!status) return status;
  }
  if (model.configs.empty()) return fail_at(entry.path + ".config", "missing");
  return model;
}

Result<int> read_number(const FieldValue& value) {
  int number = 0;
  const char* end = value.text.data() + value.text.size();
  const auto [stop, error] = std::from_chars(value.text.data(), end, number);
  if (error == std::errc() && stop == end) return number;
  return fail_at(value.path, models::printable(value.text) + ": must be a whole number");
}

// The kernels of a model on one of so many GPUs.
Status expand_share(const EntryOptions& entry, const ModelEntry& model,
                    const models::ModelShape& shape, const std::string& name,
                    Expansion* expansion) {
  const auto with_shape = [&](const std::vector<size_t>& chosen) -> Status {
    AnySpec asked = KernelSpec();
    if (Status s = apply(model.shape, chosen, &asked); !s) return s;
    const auto& wanted = std::get<KernelSpec>(asked);
    for (const models::LayerKind& kind : shape.kinds) {
      if (models::needs_no_kernel(kind)) continue;
      const Result<KernelSpec> spec =
          models::spec_of_kind(shape, kind, wanted.block_size, wanted.queries);
      if (!spec) {
        if (spec.status().code() != StatusCode::kUnsupported) {
          return spec.status().with_context(entry.path);
        }
        expansion->add_unsupported(name + ": " + spec.status().message());
        continue;
      }
      const auto with_open = [&](const std::vector<size_t>& open) -> Status {
        AnySpec changed = *spec;
        Status status = apply(model.open, open, &changed);
        if (status) {
          // A model's prefix needs its ranges, whatever is asked for beside them.
          std::get<KernelSpec>(changed).bidirectional_ranges |= spec->bidirectional_ranges;
          status = expansion->add_of_model(entry, name, changed);
          if (!status) return place(status, entry.path, changed, model.open, open);
        }
        return status;
      };
      if (Status s = for_each_combination(model.open, with_open); !s) return s;
    }
    return {};
  };
  return for_each_combination(model.shape, with_shape);
}

Status expand_config(const EntryOptions& entry, const ModelEntry& model, const FieldValue& config,
                     const std::string& file, Expansion* expansion) {
  for (const FieldValue& dtype : model.dtypes) {
    models::ParseOptions options;
    if (!dtype.text.empty()) {
      const Result<DataType> type = parse_data_type(models::printable(dtype.text));
      if (!type) return type.status().with_context(dtype.path);
      options.dtype = *type;
    }
    const Result<models::ModelShape> whole = models::load_model_config(file, options);
    if (!whole) return whole.status().with_context(config.path);
    for (const FieldValue& gpus : model.tensor_parallel) {
      const Result<int> count = read_number(gpus);
      if (!count) return count.status();
      const Result<models::ModelShape> share = models::apply_tensor_parallel(*whole, *count);
      if (!share) {
        if (!entry.skip_illegal) return share.status().with_context(gpus.path);
        // Counted too: each has its price, and what is left out shall not cost without bound.
        if (Status s = expansion->reserve(entry, 1); !s) return s;
        continue;
      }
      // Not as many as there are kinds of layers, which are known only now.
      const size_t combinations = count_of(model.shape, kMaxKernels);
      const size_t open = count_of(model.open, kMaxKernels);
      const size_t kinds = std::max<size_t>(share->kinds.size(), 1);
      if (open > kMaxKernels / kinds || combinations > kMaxKernels / (open * kinds)) {
        return expansion->reserve(entry, kMaxKernels + 1);
      }
      if (Status s = expansion->reserve(entry, combinations * open * kinds); !s) return s;
      const std::string name = config.text + " on " + gpus.text + (*count == 1 ? " GPU" : " GPUs");
      if (Status s = expand_share(entry, model, *share, name, expansion); !s) return s;
    }
  }
  return {};
}

}  // namespace

Status expand_models(const EntryOptions& entry, const Json& object, const std::string& folder,
                     Expansion* expansion) {
  const Result<ModelEntry> model = read_entry(entry, object);
  if (!model) return model.status();
  for (const FieldValue& config : model->configs) {
    const std::string file = (std::filesystem::path(folder) / config.text).string();
    if (Status s = expand_config(entry, *model, config, file, expansion); !s) return s;
  }
  return {};
}

}  // namespace pagejit::manifest
