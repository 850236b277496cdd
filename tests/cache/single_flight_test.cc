#include "cache/single_flight.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace pagejit::cache {
namespace {

using Value = std::shared_ptr<const std::string>;
using Flights = SingleFlight<Value>;
using std::chrono::milliseconds;

Key key_of(int number) { return Key{.source = sha256({std::to_string(number)}), .compiler = {}}; }

Flights::Outcome value(const std::string& text, Retention retention = Retention::kNone) {
  return {Value(std::make_shared<const std::string>(text)), retention};
}

Flights::Outcome failure(const std::string& text, Retention retention = Retention::kNone) {
  return {Status(StatusCode::kCompileFailed, text), retention};
}

void wait_for_waits(const Flights& flights, uint64_t num_waits) {
  while (flights.stats().waits < num_waits) std::this_thread::sleep_for(milliseconds(1));
}

// A thread inside a computation of key 1, from the constructor to finish().
class HeldComputation {
 public:
  HeldComputation(Flights& flights, const std::string& text, Retention retention = Retention::kNone)
      : thread_([this, &flights, text, retention] {
          (void)flights.run(key_of(1), [&] {
            inside_.set_value();
            leave_.get_future().wait();
            return value(text, retention);
          });
        }) {
    inside_.get_future().wait();
  }
  HeldComputation(const HeldComputation&) = delete;
  HeldComputation& operator=(const HeldComputation&) = delete;

  void finish() {
    leave_.set_value();
    thread_.join();
  }

