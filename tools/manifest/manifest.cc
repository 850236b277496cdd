#include "tools/manifest/manifest.h"

#include <filesystem>
#include <functional>
#include <utility>

#include "generator/families.h"
#include "generator/spec_parser.h"
#include "tools/manifest/bounded_json.h"
#include "tools/manifest/exclusion.h"
#include "tools/manifest/expansion.h"
#include "tools/manifest/model_entry.h"
#include "tools/manifest/product.h"
#include "tools/models/config_reader.h"

namespace pagejit::manifest {
namespace {

constexpr int kFormatVersion = 1;
// Each kernel is compared with each of them.
constexpr size_t kMaxExcludedValues = 1000;

// A list of objects that may be absent.
Status for_each_object(const Json& root, const char* key,
                       const std::function<Status(const std::string&, const Json&)>& use) {
  const auto list = root.find(key);
  if (list == root.end()) return {};
  if (!list->is_array()) return must_be_at(key, *list, "an array of objects");
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string path = std::string(key) + "[" + std::to_string(i) + "]";
    const Json& object = (*list)[i];
    if (!object.is_object()) return must_be_at(path, object, "an object");
    if (Status s = use(path, object); !s) return s;
  }
  return {};
}

// What all objects may say beside their fields.
Result<EntryOptions> read_options(const std::string& path, const Json& object,
                                  const std::vector<Target>& targets) {
  EntryOptions entry = {.path = path, .targets = targets};
  if (const auto own = object.find("targets"); own != object.end()) {
    Result<std::vector<Target>> read = read_targets(path + ".targets", *own);
    if (!read) return read.status();
    entry.targets = std::move(read).value();
  }
  if (entry.targets.empty()) {
    return fail_at(path + ".targets", "missing, and the manifest has none for all kernels");
  }
  const Result<bool> skip = read_flag(path, object, "skip_illegal");
  if (!skip) return skip.status();
  entry.skip_illegal = *skip;
  return entry;
}

Status expand_specs(const EntryOptions& entry, const Json& object, Expansion* expansion) {
  if (Status s = check_keys(entry.path, object, {"spec", "targets", "skip_illegal"}); !s) return s;
  const Result<std::vector<FieldValue>> texts = read_texts(entry.path + ".spec", object["spec"]);
  if (!texts) return texts.status();
  for (const FieldValue& text : *texts) {
    const Result<std::vector<AnySpec>> specs = parse_kernels(text.text);
    if (!specs) {
      if (entry.skip_illegal) continue;
      return specs.status().with_context(text.path);
    }
    if (Status s = expansion->reserve(entry, specs->size()); !s) return s;
    for (const AnySpec& spec : *specs) {
      if (Status s = expansion->add(entry, spec); !s) return s.with_context(text.path);
    }
  }
  return {};
}

// A family, or a composition of several families' kernels that is described by its attention.
struct Family {
  std::string composition;  // "cascade", "sparse_attention"; "" for a family
  AnySpec example;
  std::vector<Axis> fields;  // of the composition alone
  std::vector<Axis> axes;
};

Result<Family> read_family(const EntryOptions& entry, const Json& object) {
  const auto name = object.find("family");
  if (name == object.end()) return fail_at(entry.path + ".family", "missing; or give a spec");
  if (!name->is_string()) return must_be_at(entry.path + ".family", *name, "a text");
  Family family;
  std::string base = name->get<std::string>();
  if (base == "cascade" || base == "sparse_attention") {
    family.composition = base;
    base = "attention";
  }
  Result<AnySpec> example = default_spec(base);
  if (!example) {
    return Status(example.status().code(),
                  entry.path + "." + example.status().message() +
                      "; and cascade and sparse_attention, of several kernels each");
  }
  family.example = *example;
  for (const auto& [key, value] : object.items()) {
    if (key == "family" || key == "targets" || key == "skip_illegal") continue;
    const std::string at = entry.path + "." + models::printable(key);
    const bool is_index =
        key == "index_num_heads" || key == "index_head_size" || key == "contiguous_index_keys";
    if (family.composition == "sparse_attention" && is_index) {
      Result<std::vector<FieldValue>> values = read_values(at, value);
      if (!values) return values.status();
      family.fields.push_back({key, std::move(values).value()});
    } else if (Status s = add_axis(at, key, value, family.example, &family.axes); !s) {
      return s;
    }
  }
  return family;
}

// The kernels of one combination.
Result<std::vector<AnySpec>> kernels_of(const Family& family, const std::vector<size_t>& fields,
                                        const AnySpec& spec) {
  if (family.composition.empty()) return std::vector<AnySpec>{spec};
  if (Status s = validate_any(spec); !s) return s;
  std::string text = family.composition;
  for (size_t i = 0; i < fields.size(); ++i) {
    text += " " + family.fields[i].name + "=" + family.fields[i].values[fields[i]].text;
  }
  return parse_kernels(text + " " + text_of(spec));
}

Status expand_product(const EntryOptions& entry, const Json& object, Expansion* expansion) {
  const Result<Family> read = read_family(entry, object);
  if (!read) return read.status();
  const Family& family = *read;
  // Compositions have three kernels.
  std::vector<Axis> all = family.axes;
  all.insert(all.end(), family.fields.begin(), family.fields.end());
  const size_t parts = family.composition.empty() ? 1 : 3;
  if (Status s = expansion->reserve(entry, count_of(all, kMaxKernels) * parts); !s) return s;
  return for_each_combination(family.fields, [&](const std::vector<size_t>& fields) {
    return for_each_combination(family.axes, [&](const std::vector<size_t>& chosen) -> Status {
      AnySpec spec = family.example;
      if (Status s = apply(family.axes, chosen, &spec); !s) return s;
      const Result<std::vector<AnySpec>> kernels = kernels_of(family, fields, spec);
      Status status = kernels.status();
      if (!status && entry.skip_illegal) return {};
      if (kernels) {
        for (const AnySpec& kernel : *kernels) {
          if (status) status = expansion->add(entry, kernel);
        }
      }
      if (status) return {};
      return place(status, entry.path, spec, family.axes, chosen);
    });
  });
}

}  // namespace

