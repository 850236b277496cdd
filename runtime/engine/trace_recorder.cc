#include "runtime/engine/trace_recorder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "generator/families.h"
#include "runtime/engine/process_mark.h"
#include "runtime/format.h"

namespace pagejit {
namespace {

// A program that was killed, or a full disk, may have left half a line: the next one must not
// become its end.
bool ends_in_half_a_line(int file) {
  struct stat about = {};
  char last = '\n';
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0) return false;
  return pread(file, &last, 1, about.st_size - 1) == 1 && last != '\n';
}

}  // namespace

TraceRecorder::TraceRecorder(std::string path, std::shared_ptr<const Logger> logger)
    : path_(std::move(path)), has_pid_(has_process_mark(path_)), logger_(std::move(logger)) {}

TraceRecorder::~TraceRecorder() {
  if (file_ >= 0) close(file_);
}

void TraceRecorder::record(const AnySpec& spec, const Target& target) {
  if (!is_on()) return;
  // Neither text has a character that JSON would have escaped.
  std::string line =
      format("{{\"spec\":\"{}\",\"target\":\"{}\"}}\n", text_of(spec), target.to_string());
  std::lock_guard lock(mutex_);
  // A child of fork() has a file of its own, where the path says so.
  if (has_pid_ && file_ >= 0 && pid_ != getpid()) {
    close(file_);
    file_ = -1;
    written_.clear();
  }
  if (has_stopped_ || !written_.insert(line).second) return;
  if (file_ < 0) open_file();
  if (file_ >= 0) append(std::move(line));
}

void TraceRecorder::open_file() {
  pid_ = getpid();
  // 0644: a list of shapes is no secret. O_NONBLOCK: a FIFO does not make it wait for a reader.
  constexpr mode_t kMode = 0644;
  constexpr int kFlags = O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const std::string path = with_process(path_, pid_);
  file_ = open(path.c_str(), O_RDWR | kFlags, kMode);
  if (file_ < 0) file_ = open(path.c_str(), O_WRONLY | kFlags, kMode);
  if (file_ < 0) return stop("opened", errno);
  if (ends_in_half_a_line(file_)) append("\n");
}

void TraceRecorder::append(std::string line) {
  ssize_t written = 0;
  do {
    written = write(file_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(line.size())) return;
  stop("written", written < 0 ? errno : ENOSPC);
}

void TraceRecorder::stop(const char* what, int error) {
  has_stopped_ = true;
  if (file_ >= 0) close(file_);
  file_ = -1;
  logger_->warning(format("{} (PAGEJIT_RECORD) cannot be {}, so that no kernels are recorded: {}",
                          path_, what, std::strerror(error)));
}

}  // namespace pagejit
