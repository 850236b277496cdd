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

// Copies words of `bytes` through load and store functions.
DeviceFunctionCase copy_case(const char* name, int bytes, const char* load) {
  DeviceFunctionCase test;
  test.name = name;
  const std::string words = std::to_string(bytes / 4);
  test.body = "struct alignas(" + std::to_string(bytes) + ") Word { uint32_t v[" + words + "]; };" +
              "const Word word = dev::" + load + "(reinterpret_cast<const Word*>(in) + lane);" +
              "dev::store_global(reinterpret_cast<Word*>(out) + 31 - lane, word);";
  test.num_outputs = 32 * bytes / 4;
  test.expected = [bytes](const Words& in) {
    const size_t n = static_cast<size_t>(bytes) / 4;
    Words out;
    for (size_t i = 0; i < 32; ++i) {
      for (size_t j = 0; j < n; ++j) out.push_back(in[(31 - i) * n + j]);
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

// Nothing is at the addresses of odd lanes.
DeviceFunctionCase conditional_load_case(const char* name) {
  return {name,
          "const int* p = lane % 2 == 0 ? reinterpret_cast<const int*>(in) + lane : nullptr;"
          "out[lane] = static_cast<uint32_t>(dev::load_global_nc_if(lane % 2 == 0, p));",
          32, 32, [](const Words& in) {
            Words out;
            for (size_t i = 0; i < 32; ++i) out.push_back(i % 2 == 0 ? in[i] : 0);
            return out;
          }};
}

std::vector<DeviceFunctionCase> memory_cases() {
  std::vector<DeviceFunctionCase> cases = {conditional_load_case("LoadNcIf")};
  for (const char* load : {"load_global", "load_global_nc"}) {
    const std::string prefix = std::string(load) == "load_global" ? "LoadStore" : "LoadNcStore";
    for (const int bytes : {4, 8, 16}) {
      cases.push_back(copy_case((prefix + std::to_string(bytes)).c_str(), bytes, load));
    }
    cases.push_back({(prefix + "2").c_str(),
                     "using Half = unsigned short;"
                     "const Half half = dev::" +
                         std::string(load) +
                         "(reinterpret_cast<const Half*>(in) + lane);"
                         "out[lane] = half;"
                         "dev::store_global(reinterpret_cast<Half*>(out + lane) + 1, half);",
                     32, 32, [](const Words& in) {
                       Words out;
                       for (size_t i = 0; i < 32; ++i) {
                         const uint32_t half = in[i / 2] >> (i % 2 * 16) & 65535;
                         out.push_back(half | half << 16);
                       }
                       return out;
                     }});
    cases.push_back({(prefix + "1").c_str(),
                     "using Byte = unsigned char;"
                     "const Byte byte = dev::" +
                         std::string(load) +
                         "(reinterpret_cast<const Byte*>(in) + lane);"
                         "out[lane] = byte + 256u;"
                         "dev::store_global(reinterpret_cast<Byte*>(out + lane) + 1, byte);",
                     32, 32, [](const Words& in) {
                       Words out;
                       for (size_t i = 0; i < 32; ++i) {
                         const uint32_t byte = in[i / 4] >> (i % 4 * 8) & 255;
                         out.push_back(byte | byte << 8);
                       }
                       return out;
                     }});
  }
  cases.push_back({"Hold", "out[lane] = *dev::hold(in + 31 - lane);", 32, 32, [](const Words& in) {
                     Words out;
                     for (size_t i = 0; i < 32; ++i) out.push_back(in[31 - i]);
                     return out;
                   }});
  cases.push_back({"CpAsyncGroupsAndZeroFill", R"(
      uint32_t* rows = shared;
      for (int i = 0; i < 4; ++i) shared[256 + lane * 4 + i] = 0xdeadbeefu;
      dev::cp_async_16(rows + lane * 4, in + lane * 4, true);
      dev::cp_async_commit();
      dev::cp_async_16(rows + 128 + lane * 4, in + 128 + lane * 4, lane % 3 != 0);
      dev::cp_async_commit();
      dev::cp_async_16(rows + 256 + lane * 4, in + 256 + lane * 4, true);
      dev::cp_async_commit();
      dev::cp_async_wait<1>();
      dev::sync_cta();
      for (int i = lane; i < 256; i += 32) out[i] = rows[255 - i];
      dev::cp_async_wait<0>();
      dev::sync_cta();
      for (int i = lane; i < 128; i += 32) out[256 + i] = rows[256 + 127 - i];
    )",
                   32, 384, [](const Words& in) {
                     Words rows(in.begin(), in.begin() + 384);
                     for (size_t lane = 0; lane < 32; lane += 3) {
                       for (size_t i = 0; i < 4; ++i) rows[128 + lane * 4 + i] = 0;
                     }
                     Words out;
                     for (size_t i = 0; i < 256; ++i) out.push_back(rows[255 - i]);
                     for (size_t i = 0; i < 128; ++i) out.push_back(rows[256 + 127 - i]);
                     return out;
                   }});
  cases.push_back({"CpAsync4", R"(
      unsigned char* rows = dev::dynamic_shared();
      const unsigned char* from = reinterpret_cast<const unsigned char*>(in);
      for (int i = 0; i < 3; ++i) {
        const int place = (i * 32 + lane) * 4;
        dev::cp_async_4(rows + place, from + place, (i + lane) % 5 != 0);
      }
      dev::cp_async_commit();
      dev::cp_async_wait<0>();
      dev::sync_cta();
      for (int i = lane; i < 96; i += 32) out[i] = reinterpret_cast<const uint32_t*>(rows)[i];
    )",
                   32, 96, [](const Words& in) {
                     Words out(in.begin(), in.begin() + 96);
                     for (size_t i = 0; i < 96; ++i) {
                       if ((i / 32 + i % 32) % 5 == 0) out[i] = 0;
                     }
                     return out;
                   }});
  cases.push_back({"CpAsync8", R"(
      unsigned char* rows = dev::dynamic_shared();
      const unsigned char* from = reinterpret_cast<const unsigned char*>(in);
      for (int i = 0; i < 3; ++i) {
        const int place = (i * 32 + lane) * 8;
        dev::cp_async_8(rows + place, from + place, (i + lane) % 5 != 0);
      }
      dev::cp_async_commit();
      dev::cp_async_wait<0>();
      dev::sync_cta();
      for (int i = lane; i < 192; i += 32) out[i] = reinterpret_cast<const uint32_t*>(rows)[i];
    )",
                   32, 192, [](const Words& in) {
                     Words out(in.begin(), in.begin() + 192);
                     for (size_t i = 0; i < 96; ++i) {
                       if ((i / 32 + i % 32) % 5 == 0) out[i * 2] = out[i * 2 + 1] = 0;
                     }
                     return out;
                   }});
  // Every number of valid bytes; what is there before must become zeros.
  cases.push_back({"CpAsyncPart", R"(
      unsigned char* rows = dev::dynamic_shared();
      const unsigned char* from = reinterpret_cast<const unsigned char*>(in);
      for (int i = lane; i < 512; i += 32) rows[i] = 0xee;
      dev::sync_cta();
      if (lane < 17) dev::cp_async_part<16>(rows + lane * 16, from + lane * 16, lane);
      if (lane < 9) dev::cp_async_part<8>(rows + 272 + lane * 8, from + 272 + lane * 8, lane);
      dev::cp_async_commit();
      dev::cp_async_wait<0>();
      dev::sync_cta();
      for (int i = lane; i < 86; i += 32) out[i] = reinterpret_cast<const uint32_t*>(rows)[i];
    )",
                   32, 86, [](const Words& in) {
                     Words out(in.begin(), in.begin() + 86);
                     const auto clear = [&](uint32_t byte) {
                       out[byte / 4] &= ~(0xffu << (byte % 4 * 8));
                     };
                     for (uint32_t i = 0; i < 17; ++i) {
                       for (uint32_t byte = i; byte < 16; ++byte) clear(i * 16 + byte);
                     }
                     for (uint32_t i = 0; i < 9; ++i) {
                       for (uint32_t byte = i; byte < 8; ++byte) clear(272 + i * 8 + byte);
                     }
                     return out;
                   }});
  // 64 threads count to a limit of 9 and wrap: every value from 0 to 9 is returned 6 or 7 times.
  cases.push_back(
      {"AtomicIncWraps",
       "if (lane == 0) dev::store_global(out + 64, 0u); dev::sync_cta();"
       "const uint32_t old = dev::atomic_inc_acq_rel(out + 64, 9); shared[lane] = old; "
       "dev::sync_cta();"
       "if (lane < 10) { uint32_t count = 0; for (int i = 0; i < 64; ++i) count += shared[i] == "
       "static_cast<uint32_t>(lane); out[lane] = count; } else { out[lane] = 0; }",
       64, 65, [](const Words&) {
         Words out(65, 0);
         for (size_t i = 0; i < 10; ++i) out[i] = i < 4 ? 7 : 6;
         out[64] = 4;
         return out;
       }});
  cases.push_back(
      {"AtomicCasHasOneWinner",
       "int* place = reinterpret_cast<int*>(out) + 1; if (lane == 0) dev::store_global(place, 5); "
       "dev::sync_cta(); const int old = dev::atomic_cas(place, 5, 6); shared[lane] = old == 5;"
       "dev::fence_gpu(); dev::sync_cta();"
       "if (lane == 0) { uint32_t winners = 0; for (int i = 0; i < 64; ++i) winners += shared[i]; "
       "out[0] = winners; }",
       64, 2, [](const Words&) {
         return Words{1, 6};
       }});
  return cases;
}

// Behind the wait everything is there, and loads are those of every kernel.
std::vector<DeviceFunctionCase> grid_dependency_cases() {
  std::vector<DeviceFunctionCase> cases = {copy_case("GridDependencyLoad4", 4, "load_global_nc"),
                                           copy_case("GridDependencyLoad8", 8, "load_global_nc"),
                                           copy_case("GridDependencyLoad16", 16, "load_global_nc"),
                                           conditional_load_case("GridDependencyLoadIf")};
  for (DeviceFunctionCase& test : cases) {
    test.body = "dev::grid_dependency_wait(); dev::grid_dependency_launch();" + test.body;
    test.least_sm = 90;
    test.pdl = true;
  }
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
                      exchange_cases(), memory_cases(), grid_dependency_cases(), barrier_cases()}) {
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
