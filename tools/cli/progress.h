// Progress: how far a job of many kernels is: a bar that redraws itself on a terminal, one plain
// line per kernel elsewhere. Not the results. Thread-safety: all functions may be called from
// several threads at once.
#pragma once

#include <cstddef>
#include <mutex>
#include <ostream>
#include <string>

#include "tools/cli/terminal.h"

namespace pagejit::cli {

class Progress {
 public:
  Progress(std::ostream& stream, const Terminal& terminal, size_t total);
  // Removes the bar.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // One more is done; `line` says what ("compiled sm_90a ... in 153 ms").
  void step(const std::string& line);

  // A message of another kind, in full lines, above the bar.
  void message(const std::string& line);

 private:
  void draw(const std::string& line);
  void erase();

  std::mutex mutex_;
  std::ostream& stream_;
  const Terminal terminal_;
  const size_t total_;
  size_t done_ = 0;
  std::string last_;
};

}  // namespace pagejit::cli
