// NvrtcCompiler: CUDA source -> cubin by NVRTC, on threads of its own; PTX only for targets that
// ask for it and to be read, since with a cubin ptxas's errors show here and not in the driver. The
// source has no #include and no header is passed. Thread-safety: all functions may be called from
// several threads at once.
#pragma once

#include <string>
#include <vector>

#include "runtime/jit/compile_pool.h"
#include "runtime/jit/compiler.h"
#include "runtime/jit/nvrtc_library.h"

namespace pagejit::jit {

// Whether a library of this version that reports these architectures makes cubins for a CUDA
// target. kUnsupported says what it does serve. NVRTC does not report the variants; they follow
// from the architectures: 'a' exists from 90 on with the architecture itself, 'f' from 100 on and
// version 12.9.
Status check_nvrtc_target(const Target& target, NvrtcVersion version,
                          const std::vector<int>& supported_archs);

class NvrtcCompiler : public Compiler {
 public:
  // threads: 0 = the number of processors, at most 16.
  NvrtcCompiler(NvrtcSearch search, int threads);

  std::vector<std::string> options(const Target& target) const override;
  Result<std::string> identity() override;
  Result<std::string> identity_unopened() override;
  Status check_target(const Target& target) override;
  Result<CompiledImage> compile(const KernelSource& source, const JobOptions& job = {}) override;
  CompileRecipe recipe(const Target& target) override;
  Result<std::string> compile_to_ptx(const KernelSource& source) override;

 private:
  // The library, opened on a thread with a large stack.
  Result<std::shared_ptr<const NvrtcLibrary>> open();
  // The library, if it serves the target; the caller is on such a thread.
  Result<std::shared_ptr<const NvrtcLibrary>> open_on_pool(const Target& target);
  Result<std::string> compile_to_ptx_on_pool(const KernelSource& source);
  Result<CompiledImage> compile_on_pool(const KernelSource& source, const std::stop_token& stop);

  NvrtcFinder finder_;
  CompilePool pool_;  // destroyed first: its jobs use the finder
};

}  // namespace pagejit::jit
