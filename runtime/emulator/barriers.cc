// Barriers. The lanes of a warp come together first; then the warp as a whole waits for the others.
#include <cstring>
#include <vector>

#include "runtime/emulator/device_functions.h"
#include "runtime/emulator/machine.h"
#include "runtime/emulator/site.h"
#include "runtime/emulator/text.h"

namespace pagejit_emulator {
namespace {

void join_clocks(Cta* cta, uint32_t warps) {
  if (!machine().checked()) return;
  std::vector<int> threads;
  for (const auto& thread : cta->threads) {
    if (warps >> thread->warp->idx & 1) threads.push_back(thread->idx);
  }
  cta->clocks.join(threads);
}

void check_count(const Cta& cta, int barrier, int num_threads, Loc loc) {
  const auto limit = static_cast<int>(cta.threads.size());
  if (barrier < 1 || barrier >= kNumBarriers || num_threads < kWarpSize || num_threads > limit ||
      num_threads % kWarpSize != 0) {
    machine().fault(CUDA_ERROR_LAUNCH_FAILED,
                    text("sync_named(%d, %d) at %s: the barrier must be in [1, 15], the number of "
                         "threads a multiple of 32 in [32, %d]",
                         barrier, num_threads, line_text(loc).c_str(), limit));
    machine().leave();
  }
}

// The warp of the running thread, complete, reaches the barrier.
void reach(Operation operation, int id, int num_threads, Loc loc) {
  Machine& m = machine();
  Thread& self = m.current();
  Cta& cta = *self.cta;
  Barrier& barrier = cta.barriers[id];
  if (barrier.warps == 0) {
    barrier.num_threads = num_threads;
    barrier.loc = loc;
  } else if (barrier.num_threads != num_threads) {
    m.fault(CUDA_ERROR_LAUNCH_FAILED,
            text("sync_named %d for %d threads at %s, but warps already there came for %d threads "
                 "at %s",
                 id, num_threads, line_text(loc).c_str(), barrier.num_threads,
                 line_text(barrier.loc).c_str()));
    m.leave();
  } else if (operation == Operation::kSyncCta &&
             (barrier.loc.line != loc.line || std::strcmp(barrier.loc.file, loc.file) != 0)) {
    m.fault(CUDA_ERROR_LAUNCH_FAILED, text("warps are in different sync_cta(): at %s and at %s",
                                           line_text(loc).c_str(), line_text(barrier.loc).c_str()));
    m.leave();
  }
  barrier.warps |= 1u << self.warp->idx;
  self.warp->arrived = 0;
  if (__builtin_popcount(barrier.warps) * kWarpSize < num_threads)
    return m.wait(operation, id, loc);
  const uint32_t warps = barrier.warps;
  barrier = {};
  join_clocks(&cta, warps);
  for (const auto& thread : cta.threads) {
    if ((warps >> thread->warp->idx & 1) && thread.get() != &self) m.ready(thread.get());
  }
}

}  // namespace

void sync_warp(Loc loc) {
  if (!arrive(Operation::kSyncWarp, 0, nullptr, loc)) return;
  Warp& warp = *machine().current().warp;
  join_clocks(warp.cta, 1u << warp.idx);
  release_warp();
}

void sync_cta(Loc loc) {
  if (!arrive(Operation::kSyncCta, 0, nullptr, loc)) return;
  const Cta& cta = *machine().current().cta;
  reach(Operation::kSyncCta, 0, static_cast<int>(cta.threads.size()), loc);
}

void sync_named(int barrier, int num_threads, Loc loc) {
  check_count(*machine().current().cta, barrier, num_threads, loc);
  // Barrier in the low byte, as arrive() expects, and the count above it: lanes must agree in both.
  if (!arrive(Operation::kSyncNamed, num_threads << 8 | barrier, nullptr, loc)) return;
  reach(Operation::kSyncNamed, barrier, num_threads, loc);
}

}  // namespace pagejit_emulator
