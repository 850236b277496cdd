// Fibers: stacks of their own and switches between them, all within one OS thread. Not a scheduler.
// Thread-safety: none; the emulator runs one launch at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace pagejit_emulator {

// A point of execution that a switch can leave and come back to. The OS thread's own context is a
// default-constructed one.
struct FiberContext {
#if defined(__x86_64__)
  void* stack_pointer = nullptr;
#else
  ucontext_t machine;
#endif
  // For the sanitizers of a host program that is built with one.
  const void* stack_bottom = nullptr;
  size_t stack_bytes = 0;
  void* fake_stack = nullptr;
  void* tsan_fiber = nullptr;
};

// Kernels need little: 64 KiB are enough even at -O0 and under AddressSanitizer.
constexpr size_t kFiberStackBytes = size_t{64} * 1024;
// One page is not enough: a large frame would jump over it.
constexpr size_t kFiberGuardBytes = size_t{256} * 1024;

// Makes `context` start at entry() on the given stack of kFiberStackBytes at its next switch. entry
// must not return.
void prepare_fiber(FiberContext* context, unsigned char* stack, void (*entry)());

// Leaves `from` (the running context) for `to`; returns when something switches back to `from`.
// With `from_ends` it never does.
void switch_fiber(FiberContext* from, FiberContext* to, bool from_ends = false);

// The first thing a new fiber calls.
void enter_fiber(FiberContext* self);

// Hands out stacks and keeps those given back. Each has a guard below it that may not be touched.
class StackPool {
 public:
  StackPool() = default;
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  unsigned char* take();  // lowest address; null when there is no memory
  void give_back(unsigned char* stack);

 private:
  std::vector<unsigned char*> all_;
  std::vector<unsigned char*> free_;
};

}  // namespace pagejit_emulator
