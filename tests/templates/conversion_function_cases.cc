// The cases of the functions that convert between element types.
#include <bit>

#include "tests/templates/device_function_cases.h"
#include "tools/reference/half.h"

namespace pagejit::testing {

std::vector<DeviceFunctionCase> conversion_function_cases() {
  std::vector<DeviceFunctionCase> cases;
  // All codes: each of 256 threads takes 256.
  cases.push_back(
      {"UnpackF16",
       "for (int i = 0; i < 256; ++i) out[i * 256 + lane] = __builtin_bit_cast("
       "uint32_t, dev::unpack_f16(static_cast<uint16_t>(i * 256 + lane)));",
       256, 65536, [](const Words&) {
         Words out;
         for (uint32_t code = 0; code < 65536; ++code) {
           out.push_back(std::bit_cast<uint32_t>(float_from_f16(static_cast<uint16_t>(code))));
         }
         return out;
       }});
  return cases;
}

}  // namespace pagejit::testing
