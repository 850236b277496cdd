// HostCompiler: kernel text for the target "host" -> shared object, by the system's C++ compiler as
// a child process. What it is called with beside the flags of runtime/emulator/host_build_flags.h
// changes nothing in the image: the temporary folder it works in is mapped away, and it sees only a
// few environment variables. Thread-safety: all functions may be called from several threads at
// once.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/jit/compile_pool.h"
#include "runtime/jit/compiler.h"

namespace pagejit::jit {

struct HostCompilerOptions {
  // A name that is searched on PATH, or a path; no arguments. "" = c++, then g++, then clang++ on
  // PATH.
  std::string command;
  HostBuild build = HostBuild::kPlain;
  int threads = 0;  // 0 = the number of processors, at most 16
  Environment environment = process_environment();
  // A kernel takes 0.1 to 0.8 s; a machine that is swapping may take a hundred times that.
  std::chrono::milliseconds timeout{120'000};
};

class HostCompiler : public Compiler {
 public:
  explicit HostCompiler(HostCompilerOptions options);

  std::vector<std::string> options(const Target& target) const override;
  // "c++ <first line of --version> driver <build-id> emulator-abi <number>". Runs the compiler once
  // in the object's life.
  Result<std::string> identity() override;
  Status check_target(const Target& target) override;
  CompileRecipe recipe(const Target& target) override;
  Result<CompiledImage> compile(const KernelSource& source, const JobOptions& job = {}) override;

 private:
  // The absolute path of the compiler. kCompilerUnavailable says what was searched.
  Result<std::string> find_program() const;
  Result<std::string> identify();
  Result<CompiledImage> compile_on_pool(const KernelSource& source, const std::stop_token& stop);
  std::vector<std::string> child_environment(const std::string& folder) const;

  const HostCompilerOptions options_;
  std::mutex mutex_;
  std::string identity_;  // "" = not known yet
  std::string version_;   // the first line of --version; known with the identity
  CompilePool pool_;      // destroyed first: its jobs use the rest
};

}  // namespace pagejit::jit
