// SharedArena: the dynamic shared memory of one resident CTA. Its first byte has the shared address
// 1024 (0 is no legal address) and is 1024-byte aligned. Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pagejit_emulator {

class SharedArena {
 public:
  SharedArena();
  ~SharedArena();
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;

  // Makes the first `bytes` usable and fills them with 0xFF, a NaN in every float format.
  void reset(unsigned bytes);

  bool valid() const { return map_ != nullptr; }
  unsigned char* data() const { return data_; }
  unsigned bytes() const { return bytes_; }
  // Whether [p, p + bytes) lies in the usable bytes.
  bool holds(const void* p, size_t bytes) const {
    const uintptr_t offset = reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(data_);
    return offset <= bytes_ && bytes <= bytes_ - offset;
  }
  // Whether p lies in the arena at all.
  bool near(const void* p) const;
  long offset(const void* p) const {
    return static_cast<long>(reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(data_));
  }

 private:
  unsigned char* map_ = nullptr;
  unsigned char* data_ = nullptr;
  unsigned bytes_ = 0;
};

}  // namespace pagejit_emulator
