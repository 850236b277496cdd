#include "tests/templates/device_function_cases.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tools/reference/narrow_float.h"

namespace pagejit::testing {
namespace {

float as_float(uint32_t bits) { return std::bit_cast<float>(bits); }
uint32_t as_bits(float value) { return std::bit_cast<uint32_t>(value); }

DeviceFunctionCase unary_case(const char* name, const char* call, double tolerance,
                              std::function<double(double)> function) {
  DeviceFunctionCase test;
  test.name = name;
  test.body =
      "float x = static_cast<float>(static_cast<int>(in[lane] % 4096)) / 64.0f - 32.0f;"
      "out[lane] = __builtin_bit_cast(uint32_t, " +
      std::string(call) + ");";
  test.num_threads = 256;
  test.num_outputs = 256;
  test.tolerance = tolerance;
  test.expected = [function](const Words& in) {
    Words out;
    for (size_t i = 0; i < 256; ++i) {
      out.push_back(
          as_bits(static_cast<float>(function(static_cast<double>(in[i] % 4096) / 64.0 - 32.0))));
    }
    return out;
  };
  return test;
}

DeviceFunctionCase pack_case(DataType type) {
  DeviceFunctionCase test;
  test.name = type == DataType::kFloat16 ? "PackF16x2" : "PackBf16x2";
  // All bits are possible inputs, so that ties, overflow, subnormals and infinities occur; the
  // exponent is moved around 1 for half of them.
  test.body = R"(
    uint32_t a = in[lane];
    uint32_t b = in[lane + 256];
    if (lane % 2 == 0) { a = (a & 0x87ffffffu) | 0x38000000u; b = (b & 0x87ffffffu) | 0x38000000u; }
    if (lane % 8 == 0) { a &= 0xfffff000u; b &= 0xffff8000u; }
    out[lane] = dev::pack_)" +
              std::string(type == DataType::kFloat16 ? "f16x2" : "bf16x2") +
              R"((__builtin_bit_cast(float, a), __builtin_bit_cast(float, b));)";
  test.num_threads = 256;
  test.num_outputs = 256;
  test.expected = [type](const Words& in) {
    Words out;
    for (size_t i = 0; i < 256; ++i) {
      uint32_t a = in[i];
      uint32_t b = in[i + 256];
      if (i % 2 == 0) {
        a = (a & 0x87ffffffu) | 0x38000000u;
        b = (b & 0x87ffffffu) | 0x38000000u;
      }
      if (i % 8 == 0) {
        a &= 0xfffff000u;
        b &= 0xffff8000u;
      }
      out.push_back(encode_float(type, as_float(a)) | encode_float(type, as_float(b)) << 16);
    }
    return out;
  };
  return test;
}

std::vector<DeviceFunctionCase> exchange_cases() {
  std::vector<DeviceFunctionCase> cases;
  cases.push_back({"Indices",
                   "out[lane * 4] = static_cast<uint32_t>(dev::thread_idx());"
                   "out[lane * 4 + 1] = static_cast<uint32_t>(dev::lane_idx());"
                   "out[lane * 4 + 2] = static_cast<uint32_t>(dev::block_idx_x() + "
                   "dev::block_idx_y() + dev::block_idx_z());"
                   "out[lane * 4 + 3] = static_cast<uint32_t>(dev::grid_dim_x() * "
                   "dev::grid_dim_y() * dev::grid_dim_z());",
                   64, 256, [](const Words&) {
                     Words out;
                     for (uint32_t i = 0; i < 64; ++i) out.insert(out.end(), {i, i % 32, 0, 1});
                     return out;
                   }});
  cases.push_back({"Shuffle",
                   "out[lane] = dev::shuffle(in[lane], static_cast<int>(in[32 + lane] % 32));", 32,
                   32, [](const Words& in) {
                     Words out;
                     for (size_t i = 0; i < 32; ++i) out.push_back(in[in[32 + i] % 32]);
                     return out;
                   }});
  cases.push_back({"Shuffle64",
                   "const uint64_t v = static_cast<uint64_t>(in[lane]) << 32 | in[lane + 32];"
                   "const uint64_t got = dev::shuffle(v, (lane * 7 + 3) % 32);"
                   "out[lane * 2] = static_cast<uint32_t>(got >> 32); out[lane * 2 + 1] = "
                   "static_cast<uint32_t>(got);",
                   32, 64, [](const Words& in) {
                     Words out;
                     for (size_t i = 0; i < 32; ++i) {
                       const size_t from = (i * 7 + 3) % 32;
                       out.insert(out.end(), {in[from], in[from + 32]});
                     }
                     return out;
                   }});
  cases.push_back({"ShuffleXor",
                   "for (int i = 0; i < 5; ++i) out[lane * 5 + i] = __builtin_bit_cast(uint32_t, "
                   "dev::shuffle_xor(static_cast<float>(in[lane] % 65536), 1 << i));",
                   32, 160, [](const Words& in) {
                     Words out;
                     for (size_t lane = 0; lane < 32; ++lane) {
                       for (size_t i = 0; i < 5; ++i) {
                         out.push_back(
                             as_bits(static_cast<float>(in[lane ^ (size_t{1} << i)] % 65536)));
                       }
                     }
                     return out;
                   }});
  cases.push_back({"Any",
                   "out[lane * 3] = dev::any(false); out[lane * 3 + 1] = dev::any(lane == 17);"
                   "out[lane * 3 + 2] = dev::any(true);",
                   32, 96, [](const Words&) {
                     Words out;
                     for (int i = 0; i < 32; ++i) out.insert(out.end(), {0, 1, 1});
                     return out;
                   }});
  cases.push_back({"CountLanes",
                   "out[lane * 3] = dev::count_lanes(false);"
                   "out[lane * 3 + 1] = dev::count_lanes(lane % 3 == 1);"
                   "out[lane * 3 + 2] = dev::count_lanes(true);",
                   32, 96, [](const Words&) {
                     Words out;
                     for (int i = 0; i < 32; ++i) out.insert(out.end(), {0, 11, 32});
                     return out;
                   }});
  cases.push_back({"ReduceLanes",
                   "const int v = static_cast<int>(in[lane]);"
                   "out[lane * 2] = static_cast<uint32_t>(dev::sum_lanes(v));"
                   "out[lane * 2 + 1] = static_cast<uint32_t>(dev::max_lanes(v));",
                   32, 64, [](const Words& in) {
                     uint32_t sum = 0;
                     int32_t largest = static_cast<int32_t>(in[0]);
                     for (int i = 0; i < 32; ++i) {
                       sum += in[i];
                       largest = std::max(largest, static_cast<int32_t>(in[i]));
                     }
                     Words out;
                     for (int i = 0; i < 32; ++i) {
                       out.insert(out.end(), {sum, static_cast<uint32_t>(largest)});
                     }
                     return out;
                   }});
  cases.push_back(
      {"Max2",
       "const float a = static_cast<float>(static_cast<int>(in[lane])); const float b = "
       "static_cast<float>(static_cast<int>(in[lane + 32]));"
       "const float nan = __builtin_bit_cast(float, 0x7fffffffu);"
       "out[lane * 3] = __builtin_bit_cast(uint32_t, dev::max2(a, b));"
       "out[lane * 3 + 1] = __builtin_bit_cast(uint32_t, dev::max2(nan, b));"
       "out[lane * 3 + 2] = __builtin_bit_cast(uint32_t, dev::max2(a, nan));",
       32, 96, [](const Words& in) {
         Words out;
         for (size_t i = 0; i < 32; ++i) {
           const float a = static_cast<float>(static_cast<int32_t>(in[i]));
           const float b = static_cast<float>(static_cast<int32_t>(in[i + 32]));
           out.insert(out.end(), {as_bits(std::max(a, b)), as_bits(b), as_bits(a)});
         }
         return out;
       }});
  return cases;
}

std::vector<DeviceFunctionCase> barrier_cases() {
  std::vector<DeviceFunctionCase> cases;
  cases.push_back({"SyncWarp",
                   "shared[lane] = in[lane]; dev::sync_warp(); out[lane] = shared[lane / 32 * 32 + "
                   "(lane + 1) % 32];",
                   64, 64, [](const Words& in) {
                     Words out;
                     for (size_t i = 0; i < 64; ++i) out.push_back(in[i / 32 * 32 + (i + 1) % 32]);
                     return out;
                   }});
  cases.push_back({"SyncCta",
                   "shared[lane] = in[lane]; dev::sync_cta(); out[lane] = shared[127 - lane];", 128,
                   128, [](const Words& in) {
                     Words out;
                     for (size_t i = 0; i < 128; ++i) out.push_back(in[127 - i]);
                     return out;
                   }});
  cases.push_back({"SyncNamed",
                   "shared[lane] = in[lane]; dev::sync_named(1 + lane / 64, 64); out[lane] = "
                   "shared[lane / 64 * 64 + 63 - lane % 64];",
                   128, 128, [](const Words& in) {
                     Words out;
                     for (size_t i = 0; i < 128; ++i) out.push_back(in[i / 64 * 64 + 63 - i % 64]);
                     return out;
                   }});
  return cases;
}

}  // namespace