 private:
  std::promise<void> inside_;
  std::promise<void> leave_;
  std::thread thread_;
};

TEST(SingleFlightTest, ManyThreadsAndKeysComputeEachKeyOnce) {
  constexpr int kNumThreads = 8;
  constexpr int kNumKeys = 16;
  Flights flights;
  std::atomic<int> computed[kNumKeys] = {};
  std::barrier start(kNumThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kNumThreads; ++t) {
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      for (int i = 0; i < kNumKeys; ++i) {
        const int k = (i + t) % kNumKeys;
        const Result<Value> result = flights.run(key_of(k), [&] {
          ++computed[k];
          std::this_thread::sleep_for(milliseconds(1));
          return value(std::to_string(k), Retention::kKeep);
        });
        ASSERT_TRUE(result.is_ok());
        EXPECT_EQ(*result.value(), std::to_string(k));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& count : computed) EXPECT_EQ(count, 1);
  const SingleFlightStats stats = flights.stats();
  EXPECT_EQ(stats.computations, static_cast<uint64_t>(kNumKeys));
  EXPECT_EQ(stats.computations + stats.waits + stats.kept,
            static_cast<uint64_t>(kNumThreads * kNumKeys));
}

TEST(SingleFlightTest, ThoseWhoWaitGetTheVerySameResultAndAreCounted) {
  for (const bool fails : {false, true}) {
    Flights flights;
    std::atomic<int> num_computed = 0;
    std::vector<std::future<Result<Value>>> results;
    std::atomic<int> num_waited = 0;
    for (int t = 0; t < 5; ++t) {
      results.push_back(std::async(std::launch::async, [&] {
        bool waited = false;
        auto result = flights.run(
            key_of(1),
            [&] {
              ++num_computed;
              wait_for_waits(flights, 4);
              return fails ? failure("because") : value("v");
            },
            &waited);
        if (waited) ++num_waited;
        return result;
      }));
    }
    std::vector<Result<Value>> got;
    for (auto& result : results) got.push_back(result.get());
    EXPECT_EQ(num_computed, 1);
    EXPECT_EQ(num_waited, 4);
    EXPECT_EQ(flights.stats().waits, 4u);
    for (const Result<Value>& result : got) {
      EXPECT_EQ(result.is_ok(), !fails);
      if (fails) {
        EXPECT_EQ(result.status().code(), StatusCode::kCompileFailed);
        EXPECT_EQ(result.status().message(), "because");
      } else {
        EXPECT_EQ(result.value(), got[0].value()) << "the same object";
      }
    }
  }
}

TEST(SingleFlightTest, WithoutRetentionTheNextCallComputesAgain) {
  Flights flights;
  EXPECT_FALSE(flights.run(key_of(1), [] { return failure("first"); }).is_ok());
  EXPECT_EQ(*flights.run(key_of(1), [] { return value("second"); }).value(), "second");
  EXPECT_EQ(*flights.run(key_of(1), [] { return value("third"); }).value(), "third");
  EXPECT_EQ(flights.stats().computations, 3u);
}

TEST(SingleFlightTest, AKeptFailureStaysUntilItIsForgotten) {
  Flights flights;
  (void)flights.run(key_of(1), [] { return failure("permanent", Retention::kKeep); });
  for (int i = 0; i < 3; ++i) {
    const auto result = flights.run(key_of(1), [] { return value("never"); });
    ASSERT_FALSE(result.is_ok());
    EXPECT_EQ(result.status().message(), "permanent");
  }
  EXPECT_EQ(flights.stats().kept, 3u);
  flights.forget(key_of(1));
  EXPECT_TRUE(flights.run(key_of(1), [] { return value("v"); }).is_ok());
}

TEST(SingleFlightTest, ATransientFailureExpires) {
  std::chrono::steady_clock::time_point now{};
  Flights flights({.lifetime = milliseconds(100), .clock = [&] { return now; }});
  (void)flights.run(key_of(1), [] { return failure("transient", Retention::kExpires); });
  now += milliseconds(99);
  EXPECT_EQ(flights.run(key_of(1), [] { return value("v"); }).status().message(), "transient");
  now += milliseconds(1);
  EXPECT_TRUE(flights.run(key_of(1), [] { return value("v"); }).is_ok());
}

TEST(SingleFlightTest, AnExceptionBecomesAStatusForEveryone) {
  Flights flights;
  const auto compute = [&]() -> Flights::Outcome {
    wait_for_waits(flights, 1);
    throw std::runtime_error("out of luck");
  };
  auto other = std::async(std::launch::async, [&] { return flights.run(key_of(1), compute); });
  const Result<Value> mine = flights.run(key_of(1), compute);
  for (const Result<Value>& result : {mine, other.get()}) {
    ASSERT_FALSE(result.is_ok());
    EXPECT_EQ(result.status().code(), StatusCode::kInternal);
    EXPECT_NE(result.status().message().find("out of luck"), std::string::npos);
  }
  EXPECT_EQ(flights.stats().exceptions, 1u);
  const auto odd = flights.run(key_of(1), []() -> Flights::Outcome { throw 42; });
  EXPECT_EQ(odd.status().code(), StatusCode::kInternal);
  EXPECT_TRUE(flights.run(key_of(1), [] { return value("v"); }).is_ok()) << "not kept";
}

TEST(SingleFlightTest, DifferentKeysDoNotWaitForEachOther) {
  Flights flights;
  HeldComputation slow(flights, "slow");
  // Would never return if it waited for the slow key.
  EXPECT_TRUE(flights.run(key_of(2), [] { return value("fast"); }).is_ok());
  Key same_source = key_of(1);
  same_source.compiler[0] = 1;
  EXPECT_TRUE(flights.run(same_source, [] { return value("fast"); }).is_ok());
  slow.finish();
  EXPECT_EQ(flights.stats().waits, 0u);
}

TEST(SingleFlightTest, AComputationThatNeedsAnotherKeyMayAskForIt) {
  Flights flights;
  const auto result = flights.run(key_of(1), [&] {
    const auto inner = flights.run(key_of(2), [] { return value("inner"); });
    return value("outer of " + *inner.value());
  });
  EXPECT_EQ(*result.value(), "outer of inner");
}

TEST(SingleFlightTest, AComputationThatAsksForItselfIsAnErrorNotADeadlock) {
  Flights flights;
  const auto result = flights.run(key_of(1), [&] {
    const auto inner = flights.run(key_of(1), [] { return value("inner"); });
    return Flights::Outcome{inner, Retention::kNone};
  });
  EXPECT_EQ(result.status().code(), StatusCode::kInternal);
}

TEST(SingleFlightTest, ForgettingARunningComputationKeepsItForItsWaitersOnly) {
  for (const Retention of_the_old : {Retention::kKeep, Retention::kNone}) {
    Flights flights;
    HeldComputation first(flights, "old", of_the_old);
    auto waiter = std::async(std::launch::async, [&] {
      return flights.run(key_of(1), [] { return value("not called"); });
    });
    wait_for_waits(flights, 1);
    flights.forget(key_of(1));
    EXPECT_EQ(*flights.run(key_of(1), [] { return value("new", Retention::kKeep); }).value(),
              "new");
    first.finish();
    EXPECT_EQ(*waiter.get().value(), "old");
    EXPECT_EQ(*flights.run(key_of(1), [] { return value("x"); }).value(), "new");
  }
}

TEST(SingleFlightTest, OnlyAsManyResultsAreKeptAsAllowed) {
  Flights flights({.clock = {}, .max_kept = 3});
  int computed = 0;
  const auto ask = [&](int number) {
    (void)flights.run(key_of(number), [&] {
      ++computed;
      return failure("permanent", Retention::kKeep);
    });
  };
  for (int i = 1; i <= 5; ++i) ask(i);
  EXPECT_EQ(computed, 5);
  for (int i = 3; i <= 5; ++i) ask(i);
  EXPECT_EQ(computed, 5) << "the last three are kept";
  flights.forget(key_of(4));
  ask(1);  // its result was dropped; now 3's is, the oldest
  EXPECT_EQ(computed, 6);
  ask(5);
  EXPECT_EQ(computed, 6);
  ask(3);
  EXPECT_EQ(computed, 7);
}

TEST(SingleFlightTest, AWaiterThatLeavesDoesSoAtOnceAndTheOthersGetTheResult) {
  Flights flights;
  HeldComputation slow(flights, "v");
  std::stop_source stop;
  auto leaver = std::async(std::launch::async, [&] {
    return flights.run(key_of(1), [] { return value("not called"); }, nullptr,
                       {.stop = stop.get_token()});
  });
  auto stayer = std::async(std::launch::async, [&] {
    return flights.run(key_of(1), [] { return value("not called"); });
  });
  wait_for_waits(flights, 2);
  stop.request_stop();
  EXPECT_EQ(leaver.get().status().code(), StatusCode::kCancelled);
  slow.finish();
  EXPECT_EQ(*stayer.get().value(), "v");
  EXPECT_EQ(flights.stats().left, 1u);
}

TEST(SingleFlightTest, AComputationIsStoppedWhenAllHaveLeftAndNotBefore) {
  Flights flights;
  std::stop_source first;
  std::stop_source second;
  std::promise<std::stop_token> inside;
  auto computing = std::async(std::launch::async, [&] {
    return flights.run(key_of(1),
                       [&](const FlightDemand& demand) -> Flights::Outcome {
                         inside.set_value(demand.stop);
                         while (!demand.stop.stop_requested()) std::this_thread::yield();
                         return {Status(StatusCode::kCancelled, "stopped"), Retention::kKeep};
                       },
                       nullptr, {.stop = first.get_token()});
  });
  const std::stop_token stop = inside.get_future().get();
  auto waiting = std::async(std::launch::async, [&] {
    return flights.run(key_of(1), [] { return value("not called"); }, nullptr,
                       {.stop = second.get_token()});
  });
  wait_for_waits(flights, 1);
  first.request_stop();
  EXPECT_FALSE(stop.stop_requested());
  second.request_stop();
  EXPECT_EQ(waiting.get().status().code(), StatusCode::kCancelled);
  EXPECT_EQ(computing.get().status().code(), StatusCode::kCancelled);
  EXPECT_TRUE(flights.run(key_of(1), [] { return value("v"); }).is_ok()) << "never kept";
}

TEST(SingleFlightTest, WhoComesWhileAStoppedComputationEndsComputesAnew) {
  Flights flights;
  std::stop_source stop;
  std::promise<void> inside;
  std::promise<void> may_end;
  auto stopped = std::async(std::launch::async, [&] {
    return flights.run(key_of(1),
                       [&](const FlightDemand&) -> Flights::Outcome {
                         inside.set_value();
                         may_end.get_future().wait();
                         return {Status(StatusCode::kCancelled, "stopped")};
                       },
                       nullptr, {.stop = stop.get_token()});
  });
  inside.get_future().wait();
  stop.request_stop();
  auto later = std::async(std::launch::async,
                          [&] { return flights.run(key_of(1), [] { return value("mine"); }); });
  wait_for_waits(flights, 1);
  may_end.set_value();
  EXPECT_EQ(*later.get().value(), "mine");
  EXPECT_EQ(stopped.get().status().code(), StatusCode::kCancelled);
  EXPECT_EQ(flights.stats().computations, 2u);
}

TEST(SingleFlightTest, AnUrgentCallerRaisesWhatIsComputed) {
  Flights flights;
  std::promise<std::shared_ptr<std::atomic<int>>> inside;
  auto computing = std::async(std::launch::async, [&] {
    return flights.run(key_of(1),
                       [&](const FlightDemand& demand) {
                         inside.set_value(demand.urgency);
                         while (demand.urgency->load() < 2) std::this_thread::yield();
                         return value("v");
                       },
                       nullptr, {.urgency = 1});
  });
  EXPECT_EQ(*inside.get_future().get(), 1);
  const auto urgent =
      flights.run(key_of(1), [] { return value("not called"); }, nullptr, {.urgency = 2});
  EXPECT_EQ(*urgent.value(), "v");
  EXPECT_TRUE(computing.get().is_ok());
}

#if !defined(__SANITIZE_THREAD__)  // does not support threads after a fork of threads
TEST(SingleFlightTest, AChildForkedDuringAComputationComputesForItself) {
  Flights flights;
  HeldComputation slow(flights, "parent");
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);  // a child that waits for the parent's thread would wait for ever
    const auto result = flights.run(key_of(1), [] { return value("child"); });
    ::_exit(result.is_ok() && *result.value() == "child" ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  slow.finish();
}
#endif

}  // namespace
}  // namespace pagejit::cache
