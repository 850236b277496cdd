// The cases of the functions on memory: loads and stores, asynchronous copies, atomics, and loads
// behind a programmatic dependency.
#include <algorithm>
#include <utility>

#include "tests/templates/device_function_cases.h"

namespace pagejit::testing {
namespace {

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

// cp_async_4 and cp_async_8, of which every fifth gives zeros.
DeviceFunctionCase small_copy_case(int bytes) {
  const std::string n = std::to_string(bytes);
  DeviceFunctionCase test;
  test.name = "CpAsync" + n;
  test.num_outputs = 96 * bytes / 4;
  test.body = R"(
      unsigned char* rows = dev::dynamic_shared();
      const unsigned char* from = reinterpret_cast<const unsigned char*>(in);
      for (int i = 0; i < 3; ++i) {
        const int place = (i * 32 + lane) * )" +
              n + R"(;
        dev::cp_async_)" +
              n + R"((rows + place, from + place, (i + lane) % 5 != 0);
      }
      dev::cp_async_commit();
      dev::cp_async_wait<0>();
      dev::sync_cta();
      for (int i = lane; i < )" +
              std::to_string(test.num_outputs) + R"(; i += 32) {
        out[i] = reinterpret_cast<const uint32_t*>(rows)[i];
      }
    )";
  test.expected = [words = static_cast<size_t>(bytes) / 4](const Words& in) {
    Words out(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(96 * words));
    for (size_t i = 0; i < out.size(); ++i) {
      const size_t copy = i / words;
      if ((copy / 32 + copy % 32) % 5 == 0) out[i] = 0;
    }
    return out;
  };
  return test;
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
  for (const int bytes : {4, 8}) cases.push_back(small_copy_case(bytes));
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
  // Each lane adds to a place of its own and to one that all share.
  cases.push_back({"AtomicAddShared",
                   "shared[lane] = in[lane]; if (lane == 0) shared[64] = 7; dev::sync_cta();"
                   "int* places = reinterpret_cast<int*>(shared);"
                   "dev::atomic_add_shared(places + 63 - lane, lane - 40);"
                   "dev::atomic_add_shared(places + 64, lane); dev::sync_cta();"
                   "out[lane] = shared[lane]; if (lane == 0) out[64] = shared[64];",
                   64, 65, [](const Words& in) {
                     Words out(in.begin(), in.begin() + 64);
                     for (uint32_t i = 0; i < 64; ++i) out[i] += 63 - i - 40;
                     out.push_back(7 + 63 * 64 / 2);
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

}  // namespace

std::vector<DeviceFunctionCase> memory_function_cases() {
  std::vector<DeviceFunctionCase> cases = memory_cases();
  for (DeviceFunctionCase& test : grid_dependency_cases()) cases.push_back(std::move(test));
  return cases;
}

}  // namespace pagejit::testing
