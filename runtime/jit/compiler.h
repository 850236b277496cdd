// Compiler: source text -> image (a cubin, or a host shared object). Two kinds: NVRTC and the
// system's C++ compiler. Thread-safety: all functions may be called from several threads at once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "generator/config.h"
#include "pagejit/engine.h"
#include "pagejit/status.h"
#include "runtime/jit/environment.h"
#include "runtime/jit/job_options.h"

namespace pagejit {

// Numbers read from the compile log; 0 where the compiler reports none (host).
struct CompileReport {
  int registers = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int stack_bytes = 0;
  int static_shared_bytes = 0;
  std::vector<std::string> warnings;  // whole lines, e.g. ptxas C75xx
};

struct CompiledImage {
  std::string image;
  std::string log;  // whole
  CompileReport report;
  double compile_ms = 0;  // wall time of the compile itself, queueing excluded
  // The identity() of what really made the image. It differs from what identity() said before only
  // where the library that was found could not be opened and another one was taken: such an image
  // must not be stored under the former.
  std::string compiler_identity;
  std::string compiler;  // KernelMetadata::compiler, e.g. "NVRTC 13.0"
};

// What it takes to repeat a compile by hand.
struct CompileRecipe {
  std::vector<std::string> options;  // all of them, in order; the names of files left out
  std::string program;               // the file of the library or of the compiler; "" = not known
  std::string builtins;              // a library that is opened before `program`; "" = none
};

class Compiler {
 public:
  virtual ~Compiler() = default;

  // Options in order, as they enter the cache key. No paths. Options that change nothing in the
  // image are not among them.
  virtual std::vector<std::string> options(const Target& target) const = 0;

  // Text that identifies the exact compiler (build ids), found without loading or running it where
  // possible. kCompilerUnavailable where there is none.
  virtual Result<std::string> identity() = 0;
  // The same without ever loading the compiler: kCompilerUnavailable too where only that would
  // tell.
  virtual Result<std::string> identity_unopened() { return identity(); }

  // Targets this compiler accepts. NVRTC: what it reports; host: every host target. kUnsupported
  // says what is accepted.
  virtual Status check_target(const Target& target) = 0;

  // Blocks until the image is made; on one of the compiler's own threads, whose number is bounded.
  // kCompileFailed: the compiler refused the source, and would again; detail() carries log, options
  // and numbered source. kUnsupported: as check_target(). kCompilerUnavailable: there is none, or
  // it did not come to its end (killed, timed out, disk full), which may pass; detail() as above
  // where it was started. kCancelled where `job` asked for that: at once where the compile has not
  // begun, else when the compiler has stopped. One that cannot be stopped comes to its end, and its
  // result is returned.
  virtual Result<CompiledImage> compile(const KernelSource& source,
                                        const jit::JobOptions& job = {}) = 0;

  // How compile() goes about it. Opens nothing.
  virtual CompileRecipe recipe(const Target& target) { return {options(target), {}, {}}; }
  // The source as PTX for the target's virtual architecture, to be read and not to be loaded; one
  // more compile. kUnsupported where the compiler makes none.
  virtual Result<std::string> compile_to_ptx(const KernelSource&) {
    return Status(StatusCode::kUnsupported, "this compiler makes no PTX");
  }
};

// path: as EngineOptions::nvrtc_path. threads: as EngineOptions::compile_threads. Opens nothing
// yet.
std::shared_ptr<Compiler> make_nvrtc_compiler(const std::string& path, int threads = 0,
                                              Environment environment = process_environment());

// command: as EngineOptions::host_compiler; one program, without arguments. Runs nothing yet.
std::shared_ptr<Compiler> make_host_compiler(const std::string& command, HostBuild build,
                                             int threads = 0,
                                             Environment environment = process_environment());

}  // namespace pagejit
