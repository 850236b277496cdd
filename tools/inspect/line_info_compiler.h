// NVRTC with line information: the same machine code as the engine's, and which source line each
// instruction comes from. Not for the cache: names of files enter the image.
// Thread-safety: as jit::NvrtcCompiler.
#pragma once

#include <string>
#include <vector>

#include "runtime/jit/nvrtc_compiler.h"

namespace pagejit::inspect {

class LineInfoCompiler : public jit::NvrtcCompiler {
 public:
  using jit::NvrtcCompiler::NvrtcCompiler;
  std::vector<std::string> options(const Target& target) const override {
    std::vector<std::string> words = jit::NvrtcCompiler::options(target);
    words.push_back("--generate-line-info");
    return words;
  }
};

}  // namespace pagejit::inspect
