#include "runtime/target_ladder.h"

#include <algorithm>

#include "generator/arch.h"
#include "runtime/format.h"

namespace pagejit {
namespace {

constexpr int kOldestSm = 75;
constexpr int kFirstExactSm = 90;    // the 'a' variants begin with sm_90a
constexpr int kFirstFamilySm = 100;  // the 'f' variants begin with sm_100f

// Integrated GPUs whose number lies between those of discrete ones: Orin, and both numbers of Thor.
constexpr bool is_jetson(int sm) { return sm == 87 || sm == 101 || sm == 110; }

}  // namespace

Result<std::vector<Target>> target_ladder(int sm) {
  if (sm < kOldestSm) {
    return Status(StatusCode::kUnsupported,
                  format("a GPU of compute capability {}.{} is not served: 7.5 or later is "
                         "needed",
                         sm / 10, sm % 10));
  }
  const int lowest = is_jetson(sm) ? sm : std::max(sm / 10 * 10, kOldestSm);
  std::vector<Target> ladder;
  if (sm >= kFirstExactSm) ladder.push_back({TargetKind::kCuda, sm, TargetVariant::kExact});
  for (TargetVariant variant : {TargetVariant::kFamily, TargetVariant::kPlain}) {
    if (variant == TargetVariant::kFamily && sm < kFirstFamilySm) continue;
    for (int number = sm; number >= lowest; --number) {
      if (number != sm && is_jetson(number)) continue;
      ladder.push_back({TargetKind::kCuda, number, variant});
    }
  }
  return ladder;
}

std::vector<Target> ptx_ladder(int sm) {
  std::vector<Target> ladder;
  for (const Arch& arch : known_archs()) {
    if (arch.sm > sm || (is_jetson(arch.sm) && arch.sm != sm)) continue;
    ladder.push_back({TargetKind::kCuda, arch.sm, TargetVariant::kPtx});
  }
  std::reverse(ladder.begin(), ladder.end());  // known_archs() ascends
  return ladder;
}

bool runs_on(const Target& target, int sm) {
  if (target.is_host()) return false;
  if (target.variant == TargetVariant::kPtx) return target.sm <= sm;
  if (target.variant == TargetVariant::kExact || is_jetson(sm) || is_jetson(target.sm)) {
    return target.sm == sm;
  }
  return target.sm / 10 == sm / 10 && target.sm <= sm;
}

}  // namespace pagejit
