// Which of several kernels to keep, by times that were measured: the rule of `pagejit tune`. Pure:
// knows no device and no clock. Thread-safety: free functions without state.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace pagejit {

// Microseconds of one launch: of each problem the time in each round. In a round all candidates are
// timed one after the other, so that what slows the device for a while slows all of them.
using RoundTimes = std::vector<std::vector<double>>;

// The least difference that counts, whatever the rounds say: the planner's own steps, below which
// another day's clocks decide.
inline constexpr double kLeastGain = 0.02;

struct TuneVerdict {
  size_t choice = 0;  // 0: the planner's
  // Of each candidate, in their order: the geometric mean over the problems of its median over that
  // of the planner's; 0 where it was not timed.
  std::vector<double> ratios;
  // The same as a part: the greatest over the problems of the sum of its spread and the planner's,
  // at least kLeastGain.
  std::vector<double> noise;
  std::string sentence;  // what was chosen and why, for people
};

// The candidate with the least ratio, among those that are faster than candidate 0 by more than
// their noise (ratio < 1 - noise) and slower on no problem by more than it. Where there is none,
// candidate 0 stays. A candidate without times (it did not compile, or was wrong) is passed over;
// candidate 0 must have times, and every candidate that has some has those of all problems.
TuneVerdict choose_candidate(const std::vector<RoundTimes>& candidates);

}  // namespace pagejit
