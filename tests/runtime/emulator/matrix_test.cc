#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "templates/device/host/float16.cuh"
#include "tests/runtime/emulator/emulator_fixture.h"

namespace pagejit_emulator {
namespace {

constexpr const char* kText = R"(
struct Params { uint32_t* out; const uint32_t* in; int step; };

// Shared memory holds rows of 16 bytes, row i at i * step bytes; all threads write them.
PAGEJIT_DEVICE void fill(const Params& params, int num_rows) {
  const int lane = dev::lane_idx();
  if (lane < num_rows) {
    for (int i = 0; i < 4; ++i) {
      *reinterpret_cast<uint32_t*>(dev::dynamic_shared() + lane * params.step + i * 4) =
          dev::load_global(params.in + lane * 4 + i);
    }
  }
  dev::sync_warp();
}

PAGEJIT_KERNEL(32, 1) x4(const __grid_constant__ Params params) {
  fill(params, 32);
  uint32_t r[4];
  dev::ldmatrix_x4(r, dev::dynamic_shared() + dev::lane_idx() * params.step);
  for (int i = 0; i < 4; ++i) dev::store_global(params.out + dev::lane_idx() * 4 + i, r[i]);
}
PAGEJIT_ENTRY(x4, Params)

PAGEJIT_KERNEL(32, 1) x4_trans(const __grid_constant__ Params params) {
  fill(params, 32);
  uint32_t r[4];
  dev::ldmatrix_x4_trans(r, dev::dynamic_shared() + dev::lane_idx() * params.step);
  for (int i = 0; i < 4; ++i) dev::store_global(params.out + dev::lane_idx() * 4 + i, r[i]);
}
PAGEJIT_ENTRY(x4_trans, Params)

PAGEJIT_KERNEL(32, 1) x2(const __grid_constant__ Params params) {
  fill(params, 16);
  uint32_t r[2];
  // Addresses of lanes 16 to 31 are not used: these are illegal.
  const unsigned char* row = dev::dynamic_shared() + dev::lane_idx() * params.step;
  dev::ldmatrix_x2(r, dev::lane_idx() < 16 ? row : nullptr);
  for (int i = 0; i < 2; ++i) dev::store_global(params.out + dev::lane_idx() * 2 + i, r[i]);
}
PAGEJIT_ENTRY(x2, Params)

PAGEJIT_KERNEL(32, 1) movmatrix(const __grid_constant__ Params params) {
  const uint32_t a = dev::load_global(params.in + dev::lane_idx());
  dev::store_global(params.out + dev::lane_idx(), dev::movmatrix_trans(a));
}
PAGEJIT_ENTRY(movmatrix, Params)

// in: per lane a[4], b0, b1, d[4]; step != 0: bf16.
PAGEJIT_KERNEL(32, 1) mma(const __grid_constant__ Params params) {
  const uint32_t* in = params.in + dev::lane_idx() * 10;
  uint32_t a[4];
  float d[4];
  for (int i = 0; i < 4; ++i) {
    a[i] = dev::load_global(in + i);
    d[i] = __builtin_bit_cast(float, dev::load_global(in + 6 + i));
  }
  const uint32_t b0 = dev::load_global(in + 4);
  const uint32_t b1 = dev::load_global(in + 5);
  if (params.step != 0) {
    dev::mma_m16n8k16_bf16(d, a, b0, b1);
  } else {
    dev::mma_m16n8k16_f16(d, a, b0, b1);
  }
  for (int i = 0; i < 4; ++i) {
    dev::store_global(params.out + dev::lane_idx() * 4 + i, __builtin_bit_cast(uint32_t, d[i]));
  }
}
PAGEJIT_ENTRY(mma, Params)
)";

struct Params {
  uint32_t* out;
  const uint32_t* in;
  int step;
};

class MatrixTest : public EmulatorTest {
 protected:
  // Element (matrix, row, column) of 8x8 matrices has a value of its own.
  static uint16_t element(int matrix, int row, int column) {
    return static_cast<uint16_t>(matrix * 1000 + row * 10 + column);
  }
  static std::vector<uint32_t> matrices(int count) {
    std::vector<uint32_t> words;
    for (int row = 0; row < count * 8; ++row) {
      for (int pair = 0; pair < 4; ++pair) {
        words.push_back(element(row / 8, row % 8, pair * 2) |
                        static_cast<uint32_t>(element(row / 8, row % 8, pair * 2 + 1)) << 16);
      }
    }
    return words;
  }
};

// PTX ISA, ldmatrix: lane l receives elements (l / 4, 2 * (l % 4)) and its right neighbour of each
// matrix.
TEST_F(MatrixTest, LdmatrixX4GivesEachLaneARowPairOfEachMatrix) {
  uint32_t* out = static_cast<uint32_t*>(allocate(32 * 16));
  const Params params = {out, upload(matrices(4)), 16};
  ASSERT_EQ(launch(kernel(kText, "x4"), {.shared_bytes = 512}, params), CUDA_SUCCESS) << report();
  const auto r = download(out, 128);
  for (int lane = 0; lane < 32; ++lane) {
    for (int m = 0; m < 4; ++m) {
      EXPECT_EQ(r[lane * 4 + m] & 0xffff, element(m, lane / 4, lane % 4 * 2));
      EXPECT_EQ(r[lane * 4 + m] >> 16, element(m, lane / 4, lane % 4 * 2 + 1));
    }
  }
}

TEST_F(MatrixTest, LdmatrixX4TransGivesEachLaneAColumnPairOfEachMatrix) {
  uint32_t* out = static_cast<uint32_t*>(allocate(32 * 16));
  const Params params = {out, upload(matrices(4)), 16};
  ASSERT_EQ(launch(kernel(kText, "x4_trans"), {.shared_bytes = 512}, params), CUDA_SUCCESS)
      << report();
  const auto r = download(out, 128);
  for (int lane = 0; lane < 32; ++lane) {
    for (int m = 0; m < 4; ++m) {
      EXPECT_EQ(r[lane * 4 + m] & 0xffff, element(m, lane % 4 * 2, lane / 4));
      EXPECT_EQ(r[lane * 4 + m] >> 16, element(m, lane % 4 * 2 + 1, lane / 4));
    }
  }
}

TEST_F(MatrixTest, LdmatrixX2UsesTheAddressesOfTheFirstSixteenLanesOnly) {
  uint32_t* out = static_cast<uint32_t*>(allocate(32 * 8));
  const Params params = {out, upload(matrices(2)), 16};
  ASSERT_EQ(launch(kernel(kText, "x2"), {.shared_bytes = 512}, params), CUDA_SUCCESS) << report();
  const auto r = download(out, 64);
  for (int lane = 0; lane < 32; ++lane) {
    for (int m = 0; m < 2; ++m) {
      EXPECT_EQ(r[lane * 2 + m] & 0xffff, element(m, lane / 4, lane % 4 * 2));
      EXPECT_EQ(r[lane * 2 + m] >> 16, element(m, lane / 4, lane % 4 * 2 + 1));
    }
  }
}

// Row i at i * step. Eight rows of 16 bytes: 16 and 144 bytes apart they take one cycle, 32 apart
// two, 128 apart eight.
TEST_F(MatrixTest, LdmatrixCountsBankConflicts) {
  struct Case {
    int step;
    uint64_t extra_per_matrix;
  };
  for (const Case& c : {Case{16, 0}, Case{144, 0}, Case{32, 1}, Case{128, 7}}) {
    symbol<decltype(pagejit_emulator_reset_counters)>("pagejit_emulator_reset_counters")();
    const Params params = {static_cast<uint32_t*>(allocate(32 * 16)), upload(matrices(4)), c.step};
    ASSERT_EQ(launch(kernel(kText, "x4"), {.shared_bytes = 31u * c.step + 16}, params),
              CUDA_SUCCESS)
        << report();
    EXPECT_EQ(counters().ldmatrix_phases, 4u);
    EXPECT_EQ(counters().ldmatrix_extra_cycles, 4 * c.extra_per_matrix) << "step " << c.step;
  }
}

TEST_F(MatrixTest, MovmatrixTransposes) {
  const auto words = matrices(1);  // lane l holds word l: row l / 4, pair l % 4
  uint32_t* out = static_cast<uint32_t*>(allocate(32 * 4));
  const Params params = {out, upload(words), 0};
  ASSERT_EQ(launch(kernel(kText, "movmatrix"), {}, params), CUDA_SUCCESS) << report();
  const auto r = download(out, 32);
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(r[lane] & 0xffff, element(0, lane % 4 * 2, lane / 4));
    EXPECT_EQ(r[lane] >> 16, element(0, lane % 4 * 2 + 1, lane / 4));
  }
}

