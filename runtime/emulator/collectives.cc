// What the lanes of a warp do together: each lane leaves its arguments, the last to come computes
// for all.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/emulator/device_functions.h"
#include "runtime/emulator/machine.h"
#include "runtime/emulator/site.h"
#include "runtime/emulator/text.h"

namespace pagejit_emulator {
namespace {

constexpr uint32_t kAllLanes = 0xffffffffu;

std::vector<int> lanes_of(uint32_t mask) {
  std::vector<int> lanes;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if (mask >> lane & 1) lanes.push_back(lane);
  }
  return lanes;
}

bool same_line(Loc a, Loc b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

[[noreturn]] void fail_diverged(const Warp& warp, int lane, Operation operation, Loc loc) {
  machine().fault(CUDA_ERROR_LAUNCH_FAILED,
                  text("warp %d diverged: lane %d is in %s at %s, lanes %s wait in %s at %s",
                       warp.idx, lane, operation_name(operation), line_text(loc).c_str(),
                       ranges_text(lanes_of(warp.arrived)).c_str(), operation_name(warp.operation),
                       line_text(warp.loc).c_str()));
  machine().leave();
}

struct ShuffleArgs {
  unsigned long long value;
  int lane;  // source lane, or the mask
  unsigned long long result;
};

}  // namespace

bool arrive(Operation operation, int detail, void* args, Loc loc) {
  Machine& m = machine();
  m.poll();
  Thread& thread = m.current();
  Warp& warp = *thread.warp;
  if (warp.exited != 0) {
    m.fault(CUDA_ERROR_LAUNCH_FAILED,
            text("%s at %s, but lanes %s of the warp have exited", operation_name(operation),
                 line_text(loc).c_str(), ranges_text(lanes_of(warp.exited)).c_str()));
    m.leave();
  }
  if (warp.arrived == 0) {
    warp.operation = operation;
    warp.detail = detail;
    warp.loc = loc;
  } else if (warp.operation != operation || warp.detail != detail || !same_line(warp.loc, loc)) {
    fail_diverged(warp, thread.lane(), operation, loc);
  }
  warp.args[thread.lane()] = args;
  warp.arrived |= 1u << thread.lane();
  if (warp.arrived == kAllLanes) return true;
  m.wait(operation, detail & 0xff, loc);
  return false;
}

void release_warp() {
  Machine& m = machine();
  Thread& self = m.current();
  Warp& warp = *self.warp;
  warp.arrived = 0;
  const size_t first = static_cast<size_t>(warp.idx) * kWarpSize;
  for (size_t lane = 0; lane < kWarpSize; ++lane) {
    Thread* thread = warp.cta->threads[first + lane].get();
    if (thread != &self) m.ready(thread);
  }
}

unsigned shuffle_xor(unsigned value, int lane_mask, Loc loc) {
  ShuffleArgs args = {value, lane_mask, 0};
  if (lane_mask < 0 || lane_mask >= kWarpSize) {
    machine().fault(CUDA_ERROR_LAUNCH_FAILED,
                    text("shuffle_xor with lane mask %d at %s: must be in "
                         "[0, 31]",
                         lane_mask, line_text(loc).c_str()));
    machine().leave();
  }
  if (arrive(Operation::kShuffleXor, 0, &args, loc)) {
    Warp& warp = *machine().current().warp;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      auto* mine = static_cast<ShuffleArgs*>(warp.args[lane]);
      mine->result = static_cast<ShuffleArgs*>(warp.args[lane ^ mine->lane])->value;
    }
    release_warp();
  }
  return static_cast<unsigned>(args.result);
}

unsigned long long shuffle(unsigned long long value, int src_lane, Loc loc) {
  // shfl.sync.idx takes the lane modulo 32.
  ShuffleArgs args = {value, src_lane & (kWarpSize - 1), 0};
  if (arrive(Operation::kShuffle, 0, &args, loc)) {
    Warp& warp = *machine().current().warp;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      auto* mine = static_cast<ShuffleArgs*>(warp.args[lane]);
      mine->result = static_cast<ShuffleArgs*>(warp.args[mine->lane])->value;
    }
    release_warp();
  }
  return args.result;
}

int count_lanes(bool p, Loc loc) {
  int value = p ? 1 : 0;
  if (arrive(Operation::kVote, 0, &value, loc)) {
    Warp& warp = *machine().current().warp;
    int result = 0;
    for (void* lane : warp.args) result += *static_cast<int*>(lane);
    for (void* lane : warp.args) *static_cast<int*>(lane) = result;
    release_warp();
  }
  return value;
}

int reduce_lanes(int value, bool largest, Loc loc) {
  if (arrive(Operation::kReduce, largest ? 1 : 0, &value, loc)) {
    Warp& warp = *machine().current().warp;
    int most = value;
    uint32_t sum = 0;
    for (void* lane : warp.args) {
      const int v = *static_cast<int*>(lane);
      most = std::max(most, v);
      sum += static_cast<uint32_t>(v);
    }
    const int result = largest ? most : static_cast<int>(sum);
    for (void* lane : warp.args) *static_cast<int*>(lane) = result;
    release_warp();
  }
  return value;
}

}  // namespace pagejit_emulator
