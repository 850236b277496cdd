// Loads, stores and atomics of kernels: bounds, alignment, counts, and the checkers of checked
// images.
#include "runtime/emulator/device_functions.h"
#include "runtime/emulator/machine.h"
#include "runtime/emulator/text.h"

namespace pagejit_emulator {
namespace {

// A thread that loads so often without ever waiting may be polling: others get a chance to write.
constexpr int kLoadsBeforeYield = 256;

std::string address_text(const void* p) { return text("0x%zx", reinterpret_cast<size_t>(p)); }

// Which memory an address belongs to that the access was not meant for.
std::string place_text(const void* p) {
  Machine& m = machine();
  const Thread& thread = m.current();
  if (thread.cta->arena.near(p)) {
    return text("shared+%ld, of %u bytes of dynamic shared memory", thread.cta->arena.offset(p),
                thread.cta->arena.bytes());
  }
  return address_text(p) + ", " + m.memory().describe(reinterpret_cast<uintptr_t>(p));
}

void check_alignment(const void* p, unsigned bytes, unsigned alignment, const char* what, Loc loc) {
  if (reinterpret_cast<uintptr_t>(p) % alignment == 0) return;
  machine().fault(CUDA_ERROR_MISALIGNED_ADDRESS,
                  text("%s of %u bytes at %s, which is not %u-byte aligned, at %s", what, bytes,
                       place_text(p).c_str(), alignment, line_text(loc).c_str()));
  machine().leave();
}

void note_global_write(void* p, unsigned bytes, Site site) {
  Machine& m = machine();
  ++m.counters().checked_global_accesses;
  const Thread& thread = m.current();
  if (!m.global_checker().write(thread.cta->clocks, thread.idx, reinterpret_cast<uintptr_t>(p),
                                bytes, site)) {
    m.fault(CUDA_ERROR_LAUNCH_FAILED, m.global_checker().finding(*m.request().image));
    m.leave();
  }
}

void note_global_read_at(const void* p, unsigned bytes, Site site) {
  Machine& m = machine();
  ++m.counters().checked_global_accesses;
  const Thread& thread = m.current();
  if (!m.global_checker().read(thread.cta->clocks, thread.idx, reinterpret_cast<uintptr_t>(p),
                               bytes, site)) {
    m.fault(CUDA_ERROR_LAUNCH_FAILED, m.global_checker().finding(*m.request().image));
    m.leave();
  }
}

enum class SharedAccess { kRead, kWrite, kAtomic };

void note_shared(const void* p, unsigned bytes, SharedAccess access, Site site) {
  Machine& m = machine();
  ++m.counters().checked_shared_accesses;
  const Thread& thread = m.current();
  Cta& cta = *thread.cta;
  const auto offset = static_cast<unsigned>(cta.arena.offset(p));
  const auto check = access == SharedAccess::kRead    ? &SharedChecker::read
                     : access == SharedAccess::kWrite ? &SharedChecker::write
                                                      : &SharedChecker::atomic;
  if ((cta.checker.*check)(cta.clocks, thread.idx, offset, bytes, site)) return;
  m.fault(CUDA_ERROR_LAUNCH_FAILED, cta.checker.finding(*m.request().image));
  m.leave();
}

// A launch that may begin before the one ahead of it has ended finds anything in global memory.
void fault_too_early(const char* what, const std::string& place) {
  machine().fault(CUDA_ERROR_LAUNCH_FAILED,
                  text("%s before grid_dependency_wait(), in a launch with programmatic stream "
                       "serialization, at %s",
                       what, place.c_str()));
}

bool is_too_early() {
  Machine& m = machine();
  return m.request().pdl && !m.current().waited_for_grids;
}

// Atomics are where CTAs meet: a good moment to let others run.
void maybe_yield() {
  Machine& m = machine();
  if (m.options().order == kPagejitEmulatorRandom && m.toss_coin()) m.yield();
}

void count_poll() {
  Machine& m = machine();
  if (++m.current().loads_since_switch >= kLoadsBeforeYield) m.yield();
}

}  // namespace

void check_shared(const void* p, unsigned bytes, unsigned alignment, const char* what, Loc loc) {
  Machine& m = machine();
  if (!m.current().cta->arena.holds(p, bytes)) {
    m.fault(CUDA_ERROR_ILLEGAL_ADDRESS,
            text("%s of %u bytes outside of shared memory, at %s, at %s", what, bytes,
                 place_text(p).c_str(), line_text(loc).c_str()));
    m.leave();
  }
  check_alignment(p, bytes, alignment, what, loc);
}

void check_global(const void* p, unsigned bytes, unsigned alignment, const char* what, Loc loc) {
  if (is_too_early()) {
    fault_too_early(what, line_text(loc));
    machine().leave();
  }
  check_alignment(p, bytes, alignment, what, loc);
  Machine& m = machine();
  if (m.memory().find(reinterpret_cast<uintptr_t>(p), bytes) != nullptr) return;
  m.fault(CUDA_ERROR_ILLEGAL_ADDRESS,
          text("%s of %u bytes outside of every allocation, at %s, at %s", what, bytes,
               place_text(p).c_str(), line_text(loc).c_str()));
  m.leave();
}

void note_shared_read(const void* p, unsigned bytes, Loc loc) {
  if (machine().checked()) note_shared(p, bytes, SharedAccess::kRead, Site(loc));
}

void note_global_read(const void* p, unsigned bytes, Loc loc) {
  if (machine().checked()) note_global_read_at(p, bytes, Site(loc));
}

void load_global(const void* p, unsigned bytes, Loc loc) {
  Machine& m = machine();
  m.poll();
  check_global(p, bytes, bytes, "load_global", loc);
  m.count_bytes_read(bytes);
  count_poll();
  note_global_read(p, bytes, loc);
}

void store_global(void* p, unsigned bytes, Loc loc) {
  Machine& m = machine();
  m.poll();
  check_global(p, bytes, bytes, "store_global", loc);
  m.counters().global_bytes_written += bytes;
  if (m.checked()) note_global_write(p, bytes, Site(loc));
}

unsigned atomic_inc(unsigned* p, unsigned limit, Loc loc) {
  Machine& m = machine();
  m.poll();
  check_global(p, sizeof(*p), sizeof(*p), "atomic_inc_acq_rel", loc);
  maybe_yield();
  count_poll();
  Thread& thread = m.current();
  if (m.checked()) {
    m.global_checker().atomic_acq_rel(&thread.cta->clocks, thread.idx,
                                      reinterpret_cast<uintptr_t>(p));
  }
  const unsigned old = *p;
  *p = old >= limit ? 0 : old + 1;
  return old;
}

int atomic_cas(int* p, int expected, int desired, Loc loc) {
  Machine& m = machine();
  m.poll();
  check_global(p, sizeof(*p), sizeof(*p), "atomic_cas", loc);
  maybe_yield();
  count_poll();
  Thread& thread = m.current();
  if (m.checked()) {
    m.global_checker().atomic_relaxed(&thread.cta->clocks, thread.idx,
                                      reinterpret_cast<uintptr_t>(p));
  }
  const int old = *p;
  if (old == expected) *p = desired;
  return old;
}

void atomic_add_shared(int* p, int v, Loc loc) {
  Machine& m = machine();
  m.poll();
  check_shared(p, sizeof(*p), sizeof(*p), "atomic_add_shared", loc);
  if (m.checked()) note_shared(p, sizeof(*p), SharedAccess::kAtomic, Site(loc));
  *p += v;
}

void fence_gpu(Loc) {
  Machine& m = machine();
  m.poll();
  if (m.checked()) m.current().cta->clocks.fence(m.current().idx);
}

void grid_dependency_wait(Loc) {
  machine().poll();
  machine().current().waited_for_grids = true;
}

void plain_access(const void* p, unsigned long long bytes, bool is_write, const void* pc) {
  Machine& m = machine();
  m.poll();
  const Thread& thread = m.current();
  const auto* byte = static_cast<const unsigned char*>(p);
  if (byte >= thread.stack && byte < thread.stack + kFiberStackBytes) return;
  const auto size = static_cast<unsigned>(bytes);
  const Site site(pc);
  const SharedArena& arena = thread.cta->arena;
  if (arena.near(p)) {
    if (arena.holds(p, size)) {
      return note_shared(p, size, is_write ? SharedAccess::kWrite : SharedAccess::kRead, site);
    }
  } else if (m.request().image->contains(reinterpret_cast<uintptr_t>(p))) {
    return;  // constants of the kernel
  } else if (m.memory().find(reinterpret_cast<uintptr_t>(p), size) != nullptr) {
    if (is_too_early()) {
      fault_too_early(is_write ? "write" : "read", site.describe(*m.request().image));
      m.leave();
    }
    return is_write ? note_global_write(const_cast<void*>(p), size, site)
                    : note_global_read_at(p, size, site);
  }
  m.fault(CUDA_ERROR_ILLEGAL_ADDRESS,
          text("%s of %u bytes outside of all memory of the kernel, at %s, at %s",
               is_write ? "write" : "read", size, place_text(p).c_str(),
               site.describe(*m.request().image).c_str()));
  m.leave();
}

void undefined_behaviour(const char* what, const char* file, unsigned line, unsigned column) {
  machine().fault(CUDA_ERROR_LAUNCH_FAILED,
                  text("undefined behaviour: %s at %s:%u:%u", what, file, line, column));
  machine().leave();
}

}  // namespace pagejit_emulator