Result<Manifest> expand_manifest(std::string_view json, const ManifestOptions& options) {
  const Result<Json> parsed = parse_bounded_json(json);
  if (!parsed) return parsed.status();
  const Json& root = *parsed;
  if (!root.is_object()) {
    return Status(StatusCode::kInvalidArgument, "a manifest is a JSON object");
  }
  const auto version = root.find("pagejit_manifest");
  if (version == root.end()) return fail_at("pagejit_manifest", "missing; must be 1");
  if (*version != kFormatVersion) return must_be_at("pagejit_manifest", *version, "1");
  Status status =
      check_keys("", root, {"pagejit_manifest", "targets", "kernels", "models", "exclude"});
  if (!status) return status;

  std::vector<Target> targets = options.default_targets;
  if (const auto own = root.find("targets"); own != root.end()) {
    Result<std::vector<Target>> read = read_targets("targets", *own);
    if (!read) return read.status();
    targets = std::move(read).value();
  }
  std::vector<Exclusion> exclusions;
  size_t num_values = 0;
  status = for_each_object(root, "exclude", [&](const std::string& path, const Json& object) {
    Result<Exclusion> exclusion = Exclusion::read(path, object);
    if (!exclusion) return exclusion.status();
    exclusions.push_back(std::move(exclusion).value());
    for (const Json& member : object) num_values += member.is_array() ? member.size() : 1;
    if (num_values <= kMaxExcludedValues) return Status();
    return fail_at(path, "more than " + std::to_string(kMaxExcludedValues) + " values to exclude");
  });
  if (!status) return status;

  Expansion expansion(std::move(exclusions), options.max_kernels);
  status = for_each_object(root, "kernels", [&](const std::string& path, const Json& object) {
    const Result<EntryOptions> entry = read_options(path, object, targets);
    if (!entry) return entry.status();
    return object.contains("spec") ? expand_specs(*entry, object, &expansion)
                                   : expand_product(*entry, object, &expansion);
  });
  if (status) {
    status = for_each_object(root, "models", [&](const std::string& path, const Json& object) {
      const Result<EntryOptions> entry = read_options(path, object, targets);
      if (!entry) return entry.status();
      return expand_models(*entry, object, options.folder, &expansion);
    });
  }
  if (!status) return status;
  return expansion.take();
}

Result<Manifest> load_manifest(const std::string& path, std::vector<Target> default_targets) {
  const Result<std::string> text = read_bounded_file(path);
  if (!text) return text.status();
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const ManifestOptions options = {.default_targets = std::move(default_targets),
                                   .folder = parent.empty() ? "." : parent.string()};
  Result<Manifest> manifest = expand_manifest(*text, options);
  if (!manifest) return manifest.status().with_context(path);
  return manifest;
}

}  // namespace pagejit::manifest
