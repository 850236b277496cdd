// StatsRecorder: the measured times of an engine, recorded without a lock; counts are plain atomics
// where they are counted. Thread-safety: all functions may be called from several threads at once.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "pagejit/stats.h"

namespace pagejit {

// Values in ranges of 1, 2, 5, 10, 20, 50, ... times the first bound.
class HistogramRecorder {
 public:
  // Five decades and a half: from the least that is worth telling apart to the most that is waited
  // for, e.g. 1 ms to 100 s.
  static constexpr size_t kNumBounds = 16;

  explicit HistogramRecorder(double first_bound) : first_bound_(first_bound) {}
  // Negative values and NaN count as 0. Never fails.
  void record(double value) noexcept;
  Histogram read() const;

 private:
  double bound(size_t index) const;

  const double first_bound_;
  std::array<std::atomic<uint64_t>, kNumBounds + 1> counts_{};
  std::atomic<double> sum_{0};
};

struct StatsRecorder {
  HistogramRecorder compile_ms{1};       // to 100 s
  HistogramRecorder load_ms{0.01};       // to 1 s
  HistogramRecorder lookup_us{1};        // to 0.1 s
  HistogramRecorder process_wait_ms{1};  // to 100 s; nobody waits longer than 60 s

  void add_to(EngineStats& stats) const;
};

}  // namespace pagejit
