#include "runtime/emulator/fiber.h"

#include <sys/mman.h>

#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace pagejit_emulator {
namespace {

#if defined(__SANITIZE_ADDRESS__)
// Which context the running fiber came from: its stack's bounds are learnt on arrival.
FiberContext* arrived_from = nullptr;
#endif

void announce_switch([[maybe_unused]] FiberContext* from, [[maybe_unused]] FiberContext* to,
                     [[maybe_unused]] bool from_ends) {
#if defined(__SANITIZE_ADDRESS__)
  arrived_from = from;
  __sanitizer_start_switch_fiber(from_ends ? nullptr : &from->fake_stack, to->stack_bottom,
                                 to->stack_bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  if (from->tsan_fiber == nullptr) from->tsan_fiber = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to->tsan_fiber, 0);
#endif
}

void announce_arrival([[maybe_unused]] FiberContext* self) {
#if defined(__SANITIZE_ADDRESS__)
  const void* bottom = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(self->fake_stack, &bottom, &bytes);
  if (arrived_from->stack_bottom == nullptr) {
    arrived_from->stack_bottom = bottom;
    arrived_from->stack_bytes = bytes;
  }
#endif
}

void prepare_for_sanitizers([[maybe_unused]] FiberContext* context,
                            [[maybe_unused]] unsigned char* stack) {
  context->stack_bottom = stack;
  context->stack_bytes = kFiberStackBytes;
  context->fake_stack = nullptr;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack, kFiberStackBytes);
#endif
#if defined(__SANITIZE_THREAD__)
  if (context->tsan_fiber != nullptr) __tsan_destroy_fiber(context->tsan_fiber);
  context->tsan_fiber = __tsan_create_fiber(0);
#endif
}

}  // namespace

#if defined(__x86_64__)

// void pagejit_switch_stack(void** save, void* load): the six callee-saved registers and the stack
// pointer are all that the System V ABI lets a call keep; floating-point modes are never changed by
// kernels.
asm(R"(
  .text
  .p2align 4
  .globl pagejit_switch_stack
  .hidden pagejit_switch_stack
  .type pagejit_switch_stack, @function
pagejit_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size pagejit_switch_stack, .-pagejit_switch_stack
)");
extern "C" void pagejit_switch_stack(void** save, void* load);

void prepare_fiber(FiberContext* context, unsigned char* stack, void (*entry)()) {
  prepare_for_sanitizers(context, stack);
  auto* top = reinterpret_cast<uintptr_t*>(stack + kFiberStackBytes);
  top[-1] = 0;  // the return address of entry: none. Leaves rsp at 8 modulo 16, as after a call
  top[-2] = reinterpret_cast<uintptr_t>(entry);
  for (int i = 3; i <= 8; ++i) top[-i] = 0;
  context->stack_pointer = top - 8;
}

void switch_fiber(FiberContext* from, FiberContext* to, bool from_ends) {
  announce_switch(from, to, from_ends);
  pagejit_switch_stack(&from->stack_pointer, to->stack_pointer);
  announce_arrival(from);
}

#else

void prepare_fiber(FiberContext* context, unsigned char* stack, void (*entry)()) {
  prepare_for_sanitizers(context, stack);
  getcontext(&context->machine);
  context->machine.uc_stack.ss_sp = stack;
  context->machine.uc_stack.ss_size = kFiberStackBytes;
  context->machine.uc_link = nullptr;
  makecontext(&context->machine, entry, 0);
}

void switch_fiber(FiberContext* from, FiberContext* to, bool from_ends) {
  announce_switch(from, to, from_ends);
  swapcontext(&from->machine, &to->machine);
  announce_arrival(from);
}

#endif

void enter_fiber(FiberContext* self) { announce_arrival(self); }

StackPool::~StackPool() {
  for (unsigned char* stack : all_) {
    munmap(stack - kFiberGuardBytes, kFiberGuardBytes + kFiberStackBytes);
  }
}

unsigned char* StackPool::take() {
  if (!free_.empty()) {
    unsigned char* stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void* base = mmap(nullptr, kFiberGuardBytes + kFiberStackBytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  unsigned char* stack = static_cast<unsigned char*>(base) + kFiberGuardBytes;
  if (mprotect(stack, kFiberStackBytes, PROT_READ | PROT_WRITE) != 0) {
    munmap(base, kFiberGuardBytes + kFiberStackBytes);
    return nullptr;
  }
  all_.push_back(stack);
  return stack;
}

void StackPool::give_back(unsigned char* stack) { free_.push_back(stack); }

}  // namespace pagejit_emulator
