// The cases of the functions that convert between element types.
#include <bit>

#include "tests/templates/device_function_cases.h"
#include "tools/reference/float8.h"
#include "tools/reference/half.h"

namespace pagejit::testing {
namespace {

constexpr int kFirstSmWithFloat8 = 89;

// Every f16 as the low value, another one as the high.
DeviceFunctionCase pack_float8_case(DataType type) {
  DeviceFunctionCase test;
  test.name = type == DataType::kFloat8E4M3 ? "PackE4m3x2" : "PackE5m2x2";
  test.body =
      "for (int i = 0; i < 256; ++i) { const int code = i * 256 + lane;"
      "out[code] = dev::pack_" +
      std::string(data_type_name(type)) +
      "x2(dev::unpack_f16(static_cast<uint16_t>(code)),"
      "dev::unpack_f16(static_cast<uint16_t>(code * 5 + 1))); }";
  test.num_threads = 256;
  test.num_outputs = 65536;
  test.min_sm = kFirstSmWithFloat8;
  test.expected = [type](const Words&) {
    Words out;
    for (uint32_t code = 0; code < 65536; ++code) {
      const uint32_t low = encode_float8(type, float_from_f16(static_cast<uint16_t>(code)));
      const uint32_t high =
          encode_float8(type, float_from_f16(static_cast<uint16_t>(code * 5 + 1)));
      out.push_back(low | high << 8);
    }
    return out;
  };
  return test;
}

}  // namespace

std::vector<DeviceFunctionCase> conversion_function_cases() {
  std::vector<DeviceFunctionCase> cases;
  // All codes: each of 256 threads takes 256.
  cases.push_back({"UnpackF16",
                   "for (int i = 0; i < 256; ++i) out[i * 256 + lane] = __builtin_bit_cast("
                   "uint32_t, dev::unpack_f16(static_cast<uint16_t>(i * 256 + lane)));",
                   256, 65536, [](const Words&) {
                     Words out;
                     for (uint32_t code = 0; code < 65536; ++code) {
                       out.push_back(
                           std::bit_cast<uint32_t>(float_from_f16(static_cast<uint16_t>(code))));
                     }
                     return out;
                   }});
  cases.push_back(pack_float8_case(DataType::kFloat8E4M3));
  cases.push_back(pack_float8_case(DataType::kFloat8E5M2));
  cases.push_back(
      {"UnpackE4m3x2",
       "out[lane] = dev::unpack_e4m3x2(static_cast<uint16_t>(lane | (255 - lane) << 8));", 256, 256,
       [](const Words&) {
         Words out;
         const auto half = [](uint32_t code) -> uint32_t {
           return f16_from_float(decode_float8(DataType::kFloat8E4M3, static_cast<uint8_t>(code)));
         };
         for (uint32_t code = 0; code < 256; ++code) {
           out.push_back(half(code) | half(255 - code) << 16);
         }
         return out;
       },
       0, kFirstSmWithFloat8});
  return cases;
}

}  // namespace pagejit::testing
