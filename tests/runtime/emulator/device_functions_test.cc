#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "templates/device/host/float16.cuh"
#include "tests/runtime/emulator/emulator_fixture.h"

namespace pagejit_emulator {
namespace {

struct Params {
  uint32_t* out;
  const float* in;
  int number;
};

constexpr const char* kText = R"(
struct Params { uint32_t* out; const float* in; int number; };

PAGEJIT_KERNEL(64, 1) indices(const __grid_constant__ Params params) {
  const int cta = dev::block_idx_x() + dev::grid_dim_x() * (dev::block_idx_y() + dev::grid_dim_y() * dev::block_idx_z());
  uint32_t* out = params.out + (cta * 64 + dev::thread_idx()) * 5;
  dev::store_global(out, static_cast<uint32_t>(dev::thread_idx()));
  dev::store_global(out + 1, static_cast<uint32_t>(dev::lane_idx()));
  dev::store_global(out + 2, static_cast<uint32_t>(dev::block_idx_x() * 100 + dev::block_idx_y() * 10 + dev::block_idx_z()));
  dev::store_global(out + 3, static_cast<uint32_t>(dev::grid_dim_x() * 100 + dev::grid_dim_y() * 10 + dev::grid_dim_z()));
  dev::store_global(out + 4, static_cast<uint32_t>(reinterpret_cast<uintptr_t>(dev::dynamic_shared()) % 1024));
}
PAGEJIT_ENTRY(indices, Params)

struct alignas(16) Chunk { uint32_t word[4]; };
PAGEJIT_KERNEL(32, 1) widths(const __grid_constant__ Params params) {
  if (dev::thread_idx() != 0) return;
  const auto* in = reinterpret_cast<const unsigned char*>(params.in);
  auto* out = reinterpret_cast<unsigned char*>(params.out);
  dev::store_global(out, dev::load_global(in));
  dev::store_global(reinterpret_cast<uint16_t*>(out + 2), dev::load_global_nc(reinterpret_cast<const uint16_t*>(in + 2)));
  dev::store_global(reinterpret_cast<uint32_t*>(out + 4), dev::load_global(reinterpret_cast<const uint32_t*>(in + 4)));
  dev::store_global(reinterpret_cast<int64_t*>(out + 8), dev::load_global(reinterpret_cast<const int64_t*>(in + 8)));
  dev::store_global(reinterpret_cast<Chunk*>(out + 16), dev::load_global_nc(reinterpret_cast<const Chunk*>(in + 16)));
}
PAGEJIT_ENTRY(widths, Params)

PAGEJIT_KERNEL(32, 1) arithmetic(const __grid_constant__ Params params) {
  const int t = dev::thread_idx();
  const float x = dev::load_global(params.in + t);
  const float y = dev::load_global(params.in + 32 + t);
  uint32_t* out = params.out + t * 5;
  dev::store_global(out, __builtin_bit_cast(uint32_t, dev::exp2_approx(x)));
  dev::store_global(out + 1, __builtin_bit_cast(uint32_t, dev::log2_approx(x)));
  dev::store_global(out + 2, __builtin_bit_cast(uint32_t, dev::max2(x, y)));
  dev::store_global(out + 3, dev::pack_f16x2(x, y));
  dev::store_global(out + 4, dev::pack_bf16x2(x, y));
}
PAGEJIT_ENTRY(arithmetic, Params)

PAGEJIT_KERNEL(64, 1) exchange(const __grid_constant__ Params params) {
  const int t = dev::thread_idx();
  uint32_t* out = params.out + t * 6;
  const float x = static_cast<float>(t * 3 + 1);
  dev::store_global(out, static_cast<uint32_t>(dev::shuffle_xor(x, 1 + params.number)));
  dev::store_global(out + 1, static_cast<uint32_t>(dev::shuffle(x, (t * 5 + 2) % 32)));
  const int64_t wide = (static_cast<int64_t>(t) << 40) - 1;
  const int64_t got = dev::shuffle(wide, 31 - t % 32);
  dev::store_global(out + 2, static_cast<uint32_t>((got + 1) >> 40));
  dev::store_global(out + 3, static_cast<uint32_t>(dev::any(t == 7)));
  dev::store_global(out + 4, static_cast<uint32_t>(dev::any(false)));
  dev::store_global(out + 5, static_cast<uint32_t>(dev::shuffle(t, 3)));
}
PAGEJIT_ENTRY(exchange, Params)

PAGEJIT_KERNEL(32, 1) atomics(const __grid_constant__ Params params) {
  const int t = dev::thread_idx();
  const uint32_t old = dev::atomic_inc_acq_rel(params.out, static_cast<uint32_t>(params.number));
  dev::store_global(params.out + 2 + t, old);
  dev::fence_gpu();
  if (t == 0) {
    const int won = dev::atomic_cas(reinterpret_cast<int*>(params.out + 1), 0, 9);
    const int lost = dev::atomic_cas(reinterpret_cast<int*>(params.out + 1), 0, 11);
    dev::store_global(params.out + 34, static_cast<uint32_t>(won * 100 + lost));
  }
}
PAGEJIT_ENTRY(atomics, Params)

PAGEJIT_KERNEL(128, 1) barriers(const __grid_constant__ Params params) {
  // Two pairs of warps hand a value round by pairs, then all together.
  const int t = dev::thread_idx();
  auto* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  s[t] = static_cast<uint32_t>(t);
  dev::sync_named(1 + t / 64, 64);
  const uint32_t pair = s[t ^ 32];
  dev::sync_cta();
  s[t] = pair * 2;
  dev::sync_cta();
  dev::store_global(params.out + t, s[t ^ 64] + s[t ^ 1]);
}
PAGEJIT_ENTRY(barriers, Params)
)";

class DeviceFunctionsTest : public EmulatorTest {
 protected:
  std::vector<uint32_t> run(const char* name, const LaunchShape& shape, size_t count,
                            const std::vector<float>& in = std::vector<float>(64), int number = 0) {
    uint32_t* out = upload(std::vector<uint32_t>(count));
    EXPECT_EQ(launch(kernel(kText, name), shape, Params{out, upload(in), number}), CUDA_SUCCESS)
        << report();
    return download(out, count);
  }
};

TEST_F(DeviceFunctionsTest, IndicesFollowTheGrid) {
  const auto out = run("indices", {.grid_x = 2, .num_threads = 64, .grid_y = 3, .grid_z = 4},
                       2 * 3 * 4 * 64 * 5);
  for (uint32_t cta = 0; cta < 24; ++cta) {
    for (uint32_t t = 0; t < 64; ++t) {
      const uint32_t* mine = &out[(cta * 64 + t) * 5];
      EXPECT_EQ(mine[0], t);
      EXPECT_EQ(mine[1], t % 32);
      EXPECT_EQ(mine[2], cta % 2 * 100 + cta / 2 % 3 * 10 + cta / 6);
      EXPECT_EQ(mine[3], 234u);
      EXPECT_EQ(mine[4], 0u);
    }
  }
  EXPECT_EQ(counters().ctas, 24u);
  EXPECT_EQ(counters().launches, 1u);
}

TEST_F(DeviceFunctionsTest, LoadsAndStoresOfEveryWidthAreCounted) {
  std::vector<float> in(8);
  auto* bytes = reinterpret_cast<unsigned char*>(in.data());
  for (int i = 0; i < 32; ++i) bytes[i] = static_cast<unsigned char>(i + 1);
  const auto out = run("widths", {}, 8, in);
  const auto* got = reinterpret_cast<const unsigned char*>(out.data());
  for (int i = 0; i < 32; ++i) EXPECT_EQ(got[i], i == 1 ? 0 : i + 1);
  EXPECT_EQ(counters().global_bytes_read, 31u);
  EXPECT_EQ(counters().global_bytes_written, 31u);
}

TEST_F(DeviceFunctionsTest, ArithmeticHasTheGpusSpecialCases) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> in(64, 0.5f);
  const float xs[] = {0.0f, 1.0f, -1.5f, -inf, inf, nan, -200.0f, -130.0f, 1e-40f, 3.25f, 8.0f};
  const float ys[] = {1.0f, nan, -2.0f, -inf, 0.0f, 2.0f, 65520.0f, -65519.0f, 1e-8f, 3.5f, nan};
  std::copy(std::begin(xs), std::end(xs), in.begin());
  std::copy(std::begin(ys), std::end(ys), in.begin() + 32);
  const auto out = run("arithmetic", {}, 32 * 5, in);
  for (int t = 0; t < 32; ++t) {
    const uint32_t* mine = &out[t * 5];
    const float x = in[t];
    const float y = in[32 + t];
    // ftz: subnormal inputs and results are zero.
    const float flushed = std::fabs(x) < 0x1p-126f ? 0.0f : x;
    float exp2 = std::exp2(flushed);
    if (exp2 < 0x1p-126f) exp2 = 0;
    const float log2 = std::log2(flushed);
    const auto equal = [](float a, float b) { return std::isnan(a) ? std::isnan(b) : a == b; };
    EXPECT_TRUE(equal(f32_from_bits(mine[0]), exp2)) << x;
    EXPECT_TRUE(equal(f32_from_bits(mine[1]), log2)) << x;
    EXPECT_TRUE(equal(f32_from_bits(mine[2]), std::fmax(x, y))) << x << " " << y;
    EXPECT_EQ(mine[3], f16_from_f32(x) | static_cast<uint32_t>(f16_from_f32(y)) << 16);
    EXPECT_EQ(mine[4], bf16_from_f32(x) | static_cast<uint32_t>(bf16_from_f32(y)) << 16);
  }
  EXPECT_EQ(f32_from_bits(out[3 * 5]), 0.0f);      // 2^-inf
  EXPECT_EQ(f32_from_bits(out[7 * 5]), 0.0f);      // 2^-130 is subnormal
  EXPECT_EQ(f32_from_bits(out[0 * 5 + 1]), -inf);  // log2(0)
  EXPECT_EQ(f32_from_bits(out[1 * 5 + 2]), 1.0f);  // the NaN loses
  EXPECT_EQ(f32_from_bits(out[5 * 5 + 2]), 2.0f);
}

