// What a cubin says of its kernels: registers, stack, shared memory, barriers, launch bounds. Reads
// ELF headers, symbols and the attributes of .nv.info, no instructions. Any bytes are legal input.
// Thread-safety: plain values and a free function.
//
// Sources: System V ABI, "Object Files"; the numbers of attributes as `cuobjdump -elf` and
// `nvdisasm` name them (CUDA Binary Utilities), checked against ptxas's own report by tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pagejit/status.h"

namespace pagejit::inspect {

struct CubinKernel {
  std::string symbol;
  int registers = 0;            // per thread (EIATTR_REGCOUNT)
  int stack_bytes = 0;          // per thread, spills included (EIATTR_FRAME_SIZE)
  int static_shared_bytes = 0;  // size of .nv.shared.<symbol>, less what the system keeps
  int barriers = 0;             // EIATTR_NUM_BARRIERS, or the flags of the code's section
  int max_threads = 0;          // of a CTA, by __launch_bounds__ (EIATTR_MAX_THREADS); 0: not told
  uint64_t code_bytes = 0;
};

struct CubinFile {
  std::string target;      // "sm_90a", as ptxas was asked; "sm_90" where only the header tells
  std::string tool;        // "Cuda compilation tools, release 13.0, V13.0.88"; "" where not told
  bool has_lines = false;  // which source line an instruction comes from (-lineinfo)
  std::vector<CubinKernel> kernels;  // in the order of the symbols
};

// kDataCorrupt says what is wrong: no ELF file, not one for a GPU, without a kernel, truncated.
Result<CubinFile> read_cubin(std::string_view bytes);

}  // namespace pagejit::inspect
