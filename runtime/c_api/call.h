// The edge of each C function: its error object, and what becomes of a Status. Thread-safety: free
// functions; an error object is used by one thread at a time.
#pragma once

#include <utility>

#include "pagejit/pagejit.h"
#include "pagejit/status.h"
#include "runtime/c_api/handle_table.h"
#include "runtime/guard.h"

namespace pagejit::c_api {

struct ErrorObject {
  Status status;
};

inline uint64_t value_of(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

// Clears an error object before a call. False for what is none: then nothing must be done. Null is
// legal.
inline bool clear_error(const pagejit_error* error) {
  if (error == nullptr) return true;
  const uint64_t value = value_of(error);
  Slot* slot = slot_of(value);
  if (slot == nullptr || static_cast<Kind>(value >> 56) != Kind::kError) return false;
  const uint64_t word = slot->word.load(std::memory_order_acquire);
  if (word >> kIdentityShift != value >> kIdentityShift || (word & kClosing) != 0) return false;
  if (slot->is_set.load(std::memory_order_relaxed) != 0) {
    slot->is_set.store(0, std::memory_order_relaxed);
  }
  return true;
}

// Puts a failure into the error object, where there is one. Its number.
[[gnu::cold]] pagejit_status fail(pagejit_error* error, Status status) noexcept;

// One C function: `function` returns a Status.
template <class Function>
pagejit_status call(pagejit_error* error, Function&& function) noexcept {
  if (!clear_error(error)) return PAGEJIT_INVALID_ARGUMENT;
  Status status = guarded(std::forward<Function>(function));
  if (status.is_ok()) return PAGEJIT_OK;
  return fail(error, std::move(status));
}

// kInvalidArgument that names what is null.
[[gnu::cold]] Status null_argument(const char* name);

// kInvalidArgument where `out` is null, e.g. need(out, "kernel").
inline Status need(const void* pointer, const char* name) {
  return pointer != nullptr ? Status() : null_argument(name);
}

// A new handle that owns `object`. kInternal where there is no room.
template <class CHandle, class Object>
Status hand_out(Kind kind, Object object, CHandle** out) {
  auto* owned = new Object(std::move(object));
  const uint64_t value =
      insert(kind, owned, [](void* pointer) { delete static_cast<Object*>(pointer); });
  if (value == 0) {
    delete owned;
    return Status(StatusCode::kInternal, "no room for another handle");
  }
  // A number that looks like a pointer.
  *out = reinterpret_cast<CHandle*>(value);
  return {};
}

// Destroys a handle; null is legal.
inline pagejit_status destroy(Kind kind, const void* handle, pagejit_error* error) noexcept {
  return call(error, [&] { return handle == nullptr ? Status() : close(kind, value_of(handle)); });
}

// Calls `function` with the object of a handle, pinned.
template <class Object, class Function>
Status with(Kind kind, const void* handle, Function&& function) {
  const Pin pin(kind, handle);
  if (pin.object() == nullptr) [[unlikely]] {
    return bad_handle(kind, value_of(handle));
  }
  return std::forward<Function>(function)(*static_cast<Object*>(pin.object()));
}

}  // namespace pagejit::c_api
