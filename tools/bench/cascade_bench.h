// Timing a decode step of sequences with a shared prefix on a GPU: as a cascade, and as the flat
// kernel computes it. Correctness first, as in attention_bench.h. Thread-safety: one thread.
#pragma once

#include <string>
#include <vector>

#include "tools/bench/bench_device.h"
#include "tools/bench/bench_result.h"

namespace pagejit {

struct CascadeBenchCase {
  std::string name;
  KernelSpec spec;  // one query token per sequence
  int num_kv_heads = 8;
  int num_seqs = 64;
  int prefix_len = 8192;  // whole blocks, of all sequences
  int suffix_len = 512;   // of each
};

// K and V rows that the flat kernel reads: those of the prefix once for each sequence.
double flat_kv_bytes(const CascadeBenchCase& c);
// Those that a cascade reads from global memory or the L2: the prefix once for each tile of
// `tile_rows` rows.
double cascade_kv_bytes(const CascadeBenchCase& c, int tile_rows);

struct CascadeBenchResult {
  CascadeBenchCase bench_case;
  int prefix_splits = 0;
  int suffix_splits = 0;
  int flat_splits = 0;
  int num_pools = 0;
  RotatedTimes cascade;
  RotatedTimes flat;
  double check_max_error = 0;

  double speedup() const { return flat.median_us / cascade.median_us; }
};

// The cascade's time, with the flat kernel's among its figures; without a goal.
BenchResult to_bench_result(const CascadeBenchResult& result);

// All that the launches of a case need, in device memory: the same caches for both ways.
class CascadeWorkload {
 public:
  static Result<CascadeWorkload> create(Engine& engine, const DeviceSession& session,
                                        const CascadeBenchCase& c, int num_pools);

  Status launch_cascade(int pool, Stream stream);
  Status launch_flat(int pool, Stream stream);
  int num_pools() const { return static_cast<int>(pools_.size()); }
  // The numbers of splits go to `result`.
  void describe(CascadeBenchResult* result) const;
  const DeviceBuffer& out() const { return out_; }  // [num_seqs, heads, head_size], of either

 private:
  // A pool and the tables over its blocks: the prefix's come first.
  struct Pool {
    KvPool kv;
    DeviceBuffer flat_table;
    DeviceBuffer suffix_table;
  };

  Status make_pools(const DeviceSession& session, const CascadeBenchCase& c, int num_pools);
  Status make_arrays(const DeviceSession& session, const CascadeBenchCase& c);
  Status make_workspaces(const DeviceSession& session);

  CascadeKernel cascade_;
  Kernel flat_;
  CascadeLevel levels_[2];
  CascadeArgs cascade_args_;
  AttentionArgs flat_args_;
  std::vector<Pool> pools_;
  DeviceBuffer q_;
  DeviceBuffer out_;
  DeviceBuffer prefix_starts_;
  DeviceBuffer prefix_lens_;
  DeviceBuffer suffix_lens_;
  DeviceBuffer flat_lens_;
  DeviceBuffer workspace_;
  DeviceBuffer flat_workspace_;
};

Result<CascadeBenchResult> run_cascade_bench(BenchDevice& device, const CascadeBenchCase& c);

// The cases of `pagejit bench cascade`.
std::vector<CascadeBenchCase> cascade_cases();

}  // namespace pagejit
