// Wherever memory runs out, a call says so in its Status; the engine works on when there is some
// again. Each call is made once per allocation within it, which then fails.
#include <optional>

#include "tests/runtime/allocation_counter.h"
#include "tests/runtime/engine_fixture.h"

namespace pagejit {
namespace {

class OutOfMemoryTest : public EngineTest, public ::testing::WithParamInterface<Failing> {
 protected:
  // Of a call during which an allocation failed. It may have been one that is done without: then
  // all is well.
  static void expect_told(const Status& status) {
    if (status) return;
    EXPECT_FALSE(status.message().empty());
    if (status.code() == StatusCode::kInternal) {
      EXPECT_NE(status.message().find("memory"), std::string::npos) << status.to_string();
    }
  }

  // An attempt of fail_each_allocation. The next call is as if nothing had been.
  bool prepare_failing(Engine& engine, int n, int* kernels) {
    Status status = Status::out_of_memory();
    start_failing(GetParam(), n);
    {
      const Result<Kernel> kernel = engine.prepare(spec, 0);
      status = kernel.status();
    }
    const bool has_failed = stop_failing();
    EXPECT_TRUE(status || has_failed) << status.to_string();
    expect_told(status);
    *kernels += status.is_ok();
    const Result<Kernel> again = engine.prepare(spec, 0);
    EXPECT_TRUE(again) << "after allocation " << n << ": " << again.status().to_string();
    return has_failed;
  }

  const KernelSpec spec{.group_size = 4};
};

INSTANTIATE_TEST_SUITE_P(, OutOfMemoryTest, ::testing::Values(Failing::kOne, Failing::kAllAfter),
                         [](const auto& instance) {
                           return instance.param == Failing::kOne ? "Once" : "FromThenOn";
                         });

TEST_P(OutOfMemoryTest, AnEngineIsMadeOrNot) {
  const int failures = fail_each_allocation([&](int n) {
    EngineOptions with = options();
    EngineDependencies parts = dependencies();
    Status status = Status::out_of_memory();
    start_failing(GetParam(), n);
    {
      const Result<std::shared_ptr<Engine>> engine =
          create_engine(std::move(with), std::move(parts));
      status = engine.status();
    }
    const bool has_failed = stop_failing();
    EXPECT_TRUE(status || has_failed) << status.to_string();
    expect_told(status);
    return has_failed;
  });
  EXPECT_GT(failures, 10);
  EXPECT_NE(make_engine(), nullptr);
}

TEST_P(OutOfMemoryTest, AKernelIsPreparedOrNotAndTheNextCallIsAsIfNothingHadBeen) {
  int kernels = 0;
  const int failures = fail_each_allocation([&](int n) {
    EngineOptions with = options();
    with.cache_dir += std::to_string(n);
    const std::shared_ptr<Engine> engine = make_engine(std::move(with));
    return prepare_failing(*engine, n, &kernels);
  });
  EXPECT_GT(failures, 100);
  if (GetParam() == Failing::kOne) {
    EXPECT_GT(kernels, 1) << "what only helps, like the store, is done without";
  }
}

// From the cache on disk, by a second engine.
TEST_P(OutOfMemoryTest, AStoredKernelIsFoundOrNot) {
  prepare(*make_engine(), spec);
  int kernels = 0;
  const int failures = fail_each_allocation([&](int n) {
    const std::shared_ptr<Engine> engine = make_engine();
    return prepare_failing(*engine, n, &kernels);
  });
  EXPECT_GT(failures, 50);
  EXPECT_GT(kernels, 0);
}

TEST_P(OutOfMemoryTest, ARefusedSpecIsStillRefused) {
  const std::shared_ptr<Engine> engine = make_engine();
  const int failures = fail_each_allocation([&](int n) {
    Status status;
    start_failing(GetParam(), n);
    {
      const Result<Kernel> kernel = engine->prepare({.head_size = 100}, 0);
      status = kernel.status();
    }
    const bool has_failed = stop_failing();
    EXPECT_FALSE(status.is_ok());
    EXPECT_EQ(status.code(), has_failed ? StatusCode::kInternal : StatusCode::kInvalidArgument);
    expect_told(status);
    return has_failed;
  });
  EXPECT_GT(failures, 1);
}

TEST_P(OutOfMemoryTest, ARefusedLaunchIsStillRefused) {
  const std::shared_ptr<Engine> engine = make_engine();
  const Kernel kernel = prepare(*engine, {.group_size = 4});
  AttentionArgs args = legal_args();
  args.num_seqs = -1;
  const int failures = fail_each_allocation([&](int n) {
    start_failing(GetParam(), n);
    Status status = kernel.launch(args, nullptr);
    const bool has_failed = stop_failing();
    EXPECT_FALSE(status.is_ok());
    expect_told(status);
    return has_failed;
  });
  EXPECT_GT(failures, 1);
  EXPECT_TRUE(kernel.launch(legal_args(), nullptr));
}

// The work is done by other threads, whose memory does not fail here.
TEST_P(OutOfMemoryTest, APendingKernelIsStartedOrNot) {
  const std::shared_ptr<Engine> engine = make_engine();
  const int failures = fail_each_allocation([&](int n) {
    std::optional<Pending<Kernel>> pending;
    Status status = Status::out_of_memory();
    start_failing(GetParam(), n);
    {
      Result<Pending<Kernel>> started = engine->prepare_async(spec, 0);
      status = started.status();
      if (started) pending = std::move(*started);
    }
    const bool has_failed = stop_failing();
    EXPECT_TRUE(status || has_failed) << status.to_string();
    expect_told(status);
    if (pending) {
      const Result<Kernel> kernel = pending->wait();
      EXPECT_TRUE(kernel || has_failed) << kernel.status().to_string();
      expect_told(kernel.status());
    }
    Result<Pending<Kernel>> again = engine->prepare_async(spec, 0);
    EXPECT_TRUE(again && again->wait()) << "after allocation " << n;
    return has_failed;
  });
  EXPECT_GT(failures, 5);
}

// And the other way round: where it ends in time, nobody was left waiting, and no thread died.
TEST_P(OutOfMemoryTest, WhatOtherThreadsLackIsToldToWhoWaits) {
  int kernels = 0;
  const int failures = fail_each_allocation([&](int n) {
    EngineOptions with = options();
    with.cache_dir += std::to_string(n);
    const std::shared_ptr<Engine> engine = make_engine(std::move(with));
    start_failing_elsewhere(GetParam(), n);
    Result<Pending<Kernel>> pending = engine->prepare_async(spec, 0);
    EXPECT_TRUE(pending) << pending.status().to_string();
    const Status status = pending ? pending->wait().status() : pending.status();
    const bool has_failed = stop_failing_elsewhere();
    EXPECT_TRUE(status || has_failed) << status.to_string();
    expect_told(status);
    kernels += status.is_ok();
    EXPECT_TRUE(engine->prepare(spec, 0)) << "after allocation " << n;
    return has_failed;
  });
  EXPECT_GT(failures, 100);
  EXPECT_GT(kernels, 0);
}

}  // namespace
}  // namespace pagejit
