// Conformance cases of the device functions: a tiny kernel for each, and what it must write,
// computed by plain loops from the PTX ISA's definition. They run on a GPU and on the emulator
// alike; each list of functions is checked against the other by way of these.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pagejit::testing {

using Words = std::vector<uint32_t>;

struct DeviceFunctionCase {
  std::string name;
  // Statements of a kernel with `const uint32_t* in`, `uint32_t* out` (global memory), `int lane`
  // (thread of the CTA) and `uint32_t* shared`.
  std::string body;
  int num_threads = 32;
  int num_outputs = 0;  // words
  // The expected output words for input words (kInputWords of them, any bits).
  std::function<Words(const Words& in)> expected;
  // Largest difference of two f32 words relative to the expected one; 0: the same bits.
  double tolerance = 0;
  int least_sm = 75;  // the first target that has the function
  // With the device functions of programmatic dependent launch, and launched in that way.
  bool pdl = false;
};

inline constexpr int kInputWords = 1024;

std::vector<DeviceFunctionCase> device_function_cases();
// Those of them that are about memory.
std::vector<DeviceFunctionCase> memory_function_cases();
// Those that are about matrices.
std::vector<DeviceFunctionCase> matrix_function_cases();
// Those that round to 8-bit floats.
std::vector<DeviceFunctionCase> float8_function_cases();

// And about conversions of small elements.
std::vector<DeviceFunctionCase> conversion_function_cases();

// The kernel "conformance" of a case, to be put behind the device functions of a target.
std::string kernel_text(const DeviceFunctionCase& test);

}  // namespace pagejit::testing
