// Exclusion: one object of a manifest's "exclude": what takes kernels out of the list again.
// Thread-safety: constant once made.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "generator/config.h"
#include "tools/manifest/bounded_json.h"
#include "tools/manifest/product.h"

namespace pagejit::manifest {

class Exclusion {
 public:
  // kInvalidArgument with the path: no object, an empty one, a field that no family has, or a value
  // that it cannot have in any.
  static Result<Exclusion> read(const std::string& path, const Json& value);

  // Whether the kernel has all of the fields, each with one of its values. "dtype" of attention is
  // q's.
  bool matches(const AnySpec& spec, const Target& target) const;

 private:
  std::optional<std::vector<Target>> targets_;
  std::optional<std::vector<AnySpec>> specs_;
  std::optional<std::vector<FieldValue>> families_;
  std::vector<Axis> fields_;
};

}  // namespace pagejit::manifest
