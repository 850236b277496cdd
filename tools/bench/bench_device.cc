#include "tools/bench/bench_device.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>

#include "tools/bench/bench_result.h"
#include "tools/bench/device_timer.h"
#include "tools/bench/quartiles.h"
#include "tools/bench/read_bandwidth.h"

namespace pagejit {
namespace {

// A graph of launches takes at least this long, so that the events' resolution (some 0.5 us) is
// below 0.1 %.
constexpr double kGraphUs = 2000;
constexpr int kReplays = 15;
constexpr size_t kPatternElements = size_t{1} << 18;

// Random bits within `variable`, else those of a number between 0.5 and 2.
struct BitPattern {
  uint32_t variable;
  uint32_t fixed;
};
BitPattern pattern_of(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return {0x807fffff, 0x3f000000};
    case DataType::kFloat16:
      return {0x83ff, 0x3800};
    case DataType::kBFloat16:
      return {0x807f, 0x3f00};
    case DataType::kFloat8E4m3:
      return {0x87, 0x30};
    case DataType::kFloat8E5m2:
      return {0x83, 0x38};
    case DataType::kInt8:
    case DataType::kInt4:
      return {0xff, 0};
  }
  return {0, 0};
}

}  // namespace

Result<std::unique_ptr<BenchDevice>> BenchDevice::create(Engine& engine,
                                                         const DeviceSession& session,
                                                         const EngineOptions& options) {
  if (session.is_emulator()) {
    return Status(StatusCode::kUnsupported,
                  "the emulator has no times worth printing; benchmarks need a GPU");
  }
  const Driver& driver = session.driver();
  char name[256] = {};
  if (Status s = driver.check(driver.cuDeviceGetName(name, sizeof name, session.device()),
                              "cuDeviceGetName");
      !s)
    return s;
  std::unique_ptr<BenchDevice> device(new BenchDevice(engine, session, options));
  device->gpu_ = name;
  device->driver_cuda_ =
      std::to_string(driver.version() / 1000) + "." + std::to_string(driver.version() % 1000 / 10);
  return device;
}

Result<double> BenchDevice::read_bandwidth() {
  if (read_bandwidth_ == 0) {
    const Result<Target> target = engine_.target_of_device(session_.device());
    if (!target) return target.status();
    const std::shared_ptr<Compiler> compiler = make_nvrtc_compiler(options_.nvrtc_path);
    // 4 GB: enough to leave every L2 behind, small enough for every GPU served.
    const Result<double> measured =
        measure_read_bandwidth(session_, *compiler, *target, size_t{4} << 30);
    if (!measured) return measured.status();
    read_bandwidth_ = *measured;
  }
  return read_bandwidth_;
}

std::vector<uint8_t> random_elements(DataType type, size_t count) {
  const auto [variable, fixed] = pattern_of(type);
  const auto bytes_each = static_cast<size_t>(data_type_bytes(type));
  std::vector<uint8_t> bytes(count * bytes_each);
  std::mt19937 random(7);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = (static_cast<uint32_t>(random()) & variable) | fixed;
    std::memcpy(bytes.data() + i * bytes_each, &bits, bytes_each);  // little endian
  }
  return bytes;
}

Result<DeviceBuffer> make_random_buffer(const DeviceSession& session, DataType type, size_t count) {
  const size_t bytes = count * static_cast<size_t>(data_type_bytes(type));
  const std::vector<uint8_t> pattern = random_elements(type, std::min(count, kPatternElements));
  Result<DeviceBuffer> buffer = DeviceBuffer::allocate(session, bytes);
  if (!buffer || bytes == 0) return buffer;
  if (Status s = buffer->upload(0, pattern.data(), pattern.size()); !s) return s;
  const Driver& driver = session.driver();
  for (size_t done = pattern.size(); done < bytes; done *= 2) {  // doubles what is there
    const size_t more = std::min(done, bytes - done);
    const Status s = driver.check(
        driver.cuMemcpyDtoDAsync(buffer->address() + done, buffer->address(), more, nullptr),
        "cuMemcpyDtoDAsync");
    if (!s) return s;
  }
  return buffer;
}

KvStrides nhd_strides(const KernelSpec& spec, int num_kv_heads) {
  KvStrides strides;
  // Of KvLayout::kDsMla, the same random bytes: as codes, scales and bf16 they are finite numbers.
  strides.head = spec.kv_layout == KvLayout::kDsMla ? kDsMlaRowBytes : spec.head_size;
  strides.token = num_kv_heads * strides.head;
  strides.block = strides.token * spec.block_size;
  return strides;
}

Result<KvPool> make_kv_pool(const DeviceSession& session, const KernelSpec& spec, int num_kv_heads,
                            int64_t num_blocks, bool shuffled, int seed) {
  const auto count = static_cast<size_t>(num_blocks * nhd_strides(spec, num_kv_heads).block);
  KvPool pool;
  for (DeviceBuffer* cache : {&pool.k, &pool.v}) {
    if (cache == &pool.v && spec.latent) continue;  // K's rows hold V
    Result<DeviceBuffer> buffer = make_random_buffer(session, spec.kv_dtype, count);
    if (!buffer) return buffer.status();
    *cache = std::move(*buffer);
  }
  std::vector<int32_t> table(static_cast<size_t>(num_blocks));
  std::iota(table.begin(), table.end(), 0);
  if (shuffled) {
    std::shuffle(table.begin(), table.end(), std::mt19937(static_cast<unsigned>(seed)));
  }
  Result<DeviceBuffer> buffer = DeviceBuffer::copy_of(session, table.data(), table.size() * 4);
  if (!buffer) return buffer.status();
  pool.block_table = std::move(*buffer);
  return pool;
}

int pools_for(double read_bytes, double pool_bytes) {
  const double wanted = std::ceil(kRotatedBytes / read_bytes);
  const double most = std::min<double>(kMaxPools, std::floor(kMostPoolBytes / pool_bytes));
  return static_cast<int>(std::max(2.0, std::min(wanted, most)));
}

Result<RotatedTimes> time_rotated(const DeviceSession& session, int num_pools,
                                  const std::function<Status(int pool, Stream)>& launch) {
  Result<DeviceTimer> timer = DeviceTimer::create(session);
  if (!timer) return timer.status();
  if (Status s = session.synchronize(); !s) return s;
  const auto launch_all = [&](int rounds) {
    return [&launch, num_pools, rounds](CUstream stream) {
      for (int i = 0; i < rounds * num_pools; ++i) {
        if (Status s = launch(i % num_pools, stream); !s) return s;
      }
      return Status::ok();
    };
  };
  const Result<double> probe = timer->time_us(launch_all(1));
  if (!probe) return probe.status();
  const int rounds = std::clamp(static_cast<int>(kGraphUs / *probe), 1, 50);
  Result<std::vector<double>> times = timer->time_graph_us(launch_all(rounds), kReplays);
  if (!times) return times.status();
  std::sort(times->begin(), times->end());
  const double launches = static_cast<double>(rounds) * num_pools;
  return RotatedTimes{(*times)[times->size() / 2] / launches, times->front() / launches,
                      relative_spread(*times)};
}

}  // namespace pagejit
