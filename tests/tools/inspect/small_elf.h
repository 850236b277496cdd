// A cubin of some hundred bytes, as ptxas lays them out: sections, symbols, attributes; no code.
// Thread-safety: a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pagejit::inspect {

struct SmallKernel {
  std::string symbol = "kernel";
  uint32_t registers = 40;
  uint32_t frame_bytes = 0;
  uint32_t shared_bytes = 0;  // size of the section; 0: none
  uint8_t barriers = 1;
  uint32_t threads[3] = {128, 1, 1};  // its launch bound; all 0: none
  bool has_empty_attribute = false;   // of barriers, and the last of the file
};

struct SmallElf {
  std::vector<SmallKernel> kernels = {{}};
  std::string arch = "sm_90a";  // in the note of ptxas; "": no note
  uint8_t abi = 8;
  uint32_t flags = 0x06005a04;
  bool has_reserved_shared = true;

  std::string bytes() const;
};

}  // namespace pagejit::inspect
