#include "runtime/jit/compile_pool.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <stop_token>
#include <thread>
#include <vector>

#include "tests/runtime/jit/test_support.h"

namespace pagejit::jit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Opens once, for any number of threads.
class Gate {
 public:
  void open() {
    std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
};

TEST(CompilePoolTest, StartsNoThreadBeforeTheFirstJob) {
  CompilePool pool(4);
  EXPECT_EQ(pool.num_threads(), 0);
  EXPECT_EQ(*pool.submit<int>([] { return 7; }).wait(), 7);
  EXPECT_EQ(pool.num_threads(), 1);
}

TEST(CompilePoolTest, IdleThreadIsUsedAgain) {
  CompilePool pool(20);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(*pool.submit<int>([i] { return i; }).wait(), i);
    // The thread announces itself idle shortly after the result.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_LT(pool.num_threads(), 10);
}

TEST(CompilePoolTest, NeverMoreJobsAtOnceThanThreads) {
  CompilePool pool(3);
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  std::vector<PendingJob<int>> pending;
  for (int i = 0; i < 60; ++i) {
    pending.push_back(pool.submit<int>([&] {
      const int now = ++running;
      int seen = most.load();
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      --running;
      return 0;
    }));
  }
  for (auto& job : pending) EXPECT_TRUE(job.wait());
  EXPECT_EQ(pool.num_threads(), 3);
  EXPECT_GE(most.load(), 2);
  EXPECT_LE(most.load(), 3);
}

TEST(CompilePoolTest, JobsStartInOrder) {
  CompilePool pool(1);
  std::vector<int> order;
  std::vector<PendingJob<int>> pending;
  for (int i = 0; i < 5; ++i) {
    pending.push_back(pool.submit<int>([&order, i] {
      order.push_back(i);
      return i;
    }));
  }
  for (auto& job : pending) EXPECT_TRUE(job.wait());
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
}

// A pool of one thread that is busy until the gate opens, and the order in which what is submitted
// meanwhile runs.
class BusyPool {
 public:
  BusyPool() {
    busy_ = pool.submit<int>([this] {
      started_.open();
      gate.wait();
      return 0;
    });
    started_.wait();
  }
  PendingJob<int> submit(int number, JobOptions options) {
    return pool.submit<int>(
        [this, number] {
          order.push_back(number);
          return number;
        },
        std::move(options));
  }

  std::vector<int> order;
  Gate gate;
  CompilePool pool{1};

 private:
  Gate started_;
  PendingJob<int> busy_;
};

TEST(CompilePoolTest, JobsStartByPriorityAndInOrderWithinOne) {
  BusyPool busy;
  std::vector<PendingJob<int>> pending;
  const JobPriority priorities[] = {JobPriority::kBackground, JobPriority::kNormal,
                                    JobPriority::kUrgent};
  for (int i = 0; i < 9; ++i) {
    pending.push_back(busy.submit(i, {.priority = priorities[i % 3]}));
  }
  busy.gate.open();
  for (auto& job : pending) EXPECT_TRUE(job.wait());
  EXPECT_THAT(busy.order, ElementsAre(2, 5, 8, 1, 4, 7, 0, 3, 6));
}

TEST(CompilePoolTest, AJobThatWaitsCanBeRaised) {
  BusyPool busy;
  const auto raised = std::make_shared<std::atomic<int>>(0);
  std::vector<PendingJob<int>> pending;
  pending.push_back(busy.submit(1, {.priority = JobPriority::kNormal}));
  pending.push_back(busy.submit(2, {.priority = JobPriority::kBackground}));
  pending.push_back(busy.submit(3, {.priority = JobPriority::kBackground, .raised = raised}));
  *raised = static_cast<int>(JobPriority::kUrgent);
  busy.gate.open();
  for (auto& job : pending) EXPECT_TRUE(job.wait());
  EXPECT_THAT(busy.order, ElementsAre(3, 1, 2));
}

TEST(CompilePoolTest, AJobThatWaitsIsCancelledAtOnceAndNeverRuns) {
  BusyPool busy;
  std::stop_source stop;
  PendingJob<int> cancelled = busy.submit(1, {.stop = stop.get_token()});
  PendingJob<int> other = busy.submit(2, {});
  std::thread canceller([&] { stop.request_stop(); });
  // The pool's only thread is still busy.
  EXPECT_EQ(cancelled.wait().status().code(), StatusCode::kCancelled);
  canceller.join();
  busy.gate.open();
  EXPECT_TRUE(other.wait());
  EXPECT_THAT(busy.order, ElementsAre(2));
}

TEST(CompilePoolTest, AJobThatRunsIsWaitedForThoughItIsCancelled) {
  CompilePool pool(1);
  std::stop_source stop;
  Gate started;
  PendingJob<int> job = pool.submit<int>(
      [&, token = stop.get_token()]() -> Result<int> {
        started.open();
        while (!token.stop_requested()) std::this_thread::yield();
        return 7;  // it was too late for it to stop
      },
      {.stop = stop.get_token()});
  started.wait();
  std::thread canceller([&] { stop.request_stop(); });
  Result<int> result = job.wait();
  canceller.join();
  ASSERT_TRUE(result) << result.status().to_string();
  EXPECT_EQ(*result, 7);
}

TEST(CompilePoolTest, ReservedThreadsTakeNoBackgroundJobs) {
  CompilePool pool({.threads = 3, .reserved = 1});
  Gate gate;
  std::atomic<int> running{0};
  std::vector<PendingJob<int>> background;
  for (int i = 0; i < 6; ++i) {
    background.push_back(pool.submit<int>(
        [&] {
          ++running;
          gate.wait();
          return 0;
        },
        {.priority = JobPriority::kBackground}));
  }
  while (running < 2) std::this_thread::yield();
  // Would wait for ever if background jobs had taken all threads.
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(pool.submit<int>([] { return 1; }).wait());
  EXPECT_EQ(running, 2);
  gate.open();
  for (auto& job : background) EXPECT_TRUE(job.wait());
}

TEST(CompilePoolTest, PostedWorkThatThrowsIsRefused) {
  CompilePool pool(1);
  Status reason;
  Gate told;
  pool.post([]() -> std::function<void()> { throw std::bad_alloc(); },
            [&](const Status& status) {
              reason = status;
              told.open();
            });
  told.wait();
  EXPECT_EQ(reason.code(), StatusCode::kInternal);
  EXPECT_THAT(reason.message(), HasSubstr("out of memory"));
}

TEST(CompilePoolTest, ThreadsHaveLargeStacksAndBlockSignals) {
  CompilePool pool(1);
  struct Seen {
    size_t stack_bytes = 0;
    bool blocks_sigint = false;
  };
  Result<Seen> seen = pool.submit<Seen>([] {
                            Seen result;
                            pthread_attr_t attributes;
                            pthread_getattr_np(pthread_self(), &attributes);
                            pthread_attr_getstacksize(&attributes, &result.stack_bytes);
                            pthread_attr_destroy(&attributes);
                            sigset_t blocked;
                            pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
                            result.blocks_sigint = sigismember(&blocked, SIGINT) == 1;
                            return result;
                          })
                          .wait();
  ASSERT_TRUE(seen);
  EXPECT_GE(seen->stack_bytes, size_t{8} << 20);
  EXPECT_TRUE(seen->blocks_sigint);
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGINT), 0);
}

