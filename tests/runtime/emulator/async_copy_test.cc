#include <gmock/gmock.h>

#include "tests/runtime/emulator/emulator_fixture.h"

namespace pagejit_emulator {
namespace {

struct Params {
  uint32_t* out;
  const uint32_t* in;
};

constexpr const char* kText = R"(
struct Params { uint32_t* out; const uint32_t* in; };

PAGEJIT_KERNEL(32, 1) without_wait(const __grid_constant__ Params params) {
  const int t = dev::thread_idx();
  auto* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  dev::cp_async_16(s + t * 4, params.in + t * 4, true);
  dev::cp_async_commit();
  dev::store_global(params.out + t, s[t * 4]);
}
PAGEJIT_ENTRY(without_wait, Params)

PAGEJIT_KERNEL(32, 1) uncommitted(const __grid_constant__ Params params) {
  const int t = dev::thread_idx();
  auto* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  dev::cp_async_16(s + t * 4, params.in + t * 4, true);
  dev::cp_async_wait<0>();
  dev::store_global(params.out + t, s[t * 4]);
}
PAGEJIT_ENTRY(uncommitted, Params)

// Three groups; after each wait, what has arrived: out[t * 3 + i] = word 0 of group i.
template <int kPending>
PAGEJIT_DEVICE void groups(const Params& params) {
  const int t = dev::thread_idx();
  auto* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  for (int i = 0; i < 3; ++i) {
    dev::cp_async_16(s + (i * 32 + t) * 4, params.in + i * 4, true);
    dev::cp_async_commit();
  }
  dev::cp_async_wait<kPending>();
  for (int i = 0; i < 3; ++i) dev::store_global(params.out + t * 3 + i, s[(i * 32 + t) * 4]);
}
PAGEJIT_KERNEL(32, 1) wait_0(const __grid_constant__ Params params) { groups<0>(params); }
PAGEJIT_ENTRY(wait_0, Params)
PAGEJIT_KERNEL(32, 1) wait_1(const __grid_constant__ Params params) { groups<1>(params); }
PAGEJIT_ENTRY(wait_1, Params)
PAGEJIT_KERNEL(32, 1) wait_2(const __grid_constant__ Params params) { groups<2>(params); }
PAGEJIT_ENTRY(wait_2, Params)

PAGEJIT_KERNEL(32, 1) empty_groups_count(const __grid_constant__ Params params) {
  const int t = dev::thread_idx();
  auto* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  dev::cp_async_16(s + t * 4, params.in + t * 4, true);
  dev::cp_async_commit();
  dev::cp_async_commit();
  dev::cp_async_wait<1>();
  dev::store_global(params.out + t, s[t * 4]);
}
PAGEJIT_ENTRY(empty_groups_count, Params)

PAGEJIT_KERNEL(32, 1) invalid(const __grid_constant__ Params params) {
  const int t = dev::thread_idx();
  auto* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  dev::cp_async_16(s + t * 4, t < 16 ? params.in : nullptr, t < 16);
  dev::cp_async_commit();
  dev::cp_async_wait<0>();
  for (int i = 0; i < 4; ++i) dev::store_global(params.out + t * 4 + i, s[t * 4 + i]);
}
PAGEJIT_ENTRY(invalid, Params)

// A ring that is never empty, long enough that finished copies must be dropped on the way.
PAGEJIT_KERNEL(32, 1) long_ring(const __grid_constant__ Params params) {
  const int t = dev::thread_idx();
  auto* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  uint32_t sum = 0;
  for (int i = 0; i < 5000; ++i) {
    dev::cp_async_16(s + (i % 4 * 32 + t) * 4, params.in + i % 16 * 4, true);
    dev::cp_async_commit();
    if (i < 2) continue;
    dev::cp_async_wait<2>();
    sum += s[((i - 2) % 4 * 32 + t) * 4];
  }
  dev::store_global(params.out + t, sum);
}
PAGEJIT_ENTRY(long_ring, Params)
)";

constexpr uint32_t kPoison = 0xffffffffu;

class AsyncCopyTest : public EmulatorTest {
 protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    std::vector<uint32_t> in(128);
    for (uint32_t i = 0; i < in.size(); ++i) in[i] = 100 + i;
    in_ = upload(in);
    out_ = upload(std::vector<uint32_t>(128));
  }

  std::vector<uint32_t> run(const char* name, size_t count) {
    EXPECT_EQ(launch(kernel(kText, name), {.shared_bytes = 2048}, Params{out_, in_}), CUDA_SUCCESS)
        << report();
    return download(out_, count);
  }

  uint32_t* in_ = nullptr;
  uint32_t* out_ = nullptr;
};

TEST_F(AsyncCopyTest, LateDataAreNotThereWithoutAWait) {
  EXPECT_EQ(run("without_wait", 32), std::vector<uint32_t>(32, kPoison));
}

TEST_F(AsyncCopyTest, EarlyDataAreThereAtOnce) {
  schedule({.completion = kPagejitEmulatorEarly});
  const auto out = run("without_wait", 32);
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(out[t], 100 + 4 * t);
}

TEST_F(AsyncCopyTest, RandomDataAreSometimesThereAndDependOnTheSeed) {
  schedule({.completion = kPagejitEmulatorRandomCompletion, .seed = 1});
  const auto out = run("without_wait", 32);
  const auto missing = std::count(out.begin(), out.end(), kPoison);
  EXPECT_GT(missing, 0);
  EXPECT_LT(missing, 32);
  EXPECT_EQ(run("without_wait", 32), out);
  schedule({.completion = kPagejitEmulatorRandomCompletion, .seed = 2});
  EXPECT_NE(run("without_wait", 32), out);
}

TEST_F(AsyncCopyTest, WaitDoesNotCoverUncommittedCopies) {
  EXPECT_EQ(run("uncommitted", 32), std::vector<uint32_t>(32, kPoison));
}

TEST_F(AsyncCopyTest, WaitLeavesTheNewestGroupsPending) {
  const char* const names[] = {"wait_0", "wait_1", "wait_2"};
  for (int pending = 0; pending < 3; ++pending) {
    const auto out = run(names[pending], 96);
    for (int t = 0; t < 32; ++t) {
      for (uint32_t group = 0; group < 3; ++group) {
        const bool there = group < 3u - static_cast<uint32_t>(pending);
        EXPECT_EQ(out[t * 3 + group], there ? 100 + 4 * group : kPoison) << names[pending];
      }
    }
  }
}

TEST_F(AsyncCopyTest, EmptyGroupsCount) {
  const auto out = run("empty_groups_count", 32);
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(out[t], 100 + 4 * t);
}

TEST_F(AsyncCopyTest, InvalidCopyWritesZerosReadsNothingAndIsNotCounted) {
  const auto out = run("invalid", 128);
  for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(out[i], i < 64 ? 100 + i % 4 : 0u);
  EXPECT_EQ(counters().global_bytes_read, 16u * 16);
  EXPECT_EQ(counters().global_bytes_written, 128u * 4);
}

TEST_F(AsyncCopyTest, LongRingKeepsItsOrderInEveryMode) {
  uint32_t expected = 0;
  for (int i = 0; i < 4998; ++i) expected += 100 + 4 * (i % 16);
  for (const Schedule& order : all_schedules()) {
    schedule(order);
    EXPECT_EQ(run("long_ring", 32), std::vector<uint32_t>(32, expected));
  }
}

}  // namespace
}  // namespace pagejit_emulator
