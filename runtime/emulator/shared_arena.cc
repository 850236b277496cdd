#include "runtime/emulator/shared_arena.h"

#include <sys/mman.h>

#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace pagejit_emulator {
namespace {

constexpr size_t kFirstAddress = 1024;
constexpr size_t kUsable = size_t{256} * 1024;  // more than any GPU's opt-in limit, 227 KiB
constexpr size_t kGuardBytes = size_t{64} * 1024;
constexpr size_t kMapBytes = kGuardBytes + kUsable + kGuardBytes;

}  // namespace

SharedArena::SharedArena() {
  void* map =
      mmap(nullptr, kMapBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return;
  map_ = static_cast<unsigned char*>(map);
  mprotect(map_ + kGuardBytes, kUsable, PROT_READ | PROT_WRITE);
  data_ = map_ + kGuardBytes + kFirstAddress;
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(map_ + kGuardBytes, kUsable);
#endif
}

SharedArena::~SharedArena() {
  if (map_ == nullptr) return;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(map_ + kGuardBytes, kUsable);
#endif
  munmap(map_, kMapBytes);
}

void SharedArena::reset(unsigned bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(map_ + kGuardBytes, kUsable);
  __asan_unpoison_memory_region(data_, bytes);
#endif
  bytes_ = bytes;
  std::memset(data_, 0xff, bytes);
}

bool SharedArena::near(const void* p) const {
  const auto* byte = static_cast<const unsigned char*>(p);
  return byte >= map_ && byte < map_ + kMapBytes;
}

}  // namespace pagejit_emulator