TEST(CompilePoolTest, ThrowingJobGivesAnErrorAndThePoolGoesOn) {
  CompilePool pool(1);
  Result<int> thrown = pool.submit<int>([]() -> Result<int> { throw std::bad_alloc(); }).wait();
  ASSERT_FALSE(thrown);
  EXPECT_EQ(thrown.status().code(), StatusCode::kInternal);
  EXPECT_THAT(thrown.status().message(), HasSubstr("out of memory"));
  Result<int> odd = pool.submit<int>([]() -> Result<int> { throw 1; }).wait();
  EXPECT_EQ(odd.status().code(), StatusCode::kInternal);
  EXPECT_TRUE(pool.submit<int>([] { return 1; }).wait());
}

TEST(CompilePoolTest, DestructionCancelsWhatWaitsAndFinishesWhatRuns) {
  Gate started;
  Gate go_on;
  auto pool = std::make_unique<CompilePool>(1);
  PendingJob<int> running = pool->submit<int>([&] {
    started.open();
    go_on.wait();
    return 1;
  });
  started.wait();
  PendingJob<int> waiting = pool->submit<int>([] { return 2; });
  std::thread destroyer([&] { pool.reset(); });
  Result<int> cancelled = waiting.wait();
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.status().code(), StatusCode::kCancelled);
  go_on.open();
  EXPECT_EQ(*running.wait(), 1);
  destroyer.join();
}

TEST(CompilePoolTest, ResultOutlivesThePool) {
  auto pool = std::make_unique<CompilePool>(1);
  PendingJob<std::string> pending = pool->submit<std::string>([] { return std::string("kept"); });
  pool->submit<int>([] { return 0; }).wait().is_ok();
  pool.reset();
  EXPECT_EQ(*pending.wait(), "kept");
}

TEST(CompilePoolTest, ManyThreadsSubmitAtOnce) {
  CompilePool pool(4);
  std::atomic<int> sum{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        Result<int> result = pool.submit<int>([] { return 1; }).wait();
        sum += result ? *result : 1000000;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum.load(), 1600);
}

// Runs `check` in a forked child; true if it returned true and the child ended well in time.
template <class Check>
bool holds_in_forked_child(Check check) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(check() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(CompilePoolTest, ForkedChildOfAnIdleParentCompiles) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer starts no thread in a forked child";
#endif
  for (int round = 0; round < 50; ++round) {
    auto pool = std::make_unique<CompilePool>(2);
    ASSERT_TRUE(pool->submit<int>([] { return 1; }).wait());
    // Right after the result: nothing counts as running any more.
    EXPECT_TRUE(holds_in_forked_child([&] {
      Result<int> result = pool->submit<int>([] { return 2; }).wait();
      const bool good = result && *result == 2 && pool->num_threads() == 1;
      pool.reset();
      return good;
    }));
    EXPECT_TRUE(pool->submit<int>([] { return 3; }).wait());
  }
}

TEST(CompilePoolTest, ForkedChildOfACompilingParentGetsAnErrorAndDoesNotHang) {
  Gate started;
  Gate go_on;
  auto pool = std::make_unique<CompilePool>(2);
  PendingJob<int> running = pool->submit<int>([&] {
    started.open();
    go_on.wait();
    return 1;
  });
  started.wait();
  EXPECT_TRUE(holds_in_forked_child([&] {
    Result<int> result = pool->submit<int>([] { return 2; }).wait();
    const bool good = !result && result.status().code() == StatusCode::kCompilerUnavailable &&
                      result.status().message().find("forked") != std::string::npos;
    pool.reset();
    return good;
  }));
  go_on.open();
  EXPECT_TRUE(running.wait());
}

}  // namespace
}  // namespace pagejit::jit
