#include "tools/manifest/bounded_json.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <system_error>
#include <vector>

#include "tools/models/config_reader.h"

namespace pagejit::manifest {
namespace {

constexpr int kMaxDepth = 16;                    // a manifest has 4
constexpr size_t kReadBytes = size_t{64} << 10;  // as much as a pipe holds

Status invalid(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

Status too_large(const std::string& path, const std::string& size) {
  return invalid(path + ": has " + size + " bytes: at most " + std::to_string(kMaxFileBytes) +
                 " are read");
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

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

}  // namespace

Result<std::string> read_bounded_file(const std::string& path) {
  const auto failed = [&path](int error) {
    return Status(
        StatusCode::kCacheError,
        path + (error == ENOENT ? ": no such file"
                                : ": cannot be read: " + std::generic_category().message(error)));
  };
  // O_NONBLOCK: the open of a FIFO would wait for its writer, and could not be interrupted.
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info = {};
  if (fd.get() < 0 || fstat(fd.get(), &info) != 0) return failed(errno);
  const bool is_regular = S_ISREG(info.st_mode);
  if (is_regular && static_cast<uint64_t>(info.st_size) > kMaxFileBytes) {
    return too_large(path, std::to_string(info.st_size));
  }
  std::string text;
  std::array<char, kReadBytes> buffer;
  while (true) {
    if (!is_regular) {
      pollfd readable = {.fd = fd.get(), .events = POLLIN, .revents = 0};
      if (poll(&readable, 1, -1) < 0) {
        if (errno != EINTR) return failed(errno);
        return Status(StatusCode::kCancelled, path + ": interrupted while waiting for its writer");
      }
    }
    const ssize_t got = read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return failed(errno);
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(got));
    if (text.size() > kMaxFileBytes) {
      return too_large(path, "more than " + std::to_string(kMaxFileBytes));
    }
  }
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
