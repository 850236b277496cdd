#include "runtime/engine/stats_recorder.h"

namespace pagejit {

double HistogramRecorder::bound(size_t index) const {
  constexpr double kSteps[kNumBounds] = {1,   2,    5,    10,   20,     50,     100,    200,
                                         500, 1000, 2000, 5000, 10'000, 20'000, 50'000, 100'000};
  // 0.01 and its like have no exact value; divided, they print as they are meant.
  return first_bound_ < 1 ? kSteps[index] / (1 / first_bound_) : kSteps[index] * first_bound_;
}

void HistogramRecorder::record(double value) noexcept {
  if (!(value > 0)) value = 0;
  size_t index = 0;
  while (index < kNumBounds && value > bound(index)) ++index;
  counts_[index].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

Histogram HistogramRecorder::read() const {
  Histogram histogram;
  for (size_t i = 0; i < kNumBounds; ++i) histogram.bounds.push_back(bound(i));
  for (const std::atomic<uint64_t>& count : counts_) {
    histogram.counts.push_back(count.load(std::memory_order_relaxed));
    histogram.count += histogram.counts.back();
  }
  histogram.sum = sum_.load(std::memory_order_relaxed);
  return histogram;
}

void StatsRecorder::add_to(EngineStats& stats) const {
  stats.compile_ms = compile_ms.read();
  stats.load_ms = load_ms.read();
  stats.lookup_us = lookup_us.read();
  stats.process_wait_ms = process_wait_ms.read();
}

}  // namespace pagejit
