// What the tests of attention share that look into the emulator: kinds of kernels, and the counters
// of a launch. Thread-safety: the main thread of a test program.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "generator/planner.h"
#include "tests/sweep/error_summary.h"
#include "tests/sweep/test_device.h"

namespace pagejit {

inline constexpr DataType kF16 = DataType::kFloat16;
inline constexpr DataType kBF16 = DataType::kBFloat16;
inline constexpr int kWindowLeft = 100;  // of specs that have a window

inline KernelSpec make_fp8(int head_size, int block_size, KvLayout layout) {
  KernelSpec spec = make_spec(DataType::kFloat8E4m3, head_size, block_size, 4);
  spec.q_dtype = spec.out_dtype = kBF16;
  spec.kv_layout = layout;
  return spec;
}

inline KernelSpec make_vllm(int head_size, int block_size) {
  KernelSpec spec = make_spec(kF16, head_size, block_size, 2);
  spec.kv_layout = KvLayout::kVllm;
  return spec;
}

// With a scale for each token; in line where the alignment is 4.
inline KernelSpec make_int8(int head_size, int alignment) {
  KernelSpec spec = make_fp8(head_size, 16, KvLayout::kRows);
  spec.kv_dtype = DataType::kInt8;
  spec.token_scales = true;
  spec.kv_alignment = alignment;
  return spec;
}

inline KernelSpec make_values(int head_size, int head_size_v) {
  KernelSpec spec = make_spec(kBF16, head_size, 16, 4);
  spec.head_size_v = head_size_v;
  return spec;
}

// Rows of K that hold V.
inline KernelSpec make_latent(DataType type, int head_size, int head_size_v, int num_heads) {
  KernelSpec spec = make_spec(type, head_size, 16, num_heads);
  spec.q_dtype = spec.out_dtype = kBF16;
  spec.head_size_v = head_size_v;
  spec.latent = true;
  return spec;
}

// The same with their scales, of 656 bytes.
inline KernelSpec make_ds_mla(int num_heads) {
  KernelSpec spec = make_latent(DataType::kFloat8E4m3, 576, 512, num_heads);
  spec.kv_layout = KvLayout::kDsMla;
  return spec;
}

inline KernelSpec make_listed(int head_size, int head_size_v) {
  KernelSpec spec = make_latent(kBF16, head_size, head_size_v, 16);
  spec.kv_table = KvTable::kPositions;
  return spec;
}

// Elements of 8 bits, vLLM's layout, head sizes beyond 256.
inline std::vector<KernelSpec> other_kernels() {
  return {make_fp8(64, 16, KvLayout::kRows),
          make_fp8(72, 5, KvLayout::kRows),
          make_fp8(80, 8, KvLayout::kVllm),
          make_vllm(72, 16),
          make_spec(kBF16, 512, 16, 9),
          make_int8(72, 16),
          make_int8(72, 4),
          make_values(192, 128),
          make_values(576, 512),
          make_latent(kBF16, 576, 512, 3),
          make_latent(kBF16, 320, 256, 40),
          make_latent(DataType::kFloat8E4m3, 576, 512, 16),
          make_ds_mla(16),
          make_listed(576, 512)};
}

inline KernelSpec make_ragged(QueryLengths queries, DataType type, int head_size, int group_size) {
  return make_ragged_spec(queries, Causality::kCausal, type, head_size, group_size);
}

class AttentionOnEmulatorTest : public EmulatorTest {
 protected:
  // The counters of one launch over sequences of these lengths, in one split, one KV head.
  PagejitEmulatorCounters count(Engine& engine_to_use, const KernelSpec& spec,
                                const std::vector<int>& seq_lens, int num_splits = 1,
                                const std::vector<int>& query_lens = {}) {
    CheckOptions options;
    options.batch.seq_lens = seq_lens;
    options.batch.query_lens = query_lens;
    options.batch.window_left = kWindowLeft;
    options.num_splits = num_splits;
    emulator().reset_counters();
    const Result<CheckReport> result = run_check(engine_to_use, session(), spec, options);
    EXPECT_TRUE(result.is_ok()) << result.status().to_string() << result.status().detail()
                                << report();
    if (result) {
      expect_passed(*result, canonical_text(spec));
    }
    return emulator().counters();
  }

  KernelConfig config_of(const KernelSpec& spec) {
    const Result<Target> target = engine().target_of_device(0);
    EXPECT_TRUE(target.is_ok()) << target.status().to_string();
    const Result<KernelConfig> config = plan(spec, *target);
    EXPECT_TRUE(config.is_ok()) << config.status().to_string();
    return *config;
  }
};

}  // namespace pagejit
