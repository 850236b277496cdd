#include "tools/manifest/exclusion.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "generator/families.h"
#include "generator/spec_parser.h"
#include "tools/models/config_reader.h"

namespace pagejit::manifest {
namespace {

// Of this family: "" where it has no such field.
std::string field_name(const AnySpec& spec, const std::string& name) {
  if (is_spec_field(spec, name)) return name;
  return std::holds_alternative<KernelSpec>(spec) && name == "dtype" ? "q" : "";
}

// Whether some family has the field and can set it so.
Status check_field(const std::string& name, const FieldValue& value) {
  Status failure;
  bool is_known = false;
  for (const std::string_view family : family_names()) {
    Result<AnySpec> spec = default_spec(family);
    if (!spec) return spec.status();
    const std::string field = field_name(*spec, name);
    if (field.empty()) continue;
    is_known = true;
    Status status = set_spec_field(*spec, field, value.text);
    if (status) return status;
    failure = std::move(status);
  }
  return is_known ? failure.with_context(value.path)
                  : fail_at(value.path, "unknown field \"" + models::printable(name) +
                                            "\": no family of kernels has it");
}

bool has_field(const AnySpec& spec, const Axis& axis) {
  const std::string field = field_name(spec, axis.name);
  if (field.empty()) return false;
  return std::any_of(axis.values.begin(), axis.values.end(), [&](const FieldValue& value) {
    AnySpec changed = spec;
    if (!set_spec_field(changed, field, value.text)) return false;
    // A V's head size of 0 and one like K's are the same.
    return changed == spec || (field == "head_size_v" && text_of(changed) == text_of(spec));
  });
}

}  // namespace

Result<Exclusion> Exclusion::read(const std::string& path, const Json& value) {
  if (!value.is_object()) return must_be_at(path, value, "an object of fields");
  if (value.empty()) return fail_at(path, "an empty object would take out every kernel");
  Exclusion result;
  for (const auto& [key, member] : value.items()) {
    const std::string at = path + "." + models::printable(key);
    if (key == "target") {
      Result<std::vector<Target>> targets = read_targets(at, member);
      if (!targets) return targets.status();
      result.targets_ = std::move(targets).value();
      continue;
    }
    Result<std::vector<FieldValue>> values = read_values(at, member);
    if (!values) return values.status();
    if (key == "spec") {
      result.specs_.emplace();
      for (const FieldValue& text : *values) {
        const Result<AnySpec> spec = parse_any_spec(text.text);
        if (!spec) return spec.status().with_context(text.path);
        result.specs_->push_back(*spec);
      }
    } else if (key == "family") {
      for (const FieldValue& name : *values) {
        if (const auto spec = default_spec(name.text); !spec) {
          return spec.status().with_context(name.path);
        }
      }
      result.families_ = std::move(values).value();
    } else {
      for (const FieldValue& field : *values) {
        if (Status s = check_field(key, field); !s) return s;
      }
      result.fields_.push_back({key, std::move(values).value()});
    }
  }
  return result;
}

bool Exclusion::matches(const AnySpec& spec, const Target& target) const {
  if (targets_ && std::find(targets_->begin(), targets_->end(), target) == targets_->end()) {
    return false;
  }
  const auto is_family = [&](const FieldValue& name) { return name.text == family_name(spec); };
  if (families_ && std::none_of(families_->begin(), families_->end(), is_family)) return false;
  if (specs_ && std::find(specs_->begin(), specs_->end(), spec) == specs_->end()) return false;
  return std::all_of(fields_.begin(), fields_.end(),
                     [&](const Axis& axis) { return has_field(spec, axis); });
}

}  // namespace pagejit::manifest
