// Conversions against the formats' definitions: every code, every tie, both sides of every tie, and
// a search through all codes.
#include "tools/reference/narrow_float.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "tools/reference/random.h"

namespace pagejit {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Format {
  DataType type;
  int exponent_bits;
  int mantissa_bits;
  bool saturates = false;
  // e4m3: the codes of the greatest exponent are numbers but for the last.
  bool has_infinity = true;

  int bits() const { return 1 + exponent_bits + mantissa_bits; }
  uint32_t sign() const { return 1u << (bits() - 1); }
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint32_t canonical_nan() const { return sign() - 1; }
  // The first code that is no finite number.
  uint32_t end() const {
    return has_infinity ? ((1u << exponent_bits) - 1) << mantissa_bits : canonical_nan();
  }
  bool is_infinity(uint32_t code) const { return has_infinity && (code & ~sign()) == end(); }
  bool is_nan(uint32_t code) const { return (code & ~sign()) >= end() && !is_infinity(code); }
  // What lies beyond the range becomes.
  uint32_t overflow() const { return saturates ? end() - 1 : end(); }

  // The value of a finite code, written down from the definition.
  double value(uint32_t code) const {
    const int exponent = static_cast<int>((code & ~sign()) >> mantissa_bits);
    const int mantissa = static_cast<int>(code & ((1u << mantissa_bits) - 1));
    const double magnitude = exponent == 0 ? std::ldexp(mantissa, 1 - bias() - mantissa_bits)
                                           : std::ldexp(mantissa + (1 << mantissa_bits),
                                                        exponent - bias() - mantissa_bits);
    return (code & sign()) != 0 ? -magnitude : magnitude;
  }
};

class NarrowFloatTest : public testing::TestWithParam<Format> {};

TEST_P(NarrowFloatTest, EveryCodeDecodesToItsDefinitionAndBack) {
  const Format format = GetParam();
  int num_nan = 0;
  for (uint32_t code = 0; code < 2 * format.sign(); ++code) {
    const float decoded = decode_float(format.type, code);
    if (format.is_nan(code)) {
      ++num_nan;
      ASSERT_TRUE(std::isnan(decoded)) << code;
      ASSERT_EQ(encode_float(format.type, decoded), format.canonical_nan()) << code;
      continue;
    }
    ASSERT_EQ(std::signbit(decoded), (code & format.sign()) != 0) << code;
    if (format.is_infinity(code)) {
      ASSERT_TRUE(std::isinf(decoded)) << code;
      ASSERT_EQ(encode_float(format.type, decoded), format.overflow() | (code & format.sign()));
      continue;
    }
    ASSERT_EQ(static_cast<double>(decoded), format.value(code)) << code;
    ASSERT_EQ(encode_float(format.type, decoded), code);
  }
  const int num_mantissas = 1 << format.mantissa_bits;
  EXPECT_EQ(num_nan, format.has_infinity ? 2 * (num_mantissas - 1) : 2);
}

TEST_P(NarrowFloatTest, TiesGoToEvenAndNeighboursOfTiesToTheNearest) {
  const Format format = GetParam();
  for (uint32_t code = 0; code < format.end(); ++code) {
    const uint32_t next = code + 1 < format.end() ? code + 1 : format.overflow();
    // The step out of the range is as wide as the one before it.
    const double upper = code + 1 < format.end() ? format.value(code + 1)
                                                 : 2 * format.value(code) - format.value(code - 1);
    const auto tie = static_cast<float>((format.value(code) + upper) / 2);
    ASSERT_EQ(static_cast<double>(tie), (format.value(code) + upper) / 2) << "tie not exact";
    const uint32_t even = (code & 1) == 0 ? code : next;
    ASSERT_EQ(encode_float(format.type, tie), even) << code;
    ASSERT_EQ(encode_float(format.type, -tie), even | format.sign()) << code;
    ASSERT_EQ(encode_float(format.type, std::nextafter(tie, 0.0f)), code);
    ASSERT_EQ(encode_float(format.type, std::nextafter(tie, kInfinity)), next);
  }
}

// No other code may be nearer; of 8 bits all are tried, of 16 the neighbours.
TEST_P(NarrowFloatTest, RandomFloatsRoundToTheNearestCode) {
  const Format format = GetParam();
  SplitMix64 rng(7);
  int num_checked = 0;
  for (int i = 0; i < 200000; ++i) {
    float value = std::bit_cast<float>(static_cast<uint32_t>(rng.next()));
    // Half of them in the range of the least formats.
    if (i % 2 == 0) value = std::ldexp(rng.normal(), static_cast<int>(rng.below(36)) - 20);
    const uint32_t code = encode_float(format.type, value);
    if (std::isnan(value)) {
      ASSERT_EQ(code, format.canonical_nan());
      continue;
    }
    ASSERT_EQ((code & format.sign()) != 0, std::signbit(value));
    const uint32_t magnitude = code & ~format.sign();
    if (magnitude == format.overflow()) {
      // Saturated, or rounded to the greatest value from below.
      const double last = format.value(format.end() - 1);
      const double step = last - format.value(format.end() - 2);
      ASSERT_GE(std::abs(value), format.saturates ? last - step / 2 : last);
      continue;
    }
    const double error = std::abs(format.value(magnitude) - std::abs(value));
    const bool all = format.bits() == 8;
    const uint32_t begin = all || magnitude == 0 ? 0 : magnitude - 1;
    const uint32_t end = all || magnitude + 2 > format.end() ? format.end() : magnitude + 2;
    for (uint32_t other = begin; other < end; ++other) {
      ASSERT_LE(error, std::abs(format.value(other) - std::abs(value))) << value;
    }
    ++num_checked;
  }
  EXPECT_GT(num_checked, 20000);
}

TEST_P(NarrowFloatTest, WhatLiesBeyondTheRangeSaturatesWhereTheFormatDoes) {
  const Format format = GetParam();
  const float greatest = greatest_value(format.type);
  EXPECT_EQ(static_cast<double>(greatest), format.value(format.end() - 1));
  EXPECT_EQ(encode_float(format.type, greatest), format.end() - 1);
  for (float beyond : {std::numeric_limits<float>::max(), kInfinity}) {
    EXPECT_EQ(encode_float(format.type, beyond), format.overflow());
    EXPECT_EQ(encode_float(format.type, -beyond), format.overflow() | format.sign());
  }
}

TEST_P(NarrowFloatTest, UnitRoundoffIsTheErrorOfTheFirstTieAboveOne) {
  const Format format = GetParam();
  const double tie = 1 + unit_roundoff(format.type);
  EXPECT_EQ(round_to_type(format.type, static_cast<float>(tie)), 1.0f);
  EXPECT_EQ(round_to_type(format.type, std::nextafter(static_cast<float>(tie), 2.0f)),
            static_cast<float>(1 + 2 * unit_roundoff(format.type)));
}

TEST_P(NarrowFloatTest, ElementsAreLoadedFromAnyAddress) {
  const Format format = GetParam();
  const int bytes = data_type_bytes(format.type);
  unsigned char array[32];
  for (int i = 0; i < 5; ++i) {
    const uint32_t code = encode_float(format.type, static_cast<float>(i) - 2.5f);
    std::memcpy(array + 1 + i * bytes, &code, static_cast<size_t>(bytes));
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(load_element(format.type, array + 1, i), static_cast<float>(i) - 2.5f);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, NarrowFloatTest,
                         testing::Values(Format{DataType::kFloat16, 5, 10},
                                         Format{DataType::kBFloat16, 8, 7},
                                         Format{DataType::kFloat8E4m3, 4, 3, true, false},
                                         Format{DataType::kFloat8E5m2, 5, 2, true}),
                         [](const testing::TestParamInfo<Format>& test) {
                           return std::string(data_type_name(test.param.type));
                         });

// The values that the specification of OFP8 lists in its tables.
TEST(NarrowFloatTypesTest, TheFormatsOf8BitsHaveTheirTabulatedValues) {
  const DataType e4m3 = DataType::kFloat8E4m3;
  EXPECT_EQ(decode_float(e4m3, 0x7e), 448.0f);
  EXPECT_EQ(decode_float(e4m3, 0x08), 0x1p-6f);
  EXPECT_EQ(decode_float(e4m3, 0x07), 0.875f * 0x1p-6f);
  EXPECT_EQ(decode_float(e4m3, 0x01), 0x1p-9f);
  EXPECT_TRUE(std::isnan(decode_float(e4m3, 0x7f)) && std::isnan(decode_float(e4m3, 0xff)));
  const DataType e5m2 = DataType::kFloat8E5m2;
  EXPECT_EQ(decode_float(e5m2, 0x7b), 57344.0f);
  EXPECT_EQ(decode_float(e5m2, 0x04), 0x1p-14f);
  EXPECT_EQ(decode_float(e5m2, 0x03), 0.75f * 0x1p-14f);
  EXPECT_EQ(decode_float(e5m2, 0x01), 0x1p-16f);
  EXPECT_EQ(decode_float(e5m2, 0x7c), kInfinity);
  for (uint32_t nan : {0x7du, 0x7eu, 0x7fu, 0xffu}) {
    EXPECT_TRUE(std::isnan(decode_float(e5m2, nan))) << nan;
  }
}

TEST(NarrowFloatTypesTest, Int4IsATwosComplementThatSaturates) {
  const DataType int4 = DataType::kInt4;
  for (int value = -8; value <= 7; ++value) {
    const uint32_t code = static_cast<uint32_t>(value) & 0xfu;
    EXPECT_EQ(decode_float(int4, code), static_cast<float>(value));
    EXPECT_EQ(encode_float(int4, static_cast<float>(value)), code);
  }
  EXPECT_EQ(encode_float(int4, 2.5f), 2u);
  EXPECT_EQ(encode_float(int4, -3.5f), 0xcu);
  EXPECT_EQ(encode_float(int4, kInfinity), 7u);
  EXPECT_EQ(encode_float(int4, -kInfinity), 8u);
  EXPECT_EQ(encode_float(int4, std::numeric_limits<float>::quiet_NaN()), 0u);
  EXPECT_EQ(greatest_value(int4), 7.0f);
  const unsigned char bytes[] = {0x00, 0x81, 0xf7};
  const float values[] = {1, -8, 7, -1};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(load_element(int4, bytes + 1, i), values[i]) << i;
}

TEST(NarrowFloatTypesTest, Float32StaysAsItIs) {
  const DataType f32 = DataType::kFloat32;
  for (float value : {0.0f, -1.1f, 0x1p-149f, std::numeric_limits<float>::max(), kInfinity}) {
    EXPECT_EQ(encode_float(f32, value), std::bit_cast<uint32_t>(value));
    EXPECT_EQ(round_to_type(f32, value), value);
    EXPECT_EQ(load_element(f32, &value, 0), value);
  }
  EXPECT_EQ(unit_roundoff(f32), 0x1p-24);
  EXPECT_EQ(greatest_value(f32), std::numeric_limits<float>::max());
}

}  // namespace
}  // namespace pagejit
