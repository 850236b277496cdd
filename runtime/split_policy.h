// The split policy: over how many CTAs the KV sequence of a decode launch is split. Pure and fast
// (no allocation, some twenty candidates at most): it runs at each launch that leaves num_splits to
// the library. Thread-safety: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pagejit {

// A merging CTA reads the partials of all splits of its unit, so their number must be bounded; 512
// is above the CTAs that any GPU so far holds at two per SM, and more than one round of CTAs for
// one unit never pays.
constexpr int kMaxSplits = 512;

// A split with fewer tokens spends longer on its start (block table, first K) than on streaming
// them: 256 tokens of 128 bf16 elements, K and V, are 128 KiB, about 2 us at the fair share of one
// SM of an H200.
constexpr int kMinSplitTokens = 256;

// What is fixed for a kernel on a device.
struct SplitDevice {
  int num_sms = 1;
  int ctas_per_sm = 1;             // the kernel's occupancy
  double sm_bytes_per_ns = 32.0;   // one SM's share of the memory bandwidth (H200: 4.2 TB/s / 132)
  double cta_bytes_per_ns = 64.0;  // what one CTA reaches alone: its bytes in flight over the
                                   // latency of about 1 us, or what its products take
  int rows = 1;                    // of a unit: pagejit_shared::partial_rows()
  int head_size = 128;
  int tile_tokens = 64;   // tokens that a CTA stages at once
  int token_bytes = 512;  // of K and V of one token and KV head

  int slots() const { return num_sms * ctas_per_sm; }
  // kMinSplitTokens, rounded up to whole tiles.
  int min_split_tokens() const {
    return (kMinSplitTokens + tile_tokens - 1) / tile_tokens * tile_tokens;
  }
};

// Estimated duration in ns of a launch with `num_splits` splits; exposed for tests and `explain`.
double estimate_decode_ns(const SplitDevice& device, int num_units, int64_t max_seq_len,
                          int num_splits);

// The number of splits that minimises estimate_decode_ns. num_units = num_seqs * num_kv_heads >= 0.
// In [1, kMaxSplits]; 1 where the merge units exceed the workspace's counters. The partials of a
// split launch, num_units * result, never exceed max_partials(device).
int choose_splits(const SplitDevice& device, int64_t num_units, int64_t max_seq_len);

// Upper bound of num_units * num_splits over all launches that choose_splits() splits.
int64_t max_partials(const SplitDevice& device);

}  // namespace pagejit
