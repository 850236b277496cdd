// The cases of the functions that convert and rearrange small elements. NaN has many codes: each
// kernel writes one of its own for all.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/templates/device_function_cases.h"
#include "tools/reference/narrow_float.h"

namespace pagejit::testing {
namespace {

constexpr uint32_t kHalfNan = 0x7fff;
constexpr uint32_t kFloatNan = 0x7fc00000;

// OFP8 e4m3 by its definition: (-1)^s 2^(e-7) (1 + m/8), 2^-6 m/8 where e is 0, NaN where all is 1.
double value_of_e4m3(uint32_t code) {
  const uint32_t exponent = code >> 3 & 15;
  const double fraction = (code & 7) / 8.0;
  if ((code & 127) == 127) return std::numeric_limits<double>::quiet_NaN();
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -6)
                                         : std::ldexp(1 + fraction, static_cast<int>(exponent) - 7);
  return code >> 7 != 0 ? -magnitude : magnitude;
}

uint32_t half_code(double value) {
  return std::isnan(value) ? kHalfNan : encode_float(DataType::kFloat16, static_cast<float>(value));
}

// Rounded once, though the value has more digits than a float.
uint32_t half_code_of_sum(double value) {
  if (!std::isfinite(value) || value == 0) return half_code(value);
  const int unit = std::max(std::ilogb(value), -14) - 10;
  return half_code(std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit));
}

uint32_t float_code(float value) {
  return std::isnan(value) ? kFloatNan : std::bit_cast<uint32_t>(value);
}

// All 65,536 inputs of 16 bits, 2,048 for each lane.
DeviceFunctionCase for_all_16_bits(const char* name, const std::string& statements,
                                   uint32_t (*expected)(uint32_t)) {
  DeviceFunctionCase test;
  test.name = name;
  test.body = "for (uint32_t x = static_cast<uint32_t>(lane); x < 65536; x += 32) {" + statements +
              "out[x] = y; }";
  test.num_outputs = 65536;
  test.expected = [expected](const Words&) {
    Words out;
    for (uint32_t x = 0; x < 65536; ++x) out.push_back(expected(x));
    return out;
  };
  return test;
}

const char kCanonicalHalves[] =
    "if ((y & 0x7fffu) > 0x7c00u) y = (y & 0xffff0000u) | 0x7fffu;"
    "if ((y >> 16 & 0x7fffu) > 0x7c00u) y = (y & 0xffffu) | 0x7fff0000u;";

}  // namespace

std::vector<DeviceFunctionCase> conversion_function_cases() {
  std::vector<DeviceFunctionCase> cases;
  cases.push_back(
      for_all_16_bits("UnpackF16",
                      "const float v = dev::unpack_f16(static_cast<uint16_t>(x));"
                      "const uint32_t y = v != v ? 0x7fc00000u : __builtin_bit_cast(uint32_t, v);",
                      [](uint32_t x) { return float_code(decode_float(DataType::kFloat16, x)); }));
  cases.push_back(for_all_16_bits(
      "UnpackE4m3x2",
      "uint32_t y = dev::unpack_e4m3x2(x | x << 16);" + std::string(kCanonicalHalves),
      [](uint32_t x) {
        return half_code(value_of_e4m3(x & 255)) | half_code(value_of_e4m3(x >> 8)) << 16;
      }));
  cases.back().least_sm = 89;
  for (const bool is_sum : {false, true}) {
    cases.push_back({is_sum ? "AddF16x2" : "MulF16x2",
                     "for (int i = lane; i < 512; i += 32) {"
                     "uint32_t y = dev::" +
                         std::string(is_sum ? "add" : "mul") + "_f16x2(in[i], in[i + 512]);" +
                         std::string(kCanonicalHalves) + "out[i] = y; }",
                     32, 512, [is_sum](const Words& in) {
                       Words out;
                       for (size_t i = 0; i < 512; ++i) {
                         const auto result = [&](int shift) {
                           const auto value = [&](uint32_t word) {
                             return double{
                                 decode_float(DataType::kFloat16, word >> shift & 0xffffu)};
                           };
                           const double a = value(in[i]);
                           const double b = value(in[i + 512]);
                           // In double both are exact before the one rounding.
                           return half_code(is_sum ? a + b : a * b);
                         };
                         out.push_back(result(0) | result(16) << 16);
                       }
                       return out;
                     }});
  }
  cases.push_back({"FmaF16x2",
                   "for (int i = lane; i < 512; i += 32) {"
                   "uint32_t y = dev::fma_f16x2(in[i], in[i + 512], in[511 - i]);" +
                       std::string(kCanonicalHalves) + "out[i] = y; }",
                   32, 512, [](const Words& in) {
                     Words out;
                     for (size_t i = 0; i < 512; ++i) {
                       const auto result = [&](int shift) {
                         const auto value = [&](uint32_t word) {
                           return double{decode_float(DataType::kFloat16, word >> shift & 0xffffu)};
                         };
                         return half_code_of_sum(value(in[i]) * value(in[i + 512]) +
                                                 value(in[511 - i]));
                       };
                       out.push_back(result(0) | result(16) << 16);
                     }
                     return out;
                   }});
  cases.push_back({"AndXor",
                   "for (int i = lane; i < 512; i += 32) {"
                   "out[i] = dev::and_xor(in[i], in[i + 512], in[511 - i]); }",
                   32, 512, [](const Words& in) {
                     Words out;
                     for (size_t i = 0; i < 512; ++i) {
                       out.push_back((in[i] & in[i + 512]) ^ in[511 - i]);
                     }
                     return out;
                   }});
  cases.push_back({"PermuteBytes",
                   "for (int i = lane; i < 256; i += 32) {"
                   "out[i] = dev::permute_bytes(in[i], in[i + 256], in[i + 512] & 0x7777u); }",
                   32, 256, [](const Words& in) {
                     Words out;
                     for (size_t i = 0; i < 256; ++i) {
                       uint32_t word = 0;
                       for (int byte = 0; byte < 4; ++byte) {
                         const uint32_t from = in[i + 512] >> (4 * byte) & 7;
                         const uint32_t source = from < 4 ? in[i] : in[i + 256];
                         word |= (source >> (from % 4 * 8) & 255) << (8 * byte);
                       }
                       out.push_back(word);
                     }
                     return out;
                   }});
  return cases;
}

}  // namespace pagejit::testing
