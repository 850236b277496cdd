#include "tools/tune/tune_choice.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/bench/quartiles.h"

namespace pagejit {
namespace {

std::string percent(const char* pattern, double part) {
  char text[60];
  std::snprintf(text, sizeof text, pattern, 100 * part);
  return text;
}

}  // namespace

TuneVerdict choose_candidate(const std::vector<RoundTimes>& candidates) {
  TuneVerdict verdict;
  verdict.ratios.resize(candidates.size());
  verdict.noise.resize(candidates.size());
  if (candidates.empty()) return verdict;
  const RoundTimes& planned = candidates.front();
  size_t fastest = 0;  // of all, for the sentence
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].empty() || candidates[i].size() != planned.size()) continue;
    double sum = 0;
    double noise = kLeastGain;
    double worst = 0;
    for (size_t p = 0; p < planned.size(); ++p) {
      const double ratio = median(candidates[i][p]) / median(planned[p]);
      sum += std::log(ratio);
      worst = std::max(worst, ratio);
      noise = std::max(noise, relative_spread(candidates[i][p]) + relative_spread(planned[p]));
    }
    verdict.ratios[i] = std::exp(sum / static_cast<double>(planned.size()));
    verdict.noise[i] = noise;
    if (i == 0) continue;
    if (fastest == 0 || verdict.ratios[i] < verdict.ratios[fastest]) fastest = i;
    const bool is_faster = verdict.ratios[i] < 1 - noise && worst <= 1 + noise;
    if (is_faster && (verdict.choice == 0 || verdict.ratios[i] < verdict.ratios[verdict.choice])) {
      verdict.choice = i;
    }
  }
  if (verdict.choice != 0) {
    verdict.sentence =
        percent("%.1f %% less time than the planner's choice", 1 - verdict.ratios[verdict.choice]) +
        percent(", where %.1f %% are noise", verdict.noise[verdict.choice]);
  } else if (fastest == 0) {
    verdict.sentence = "the planner's choice stays: nothing else was timed";
  } else if (verdict.ratios[fastest] >= 1) {
    verdict.sentence = "the planner's choice stays: nothing was faster";
  } else {
    verdict.sentence =
        percent("the planner's choice stays: the best other one takes %.1f %% less time",
                1 - verdict.ratios[fastest]) +
        percent(", where %.1f %% are noise", verdict.noise[fastest]) +
        (verdict.ratios[fastest] < 1 - verdict.noise[fastest] ? ", and is slower on a problem"
                                                              : "");
  }
  return verdict;
}

}  // namespace pagejit
