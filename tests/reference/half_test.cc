// Half conversions against the formats' definition: every code, every tie, and both sides of every
// tie.
#include "tools/reference/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tools/reference/random.h"

namespace pagejit {
namespace {

struct Format {
  DataType type;
  int exponent_bits;
  int mantissa_bits;

  int max_exponent() const { return (1 << exponent_bits) - 1; }
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint16_t infinity() const { return static_cast<uint16_t>(max_exponent() << mantissa_bits); }
  bool is_nan(uint16_t code) const { return (code & 0x7fff) > infinity(); }

  // The value of a finite code, written down from the definition.
  double value(uint16_t code) const {
    const int exponent = (code & 0x7fff) >> mantissa_bits;
    const int mantissa = code & ((1 << mantissa_bits) - 1);
    const double magnitude = exponent == 0 ? std::ldexp(mantissa, 1 - bias() - mantissa_bits)
                                           : std::ldexp(mantissa + (1 << mantissa_bits),
                                                        exponent - bias() - mantissa_bits);
    return (code & 0x8000) != 0 ? -magnitude : magnitude;
  }
};

class HalfTest : public testing::TestWithParam<Format> {};

TEST_P(HalfTest, EveryCodeDecodesToItsDefinitionAndBack) {
  const Format format = GetParam();
  for (uint32_t wide = 0; wide < 65536; ++wide) {
    const auto code = static_cast<uint16_t>(wide);
    const float decoded = decode_half(format.type, code);
    if (format.is_nan(code)) {
      ASSERT_TRUE(std::isnan(decoded)) << code;
      ASSERT_EQ(encode_half(format.type, decoded), 0x7fff) << code;
      continue;
    }
    if ((code & 0x7fff) == format.infinity()) {
      ASSERT_TRUE(std::isinf(decoded)) << code;
    } else {
      ASSERT_EQ(static_cast<double>(decoded), format.value(code)) << code;
    }
    ASSERT_EQ(std::signbit(decoded), (code & 0x8000) != 0) << code;
    ASSERT_EQ(encode_half(format.type, decoded), code);
  }
}

TEST_P(HalfTest, TiesGoToEvenAndNeighboursOfTiesToTheNearest) {
  const Format format = GetParam();
  const float infinity = std::numeric_limits<float>::infinity();
  for (uint16_t code = 0; code < format.infinity(); ++code) {
    const auto next = static_cast<uint16_t>(code + 1);
    // The step to infinity is as wide as the one before it.
    const double upper =
        next == format.infinity()
            ? 2 * format.value(code) - format.value(static_cast<uint16_t>(code - 1))
            : format.value(next);
    const auto tie = static_cast<float>((format.value(code) + upper) / 2);
    ASSERT_EQ(static_cast<double>(tie), (format.value(code) + upper) / 2) << "tie not exact";
    const uint16_t even = (code & 1) == 0 ? code : next;
    ASSERT_EQ(encode_half(format.type, tie), even) << code;
    ASSERT_EQ(encode_half(format.type, -tie), even | 0x8000) << code;
    ASSERT_EQ(encode_half(format.type, std::nextafter(tie, 0.0f)), code);
    ASSERT_EQ(encode_half(format.type, std::nextafter(tie, infinity)), next);
  }
}

TEST_P(HalfTest, RandomFloatsRoundToTheNearestCode) {
  const Format format = GetParam();
  SplitMix64 rng(7);
  int num_checked = 0;
  for (int i = 0; i < 200000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(rng.next()));
    const uint16_t code = encode_half(format.type, value);
    if (std::isnan(value)) {
      ASSERT_EQ(code, 0x7fff);
      continue;
    }
    if ((code & 0x7fff) == format.infinity() || (code & 0x7fff) == 0) continue;
    const double error = std::abs(format.value(code) - value);
    ASSERT_LE(error, std::abs(format.value(static_cast<uint16_t>(code - 1)) - value));
    if ((code & 0x7fff) + 1 < format.infinity()) {
      ASSERT_LE(error, std::abs(format.value(static_cast<uint16_t>(code + 1)) - value));
    }
    ++num_checked;
  }
  EXPECT_GT(num_checked, 20000);
}

TEST_P(HalfTest, UnitRoundoffIsTheErrorOfTheFirstTieAboveOne) {
  const Format format = GetParam();
  const double tie = 1 + unit_roundoff(format.type);
  EXPECT_EQ(round_to_half(format.type, static_cast<float>(tie)), 1.0f);
  EXPECT_EQ(round_to_half(format.type, std::nextafter(static_cast<float>(tie), 2.0f)),
            static_cast<float>(1 + 2 * unit_roundoff(format.type)));
}

INSTANTIATE_TEST_SUITE_P(Types, HalfTest,
                         testing::Values(Format{DataType::kFloat16, 5, 10},
                                         Format{DataType::kBFloat16, 8, 7}),
                         [](const testing::TestParamInfo<Format>& test) {
                           return std::string(data_type_name(test.param.type));
                         });

}  // namespace
}  // namespace pagejit
