#include "templates/device/host/float16.cuh"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

namespace pagejit_emulator {
namespace {

// The nearest number with `fraction_bits` and exponents from min_exponent on, ties to even, in
// double arithmetic only.
double rounded(double x, int fraction_bits, int min_exponent, double largest) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent = std::ilogb(x);
  if (exponent < min_exponent) exponent = min_exponent;
  const double unit = std::ldexp(1.0, exponent - fraction_bits);
  const double result = std::nearbyint(x / unit) * unit;
  return std::fabs(result) > largest ? std::copysign(INFINITY, x) : result;
}

double value_of_f16(uint16_t h) {
  const int exponent = h >> 10 & 31;
  const double fraction = h & 0x3ff;
  double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) magnitude = fraction == 0 ? INFINITY : NAN;
  return h & 0x8000 ? -magnitude : magnitude;
}

double value_of_bf16(uint16_t h) {
  const int exponent = h >> 7 & 255;
  const double fraction = h & 0x7f;
  double magnitude =
      exponent == 0 ? std::ldexp(fraction, -133) : std::ldexp(128 + fraction, exponent - 134);
  if (exponent == 255) magnitude = fraction == 0 ? INFINITY : NAN;
  return h & 0x8000 ? -magnitude : magnitude;
}

void expect_same(double got, double expected, float x) {
  if (std::isnan(expected)) {
    ASSERT_TRUE(std::isnan(got)) << x;
  } else {
    ASSERT_EQ(got, expected) << std::hexfloat << x;
    ASSERT_EQ(std::signbit(got), std::signbit(expected)) << x;
  }
}

void check(uint32_t bits) {
  const float x = f32_from_bits(bits);
  expect_same(value_of_f16(f16_from_f32(x)), rounded(x, 10, -14, 65504), x);
  expect_same(value_of_bf16(bf16_from_f32(x)), rounded(x, 7, -126, std::ldexp(255, 120)), x);
}

TEST(Float16Test, EveryCodeComesBack) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const auto h = static_cast<uint16_t>(code);
    expect_same(f32_from_f16(h), value_of_f16(h), 0);
    expect_same(f32_from_bf16(h), value_of_bf16(h), 0);
    if (!std::isnan(value_of_f16(h))) {
      ASSERT_EQ(f16_from_f32(f32_from_f16(h)), h);
    }
    if (!std::isnan(value_of_bf16(h))) {
      ASSERT_EQ(bf16_from_f32(f32_from_bf16(h)), h);
    }
  }
}

TEST(Float16Test, NumbersAroundEveryCodeAndTieRoundToNearestEven) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    for (uint32_t around : {f32_bits(f32_from_f16(static_cast<uint16_t>(code))), code << 16}) {
      for (int offset :
           {-0x1001, -0x1000, -0xfff, -1, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001}) {
        ASSERT_NO_FATAL_FAILURE(check(around + static_cast<uint32_t>(offset)));
      }
    }
  }
}

TEST(Float16Test, RandomBitPatternsRoundToNearestEven) {
  std::mt19937 random(11);
  for (int i = 0; i < 2'000'000; ++i)
    ASSERT_NO_FATAL_FAILURE(check(static_cast<uint32_t>(random())));
}

TEST(Float16Test, NanIsTheGpusCanonicalOne) {
  EXPECT_EQ(f16_from_f32(f32_from_bits(0xffc00001u)), 0x7fff);
  EXPECT_EQ(bf16_from_f32(f32_from_bits(0x7f800001u)), 0x7fff);
}

}  // namespace
}  // namespace pagejit_emulator
