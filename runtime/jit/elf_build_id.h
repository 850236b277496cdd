// The GNU build-id of an ELF file, read from its headers without loading it: libnvrtc has 109 MB,
// this reads some hundred bytes. Not a general ELF reader; checks only that the file is a 64-bit
// one for this processor. Thread-safety: a free function without state.
//
// Source: System V ABI, "Note Section"; the note is named "GNU" and has type NT_GNU_BUILD_ID (3) in
// <elf.h>. Both the program headers and the section headers are looked at: in the wheel
// nvidia-cuda-nvrtc-cu12 12.4 the packager's tool has overwritten what the program header points
// to, and only the section is right.
#pragma once

#include <string>

#include "pagejit/status.h"

namespace pagejit::jit {

// Lower-case hex. kNotFound: no such file; kDataCorrupt: not an ELF file, truncated, or without a
// build-id; kUnsupported: for another processor. The message begins with the path.
Result<std::string> read_elf_build_id(const std::string& path);

}  // namespace pagejit::jit
