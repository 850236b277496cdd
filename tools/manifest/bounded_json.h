// JSON from a file that nobody vouches for: bounded in size and depth, without a key given twice.
// Thread-safety: free functions without state.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "pagejit/status.h"

namespace pagejit::manifest {

using Json = nlohmann::json;

// Far above any list made by people or by a fleet of programs: a line takes some 200 bytes, and a
// list has at most 100,000 kernels.
inline constexpr size_t kMaxFileBytes = size_t{64} << 20;

// The whole of a file, or of what a pipe or a device gives until its end. kCacheError where it
// cannot be read, kInvalidArgument for one too large; kCancelled where a signal was handled while
// it waited for the writer of a pipe.
Result<std::string> read_bounded_file(const std::string& path);

// kInvalidArgument: malformed, deeper than 16 levels, a key twice in an object.
Result<Json> parse_bounded_json(std::string_view text);

// A value in few printable letters, for messages.
std::string shown(const Json& value);

// kInvalidArgument "path: what".
Status fail_at(const std::string& path, const std::string& what);
// "path: value: must be ...".
Status must_be_at(const std::string& path, const Json& value, const std::string& legal);

// That the object has no other keys.
Status check_keys(const std::string& path, const Json& object,
                  std::initializer_list<std::string_view> legal);

}  // namespace pagejit::manifest
