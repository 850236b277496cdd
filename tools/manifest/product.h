// Product: the fields of a manifest's object, each with one value or several, and the specs that
// their combinations are. Thread-safety: plain values and free functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "generator/config.h"
#include "tools/manifest/bounded_json.h"

namespace pagejit::manifest {

// One value of a JSON field, as a canonical text writes it.
struct FieldValue {
  std::string text;
  std::string path;  // "kernels[2].head_size[1]"
};

struct Axis {
  std::string name;
  std::vector<FieldValue> values;  // at least one
};

// A number, a text, true or false, or an array of at least one of these.
Result<std::vector<FieldValue>> read_values(const std::string& path, const Json& value);

// The same as texts only; with their paths.
Result<std::vector<FieldValue>> read_texts(const std::string& path, const Json& value);

// "targets" of a manifest or an object. kInvalidArgument with the path.
Result<std::vector<Target>> read_targets(const std::string& path, const Json& value);

// The member `key` as true or false; absent: false.
Result<bool> read_flag(const std::string& path, const Json& object, const char* key);

// Adds the field to the axes of a spec like `example`, after trying each value on it. "dtype" of
// attention is that of q, K, V and the result, where these are not named themselves.
Status add_axis(const std::string& path, const std::string& name, const Json& value,
                const AnySpec& example, std::vector<Axis>* axes);

// The number of combinations, at most `most` + 1.
size_t count_of(const std::vector<Axis>& axes, size_t most);

// Calls `use` with the indices of the values of each combination, until it fails.
Status for_each_combination(const std::vector<Axis>& axes,
                            const std::function<Status(const std::vector<size_t>&)>& use);

// Sets the fields of one combination.
Status apply(const std::vector<Axis>& axes, const std::vector<size_t>& chosen, AnySpec* spec);

// What validate() said of a combination, at the path of the field that it begins with, else at
// `path`.
Status place(const Status& status, const std::string& path, const AnySpec& spec,
             const std::vector<Axis>& axes, const std::vector<size_t>& chosen);

}  // namespace pagejit::manifest
