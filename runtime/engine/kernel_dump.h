// KernelDump: writes what a compile was made of and what came of it into a folder for people
// (EngineOptions::dump_dir, PAGEJIT_DUMP). Nothing reads it back. Thread-safety: write() may be
// called from several threads and processes at once.
//
//   <dump_dir>/<kernel name>-<first 12 digits of S>/   one for each key; a later compile replaces
//   it
//     source.cu     the rendered text
//     options.txt   the compiler's options, one a line
//     log.txt       the compiler's log; of a failure all that its Status says
//     spec.txt      "name: value" lines: spec, target, kernel, key, compiler, ...
//     kernel.cubin  the image; kernel.so of the target "host"; missing where the compile failed
//     kernel.ptx    of a GPU's target, from a compile of its own; missing where that failed
//     repro.sh      compiles it again and compares (repro_script.h)
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "generator/config.h"
#include "pagejit/status.h"
#include "runtime/jit/compiler.h"
#include "runtime/logger.h"

namespace pagejit {

struct DumpedCompile {
  const KernelSource& source;
  Compiler& compiler;
  std::string key;                // the entry's name
  std::string compiler_identity;  // "" = not known
  std::string log;
  const std::string* image = nullptr;  // null where the compile failed
};

class KernelDump {
 public:
  // folder: "" = nothing is ever written. It is made by the first write(), mode 0700 where it did
  // not exist.
  KernelDump(std::string folder, std::shared_ptr<const Logger> logger)
      : folder_(std::move(folder)), logger_(std::move(logger)) {}

  bool is_on() const { return !folder_.empty(); }
  // Never fails: the first failure is logged as a warning, later ones are dropped. Takes a second
  // compile, to PTX; to be called without locks.
  void write(const DumpedCompile& compile) noexcept;

 private:
  Status write_folder(const DumpedCompile& compile) const;

  const std::string folder_;
  const std::shared_ptr<const Logger> logger_;
  std::atomic_flag warned_;
};

}  // namespace pagejit
