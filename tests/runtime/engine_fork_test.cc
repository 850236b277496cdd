// An engine that is forked: whatever its other threads did at that moment, a child that asks for a
// kernel gets it, or an error, and does not hang.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/runtime/engine_fixture.h"

namespace pagejit {
namespace {

class EngineForkTest : public EngineTest {
 protected:
  EngineOptions quiet_options() {
    EngineOptions result = options();
    // The fixture's own lock must not be what hangs.
    result.log_callback = nullptr;
    result.log_level = LogLevel::kOff;
    return result;
  }

  static Result<KernelInfo> precompile(Engine& engine, int group_size) {
    return engine.precompile({.group_size = group_size}, *parse_target("sm_90a"));
  }

  // The exit code of a child that runs `body`, or 128 + the signal that ended it.
  template <class Body>
  static int run_forked(Body&& body) {
    static constexpr unsigned kHangSeconds = 10;
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(kHangSeconds);
      ::_exit(body());
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
};

TEST_F(EngineForkTest, AChildForkedDuringACompileGetsItsKernel) {
  auto engine = make_engine(quiet_options());
  std::atomic<bool> is_compiling = false;
  std::atomic<bool> may_end = false;
  const pid_t parent = ::getpid();
  nvrtc->on_compile = [&](const KernelSource&) {
    if (::getpid() != parent) return;
    is_compiling = true;
    while (!may_end) std::this_thread::yield();
  };
  std::thread thread([&] { EXPECT_TRUE(precompile(*engine, 4)); });
  while (!is_compiling) std::this_thread::yield();
  std::thread other([&] {
    // The child waits for its parent's lock as for any other process's.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    may_end = true;
  });
  EXPECT_EQ(run_forked([&] { return precompile(*engine, 4) ? 0 : 1; }), 0) << "the same kernel";
  EXPECT_EQ(run_forked([&] { return precompile(*engine, 5) ? 0 : 1; }), 0) << "another kernel";
  thread.join();
  other.join();
}

TEST_F(EngineForkTest, AChildForkedWhileThreadsPrepareGetsItsKernel) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has locks of its own that a fork leaves held";
#endif
  auto engine = make_engine(quiet_options());
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t; !stop; ++i) {
        EXPECT_TRUE(precompile(*engine, 1 + i % 8));
        EXPECT_TRUE(engine->prepare({.group_size = 1 + i % 8}, 0));
        static_cast<void>(engine->stats());
      }
    });
  }
  constexpr int kNumForks = 300;
  for (int i = 0; i < kNumForks; ++i) {
    // It must not touch the driver, which no driver allows after a fork.
    ASSERT_EQ(run_forked([&] { return precompile(*engine, 1 + i % 9) ? 0 : 1; }), 0) << i;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace pagejit
