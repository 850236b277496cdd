// Cta: the state of one resident CTA: its threads as fibers, its warps, its barriers, its shared
// memory. Thread-safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/emulator/clocks.h"
#include "runtime/emulator/fiber.h"
#include "runtime/emulator/shared_arena.h"
#include "runtime/emulator/shared_checker.h"
#include "templates/device/host/emulator_abi.cuh"

namespace pagejit_emulator {

constexpr int kWarpSize = 32;
constexpr int kNumBarriers = 16;  // 0 is sync_cta's

enum class Operation : uint8_t {
  kNone,
  kLdmatrixX2,
  kLdmatrixX4,
  kLdmatrixX2Trans,
  kLdmatrixX4Trans,
  kMovmatrixTrans,
  kMmaF16,
  kMmaBf16,
  kShuffle,
  kShuffleXor,
  kVote,
  kReduce,
  kSyncWarp,
  kSyncCta,
  kSyncNamed,
};

// The device function's name.
const char* operation_name(Operation operation);

struct Cta;
struct Warp;

// A cp.async that was issued and not yet waited for.
struct PendingCopy {
  void* shared;
  const void* global;
  unsigned bytes;        // 4, 8 or 16
  unsigned valid_bytes;  // that are copied; zeros follow
  bool done;             // the data are already there
  Loc loc;
};

// Committed groups of one thread, oldest first, then the open group.
struct AsyncCopies {
  std::vector<PendingCopy> copies;
  size_t first = 0;            // copies before it are complete
  std::vector<size_t> groups;  // ends of the committed groups, as indices of copies
  size_t first_group = 0;

  void clear() {
    copies.clear();
    groups.clear();
    first = first_group = 0;
  }
};

struct Thread {
  FiberContext context;
  unsigned char* stack = nullptr;
  Cta* cta = nullptr;
  Warp* warp = nullptr;
  int idx = 0;
  bool exited = false;
  // What it waits in; kNone while it runs or is ready.
  Operation waits_in = Operation::kNone;
  int barrier = 0;
  Loc loc = {};
  int loads_since_switch = 0;
  bool waited_for_grids = false;  // was in grid_dependency_wait()
  AsyncCopies async;

  int lane() const { return idx % kWarpSize; }
};

// The collective that the warp's lanes are about to do together.
struct Warp {
  Cta* cta = nullptr;
  int idx = 0;
  Operation operation = Operation::kNone;
  int detail = 0;  // which barrier, of how many threads
  Loc loc = {};
  uint32_t arrived = 0;  // lanes
  uint32_t exited = 0;
  void* args[kWarpSize] = {};
};

struct Barrier {
  uint32_t warps = 0;  // that wait
  int num_threads = 0;
  Loc loc = {};
};

struct Cta {
  int x = 0, y = 0, z = 0;
  uint64_t number = 0;  // in the grid
  int live_threads = 0;
  uint64_t bytes_read = 0;  // of global memory
  std::vector<std::unique_ptr<Thread>> threads;
  std::vector<Warp> warps;
  Barrier barriers[kNumBarriers];
  SharedArena arena;
  // Checked images only.
  Clocks clocks;
  SharedChecker checker;
};

// "[0-3, 7]".
std::string ranges_text(const std::vector<int>& numbers);

// One line per group of threads that wait in the same place, most threads first.
std::string waiting_threads_text(const Cta& cta);

}  // namespace pagejit_emulator
