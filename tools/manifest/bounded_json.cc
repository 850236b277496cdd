#include "tools/manifest/bounded_json.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "tools/models/config_reader.h"

namespace pagejit::manifest {
namespace {

constexpr int kMaxDepth = 16;  // a manifest has 4

Status invalid(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

// Sees each event while the text is parsed, and keeps the first that is not let in.
class Watcher {
 public:
  // What is too deep is dropped, so that the tree stays small.
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (depth >= kMaxDepth) {
        fail("nested more than " + std::to_string(kMaxDepth) + " levels deep");
        return false;
      }
      if (event == Event::object_start) keys_.resize(static_cast<size_t>(depth) + 1);
      if (event == Event::object_start) keys_.back().clear();
    }
    if (event == Event::key) {
      const auto level = static_cast<size_t>(depth) - 1;
      const std::string key = parsed.get<std::string>();
      if (level < keys_.size() && !keys_[level].insert(key).second) {
        fail("key \"" + models::printable(key) + "\": given twice in one object");
      }
    }
    return true;
  }
  const std::string& failure() const { return failure_; }

 private:
  void fail(const std::string& what) {
    if (failure_.empty()) failure_ = what;
  }
  std::vector<std::set<std::string>> keys_;  // of the open objects, by depth
  std::string failure_;
};

}  // namespace

Result<std::string> read_bounded_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return Status(StatusCode::kNotFound, path + ": no such file");
  }
  std::ifstream stream(path, std::ios::binary);
  std::string text;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (!error && size > kMaxFileBytes) {
    return invalid(path + ": has " + std::to_string(size) + " bytes: at most " +
                   std::to_string(kMaxFileBytes) + " are read");
  }
  text.resize(error ? 0 : size);
  if (stream) stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream.is_open() || stream.bad() || error) {
    return Status(StatusCode::kNotFound, path + ": cannot be read: " + std::strerror(errno));
  }
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

Result<Json> parse_bounded_json(std::string_view text) {
  Watcher watcher;
  Json root;
  try {
    root = Json::parse(text, [&](int depth, Json::parse_event_t event, Json& parsed) {
      return watcher(depth, event, parsed);
    });
  } catch (const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..." without the bracket.
    std::string_view what = error.what();
    if (const size_t end = what.find("] "); end != std::string_view::npos)
      what.remove_prefix(end + 2);
    std::string reason;
    // Its sentence holds what was read last, which may be long.
    constexpr size_t kMostBytes = 300;
    for (const char c : what.substr(0, kMostBytes)) {
      reason += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return invalid("not valid JSON: " + reason);
  }
  if (!watcher.failure().empty()) return invalid(watcher.failure());
  return root;
}

std::string shown(const Json& value) {
  if (value.is_structured()) return value.is_array() ? "an array" : "an object";
  return models::printable(value.dump(-1, ' ', true, Json::error_handler_t::replace));
}

Status fail_at(const std::string& path, const std::string& what) {
  return invalid(path + ": " + what);
}

Status must_be_at(const std::string& path, const Json& value, const std::string& legal) {
  return fail_at(path, shown(value) + ": must be " + legal);
}

Status check_keys(const std::string& path, const Json& object,
                  std::initializer_list<std::string_view> legal) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(legal.begin(), legal.end(), key) != legal.end()) continue;
    std::string names;
    for (const std::string_view name : legal)
      names += (names.empty() ? "" : ", ") + std::string(name);
    return fail_at((path.empty() ? "" : path + ".") + models::printable(key),
                   "unknown field; legal are " + names);
  }
  return {};
}

}  // namespace pagejit::manifest
