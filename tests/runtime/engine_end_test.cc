// The end of an engine while callbacks on its own threads use it.
#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "tests/cache/child_process.h"
#include "tests/runtime/engine_fixture.h"

namespace pagejit {
namespace {

using cache::wait_for;

class EngineEndTest : public EngineTest {
 protected:
  // Its options hold what tells when and on which thread the engine goes.
  std::shared_ptr<Engine> make_watched_engine() {
    EngineOptions watched = options();
    const std::shared_ptr<void> end(nullptr, [this](void*) {
      ended_on = std::this_thread::get_id();
      has_ended = true;
    });
    watched.on_event = [this, end](const JitEvent&) {
      if (on_event) on_event();
    };
    return make_engine(std::move(watched));
  }
  // Waits until the engine is no more, which ended on another thread than the callback's.
  void expect_ended_apart_from(const std::atomic<std::thread::id>& callback) {
    ASSERT_TRUE(wait_for([&] { return has_ended.load(); }));
    EXPECT_NE(callback.load(), std::thread::id());
    EXPECT_NE(ended_on, callback.load());
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
  std::atomic<std::thread::id> called_on{};
  std::thread::id ended_on;  // once has_ended
  std::atomic<bool> has_ended{false};
};

TEST_F(EngineEndTest, ACallbackMayHoldTheLastReference) {
  std::shared_ptr<Engine> engine = make_watched_engine();
  std::weak_ptr<Engine> weak = engine;
  std::promise<void> holds;
  std::promise<void> is_last;
  std::atomic<uint64_t> compiles{0};
  start(*engine, 4, [&] {
    called_on = std::this_thread::get_id();
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
  expect_ended_apart_from(called_on);
  EXPECT_EQ(compiles, 2u);
}

TEST_F(EngineEndTest, ACallbackThatOwnsItMayBeTheLastToGo) {
  std::shared_ptr<Engine> engine = make_watched_engine();
  start(*engine, 4, [this, owned = engine] { called_on = std::this_thread::get_id(); });
  engine.reset();
  expect_ended_apart_from(called_on);
}

TEST_F(EngineEndTest, AnEventMayHoldTheLastReference) {
  std::shared_ptr<Engine> engine = make_watched_engine();
  std::weak_ptr<Engine> weak = engine;
  std::promise<void> holds;
  std::promise<void> is_last;
  on_event = [&] {
    called_on = std::this_thread::get_id();
    const std::shared_ptr<Engine> mine = weak.lock();
    holds.set_value();
    is_last.get_future().wait();
    EXPECT_EQ(mine.use_count(), 1);
  };
  const Pending<Kernel> pending = start(*engine, 4);
  holds.get_future().wait();
  engine.reset();
  is_last.set_value();
  expect_ended_apart_from(called_on);
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
  EXPECT_TRUE(has_ended);
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
