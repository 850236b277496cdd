#include "cache/circuit_breaker.h"

#include <gtest/gtest.h>

namespace pagejit::cache {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class CircuitBreakerTest : public testing::Test {
 protected:
  void fail(int times) {
    for (int i = 0; i < times; ++i) breaker_.failed();
  }

  std::chrono::steady_clock::time_point now_{};
  CircuitBreaker breaker_{{.clock = [this] { return now_; }}};
};

TEST_F(CircuitBreakerTest, OpensAtTheThirdFailureInARow) {
  EXPECT_FALSE(breaker_.failed());
  EXPECT_FALSE(breaker_.failed());
  EXPECT_TRUE(breaker_.allow());
  breaker_.succeeded();  // not in a row any more
  EXPECT_FALSE(breaker_.failed());
  EXPECT_FALSE(breaker_.failed());
  EXPECT_FALSE(breaker_.stats().is_open);
  EXPECT_TRUE(breaker_.failed());
  EXPECT_FALSE(breaker_.allow());
  EXPECT_TRUE(breaker_.stats().is_open);
  EXPECT_EQ(breaker_.stats().pause, seconds(5));
  EXPECT_EQ(breaker_.stats().times_opened, 1);
  EXPECT_EQ(breaker_.stats().refused, 1);
}

TEST_F(CircuitBreakerTest, AfterThePauseOneCallTries) {
  fail(3);
  now_ += milliseconds(4'999);
  EXPECT_FALSE(breaker_.allow());
  now_ += milliseconds(1);
  EXPECT_TRUE(breaker_.allow());
  EXPECT_FALSE(breaker_.allow());  // while the other is at it
  breaker_.succeeded();
  EXPECT_TRUE(breaker_.allow());
  EXPECT_FALSE(breaker_.stats().is_open);
}

TEST_F(CircuitBreakerTest, PausesDoubleUpToFiveMinutesAndBeginAnewAfterASuccess) {
  fail(3);
  for (const int expected : {10, 20, 40, 80, 160, 300, 300}) {
    now_ += breaker_.stats().pause;
    ASSERT_TRUE(breaker_.allow());
    EXPECT_TRUE(breaker_.failed());
    EXPECT_EQ(breaker_.stats().pause, seconds(expected));
  }
  now_ += seconds(300);
  ASSERT_TRUE(breaker_.allow());
  breaker_.succeeded();
  fail(3);
  EXPECT_EQ(breaker_.stats().pause, seconds(5));
}

TEST_F(CircuitBreakerTest, CallsFromBeforeItOpenedDoNotLengthenThePause) {
  fail(10);
  EXPECT_EQ(breaker_.stats().pause, seconds(5));
  EXPECT_EQ(breaker_.stats().times_opened, 1);
}

TEST_F(CircuitBreakerTest, ATryThatNeverEndsIsFollowedByAnother) {
  fail(3);
  now_ += seconds(5);
  EXPECT_TRUE(breaker_.allow());
  now_ += seconds(5);
  EXPECT_TRUE(breaker_.allow());
}

}  // namespace
}  // namespace pagejit::cache
