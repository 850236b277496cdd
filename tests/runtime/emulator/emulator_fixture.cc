#include "tests/runtime/emulator/emulator_fixture.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "runtime/emulator/host_build_flags.h"

namespace pagejit_emulator {
namespace {

constexpr const char* kRoot = PAGEJIT_TEST_SOURCE_DIR;
constexpr const char* kImageDir = PAGEJIT_TEST_IMAGE_DIR;
constexpr const char* kCompiler = PAGEJIT_TEST_HOST_CXX;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Replaces #include "x", x from the project's root, by the file.
void append_inlined(const std::string& path, std::set<std::string>* seen, std::string* out) {
  if (!seen->insert(path).second) return;
  std::istringstream lines(read_file(std::string(kRoot) + "/" + path));
  std::string line;
  constexpr std::string_view kInclude = "#include \"";
  while (std::getline(lines, line)) {
    if (line.starts_with(kInclude)) {
      append_inlined(line.substr(kInclude.size(), line.size() - kInclude.size() - 1), seen, out);
    } else if (line != "#pragma once") {
      *out += line + "\n";
    }
  }
}

}  // namespace

std::string host_source(std::string_view kernel_text) {
  std::string source;
  std::set<std::string> seen;
  append_inlined("templates/device/host/prelude.cuh", &seen, &source);
  source += "#line 1 \"kernel.cu\"\n";
  source += kernel_text;
  return source;
}

std::string compile_source(const std::string& source, pagejit::HostBuild build) {
  std::string command = kCompiler;
  for (const std::string& flag : pagejit::host_build_flags(build)) command += " " + flag;
  const size_t key = std::hash<std::string>()(command + "\n" + source);
  std::filesystem::create_directories(kImageDir);
  const std::string image_path = std::string(kImageDir) + "/" + std::to_string(key) + ".so";
  if (!std::filesystem::exists(image_path)) {
    const std::string stem = image_path + "." + std::to_string(getpid());
    std::ofstream(stem + ".cc") << source;
    command += " -Wall -Wextra -Wno-unused-parameter -Werror -o " + stem + ".tmp " + stem + ".cc";
    const int failed = std::system(command.c_str());
    EXPECT_EQ(failed, 0) << command;
    if (failed != 0) return "";
    std::filesystem::rename(stem + ".tmp", image_path);
    std::filesystem::remove(stem + ".cc");
  }
  return read_file(image_path);
}

std::vector<Schedule> all_schedules() {
  std::vector<Schedule> schedules;
  for (int order : {kPagejitEmulatorFifo, kPagejitEmulatorLifo, kPagejitEmulatorRandom}) {
    for (int completion :
         {kPagejitEmulatorLate, kPagejitEmulatorEarly, kPagejitEmulatorRandomCompletion}) {
      schedules.push_back({order, completion, 1, 7});
    }
  }
  return schedules;
}

void* EmulatorTest::find_symbol(const char* name) {
  static void* const library = dlopen(PAGEJIT_TEST_EMULATOR, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    ADD_FAILURE() << dlerror();
    std::abort();
  }
  void* found = dlsym(library, name);
  EXPECT_NE(found, nullptr) << name;
  return found;
}

void EmulatorTest::SetUp() {
  ASSERT_EQ(symbol<decltype(cuInit)>("cuInit")(0), CUDA_SUCCESS);
  CUcontext context = nullptr;
  ASSERT_EQ(symbol<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0),
            CUDA_SUCCESS);
  ASSERT_EQ(symbol<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent")(context), CUDA_SUCCESS);
  PagejitEmulatorOptions values = options();
  values.order = kPagejitEmulatorFifo;
  values.completion = kPagejitEmulatorLate;
  values.resident = 1;
  values.sm = 90;
  values.seed = 1;
  values.watchdog_s = 30;
  configure(values);
  symbol<decltype(pagejit_emulator_reset_counters)>("pagejit_emulator_reset_counters")();
}

void EmulatorTest::TearDown() {
  for (CUlibrary library : libraries_) {
    EXPECT_EQ(symbol<decltype(cuLibraryUnload)>("cuLibraryUnload")(library), CUDA_SUCCESS);
  }
  for (void* p : allocations_) {
    EXPECT_EQ(symbol<decltype(cuMemFree_v2)>("cuMemFree_v2")(address(p)), CUDA_SUCCESS);
  }
  EXPECT_EQ(symbol<decltype(cuDevicePrimaryCtxRelease_v2)>("cuDevicePrimaryCtxRelease_v2")(0),
            CUDA_SUCCESS);
}

CUfunction EmulatorTest::kernel(std::string_view text, const char* name, pagejit::HostBuild build) {
  const std::string image = compile_image(text, build);
  if (image.empty()) return nullptr;
  CUlibrary library = nullptr;
  const CUresult loaded = symbol<decltype(cuLibraryLoadData)>("cuLibraryLoadData")(
      &library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  EXPECT_EQ(loaded, CUDA_SUCCESS) << report();
  if (loaded != CUDA_SUCCESS) return nullptr;
  libraries_.push_back(library);
  CUkernel found = nullptr;
  EXPECT_EQ(symbol<decltype(cuLibraryGetKernel)>("cuLibraryGetKernel")(&found, library, name),
            CUDA_SUCCESS);
  CUfunction function = nullptr;
  EXPECT_EQ(symbol<decltype(cuKernelGetFunction)>("cuKernelGetFunction")(&function, found),
            CUDA_SUCCESS);
  return function;
}

CUresult EmulatorTest::launch_raw(CUfunction function, const LaunchShape& shape, void** params) {
  CUlaunchAttribute attribute = {};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  const CUlaunchConfig config = {shape.grid_x,
                                 shape.grid_y,
                                 shape.grid_z,
                                 shape.num_threads,
                                 1,
                                 1,
                                 shape.shared_bytes,
                                 shape.stream,
                                 shape.pdl ? &attribute : nullptr,
                                 shape.pdl ? 1u : 0u};
  return symbol<decltype(cuLaunchKernelEx)>("cuLaunchKernelEx")(&config, function, params, nullptr);
}

void* EmulatorTest::allocate(size_t bytes) {
  CUdeviceptr p = 0;
  EXPECT_EQ(symbol<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2")(&p, bytes), CUDA_SUCCESS);
  allocations_.push_back(reinterpret_cast<void*>(p));
  return allocations_.back();
}

void EmulatorTest::copy_in(void* to, const void* from, size_t bytes) {
  EXPECT_EQ(symbol<decltype(cuMemcpyHtoD_v2)>("cuMemcpyHtoD_v2")(address(to), from, bytes),
            CUDA_SUCCESS);
}

void EmulatorTest::copy_out(void* to, const void* from, size_t bytes) {
  EXPECT_EQ(symbol<decltype(cuMemcpyDtoH_v2)>("cuMemcpyDtoH_v2")(to, address(from), bytes),
            CUDA_SUCCESS);
}

void EmulatorTest::schedule(const Schedule& schedule) {
  PagejitEmulatorOptions values = options();
  values.order = schedule.order;
  values.completion = schedule.completion;
  values.resident = schedule.resident;
  values.seed = schedule.seed;
  configure(values);
}

PagejitEmulatorOptions EmulatorTest::options() {
  PagejitEmulatorOptions values = {};
  values.struct_size = sizeof(values);
  symbol<decltype(pagejit_emulator_options)>("pagejit_emulator_options")(&values);
  return values;
}

void EmulatorTest::configure(const PagejitEmulatorOptions& options) {
  EXPECT_EQ(symbol<decltype(pagejit_emulator_configure)>("pagejit_emulator_configure")(&options),
            0);
}

PagejitEmulatorCounters EmulatorTest::counters() {
  PagejitEmulatorCounters values = {};
  values.struct_size = sizeof(values);
  symbol<decltype(pagejit_emulator_counters)>("pagejit_emulator_counters")(&values);
  return values;
}

std::string EmulatorTest::report() {
  return symbol<decltype(pagejit_emulator_last_report)>("pagejit_emulator_last_report")();
}

}  // namespace pagejit_emulator
