// The end of an engine while callbacks on its own threads use it.
#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <memory>
#include <vector>

#include "tests/cache/child_process.h"
#include "tests/runtime/engine_fixture.h"

namespace pagejit {
namespace {

using cache::wait_for;

class EngineEndTest : public EngineTest {
 protected:
  // Its options hold `alive_`, which is this test's alone again once the engine is no more.
  std::shared_ptr<Engine> make_watched_engine() {
    EngineOptions watched = options();
    watched.on_event = [this, alive = alive_](const JitEvent&) {
      if (on_event) on_event();
    };
    return make_engine(std::move(watched));
  }
  bool has_ended() const {
    return wait_for([&] { return alive_.use_count() == 1; });
  }
  Pending<Kernel> start(Engine& engine, int group_size, std::function<void()> on_done = {}) {
    PrepareOptions<Kernel> with;
    if (on_done) with.on_done = [on_done](const Result<Kernel>&) { on_done(); };
    Result<Pending<Kernel>> pending =
        engine.prepare_async({.group_size = group_size}, 0, std::move(with));
    EXPECT_TRUE(pending) << pending.status().to_string();
    return *pending;
  }

  std::function<void()> on_event;

 private:
  const std::shared_ptr<int> alive_ = std::make_shared<int>();
};

TEST_F(EngineEndTest, ACallbackMayHoldTheLastReference) {
  std::shared_ptr<Engine> engine = make_watched_engine();
  std::weak_ptr<Engine> weak = engine;
  std::promise<void> holds;
  std::promise<void> is_last;
  std::atomic<uint64_t> compiles{0};
  start(*engine, 4, [&] {
    const std::shared_ptr<Engine> mine = weak.lock();
    holds.set_value();
    is_last.get_future().wait();
    EXPECT_EQ(mine.use_count(), 1);
    EXPECT_TRUE(mine->prepare(KernelSpec{.group_size = 8}, 0));
    compiles = mine->stats().compiles;
  });
  holds.get_future().wait();
  engine.reset();
  is_last.set_value();
  EXPECT_TRUE(has_ended());
  EXPECT_EQ(compiles, 2u);
}

TEST_F(EngineEndTest, ACallbackThatOwnsItMayBeTheLastToGo) {
  std::shared_ptr<Engine> engine = make_watched_engine();
  start(*engine, 4, [owned = engine] {});
  engine.reset();
  EXPECT_TRUE(has_ended());
}

TEST_F(EngineEndTest, AnEventMayHoldTheLastReference) {
  std::shared_ptr<Engine> engine = make_watched_engine();
  std::weak_ptr<Engine> weak = engine;
  std::promise<void> holds;
  std::promise<void> is_last;
  on_event = [&] {
    const std::shared_ptr<Engine> mine = weak.lock();
    holds.set_value();
    is_last.get_future().wait();
    EXPECT_EQ(mine.use_count(), 1);
  };
  const Pending<Kernel> pending = start(*engine, 4);
  holds.get_future().wait();
  engine.reset();
  is_last.set_value();
  EXPECT_TRUE(has_ended());
  EXPECT_TRUE(pending.is_ready()) << "done or cancelled";
}

TEST_F(EngineEndTest, WhatACallbackAsksForMeanwhileIsAnswered) {
  nvrtc->on_compile_job = [](const KernelSource& source, const jit::JobOptions& job) {
    const int group_size = std::get<KernelConfig>(source.config).spec.group_size;
    while (group_size == 1 && !job.stop.stop_requested()) std::this_thread::yield();
    return Status();
  };
  std::shared_ptr<Engine> engine = make_watched_engine();
  Engine* const raw = engine.get();
  std::promise<void> begins;
  std::promise<void> is_ending;
  std::vector<Pending<Kernel>> asked;
  start(*engine, 2, [&] {
    begins.set_value();
    is_ending.get_future().wait();
    for (int group_size = 3; group_size < 100; ++group_size) {
      asked.push_back(start(*raw, group_size));
    }
  });
  start(*engine, 1, [&] { is_ending.set_value(); });  // cancelled by the end
  begins.get_future().wait();
  engine.reset();
  EXPECT_TRUE(has_ended());
  for (const Pending<Kernel>& pending : asked) {
    EXPECT_TRUE(pending.is_ready());
    if (const Status status = pending.wait().status(); !status) {
      EXPECT_EQ(status.code(), StatusCode::kCancelled);
    }
  }
  EXPECT_EQ(asked.size(), 97u);
}

}  // namespace
}  // namespace pagejit
