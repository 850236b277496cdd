// NVIDIA's nvdisasm: where it is, and what it prints of a cubin. It is a part of the CUDA toolkit
// and of the wheel nvidia-cuda-nvdisasm, and not of this project. Thread-safety: free functions.
#pragma once

#include <string>
#include <string_view>

#include "pagejit/status.h"
#include "runtime/jit/environment.h"

namespace pagejit::inspect {

// The program: `path` where that is not "" (a file, or the folder that holds it), else the first of
// PATH, CUDA_HOME/bin, CUDA_PATH/bin, /usr/local/cuda*/bin, and .deps/python/nvidia/cu13/bin in a
// folder above this program. kNotFound says where to get it.
Result<std::string> find_disassembler(const std::string& path, const Environment& environment);

// What `nvdisasm -c -g` prints of the cubin: text for sass.h. Takes some tenths of a second.
// kCompilerUnavailable: the program cannot be run, fails, or takes more than a minute; detail() has
// what it printed.
Result<std::string> disassemble(const std::string& program, std::string_view cubin);

}  // namespace pagejit::inspect
