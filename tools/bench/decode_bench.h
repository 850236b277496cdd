// Timing one decode kernel on a GPU: pools of KV cache that the L2 cannot serve, shuffled block
// tables, replay of a captured graph. Correctness first: a kernel that fails its check is not
// timed. Refuses the emulator, whose times mean nothing. Thread-safety: one thread.
#pragma once

#include <string>
#include <vector>

#include "pagejit/engine.h"
#include "tools/check/device_buffer.h"

namespace pagejit {

struct DecodeBenchCase {
  std::string name;
  KernelSpec spec;
  int num_seqs = 1;
  int num_kv_heads = 8;
  int seq_len = 1024;           // every sequence
  int num_splits = 0;           // 0 = chosen by the library
  bool shuffled_blocks = true;  // else block ids count up: what a contiguous cache would be
};

struct DecodeBenchResult {
  DecodeBenchCase bench_case;
  int num_splits = 0;    // as launched
  int num_pools = 0;     // copies of the KV cache that take turns
  double median_us = 0;  // one launch
  double min_us = 0;
  double kv_bytes =
      0;  // K and V rows of one launch: 2 * num_seqs * seq_len * num_kv_heads * head_size * 2
  double check_max_error = 0;  // of the check before the timing

  double terabytes_per_s() const { return kv_bytes / median_us * 1e-6; }
};

// One line of JSON, without a line break.
std::string to_json(const DecodeBenchResult& result, double read_terabytes_per_s);

class DecodeBench {
 public:
  // kUnsupported on the emulator.
  static Result<std::unique_ptr<DecodeBench>> create(Engine& engine, DeviceSession& session,
                                                     const EngineOptions& options);
  ~DecodeBench();

  Result<DecodeBenchResult> run(const DecodeBenchCase& bench_case);

  // TB/s of a kernel that only reads, over more memory than the L2 holds; measured at the first
  // call.
  Result<double> read_bandwidth();

  // "NVIDIA H200, driver 13.0"
  const std::string& device_name() const;

 private:
  struct Impl;
  explicit DecodeBench(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The cases of `pagejit bench decode`, `v1v2` and `paging`.
std::vector<DecodeBenchCase> decode_cases();
std::vector<DecodeBenchCase> v1v2_cases();
std::vector<DecodeBenchCase> paging_cases();

}  // namespace pagejit
