// Timing one attention kernel on a GPU: decode, prefill, or both in one launch. Correctness first:
// a kernel that fails its check is not timed. Thread-safety: one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/bench/bench_device.h"

namespace pagejit {

struct AttentionBenchCase {
  std::string name;
  KernelSpec spec;
  int num_kv_heads = 8;
  // Sequences of one query token each.
  int num_seqs = 1;
  int seq_len = 1024;
  // One sequence more: its last chunk_queries tokens. 0: there is none. Needs a spec whose queries
  // are not one.
  int chunk_queries = 0;
  int chunk_seq_len = 0;
  int num_splits = 0;           // 0 = chosen by the library
  bool shuffled_blocks = true;  // else block ids count up: what a contiguous cache would be

  int all_seqs() const { return num_seqs + (chunk_queries > 0 ? 1 : 0); }
  int query_tokens() const { return num_seqs + chunk_queries; }
  int longest() const { return chunk_seq_len > seq_len ? chunk_seq_len : seq_len; }
};

// K and V rows of all sequences, each once: tokens * num_kv_heads * (head_size + head_size_v) *
// bytes, where K's rows hold V tokens * num_kv_heads * head_size * bytes.
double kv_bytes(const AttentionBenchCase& c);
// 2 * Lq * Lk * heads * (head_size + head_size_v): two products of a multiplication and an addition
// each, of every query token with every key of its sequence. A causal chunk sees its own keys half:
// Lq * (Lk - Lq / 2), which is Lq * Lk / 2 without a cache before it.
double flops(const AttentionBenchCase& c);

struct AttentionBenchResult {
  AttentionBenchCase bench_case;
  int num_splits = 0;  // as launched
  int num_pools = 0;   // copies of the KV cache that take turns
  RotatedTimes times;
  double check_max_error = 0;  // of the check before the timing

  double terabytes_per_s() const { return kv_bytes(bench_case) / times.median_us * 1e-6; }
  double teraflops() const { return flops(bench_case) / times.median_us * 1e-6; }
};

// One line of JSON, without a line break.
std::string to_json(const AttentionBenchResult& result, double read_terabytes_per_s);

// All that the launches of a case need, in device memory.
class AttentionWorkload {
 public:
  static Result<AttentionWorkload> create(Engine& engine, const DeviceSession& session,
                                          const AttentionBenchCase& c, int num_pools);

  Status launch(int pool, Stream stream);
  int num_splits() const { return num_splits_; }
  int num_pools() const { return static_cast<int>(pools_.size()); }
  const DeviceBuffer& out() const { return out_; }  // [query tokens, heads, head_size]

 private:
  AttentionArgs args_;
  Kernel kernel_;
  int num_splits_ = 1;
  std::vector<KvPool> pools_;
  DeviceBuffer q_;
  DeviceBuffer out_;
  DeviceBuffer seq_lens_;
  DeviceBuffer query_start_loc_;
  DeviceBuffer scales_;
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
