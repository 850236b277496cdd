// The cases of the functions that round to 8-bit floats.
#include <bit>

#include "tests/templates/device_function_cases.h"
#include "tools/reference/narrow_float.h"

namespace pagejit::testing {
namespace {

constexpr int kFirstSmWithFloat8 = 89;

// Every f16 as the low value, another one as the high.
DeviceFunctionCase pack_float8_case(DataType type) {
  DeviceFunctionCase test;
  test.name = type == DataType::kFloat8E4m3 ? "PackE4m3x2" : "PackE5m2x2";
  test.body =
      "for (int i = 0; i < 256; ++i) { const int code = i * 256 + lane;"
      "out[code] = dev::pack_" +
      std::string(type == DataType::kFloat8E4m3 ? "e4m3" : "e5m2") +
      "x2(dev::unpack_f16(static_cast<uint16_t>(code)),"
      "dev::unpack_f16(static_cast<uint16_t>(code * 5 + 1))); }";
  test.num_threads = 256;
  test.num_outputs = 65536;
  test.least_sm = kFirstSmWithFloat8;
  test.expected = [type](const Words&) {
    Words out;
    for (uint32_t code = 0; code < 65536; ++code) {
      const uint32_t low =
          encode_float(type, decode_float(DataType::kFloat16, static_cast<uint16_t>(code)));
      const uint32_t high =
          encode_float(type, decode_float(DataType::kFloat16, static_cast<uint16_t>(code * 5 + 1)));
      out.push_back(low | high << 8);
    }
    return out;
  };
  return test;
}

}  // namespace

std::vector<DeviceFunctionCase> float8_function_cases() {
  std::vector<DeviceFunctionCase> cases;
  cases.push_back(pack_float8_case(DataType::kFloat8E4m3));
  cases.push_back(pack_float8_case(DataType::kFloat8E5m2));
  return cases;
}

}  // namespace pagejit::testing
