// Correct kernels that the checked build must let pass, and what it looks at meanwhile.
#include <gmock/gmock.h>

#include <cstdint>

#include "tests/runtime/emulator/emulator_fixture.h"

namespace pagejit_emulator {
namespace {

using pagejit::HostBuild;
using ::testing::HasSubstr;

struct Params {
  uint32_t* out;
  const uint32_t* in;
  uint32_t* counter;
};

class CheckerTest : public EmulatorTest {};

// All that the mistakes above leave out is there: the checker must have looked, and must be
// content.
constexpr const char* kCorrect = R"(
struct Params { uint32_t* out; const uint32_t* in; uint32_t* counter; };

constexpr uint32_t kTable[4] = {1, 2, 3, 4};

PAGEJIT_KERNEL(64, 1) k(const __grid_constant__ Params params) {
  const int t = dev::thread_idx();
  uint32_t* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  uint32_t sum = 0;
  for (int stage = 0; stage < 2; ++stage) {
    dev::cp_async_16(s + stage * 256 + t * 4, params.in + t * 4, t != 3);
    dev::cp_async_commit();
  }
  for (int round = 0; round < 4; ++round) {
    dev::cp_async_wait<1>();
    dev::sync_cta();
    uint32_t* stage = s + round % 2 * 256;
    uint32_t r[4];
    dev::ldmatrix_x4(r, stage + (t ^ 32) * 4);
    sum += r[0] + kTable[r[0] % 4];
    dev::sync_named(2, 64);
    dev::cp_async_16(stage + t * 4, params.in + t * 4, true);
    dev::cp_async_commit();
  }
  dev::cp_async_wait<0>();
  dev::sync_warp();
  sum += s[(t ^ 1) * 4];
  dev::sync_cta();
  s[t] = sum;
  s[128 + t] = 0;
  dev::sync_cta();
  for (int i = 0; i < 4; ++i) {
    dev::atomic_add_shared(reinterpret_cast<int*>(s) + 128 + (t * 7 + i) % 64, i);
  }
  dev::sync_cta();
  sum += s[128 + t] + s[128 + (t ^ 32)];
  dev::store_global(params.out + 64 * dev::block_idx_x() + t, sum);
  dev::sync_cta();
  if (t == 0) s[64] = dev::atomic_inc_acq_rel(params.counter, 2) == 2;
  dev::sync_cta();
  if (s[64] == 0) return;
  uint32_t total = 0;
  for (int cta = 0; cta < 3; ++cta) total += dev::load_global(params.out + 64 * cta + (t ^ 32));
  params.counter[64 + t] = total;
}
PAGEJIT_ENTRY(k, Params)
)";

TEST_F(CheckerTest, CorrectKernelPassesInEveryOrderAndIsLookedAt) {
  const CUfunction checked = kernel(kCorrect, "k", HostBuild::kChecked);
  const CUfunction plain = kernel(kCorrect, "k", HostBuild::kPlain);
  std::vector<uint32_t> in(256);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint32_t>(i * i);
  std::vector<uint32_t> first;
  for (CUfunction function : {checked, plain}) {
    for (Schedule order : all_schedules()) {
      for (int resident : {1, 3}) {
        order.resident = resident;
        schedule(order);
        symbol<decltype(pagejit_emulator_reset_counters)>("pagejit_emulator_reset_counters")();
        uint32_t* counter = upload(std::vector<uint32_t>(128));
        const Params params = {upload(std::vector<uint32_t>(192)), upload(in), counter};
        const LaunchShape shape = {.grid_x = 3, .num_threads = 64, .shared_bytes = 4096};
        ASSERT_EQ(launch(function, shape, params), CUDA_SUCCESS) << report();
        const auto results = download(counter, 128);
        if (first.empty()) first = results;
        EXPECT_EQ(results, first);
        EXPECT_EQ(results[0], 0u);
        if (function == checked) {
          EXPECT_GT(counters().checked_shared_accesses, 1000u);
          EXPECT_GT(counters().checked_global_accesses, 1000u);
        } else {
          EXPECT_EQ(counters().checked_shared_accesses, 0u);
        }
      }
    }
  }
  EXPECT_NE(first[64], 0u);
}

constexpr const char* kFences = R"(
struct Params { int* flag; uint32_t* data; int with_fence; };
PAGEJIT_KERNEL(32, 1) k(const __grid_constant__ Params params) {
  if (dev::lane_idx() != 0) return;
  if (dev::block_idx_x() == 0) {
    dev::store_global(params.data, 5u);
    if (params.with_fence) dev::fence_gpu();
    dev::atomic_cas(params.flag, 0, 1);
    return;
  }
  while (dev::atomic_cas(params.flag, 1, 2) != 1) {}
  if (params.with_fence) dev::fence_gpu();
  if (dev::load_global(params.data) == 5u) dev::store_global(params.data + 1, 1u);
}
PAGEJIT_ENTRY(k, Params)
)";

TEST_F(CheckerTest, RelaxedAtomicsOrderOnlyWithFences) {
  struct {
    int* flag;
    uint32_t* data;
    int with_fence;
  } params = {upload(std::vector<int>(1)), upload(std::vector<uint32_t>(2)), 1};
  schedule({.resident = 2});
  const CUfunction k = kernel(kFences, "k", HostBuild::kChecked);
  ASSERT_EQ(launch(k, {.grid_x = 2}, params), CUDA_SUCCESS) << report();
  EXPECT_EQ(download(params.data, 2)[1], 1u);
  params.flag = upload(std::vector<int>(1));
  params.with_fence = 0;
  EXPECT_EQ(launch(k, {.grid_x = 2}, params), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(report(), HasSubstr("race in global memory"));
}

TEST_F(CheckerTest, LaunchesDoNotRaceWithEachOther) {
  constexpr const char* kText = R"(
struct Params { uint32_t* out; };
PAGEJIT_KERNEL(32, 1) k(const __grid_constant__ Params params) {
  dev::store_global(params.out + dev::thread_idx(), dev::load_global(params.out + (dev::thread_idx())) + 1);
}
PAGEJIT_ENTRY(k, Params)
)";
  struct {
    uint32_t* out;
  } params = {upload(std::vector<uint32_t>(32))};
  const CUfunction k = kernel(kText, "k", HostBuild::kChecked);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(launch(k, {}, params), CUDA_SUCCESS) << report();
  EXPECT_EQ(download(params.out, 32), std::vector<uint32_t>(32, 3u));
}

}  // namespace
}  // namespace pagejit_emulator
