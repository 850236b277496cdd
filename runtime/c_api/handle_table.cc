#include "runtime/c_api/handle_table.h"

#include <new>

#include "runtime/format.h"

namespace pagejit::c_api {
namespace {

// Slots that were used and are free again: a stack. [times it was changed 32 | index + 1 32]; the
// first number tells a top that went and came back from one that stayed.
std::atomic<uint64_t> free_slots{0};
std::atomic<uint32_t> num_slots{0};  // that were ever used

constexpr uint32_t kMaxGeneration = (uint32_t{1} << 24) - 1;
constexpr int kKindShift = 24;  // within the identity

Slot& slot_at(uint32_t index) {
  return chunks[index / kSlotsPerChunk].load(std::memory_order_acquire)[index % kSlotsPerChunk];
}

uint32_t identity_of(uint64_t word) { return static_cast<uint32_t>(word >> kIdentityShift); }
uint32_t generation_of(uint64_t word) { return identity_of(word) & kMaxGeneration; }
uint64_t with_identity(uint32_t identity, uint64_t rest) {
  return uint64_t{identity} << kIdentityShift | rest;
}

void push_free(uint32_t index) {
  uint64_t top = free_slots.load(std::memory_order_relaxed);
  uint64_t changed = 0;
  do {
    slot_at(index).next_free.store(static_cast<uint32_t>(top), std::memory_order_relaxed);
    changed = ((top >> kIdentityShift) + 1) << kIdentityShift | (index + 1);
  } while (!free_slots.compare_exchange_weak(top, changed, std::memory_order_release,
                                             std::memory_order_relaxed));
}

// Index + 1; 0 where there is none.
uint32_t pop_free() {
  uint64_t top = free_slots.load(std::memory_order_acquire);
  uint64_t changed = 0;
  do {
    const uint32_t number = static_cast<uint32_t>(top);
    if (number == 0) return 0;
    const uint32_t next = slot_at(number - 1).next_free.load(std::memory_order_relaxed);
    changed = ((top >> kIdentityShift) + 1) << kIdentityShift | next;
  } while (!free_slots.compare_exchange_weak(top, changed, std::memory_order_acquire));
  return static_cast<uint32_t>(top);
}

// Index + 1 of a slot that was never used; 0 where there is no room.
uint32_t take_new() {
  uint32_t index = num_slots.load(std::memory_order_relaxed);
  do {
    if (index >= kMaxChunks * kSlotsPerChunk) return 0;
    std::atomic<Slot*>& place = chunks[index / kSlotsPerChunk];
    if (place.load(std::memory_order_acquire) == nullptr) {
      Slot* chunk = new (std::nothrow) Slot[kSlotsPerChunk];
      if (chunk == nullptr) return 0;
      Slot* none = nullptr;
      if (!place.compare_exchange_strong(none, chunk, std::memory_order_acq_rel)) delete[] chunk;
    }
  } while (!num_slots.compare_exchange_weak(index, index + 1, std::memory_order_relaxed));
  return index + 1;
}

}  // namespace

std::atomic<Slot*> chunks[kMaxChunks];

const char* kind_name(Kind kind) {
  static constexpr const char* kNames[kNumKinds] = {"",
                                                    "pagejit_error",
                                                    "pagejit_engine",
                                                    "pagejit_environment",
                                                    "pagejit_pending",
                                                    "pagejit_stats",
                                                    "pagejit_paged_attention",
                                                    "pagejit_kernel",
                                                    "pagejit_merge_states_kernel",
                                                    "pagejit_cache_write_kernel",
                                                    "pagejit_copy_blocks_kernel",
                                                    "pagejit_gather_cache_kernel",
                                                    "pagejit_convert_float8_kernel",
                                                    "pagejit_mla_cache_write_kernel",
                                                    "pagejit_index_key_write_kernel",
                                                    "pagejit_index_key_gather_kernel",
                                                    "pagejit_index_logits_kernel",
                                                    "pagejit_top_k_kernel",
                                                    "pagejit_cascade_kernel",
                                                    "pagejit_sparse_attention_kernel"};
  const uint8_t index = static_cast<uint8_t>(kind);
  return kNames[index < kNumKinds ? index : 0];
}

uint64_t insert(Kind kind, void* object, void (*free_object)(void*)) {
  uint32_t number = pop_free();
  if (number == 0) number = take_new();
  if (number == 0) return 0;
  Slot& slot = slot_at(number - 1);
  slot.index = number - 1;
  slot.object.store(object, std::memory_order_relaxed);
  slot.free_object = free_object;
  slot.is_set.store(0, std::memory_order_relaxed);
  uint64_t word = slot.word.load(std::memory_order_relaxed);
  // The generation is this thread's alone; the pins are those of wrong handles.
  const uint32_t identity =
      uint32_t{static_cast<uint8_t>(kind)} << kKindShift | (generation_of(word) + 1);
  while (!slot.word.compare_exchange_weak(word, with_identity(identity, word & kPinsMask),
                                          std::memory_order_release, std::memory_order_relaxed)) {
  }
  return with_identity(identity, number);
}

void finish(Slot& slot, uint64_t word) {
  // Free, of no kind. Where a wrong handle pins the slot just now, taking that pin away comes here.
  const uint32_t generation = generation_of(word);
  if (!slot.word.compare_exchange_strong(word, with_identity(generation, 0),
                                         std::memory_order_acq_rel, std::memory_order_relaxed)) {
    return;
  }
  void* object = slot.object.exchange(nullptr, std::memory_order_relaxed);
  void (*free_object)(void*) = slot.free_object;
  // A slot whose generations are used up stays out of use: no value comes twice.
  if (generation < kMaxGeneration) push_free(slot.index);
  free_object(object);
}

Status close(Kind kind, uint64_t value) {
  Slot* slot = slot_of(value);
  if (slot == nullptr || value >> (kIdentityShift + kKindShift) != static_cast<uint8_t>(kind)) {
    return bad_handle(kind, value);
  }
  uint64_t word = slot->word.load(std::memory_order_relaxed);
  do {
    if (identity_of(word) != identity_of(value) || (word & kClosing) != 0) {
      return bad_handle(kind, value);
    }
  } while (!slot->word.compare_exchange_weak(word, (word | kClosing) + 1, std::memory_order_acq_rel,
                                             std::memory_order_relaxed));
  unpin(*slot);
  return {};
}

Status bad_handle(Kind kind, uint64_t value) {
  const std::string name = kind_name(kind);
  auto refusal = [&name](const std::string& what) {
    return Status(StatusCode::kInvalidArgument, format("{}: {}", name, what));
  };
  if (value == 0) return refusal("null");
  const Slot* slot = slot_of(value);
  const Kind other = static_cast<Kind>(value >> (kIdentityShift + kKindShift));
  const uint32_t identity = identity_of(value);
  if (slot != nullptr && (identity & kMaxGeneration) != 0 && *kind_name(other) != '\0') {
    const uint64_t word = slot->word.load(std::memory_order_relaxed);
    const bool is_live = identity_of(word) == identity && (word & kClosing) == 0;
    if (is_live) return refusal(format("this is a {}", kind_name(other)));
    if (generation_of(word) >= (identity & kMaxGeneration)) {
      return refusal(other == kind
                         ? "it was destroyed"
                         : format("this was a {}, and it was destroyed", kind_name(other)));
    }
  }
  return refusal(format("0x{:x} is no handle", value));
}

}  // namespace pagejit::c_api