TEST_F(DeviceFunctionsTest, ShufflesAndVotesStayInTheWarp) {
  for (const Schedule& order : all_schedules()) {
    schedule(order);
    const auto out = run("exchange", {.num_threads = 64}, 64 * 6, {1.0f}, 4);
    for (uint32_t t = 0; t < 64; ++t) {
      const uint32_t warp = t / 32 * 32;
      EXPECT_EQ(out[t * 6], (t ^ 5) * 3 + 1);
      EXPECT_EQ(out[t * 6 + 1], (warp + (t * 5 + 2) % 32) * 3 + 1);
      EXPECT_EQ(out[t * 6 + 2], warp + 31 - t % 32);
      EXPECT_EQ(out[t * 6 + 3], warp == 0 ? 1u : 0u);
      EXPECT_EQ(out[t * 6 + 4], 0u);
      EXPECT_EQ(out[t * 6 + 5], warp + 3);
    }
  }
}

TEST_F(DeviceFunctionsTest, AtomicsCountWrapAndCompare) {
  const auto out = run("atomics", {}, 35, {1.0f}, 9);  // wraps at 9: 32 increments end at 2
  EXPECT_EQ(out[0], 2u);
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(out[2 + t], t % 10);
  EXPECT_EQ(out[1], 9u);
  EXPECT_EQ(out[34], 9u);  // won: old value 0; lost: old value 9
}

TEST_F(DeviceFunctionsTest, BarriersWorkInEveryOrder) {
  for (const Schedule& order : all_schedules()) {
    schedule(order);
    const auto out = run("barriers", {.num_threads = 128, .shared_bytes = 512}, 128);
    for (uint32_t t = 0; t < 128; ++t) EXPECT_EQ(out[t], (t ^ 64 ^ 32) * 2 + (t ^ 1 ^ 32) * 2);
  }
}

}  // namespace
}  // namespace pagejit_emulator
