// Site: a place in the kernel text in 8 bytes, as the checkers keep one per byte of memory: a Loc
// that a device function was given, or the code address of a plain access. Thread-safety: plain
// values.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/emulator/image.h"
#include "runtime/emulator/text.h"
#include "templates/device/host/emulator_abi.cuh"

namespace pagejit_emulator {

inline std::string line_text(Loc loc) { return text("%s:%d", loc.file, loc.line); }

class Site {
 public:
  Site() = default;
  // User-space addresses fit in 48 bits. Line 0 does not exist, so that it marks a code address.
  explicit Site(Loc loc)
      : bits_(reinterpret_cast<uintptr_t>(loc.file) << 16 |
              static_cast<uint16_t>(loc.line < 0xffff ? loc.line : 0xffff)) {}
  explicit Site(const void* pc) : bits_(reinterpret_cast<uintptr_t>(pc) << 16) {}

  std::string describe(const Image& image) const {
    const uintptr_t pointer = bits_ >> 16;
    const int line = static_cast<int>(bits_ & 0xffff);
    // A return address lies behind the call that it names.
    if (line == 0) return image.source_line(pointer - 1);
    // The pointer that the constructor put there.
    return line_text({reinterpret_cast<const char*>(pointer), line});
  }

 private:
  uint64_t bits_ = 0;
};

}  // namespace pagejit_emulator
