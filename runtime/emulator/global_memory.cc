#include "runtime/emulator/global_memory.h"

#include <sys/mman.h>

#include <cstring>

#include "runtime/emulator/device_limits.h"
#include "runtime/emulator/text.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace pagejit_emulator {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kPage = 4096;
// Wide enough that an index which is off by a row or two of a cache still falls into it.
constexpr size_t kGuardBytes = 1 << 20;
// Larger allocations are left to the lazy zero pages: filling would commit them.
constexpr size_t kMaxPoisonedBytes = 4 << 20;
constexpr size_t kMaxFreedRanges = 64;

size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

// Tells AddressSanitizer of what lies between an allocation and its guards. (Not of the guards: its
// own memory for them would be committed, and large.)
#if defined(__SANITIZE_ADDRESS__)
template <class Mark>
void mark_pads(const Allocation& a, Mark mark) {
  auto* begin = reinterpret_cast<unsigned char*>(a.begin);
  unsigned char* first_page = static_cast<unsigned char*>(a.map) + kGuardBytes;
  unsigned char* end_page = static_cast<unsigned char*>(a.map) + a.map_bytes - kGuardBytes;
  mark(first_page, static_cast<size_t>(begin - first_page));
  mark(begin + a.bytes, static_cast<size_t>(end_page - begin - a.bytes));
}
void poison_pads(const Allocation& a) { mark_pads(a, __asan_poison_memory_region); }
void unpoison_pads(const Allocation& a) { mark_pads(a, __asan_unpoison_memory_region); }
#else
void poison_pads(const Allocation&) {}
void unpoison_pads(const Allocation&) {}
#endif

}  // namespace

GlobalMemory::~GlobalMemory() {
  for (const auto& [begin, allocation] : allocations_) munmap(allocation.map, allocation.map_bytes);
  for (const Freed& freed : freed_) munmap(freed.map, freed.map_bytes);
}

uintptr_t GlobalMemory::allocate(size_t bytes, bool is_host) {
  if (bytes > kDeviceMemoryBytes || (!is_host && device_bytes_ + bytes > kDeviceMemoryBytes)) {
    return 0;
  }
  const size_t used = round_up(bytes, kPage);
  const size_t map_bytes = kGuardBytes + used + kGuardBytes;
  void* map =
      mmap(nullptr, map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return 0;
  unsigned char* pages = static_cast<unsigned char*>(map) + kGuardBytes;
  if (mprotect(pages, used, PROT_READ | PROT_WRITE) != 0) {
    munmap(map, map_bytes);
    return 0;
  }
  // As near to the guard at its end as the alignment lets it lie.
  unsigned char* begin = pages + used - round_up(bytes, kAlignment);
  if (bytes <= kMaxPoisonedBytes) std::memset(pages, 0xff, used);
  poison_pads({reinterpret_cast<uintptr_t>(begin), bytes, is_host, map, map_bytes});
  const auto address = reinterpret_cast<uintptr_t>(begin);
  allocations_[address] = {address, bytes, is_host, map, map_bytes};
  if (!is_host) device_bytes_ += bytes;
  return address;
}

bool GlobalMemory::release(uintptr_t begin, bool is_host) {
  const auto it = allocations_.find(begin);
  if (it == allocations_.end() || it->second.is_host != is_host) return false;
  const Allocation allocation = it->second;
  allocations_.erase(it);
  last_found_ = nullptr;
  if (!is_host) device_bytes_ -= allocation.bytes;
  unpoison_pads(allocation);
  // Keeps the addresses but not the pages: a use after free faults, and no new allocation takes the
  // place at once. Where the system refuses that, the pages stay.
  (void)mmap(allocation.map, allocation.map_bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  freed_.push_back({allocation.begin, allocation.bytes, allocation.map, allocation.map_bytes});
  if (freed_.size() > kMaxFreedRanges) {
    munmap(freed_.front().map, freed_.front().map_bytes);
    freed_.pop_front();
  }
  return true;
}

const Allocation* GlobalMemory::find(uintptr_t address, size_t bytes) {
  const auto holds = [&](const Allocation& a) {
    return address >= a.begin && bytes <= a.bytes && address - a.begin <= a.bytes - bytes;
  };
  if (last_found_ != nullptr && holds(*last_found_)) return last_found_;
  auto it = allocations_.upper_bound(address);
  if (it == allocations_.begin()) return nullptr;
  --it;
  if (!holds(it->second)) return nullptr;
  last_found_ = &it->second;
  return last_found_;
}

std::string GlobalMemory::describe(uintptr_t address) const {
  for (const Freed& freed : freed_) {
    if (address >= freed.begin && address < freed.begin + freed.bytes) {
      return text("inside an allocation of %zu bytes at 0x%zx that was freed", freed.bytes,
                  freed.begin);
    }
  }
  std::string nearest;
  size_t nearest_distance = SIZE_MAX;
  for (const auto& [begin, a] : allocations_) {
    const bool before = address < begin;
    const size_t past_end = address - begin - a.bytes;
    const size_t distance = before ? begin - address : address - begin < a.bytes ? 0 : past_end;
    if (distance >= nearest_distance) continue;
    nearest_distance = distance;
    nearest = distance == 0 && !before && address - begin < a.bytes
                  ? text("%zu bytes before the end", a.bytes - (address - begin))
              : before ? text("%zu bytes before the start", distance)
                       : text("%zu bytes past the end", distance);
    nearest += text(" of the allocation of %zu bytes at 0x%zx", a.bytes, begin);
  }
  return nearest.empty() ? "nothing is allocated" : nearest;
}

}  // namespace pagejit_emulator
