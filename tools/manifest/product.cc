#include "tools/manifest/product.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "generator/spec_parser.h"
#include "tools/manifest/manifest.h"
#include "tools/models/config_reader.h"

namespace pagejit::manifest {
namespace {

constexpr std::string_view kCommonType = "dtype";
constexpr const char* kTypesOfAttention[] = {"q", "kv", "out"};

bool is_common_type(const AnySpec& spec, std::string_view name) {
  return std::holds_alternative<KernelSpec>(spec) && name == kCommonType;
}

Status set_field(AnySpec& spec, const std::string& name, const std::string& value) {
  if (!is_common_type(spec, name)) return set_spec_field(spec, name, value);
  for (const char* field : kTypesOfAttention) {
    if (Status s = set_spec_field(spec, field, value); !s) return s;
  }
  return {};
}

Result<std::string> scalar_text(const std::string& path, const Json& value) {
  if (value.is_boolean()) return std::string(value.get<bool>() ? "1" : "0");
  if (value.is_number_integer()) return value.dump();
  if (value.is_string()) return value.get<std::string>();
  return must_be_at(path, value, "a whole number, a text, true or false, or an array of these");
}

// No array of a legal manifest is longer; checked before any of it is read.
Status check_length(const std::string& path, const Json& value) {
  if (!value.is_array() || value.size() <= kMaxKernels) return {};
  return fail_at(path, "an array of " + std::to_string(value.size()) + " values; at most " +
                           std::to_string(kMaxKernels) + " are possible");
}

std::vector<std::pair<std::string, const Json*>> items_of(const std::string& path,
                                                          const Json& value) {
  if (!value.is_array()) return {{path, &value}};
  std::vector<std::pair<std::string, const Json*>> items;
  for (size_t i = 0; i < value.size(); ++i) {
    items.emplace_back(path + "[" + std::to_string(i) + "]", &value[i]);
  }
  return items;
}

}  // namespace

Result<std::vector<FieldValue>> read_values(const std::string& path, const Json& value) {
  if (value.is_array() && value.empty()) return fail_at(path, "an empty array gives no kernels");
  if (Status status = check_length(path, value); !status) return status;
  std::vector<FieldValue> values;
  for (const auto& [item_path, item] : items_of(path, value)) {
    Result<std::string> text = scalar_text(item_path, *item);
    if (!text) return text.status();
    values.push_back({std::move(text).value(), item_path});
  }
  return values;
}

Result<std::vector<FieldValue>> read_texts(const std::string& path, const Json& value) {
  if (value.is_array() && value.empty()) return fail_at(path, "an empty array gives no kernels");
  if (Status status = check_length(path, value); !status) return status;
  std::vector<FieldValue> values;
  for (const auto& [item_path, item] : items_of(path, value)) {
    if (!item->is_string()) return must_be_at(item_path, *item, "a text");
    values.push_back({item->get<std::string>(), item_path});
  }
  return values;
}

Result<std::vector<Target>> read_targets(const std::string& path, const Json& value) {
  const Result<std::vector<FieldValue>> texts = read_texts(path, value);
  if (!texts) return texts.status();
  std::vector<Target> targets;
  for (const FieldValue& text : *texts) {
    const Result<Target> target = parse_target(models::printable(text.text));
    if (!target) return target.status().with_context(text.path);
    if (std::find(targets.begin(), targets.end(), *target) == targets.end()) {
      targets.push_back(*target);
    }
  }
  return targets;
}

Result<bool> read_flag(const std::string& path, const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return false;
  if (found->is_boolean()) return found->get<bool>();
  return must_be_at(path + "." + key, *found, "true or false");
}

Status add_axis(const std::string& path, const std::string& name, const Json& value,
                const AnySpec& example, std::vector<Axis>* axes) {
  if (!is_spec_field(example, name) && !is_common_type(example, name)) {
    const std::string common = std::holds_alternative<KernelSpec>(example) ? "dtype, " : "";
    return fail_at(path, "unknown field; legal for " + std::string(family_name(example)) + " are " +
                             common + spec_field_list(example));
  }
  Result<std::vector<FieldValue>> values = read_values(path, value);
  if (!values) return values.status();
  for (const FieldValue& field : *values) {
    AnySpec scratch = example;
    if (const Status s = set_field(scratch, name, field.text); !s) {
      return s.with_context(field.path);
    }
  }
  for (const Axis& axis : *axes) {
    if (is_same_field(example, axis.name, name)) {
      return fail_at(path, "the same field as " + axis.name);
    }
  }
  Axis axis = {name, std::move(values).value()};
  // What q, K, V and the result have in common is set first.
  axes->insert(is_common_type(example, name) ? axes->begin() : axes->end(), std::move(axis));
  return {};
}

size_t count_of(const std::vector<Axis>& axes, size_t most) {
  size_t count = 1;
  for (const Axis& axis : axes) {
    if (axis.values.size() > most / count) return most + 1;
    count *= axis.values.size();
  }
  return count;
}

Status for_each_combination(const std::vector<Axis>& axes,
                            const std::function<Status(const std::vector<size_t>&)>& use) {
  std::vector<size_t> chosen(axes.size(), 0);
  while (true) {
    if (Status s = use(chosen); !s) return s;
    size_t at = axes.size();
    while (at > 0 && ++chosen[at - 1] == axes[at - 1].values.size()) chosen[--at] = 0;
    if (at == 0) return {};
  }
}

Status apply(const std::vector<Axis>& axes, const std::vector<size_t>& chosen, AnySpec* spec) {
  for (size_t i = 0; i < axes.size(); ++i) {
    const FieldValue& value = axes[i].values[chosen[i]];
    if (Status s = set_field(*spec, axes[i].name, value.text); !s) {
      return s.with_context(value.path);
    }
  }
  return {};
}

Status place(const Status& status, const std::string& path, const AnySpec& spec,
             const std::vector<Axis>& axes, const std::vector<size_t>& chosen) {
  const std::string_view message = status.message();
  const std::string_view field = message.substr(0, message.find(' '));
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].name != field && !is_same_field(spec, axes[i].name, field)) continue;
    return Status(status.code(),
                  axes[i].values[chosen[i]].path + ": " +
                      std::string(message.substr(std::min(field.size() + 1, message.size()))));
  }
  return status.with_context(path);
}

}  // namespace pagejit::manifest
