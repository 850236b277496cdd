#include "runtime/engine/stats_recorder.h"

namespace pagejit {

double HistogramRecorder::bound(size_t index) const {
  constexpr double kSteps[] = {1, 2, 5};
  double decade = 1;  // exact: a power of ten
  for (size_t i = 3; i <= index; i += 3) decade *= 10;
  // 0.01 and its like have no exact value; divided, they print as they are meant.
  if (first_bound_ < 1) return kSteps[index % 3] * decade / (1 / first_bound_);
  return kSteps[index % 3] * decade * first_bound_;
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
