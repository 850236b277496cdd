// host_build_flags: the C++ compiler's options that make a host image of a rendered kernel text,
// for g++ 12 and clang 14 or newer. The whole command is: compiler, these options, "-o", image,
// source file (ending in .cc). Thread-safety: a pure function.
#pragma once

#include <string>
#include <vector>

#include "pagejit/engine.h"

namespace pagejit {

inline std::vector<std::string> host_build_flags(HostBuild build) {
  std::vector<std::string> flags = {
      "-std=c++20",
      "-O1",  // time is spent in the emulator's switches, not in the kernel: -O2 only compiles
              // longer
      "-g1",  // line tables, so that a report on a plain access names a source line
      "-fPIC",
      "-shared",
      // The image needs no library: the emulator binds all it calls, and memcpy and its like come
      // from the process. It also keeps the compiler from linking the sanitizers' run-times, whose
      // callbacks the prelude defines itself.
      "-nostdlib",
      "-fvisibility=hidden",
      "-fno-exceptions",
      "-fno-rtti",
      "-fno-strict-aliasing",
      "-ffp-contract=off",
      "-fstack-clash-protection",  // a large frame must hit the fiber's guard pages, not jump over
                                   // them
      "-Wno-unknown-pragmas",
      "-Wno-psabi",
  };
  switch (build) {
    case HostBuild::kPlain:
      break;
    case HostBuild::kChecked:
      // "thread" makes the compiler call back on each load and store; see
      // templates/device/host/checked.cuh.
      // The rest is "undefined" as both compilers know it, without what needs the C++ run-time.
      flags.insert(flags.end(),
                   {"-DPAGEJIT_CHECKED=1",
                    "-fsanitize=thread,alignment,bool,bounds,builtin,enum,integer-divide-by-zero,"
                    "nonnull-attribute,null,object-size,pointer-overflow,return,"
                    "returns-nonnull-attribute,shift,signed-integer-overflow,unreachable,vla-bound",
                    "-fno-sanitize-recover=all"});
      break;
    case HostBuild::kAddressSanitizer:
      flags.insert(flags.end(), {"-fsanitize=address", "-fno-omit-frame-pointer"});
      break;
  }
  return flags;
}

}  // namespace pagejit
