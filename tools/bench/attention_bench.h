// Timing one attention kernel on a GPU: decode, prefill, or both in one launch. Correctness first:
// a kernel that fails its check is not timed. Thread-safety: one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/bench/attention_case.h"
#include "tools/bench/bench_device.h"
#include "tools/bench/bench_result.h"

namespace pagejit {

struct AttentionBenchResult {
  AttentionBenchCase bench_case;
  int num_splits = 0;  // as launched
  int num_pools = 0;   // copies of the KV cache that take turns
  RotatedTimes times;
  double check_max_error = 0;  // of the check before the timing

  double terabytes_per_s() const { return kv_bytes(bench_case) / times.median_us * 1e-6; }
  double teraflops() const { return flops(bench_case) / times.median_us * 1e-6; }
};

// How many pools of K and V take turns where a case is timed: by what a launch reads of one and
// what one holds.
int pools_for(const AttentionBenchCase& c);

// With the suite's name; without a goal.
BenchResult to_bench_result(const AttentionBenchResult& result, const std::string& suite);

// All that the launches of a case need, in device memory.
class AttentionWorkload {
 public:
  static Result<AttentionWorkload> create(Engine& engine, const DeviceSession& session,
                                          const AttentionBenchCase& c, int num_pools);

  // Another kernel of the same spec launches from now on, over the same memory but for its
  // workspace. No launch may be under way.
  Status use(const DeviceSession& session, const Kernel& kernel);
  Status launch(int pool, Stream stream);
  int num_splits() const { return num_splits_; }
  int num_pools() const { return static_cast<int>(pools_.size()); }
  const DeviceBuffer& out() const { return out_; }  // [query tokens, heads, head_size]

 private:
  AttentionArgs args_;
  int wanted_splits_ = 0;
  Kernel kernel_;
  int num_splits_ = 1;
  std::vector<KvPool> pools_;
  DeviceBuffer q_;
  DeviceBuffer out_;
  DeviceBuffer seq_lens_;
  DeviceBuffer query_start_loc_;
  DeviceBuffer scales_;
  DeviceBuffer head_values_;          // slopes and sinks
  std::vector<DeviceBuffer> tables_;  // of each pool
  DeviceBuffer workspace_;
};

Result<AttentionBenchResult> run_attention_bench(BenchDevice& device, const AttentionBenchCase& c);

// The cases of `pagejit bench SUITE`.
std::vector<AttentionBenchCase> decode_cases();
std::vector<AttentionBenchCase> v1v2_cases();
std::vector<AttentionBenchCase> paging_cases();
std::vector<AttentionBenchCase> fp8_cases();
std::vector<AttentionBenchCase> mla_cases();
std::vector<AttentionBenchCase> prefill_cases();
std::vector<AttentionBenchCase> mixed_cases();

}  // namespace pagejit
