#include "tools/manifest/expansion.h"

#include <algorithm>

#include "generator/families.h"

namespace pagejit::manifest {

Status Expansion::reserve(const EntryOptions& entry, size_t num_specs) {
  const size_t room = max_kernels_ - num_reserved_;
  if (num_specs > room / entry.targets.size()) {
    return fail_at(entry.path, "with these combinations for " +
                                   std::to_string(entry.targets.size()) +
                                   " targets the manifest comes to more than " +
                                   std::to_string(max_kernels_) + " kernels");
  }
  num_reserved_ += num_specs * entry.targets.size();
  return {};
}

bool Expansion::is_excluded(const AnySpec& spec, const Target& target) const {
  return std::any_of(exclusions_.begin(), exclusions_.end(),
                     [&](const Exclusion& e) { return e.matches(spec, target); });
}

Status Expansion::add(const EntryOptions& entry, const AnySpec& spec) {
  for (const Target& target : entry.targets) {
    if (is_excluded(spec, target)) continue;
    Status status = validate_any(spec);
    if (status) {
      status = plan_any(spec, target).status();
      if (!status) status = status.with_context("for " + target.to_string());
    }
    if (!status && !entry.skip_illegal) return status;
    if (status) manifest_.kernels.emplace_back(spec, target);
  }
  return {};
}

Status Expansion::add_of_model(const EntryOptions& entry, const std::string& model,
                               const AnySpec& spec) {
  for (const Target& target : entry.targets) {
    EntryOptions one = entry;
    one.targets = {target};
    Status status = add(one, spec);
    if (status) continue;
    if (status.code() != StatusCode::kUnsupported) return status;
    add_unsupported(model + ": " + text_of(spec) + ": " + status.message());
  }
  return {};
}

void Expansion::add_unsupported(std::string sentence) {
  manifest_.unsupported.push_back(std::move(sentence));
}

Manifest Expansion::take() {
  Manifest result = std::move(manifest_);
  sort_unique(&result.kernels);
  std::sort(result.unsupported.begin(), result.unsupported.end());
  result.unsupported.erase(std::unique(result.unsupported.begin(), result.unsupported.end()),
                           result.unsupported.end());
  return result;
}

}  // namespace pagejit::manifest
