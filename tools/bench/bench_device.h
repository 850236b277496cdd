// What all benchmarks on a GPU share: the device, pools of KV cache that the L2 cannot serve, and
// the timing of launches that take the pools in turn. Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pagejit/engine.h"
#include "tools/check/device_buffer.h"

namespace pagejit {

class BenchDevice {
 public:
  // kUnsupported on the emulator, whose times mean nothing. All arguments must outlive the result.
  static Result<std::unique_ptr<BenchDevice>> create(Engine& engine, const DeviceSession& session,
                                                     const EngineOptions& options);

  Engine& engine() { return engine_; }
  const DeviceSession& session() const { return session_; }
  // "NVIDIA H200, driver for CUDA 13.0"
  std::string name() const { return gpu_ + ", driver for CUDA " + driver_cuda_; }
  const std::string& gpu() const { return gpu_; }                  // "NVIDIA H200"
  const std::string& driver_cuda() const { return driver_cuda_; }  // "13.0"

  // TB/s of a kernel that only reads, over more memory than the L2 holds; measured at the first
  // call.
  Result<double> read_bandwidth();

 private:
  BenchDevice(Engine& engine, const DeviceSession& session, const EngineOptions& options)
      : engine_(engine), session_(session), options_(options) {}

  Engine& engine_;
  const DeviceSession& session_;
  const EngineOptions& options_;
  std::string gpu_;
  std::string driver_cuda_;
  double read_bandwidth_ = 0;
};

// `count` elements of about unit size, of any type. The time of memory reads does not depend on
// them, but the tensor cores' power does. No NaN, no infinity.
std::vector<uint8_t> random_elements(DataType type, size_t count);

// Device memory with such elements; large buffers repeat them.
Result<DeviceBuffer> make_random_buffer(const DeviceSession& session, DataType type, size_t count);

// K and V, NHD, and the order of their blocks.
struct KvPool {
  DeviceBuffer k;
  DeviceBuffer v;
  DeviceBuffer block_table;  // int32 [num_blocks]: all blocks, in turn
};
Result<KvPool> make_kv_pool(const DeviceSession& session, const KernelSpec& spec, int num_kv_heads,
                            int64_t num_blocks, bool shuffled, int seed);
KvStrides nhd_strides(const KernelSpec& spec, int num_kv_heads);

// What one turn over all pools reads: several times any L2 (126 MB on a B200).
inline constexpr double kRotatedBytes = 1024e6;
// Memory of all pools together, where they are more than two.
inline constexpr double kMostPoolBytes = 8.0 * (1 << 30);
// Launches of one turn, which become nodes of a graph.
inline constexpr int kMaxPools = 4096;

// How many pools of pool_bytes take turns, where a launch reads read_bytes of one, both positive:
// so many that a turn reads kRotatedBytes, as far as kMostPoolBytes and kMaxPools allow, and at
// least two. The L2 may serve parts of a pool where they allow too few: where launches read little
// of a long cache, or next to nothing.
int pools_for(double read_bytes, double pool_bytes);

struct RotatedTimes {
  double median_us = 0;  // of one launch
  double min_us = 0;
  double noise = 0;  // distance of the quartiles over the median
};
// `launch` enqueues one launch on pool number `pool`. All pools in turn, several times, as one
// captured graph that is replayed.
Result<RotatedTimes> time_rotated(const DeviceSession& session, int num_pools,
                                  const std::function<Status(int pool, Stream)>& launch);

}  // namespace pagejit
