// Reads compilers' logs: numbers and warnings of ptxas -v, the first error line of any of them; and
// puts together the long text of a compile failure. Never fails: a line it does not know is no
// line. Thread-safety: free functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/jit/compiler.h"

namespace pagejit::jit {

// The report of an NVRTC log made with --ptxas-options=-v. Registers, stack and shared memory are
// the largest of all functions in it, spills their sum. Understands the wording of CUDA 12.x ("Used
// 8 registers, 352 bytes cmem[0]", spills on an indented line) and 13.x (that line begins with
// "ptxas         ."). Warnings are the front end's
// ("warning #177-D"), ptxas's, and what ptxas calls only "info" but numbers C75xx (serialised
// wgmma, ignored setmaxnreg).
CompileReport parse_ptxas_log(std::string_view log);

// Lines with a warning of a C++ compiler.
std::vector<std::string> warning_lines(std::string_view log);

// The first line that tells an error, without blanks around it; the first line that is not empty
// where none does; "" for an empty log.
std::string first_error_line(std::string_view log);

// "   1 | text" for each line, numbers right-aligned.
std::string numbered_source(std::string_view text);

// A failure's detail(): the whole log, the command or options, the numbered source, each under its
// heading.
std::string failure_detail(std::string_view log, std::string_view command_heading,
                           const std::vector<std::string>& command, std::string_view source);
// The same in parts, for its facts().
FailureFacts failure_facts(std::string_view log, const std::vector<std::string>& command,
                           std::string_view source);

}  // namespace pagejit::jit
