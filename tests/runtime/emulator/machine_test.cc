// How grids run: orders, resident CTAs, waiting between CTAs, poison.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/runtime/emulator/emulator_fixture.h"

namespace pagejit_emulator {
namespace {

using ::testing::HasSubstr;

struct Params {
  uint32_t* out;
  uint32_t* counter;
};

constexpr const char* kText = R"(
struct Params { uint32_t* out; uint32_t* counter; };

// Each thread that comes by takes a number.
PAGEJIT_KERNEL(64, 1) order(const __grid_constant__ Params params) {
  const uint32_t number = dev::atomic_inc_acq_rel(params.counter, 0xffffffffu);
  dev::store_global(params.out + dev::block_idx_x() * 64 + dev::thread_idx(), number);
}
PAGEJIT_ENTRY(order, Params)

// CTA 0 waits for the last CTA.
PAGEJIT_KERNEL(32, 1) spin(const __grid_constant__ Params params) {
  if (dev::thread_idx() != 0) return;
  if (dev::block_idx_x() == dev::grid_dim_x() - 1) {
    dev::store_global(params.out, 42u);
    dev::atomic_inc_acq_rel(params.counter, 1);
    return;
  }
  if (dev::block_idx_x() == 0) {
    while (dev::load_global(params.counter) == 0) {}
    dev::store_global(params.out + 1, dev::load_global(params.out));
  }
}
PAGEJIT_ENTRY(spin, Params)

PAGEJIT_KERNEL(32, 1) poison(const __grid_constant__ Params params) {
  auto* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  dev::store_global(params.out + dev::block_idx_x() * 32 + dev::thread_idx(), s[dev::thread_idx()]);
  s[dev::thread_idx()] = 1;
}
PAGEJIT_ENTRY(poison, Params)

PAGEJIT_KERNEL(1024, 1) widest(const __grid_constant__ Params params) {
  auto* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  s[dev::thread_idx()] = static_cast<uint32_t>(dev::thread_idx());
  dev::sync_cta();
  dev::store_global(params.out + dev::thread_idx(), s[1023 - dev::thread_idx()]);
}
PAGEJIT_ENTRY(widest, Params)
)";

class MachineTest : public EmulatorTest {
 protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    out_ = upload(std::vector<uint32_t>(1024));
    counter_ = upload(std::vector<uint32_t>(1));
  }
  CUresult run(const char* name, const LaunchShape& shape) {
    return launch(kernel(kText, name), shape, Params{out_, counter_});
  }
  // Who took numbers 0, 1, ...: CTA * 64 + thread.
  std::vector<uint32_t> sequence() {
    counter_ = upload(std::vector<uint32_t>(1));
    EXPECT_EQ(run("order", {.grid_x = 3, .num_threads = 64}), CUDA_SUCCESS) << report();
    const auto numbers = download(out_, 192);
    std::vector<uint32_t> who(192, 1000);
    for (uint32_t i = 0; i < 192; ++i) who.at(numbers[i]) = i;
    return who;
  }

  uint32_t* out_ = nullptr;
  uint32_t* counter_ = nullptr;
};

TEST_F(MachineTest, FifoRunsThreadsAndCtasFromFirstToLast) {
  const auto who = sequence();
  EXPECT_TRUE(std::is_sorted(who.begin(), who.end()));
}

TEST_F(MachineTest, LifoRunsThreadsAndCtasFromLastToFirst) {
  schedule({.order = kPagejitEmulatorLifo});
  const auto who = sequence();
  EXPECT_TRUE(std::is_sorted(who.rbegin(), who.rend()));
}

TEST_F(MachineTest, RandomOrderDependsOnTheSeedOnly) {
  schedule({.order = kPagejitEmulatorRandom, .seed = 5});
  const auto who = sequence();
  EXPECT_FALSE(std::is_sorted(who.begin(), who.end()));
  EXPECT_EQ(sequence(), who);
  schedule({.order = kPagejitEmulatorRandom, .seed = 6});
  EXPECT_NE(sequence(), who);
}

TEST_F(MachineTest, OneCtaAtATimeCannotWaitForALaterOne) {
  PagejitEmulatorOptions values = options();
  values.watchdog_s = 0.1;
  configure(values);
  EXPECT_EQ(run("spin", {.grid_x = 4}), CUDA_ERROR_LAUNCH_TIMEOUT);
  EXPECT_THAT(report(), HasSubstr("CTA (0,0,0)"));
}

TEST_F(MachineTest, ResidentCtasCanWaitForEachOther) {
  for (int resident : {2, 4, 8}) {
    for (int order : {kPagejitEmulatorFifo, kPagejitEmulatorLifo, kPagejitEmulatorRandom}) {
      schedule({.order = order, .resident = resident});
      out_ = upload(std::vector<uint32_t>(2));
      counter_ = upload(std::vector<uint32_t>(1));
      ASSERT_EQ(run("spin", {.grid_x = 4}), CUDA_SUCCESS) << report();
      EXPECT_EQ(download(out_, 2)[1], 42u);
    }
  }
}

TEST_F(MachineTest, SharedMemoryIsPoisonedBeforeEachCta) {
  ASSERT_EQ(run("poison", {.grid_x = 3, .shared_bytes = 128}), CUDA_SUCCESS) << report();
  EXPECT_EQ(download(out_, 96), std::vector<uint32_t>(96, 0xffffffffu));
}

TEST_F(MachineTest, RunsTheWidestCta) {
  ASSERT_EQ(run("widest", {.num_threads = 1024, .shared_bytes = 4096}), CUDA_SUCCESS) << report();
  const auto out = download(out_, 1024);
  for (uint32_t t = 0; t < 1024; ++t) EXPECT_EQ(out[t], 1023 - t);
  EXPECT_GE(counters().switches, 1024u);
}

}  // namespace
}  // namespace pagejit_emulator