// PTX ISA, mma.m16n8k16: places of a 16x16 a, a 16x8 b and a 16x8 d in the registers of lane 4 *
// group + thread.
class MmaTest : public MatrixTest, public ::testing::WithParamInterface<bool> {
 protected:
  using MatrixTest::kernel;
};

TEST_P(MmaTest, MatchesAPlainProductOfSmallIntegers) {
  const bool bf16 = GetParam();
  const auto pack = [bf16](int value) -> uint32_t {
    const auto x = static_cast<float>(value);
    return bf16 ? bf16_from_f32(x) : f16_from_f32(x);
  };
  // Small integers are exact in all formats; no two rows or columns are alike.
  int a[16][16];
  int b[16][8];
  int d[16][8];
  for (int i = 0; i < 16; ++i) {
    for (int k = 0; k < 16; ++k) a[i][k] = (i * 7 + k * 3) % 11 - 5;
    for (int j = 0; j < 8; ++j) {
      b[i][j] = (i * 5 + j * 9) % 13 - 6;
      d[i][j] = i * 100 + j;
    }
  }
  std::vector<uint32_t> in;
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane / 4;
    const int thread = lane % 4;
    for (int i = 0; i < 4; ++i) {
      const int row = group + (i % 2 == 0 ? 0 : 8);
      const int column = thread * 2 + (i < 2 ? 0 : 8);
      in.push_back(pack(a[row][column]) | pack(a[row][column + 1]) << 16);
    }
    for (int i = 0; i < 2; ++i) {
      const int row = thread * 2 + i * 8;
      in.push_back(pack(b[row][group]) | pack(b[row + 1][group]) << 16);
    }
    for (int i = 0; i < 4; ++i) {
      const int row = group + (i < 2 ? 0 : 8);
      in.push_back(f32_bits(static_cast<float>(d[row][thread * 2 + i % 2])));
    }
  }
  uint32_t* out = static_cast<uint32_t*>(allocate(32 * 16));
  const Params params = {out, upload(in), bf16 ? 1 : 0};
  ASSERT_EQ(launch(kernel(kText, "mma"), {}, params), CUDA_SUCCESS) << report();
  const auto r = download(out, 128);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + (i < 2 ? 0 : 8);
      const int column = lane % 4 * 2 + i % 2;
      int expected = d[row][column];
      for (int k = 0; k < 16; ++k) expected += a[row][k] * b[k][column];
      EXPECT_EQ(f32_from_bits(r[lane * 4 + i]), static_cast<float>(expected))
          << "row " << row << ", column " << column;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MmaTest, ::testing::Bool(), [](const auto& param_info) {
  return std::string(param_info.param ? "Bf16" : "F16");
});

}  // namespace
}  // namespace pagejit_emulator
