#include "runtime/emulator/cta.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/emulator/site.h"
#include "runtime/emulator/text.h"

namespace pagejit_emulator {

const char* operation_name(Operation operation) {
  switch (operation) {
    case Operation::kNone:
      return "nothing";
    case Operation::kLdmatrixX2:
      return "ldmatrix_x2";
    case Operation::kLdmatrixX4:
      return "ldmatrix_x4";
    case Operation::kLdmatrixX2Trans:
      return "ldmatrix_x2_trans";
    case Operation::kLdmatrixX4Trans:
      return "ldmatrix_x4_trans";
    case Operation::kMovmatrixTrans:
      return "movmatrix_trans";
    case Operation::kMmaF16:
      return "mma_m16n8k16_f16";
    case Operation::kMmaBf16:
      return "mma_m16n8k16_bf16";
    case Operation::kShuffle:
      return "shuffle";
    case Operation::kShuffleXor:
      return "shuffle_xor";
    case Operation::kVote:
      return "vote";
    case Operation::kReduce:
      return "sum_lanes or max_lanes";
    case Operation::kSyncWarp:
      return "sync_warp";
    case Operation::kSyncCta:
      return "sync_cta";
    case Operation::kSyncNamed:
      return "sync_named";
  }
  return "unknown operation";
}

std::string ranges_text(const std::vector<int>& numbers) {
  std::string result = "[";
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (i > 0) result += ", ";
    result += last == i ? text("%d", numbers[i]) : text("%d-%d", numbers[i], numbers[last]);
    i = last + 1;
  }
  return result + "]";
}

std::string waiting_threads_text(const Cta& cta) {
  std::map<std::string, std::vector<int>> groups;
  for (const auto& thread : cta.threads) {
    std::string place;
    if (thread->exited) {
      place = "exited";
    } else if (thread->waits_in == Operation::kNone) {
      place = "running or ready to run";
    } else {
      place = operation_name(thread->waits_in);
      if (thread->waits_in == Operation::kSyncCta || thread->waits_in == Operation::kSyncNamed) {
        const Barrier& barrier = cta.barriers[thread->barrier];
        if (thread->waits_in == Operation::kSyncNamed) place += text(" %d", thread->barrier);
        const int there = __builtin_popcount(barrier.warps);
        const bool arrived = barrier.warps >> thread->warp->idx & 1;
        place += arrived ? text(", %d of %d warps there", there, barrier.num_threads / kWarpSize)
                         : ", its warp is not complete";
      }
      place += " at " + line_text(thread->loc);
    }
    groups[place].push_back(thread->idx);
  }
  std::vector<std::pair<std::string, std::vector<int>>> sorted(groups.begin(), groups.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.size() != b.second.size() ? a.second.size() > b.second.size()
                                              : a.second.front() < b.second.front();
  });
  std::string result;
  for (const auto& [place, threads] : sorted) {
    result +=
        text("\n  %zu threads %s: %s", threads.size(), ranges_text(threads).c_str(), place.c_str());
  }
  return result;
}

}  // namespace pagejit_emulator
