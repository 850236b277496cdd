// The handles of the C API: what looks like a pointer is the number of a slot in a table that is
// never freed, what kind of object it holds and which of its objects in turn it is. So a value that
// was destroyed, belongs to another kind or was never a handle is refused without looking at memory
// that may be gone. Thread-safety: all functions may be called from several threads at once; none
// takes a lock, so that a forked child finds the table whole.
//
// A slot's word: [kind 8 | generation 24 | closing 1 | pins 31]. A call pins its object with one
// atomic addition, whose result tells whether the handle is right; destroy sets `closing`, and
// whoever takes the last pin away frees the object. Kind and generation are those of the slot's
// present or next object, so a handle of an earlier one differs; where a free slot or another's is
// pinned for a moment by a wrong handle, the pin is taken away again in the same way.
#pragma once

#include <atomic>
#include <cstdint>

#include "pagejit/pagejit.h"
#include "pagejit/status.h"

namespace pagejit::c_api {

// In the handle's value; never 0, so that null is none.
enum class Kind : uint8_t {
  kError = 1,
  kEngine,
  kEnvironment,
  kPending,
  kStats,
  kPagedAttention,
  kKernel,
  kMergeStatesKernel,
  kCacheWriteKernel,
  kCopyBlocksKernel,
  kGatherCacheKernel,
  kConvertFloat8Kernel,
  kMlaCacheWriteKernel,
  kIndexKeyWriteKernel,
  kIndexKeyGatherKernel,
  kIndexLogitsKernel,
  kTopKKernel,
  kCascadeKernel,
  kSparseAttentionKernel,
};
inline constexpr uint8_t kNumKinds = 20;  // and 0, which is none

// The C type, e.g. "pagejit_engine".
const char* kind_name(Kind kind);

struct alignas(64) Slot {  // a cache line each: threads that use different handles do not meet
  std::atomic<uint64_t> word{0};
  std::atomic<void*> object{nullptr};
  void (*free_object)(void*) = nullptr;
  // Of an error object: whether it holds a failure. In the slot, so that a launch that succeeds
  // clears it without pinning.
  std::atomic<uint32_t> is_set{0};
  std::atomic<uint32_t> next_free{0};  // index + 1
  uint32_t index = 0;                  // its own
};

inline constexpr uint64_t kClosing = uint64_t{1} << 31;
inline constexpr uint64_t kPinsMask = kClosing - 1;
inline constexpr int kIdentityShift = 32;
inline constexpr uint32_t kSlotsPerChunk = 1024;  // of 64 KiB
inline constexpr uint32_t kMaxChunks = 4096;      // 4 million handles at once

static_assert(sizeof(void*) == sizeof(uint64_t), "a handle's value has 64 bits");

// The table of the process.
extern std::atomic<Slot*> chunks[kMaxChunks];

// The slot that a value names, whether it holds the value's object or not; null where there is
// none.
inline Slot* slot_of(uint64_t value) {
  const uint32_t index = static_cast<uint32_t>(value) - 1;  // of 0: beyond the table
  if (index >= kSlotsPerChunk * kMaxChunks) return nullptr;
  Slot* chunk = chunks[index / kSlotsPerChunk].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : &chunk[index % kSlotsPerChunk];
}

// A new handle for `object`, which is freed by `free_object` when it is destroyed. 0 where the
// table is full or there is no memory: `object` is the caller's then.
uint64_t insert(Kind kind, void* object, void (*free_object)(void*));

// Frees the object of a slot whose word was `word`: closing, and no pin left. Only one of those who
// see that does.
void finish(Slot& slot, uint64_t word);

// Takes a pin away; frees the object where it was the last of one that was destroyed.
inline void unpin(Slot& slot) {
  const uint64_t before = slot.word.fetch_sub(1, std::memory_order_acq_rel);
  if ((before & (kClosing | kPinsMask)) == (kClosing | 1)) finish(slot, before - 1);
}

// Destroys a handle: kInvalidArgument where it is none. The object lives on while it is pinned.
Status close(Kind kind, uint64_t value);

// Why a value is no handle of this kind: kInvalidArgument.
Status bad_handle(Kind kind, uint64_t value);

// An object for the time of a call. Empty where the handle is not right.
class Pin {
 public:
  Pin(Kind kind, const void* handle) {
    const uint64_t value = reinterpret_cast<uint64_t>(handle);
    if (static_cast<uint8_t>(value >> 56) != static_cast<uint8_t>(kind)) return;
    Slot* slot = slot_of(value);
    if (slot == nullptr) return;
    const uint64_t before = slot->word.fetch_add(1, std::memory_order_acquire);
    slot_ = slot;
    if (before >> kIdentityShift == value >> kIdentityShift && (before & kClosing) == 0) {
      object_ = slot->object.load(std::memory_order_relaxed);
    }
  }
  ~Pin() {
    if (slot_ != nullptr) unpin(*slot_);
  }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

  void* object() const { return object_; }

 private:
  Slot* slot_ = nullptr;
  void* object_ = nullptr;
};

}  // namespace pagejit::c_api
