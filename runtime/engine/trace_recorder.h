// TraceRecorder: writes down which kernels a program asked for, one JSON object per line,
//   {"spec":"<canonical text>","target":"sm_90a"}
// for `pagejit precompile --trace` (read by tools/manifest/trace.h). Never fails its caller.
// Thread-safety: record() may be called from several threads at once, and several processes may
// write to one file.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "generator/config.h"
#include "runtime/logger.h"

namespace pagejit {

class TraceRecorder {
 public:
  // `path` as EngineOptions::record_path: "" records nothing; each "%p" in it becomes the id of the
  // process. Nothing is opened before the first kernel.
  TraceRecorder(std::string path, std::shared_ptr<const Logger> logger);
  ~TraceRecorder();
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  bool is_on() const { return !path_.empty(); }

  // Appends the line of this kernel, unless this recorder has done so before: whole lines, by one
  // write() each. The first failure is logged as a warning and ends the recording.
  void record(const AnySpec& spec, const Target& target);

 private:
  void open_file();
  void append(std::string line);
  void stop(const char* what, int error);

  const std::string path_;
  const bool has_pid_;  // in its path
  const std::shared_ptr<const Logger> logger_;
  std::mutex mutex_;  // guards what follows
  int file_ = -1;
  pid_t pid_ = 0;  // whose file it is
  bool has_stopped_ = false;
  std::unordered_set<std::string> written_;
};

}  // namespace pagejit