std::vector<DeviceFunctionCase> device_function_cases() {
  std::vector<DeviceFunctionCase> cases;
  // PTX ISA: ex2.approx.ftz has a maximum relative error of 2^-22.5, lg2.approx an absolute one of
  // 2^-22 around 1 and a relative one of 2^-22.6 elsewhere, rcp.approx.ftz a relative one of 2^-23;
  // all are doubled for the rounding of the expected value.
  cases.push_back(unary_case("Exp2", "dev::exp2_approx(x)", std::exp2(-21.5),
                             [](double x) { return std::exp2(x); }));
  cases.push_back(unary_case("Log2", "dev::log2_approx(x * x + 2.0f)", std::exp2(-21.0),
                             [](double x) { return std::log2(x * x + 2.0); }));
  cases.push_back(unary_case("Rcp", "dev::rcp_approx(x * x + 0.25f)", std::exp2(-22.0),
                             [](double x) { return 1 / (x * x + 0.25); }));
  cases.push_back({"ArithmeticAtTheEdges",
                   "const float inf = __builtin_bit_cast(float, 0x7f800000u);"
                   "if (lane == 0) { out[0] = __builtin_bit_cast(uint32_t, dev::exp2_approx(-inf));"
                   "out[1] = __builtin_bit_cast(uint32_t, dev::exp2_approx(0.0f));"
                   "out[2] = __builtin_bit_cast(uint32_t, dev::log2_approx(0.0f));"
                   "out[3] = __builtin_bit_cast(uint32_t, dev::exp2_approx(-150.0f));"
                   "out[4] = __builtin_bit_cast(uint32_t, dev::log2_approx(1.0f));"
                   "out[5] = __builtin_bit_cast(uint32_t, dev::rcp_approx(0.0f));"
                   "out[6] = __builtin_bit_cast(uint32_t, dev::rcp_approx(1.0f));"
                   "out[7] = __builtin_bit_cast(uint32_t, dev::rcp_approx(inf)); }",
                   32, 8, [](const Words&) {
                     constexpr float kInfinity = std::numeric_limits<float>::infinity();
                     return Words{0, as_bits(1.0f),      as_bits(-kInfinity), 0,
                                  0, as_bits(kInfinity), as_bits(1.0f),       0};
                   }});
  cases.push_back(pack_case(DataType::kFloat16));
  cases.push_back(pack_case(DataType::kBFloat16));
  for (auto&& more : {matrix_function_cases(), conversion_function_cases(), float8_function_cases(),
                      memory_function_cases(), exchange_cases(), barrier_cases()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  return cases;
}

std::string kernel_text(const DeviceFunctionCase& test) {
  return "struct Params { const uint32_t* in; uint32_t* out; };\n"
         "PAGEJIT_KERNEL(" +
         std::to_string(test.num_threads) +
         ", 1)\n"
         "conformance(const __grid_constant__ Params params) {\n"
         "  [[maybe_unused]] const uint32_t* in = params.in;\n"
         "  [[maybe_unused]] uint32_t* out = params.out;\n"
         "  [[maybe_unused]] const int lane = dev::thread_idx();\n"
         "  [[maybe_unused]] uint32_t* shared = "
         "reinterpret_cast<uint32_t*>(dev::dynamic_shared());\n" +
         test.body + "\n}\nPAGEJIT_ENTRY(conformance, Params)\n";
}

}  // namespace pagejit::testing
