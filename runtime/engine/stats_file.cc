#include "runtime/engine/stats_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <utility>

#include "cache/atomic_file.h"
#include "cache/file_system.h"
#include "runtime/engine/process_mark.h"
#include "runtime/guard.h"

namespace pagejit {
Status write_whole_file(const std::string& path, const std::string& text) {
  const size_t slash = path.find_last_of('/');
  const std::string folder =
      slash == std::string::npos ? "." : (slash == 0 ? "/" : path.substr(0, slash));
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const auto failure = [&](const cache::IoStatus& status) {
    return Status(StatusCode::kCacheError, path + " cannot be written: " + status.message());
  };
  if (name.empty()) return failure(cache::IoStatus::refusal("it has no file name"));
  cache::PosixFileSystem files;
  // Not open_file(), which refuses a symbolic link: here the caller has chosen the folder.
  const int fd = files.open_at(AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0) return failure(cache::IoStatus::failure(-fd, "open " + folder));
  const cache::FileDescriptor parent(&files, fd);
  cache::AtomicFile file(&files, fd);
  cache::IoStatus status = file.create();
  if (status.is_ok()) status = file.write(text);
  if (status.is_ok()) status = file.commit(fd, name);
  return status.is_ok() ? Status() : failure(status);
}

// The mutex is held by fork(), so that a child never finds it taken by a thread it does not have.
struct StatsFile::List {
  static constinit std::mutex mutex;
  static constinit StatsFile* first;
  static constinit std::once_flag fork_handlers;

  static void enlist(StatsFile* file) {
    std::call_once(fork_handlers, [] {
      pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });
    });
    const std::lock_guard lock(mutex);
    file->next_ = first;
    if (first != nullptr) first->previous_ = file;
    first = file;
  }

  static void unlist(StatsFile* file) {
    const std::lock_guard lock(mutex);
    if (file->previous_ != nullptr) file->previous_->next_ = file->next_;
    if (file->next_ != nullptr) file->next_->previous_ = file->previous_;
    if (first == file) first = file->next_;
  }

  [[gnu::destructor]] static void write_all();
};

// When the process ends, or the library is unloaded. Tells nobody of a failure: the objects of the
// callbacks may be gone.
void StatsFile::List::write_all() {
  const std::lock_guard lock(mutex);
  for (const StatsFile* file = first; file != nullptr; file = file->next_) {
    static_cast<void>(guarded([&] { return file->write(); }));
  }
}

constinit std::mutex StatsFile::List::mutex;
constinit StatsFile* StatsFile::List::first = nullptr;
constinit std::once_flag StatsFile::List::fork_handlers;

StatsFile::StatsFile(const std::string& path, std::function<EngineStats()> read,
                     std::function<void(const Status&)> on_failure)
    : path_(path), read_(std::move(read)), on_failure_(std::move(on_failure)), creator_(getpid()) {
  if (path_.empty()) return;
  std::error_code error;  // of an unreadable working folder: the path stays as it is
  const std::filesystem::path absolute = std::filesystem::absolute(path_, error);
  if (!error) path_ = absolute.string();
  List::enlist(this);
}

StatsFile::~StatsFile() {
  if (path_.empty()) return;
  List::unlist(this);
  const Status status = guarded([this] { return write(); });
  if (!status) {
    static_cast<void>(guarded([&] {
      on_failure_(status);
      return Status();
    }));
  }
}

Status StatsFile::write() const {
  const pid_t process = getpid();
  if (!has_process_mark(path_) && process != creator_) return {};
  return write_whole_file(with_process(path_, process), to_json(read_()));
}

}  // namespace pagejit
