// StatsFile: the file that gets an engine's counts when the engine ends (EngineOptions::stats_path,
// PAGEJIT_STATS). Thread-safety: an object belongs to the engine that makes and destroys it;
// different objects are independent.
//
// An engine that is still there when the process ends (one that was never destroyed) is written by
// a function of the library's, which runs after the program's static objects are gone. It uses no
// atexit, which a program that loads and unloads the library could not undo; the list of the
// files that are due is a global of this file's. Nothing is written by _exit(), a signal or an
// abort.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "pagejit/stats.h"
#include "pagejit/status.h"

namespace pagejit {

// Writes `text` aside, in the folder of `path`, mode 0600, and renames it: a reader sees the whole
// of one version. The folder must exist. kCacheError with the reason.
Status write_whole_file(const std::string& path, const std::string& text);

class StatsFile {
 public:
  // "%p" in path stands for the id of the process that writes. Without it a forked child writes
  // nothing: it would replace its parent's counts. An empty path: nothing is ever written. `read`
  // is called by the destructor or when the process ends; `on_failure` by the destructor only.
  StatsFile(const std::string& path, std::function<EngineStats()> read,
            std::function<void(const Status&)> on_failure);
  ~StatsFile();  // writes
  StatsFile(const StatsFile&) = delete;
  StatsFile& operator=(const StatsFile&) = delete;

 private:
  struct List;  // of the process; the files that are due

  Status write() const;

  std::string path_;  // absolute; "%p" is still in it
  std::function<EngineStats()> read_;
  std::function<void(const Status&)> on_failure_;
  pid_t creator_;
  StatsFile* previous_ = nullptr;  // in the list
  StatsFile* next_ = nullptr;
};

}  // namespace pagejit
