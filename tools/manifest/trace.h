// Traces: the kernels that programs asked for, one JSON object per line,
//   {"spec":"<canonical text>","target":"sm_90a"}
// as the runtime writes them (runtime/engine/trace_recorder.h). A trace is a log of programs that
// may have been killed, so damage costs the damaged lines only. Thread-safety: free functions
// without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/manifest/kernel_list.h"

namespace pagejit::manifest {

struct Trace {
  std::vector<ListedKernel> kernels;  // sorted, each once
  std::vector<std::string> damaged;   // "line 7: ...", one per line that was left out
};

// Further keys of a line are let through; empty lines are, and so is a last line without its end
// that is not whole. kInvalidArgument for more than 100,000 different kernels.
Result<Trace> parse_trace(std::string_view text);

// Of a file, or a pipe: as read_bounded_file(). Also kInvalidArgument; with the path before the
// message, and before each damaged line.
Result<Trace> load_trace(const std::string& path);

}  // namespace pagejit::manifest
