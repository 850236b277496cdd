// GlobalMemory: the device's memory. Each allocation is a mapping of its own, committed page by
// page as it is touched, whose end lies before a guard, so that even a plain access past it is
// caught; freed ranges stay unusable for a while. Thread-safety: none; the caller holds the
// driver's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace pagejit_emulator {

struct Allocation {
  uintptr_t begin;
  size_t bytes;
  bool is_host;  // page-locked host memory: the device may use it too
  void* map;
  size_t map_bytes;
};

class GlobalMemory {
 public:
  GlobalMemory() = default;
  ~GlobalMemory();
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;

  // 256-byte aligned, as cuMemAlloc. Small allocations are filled with 0xFF, large ones read as
  // zero. 0 when `bytes` are not to be had.
  uintptr_t allocate(size_t bytes, bool is_host);

  // False where no allocation of that kind begins at `begin`.
  bool release(uintptr_t begin, bool is_host);

  // The allocation that holds [address, address + bytes), else null.
  const Allocation* find(uintptr_t address, size_t bytes);

  // "12 bytes past the end of the allocation of 4096 bytes at 0x7f...".
  std::string describe(uintptr_t address) const;

  size_t device_bytes() const { return device_bytes_; }

 private:
  struct Freed {
    uintptr_t begin;
    size_t bytes;
    void* map;
    size_t map_bytes;
  };

  std::map<uintptr_t, Allocation> allocations_;
  const Allocation* last_found_ = nullptr;
  std::deque<Freed> freed_;
  size_t device_bytes_ = 0;
};

}  // namespace pagejit_emulator
