#include "tools/bench/read_bandwidth.h"

#include <algorithm>

#include "generator/renderer.h"
#include "tools/bench/device_timer.h"

namespace pagejit {
namespace {

constexpr int kThreads = 512;
// Each thread reads 8 x 16 bytes before it uses any: 64 KiB in flight per CTA, 128 KiB per SM.
constexpr const char* kKernel = R"(
struct Params {
  const void* data;
  uint32_t* sink;
  long long num_chunks;  // of 16 bytes, a multiple of the grid's 8 * 512 threads
};
struct alignas(16) Chunk {
  uint32_t v[4];
};
PAGEJIT_KERNEL(512, 2)
pagejit_read_bandwidth(const __grid_constant__ Params params) {
  const Chunk* data = static_cast<const Chunk*>(params.data);
  uint32_t sum = 0;
  const long long step = static_cast<long long>(dev::grid_dim_x()) * 512 * 8;
  for (long long base = static_cast<long long>(dev::block_idx_x()) * 512 * 8; base < params.num_chunks; base += step) {
    Chunk chunk[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) chunk[i] = dev::load_global_nc(data + base + i * 512 + dev::thread_idx());
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += chunk[i].v[0] ^ chunk[i].v[1] ^ chunk[i].v[2] ^ chunk[i].v[3];
  }
  // Never true of zeroed memory, and unknown to the compiler: the loads stay.
  if (sum == 0x12345678u) dev::store_global(params.sink, sum);
}
PAGEJIT_ENTRY(pagejit_read_bandwidth, Params)
)";

}  // namespace

Result<double> measure_read_bandwidth(const DeviceSession& session, Compiler& compiler,
                                      const Target& target, size_t bytes) {
  KernelSource source;
  source.kernel_name = "pagejit_read_bandwidth";
  source.target = target;
  Result<std::string> text = with_device_functions(target, kKernel);
  if (!text) return text.status();
  source.text = *text;
  const Result<CompiledImage> image = compiler.compile(source);
  if (!image) return image.status();

  const Driver& driver = session.driver();
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  if (Status s = driver.check(driver.cuLibraryLoadData(&library, image->image.data(), nullptr,
                                                       nullptr, 0, nullptr, nullptr, 0),
                              "cuLibraryLoadData");
      !s) {
    return s;
  }
  if (Status s = driver.check(driver.cuLibraryGetKernel(&kernel, library, "pagejit_read_bandwidth"),
                              "cuLibraryGetKernel");
      !s) {
    return s;
  }
  int num_sms = 0;
  if (Status s =
          driver.check(driver.cuDeviceGetAttribute(
                           &num_sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, session.device()),
                       "cuDeviceGetAttribute");
      !s) {
    return s;
  }
  const unsigned grid = static_cast<unsigned>(num_sms) * 2;
  const size_t unit = size_t{grid} * kThreads * 8 * 16;
  bytes = std::max(bytes / unit, size_t{1}) * unit;
  Result<DeviceBuffer> data = DeviceBuffer::allocate(session, bytes);
  if (!data) return data.status();
  Result<DeviceBuffer> sink = DeviceBuffer::allocate(session, 4);
  if (!sink) return sink.status();
  if (Status s = driver.check(driver.cuMemsetD8Async(data->address(), 0, bytes, nullptr),
                              "cuMemsetD8Async");
      !s)
    return s;

  struct {
    const void* data;
    void* sink;
    long long num_chunks;
  } params = {data->data(), sink->data(), static_cast<long long>(bytes / 16)};
  void* arguments[] = {&params};
  CUlaunchConfig launch = {};
  launch.gridDimX = grid;
  launch.gridDimY = launch.gridDimZ = 1;
  launch.blockDimX = kThreads;
  launch.blockDimY = launch.blockDimZ = 1;
  Result<DeviceTimer> timer = DeviceTimer::create(session);
  if (!timer) return timer.status();
  double best_us = 0;
  for (int pass = 0; pass < 10; ++pass) {
    const Result<double> us = timer->time_us([&](CUstream stream) {
      launch.hStream = stream;
      return driver.check(driver.cuLaunchKernelEx(&launch, reinterpret_cast<CUfunction>(kernel),
                                                  arguments, nullptr),
                          "cuLaunchKernelEx");
    });
    if (!us) return us.status();
    if (pass == 0) continue;  // first touch
    best_us = best_us == 0 ? *us : std::min(best_us, *us);
  }
  driver.cuLibraryUnload(library);
  return static_cast<double>(bytes) / best_us * 1e-6;
}

}  // namespace pagejit
