#include "runtime/engine/stats_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>
#include <vector>

namespace pagejit {
namespace {

TEST(HistogramRecorderTest, BoundsAreOneTwoFive) {
  EXPECT_THAT(HistogramRecorder(1).read().bounds,
              testing::ElementsAre(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10'000,
                                   20'000, 50'000, 100'000));
  EXPECT_THAT(HistogramRecorder(0.01).read().bounds,
              testing::ElementsAre(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200,
                                   500, 1000));
}

TEST(HistogramRecorderTest, BoundIsInclusiveAndWhatIsAboveAllIsKept) {
  HistogramRecorder recorder(1);
  for (const double value : {0.0, 1.0, 1.0001, 100'000.0, 100'001.0}) recorder.record(value);
  const Histogram histogram = recorder.read();
  ASSERT_EQ(histogram.counts.size(), histogram.bounds.size() + 1);
  EXPECT_EQ(histogram.counts[0], 2u);
  EXPECT_EQ(histogram.counts[1], 1u);
  EXPECT_EQ(histogram.counts[15], 1u);
  EXPECT_EQ(histogram.counts[16], 1u);
  EXPECT_EQ(histogram.count, 5u);
  EXPECT_DOUBLE_EQ(histogram.sum, 200'003.0001);
}

TEST(HistogramRecorderTest, NegativeValuesAndNanCountAsZero) {
  HistogramRecorder recorder(1);
  recorder.record(-5);
  recorder.record(std::nan(""));
  EXPECT_EQ(recorder.read().counts[0], 2u);
  EXPECT_EQ(recorder.read().sum, 0);
  recorder.record(std::numeric_limits<double>::infinity());
  EXPECT_EQ(recorder.read().counts[16], 1u);
}

TEST(HistogramRecorderTest, NothingIsLostBetweenThreads) {
  constexpr int kNumThreads = 4, kNumValues = 20'000;
  HistogramRecorder recorder(1);
  std::vector<std::thread> threads;
  for (int i = 0; i < kNumThreads; ++i) {
    threads.emplace_back([&] {
      for (int value = 0; value < kNumValues; ++value) recorder.record(value % 8);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(recorder.read().count, uint64_t{kNumThreads} * kNumValues);
  EXPECT_DOUBLE_EQ(recorder.read().sum, kNumThreads * kNumValues * 3.5);
}

}  // namespace
}  // namespace pagejit
