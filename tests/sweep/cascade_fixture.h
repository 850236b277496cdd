// What the tests of cascades share: one cascade with its groups and lengths, the cases, and
// launches that are waited for. Thread-safety: the main thread of a test program.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/sweep/error_summary.h"
#include "tests/sweep/test_device.h"
#include "tools/check/cascade_check.h"

namespace pagejit {

using Groups = std::vector<CascadeGroup>;

inline CascadeSpec make_cascade(const KernelSpec& attention) { return {.attention = attention}; }

inline KernelSpec ragged(QueryLengths queries, DataType type, int head_size, int block_size,
                         int group_size) {
  KernelSpec spec = make_spec(type, head_size, block_size, group_size);
  spec.queries = queries;
  spec.causality = Causality::kCausal;
  return spec;
}

struct CascadeCase {
  std::string name;
  KernelSpec spec;
  std::vector<Groups> prefixes;
  std::vector<int> suffixes;
  std::vector<int> queries;  // empty: one each
  int num_splits = 0;
  int unused_queries = 0;
  CacheLayout layout = CacheLayout::kPadded;
  float soft_cap = 0;

  CascadeCheckOptions options() const {
    CascadeCheckOptions options;
    options.batch.prefixes = prefixes;
    options.batch.batch.num_kv_heads = 2;
    options.batch.batch.seq_lens = suffixes;
    options.batch.batch.query_lens = queries;
    options.batch.batch.unused_queries = unused_queries;
    options.batch.batch.layout = layout;
    options.batch.batch.per_head_scales = true;
    options.batch.batch.soft_cap = soft_cap;
    options.num_splits = num_splits;
    return options;
  }
};

// All that a cascade may have, with lengths at the borders of blocks.
std::vector<CascadeCase> cascade_cases();

// vLLM's.
std::vector<CascadeCase> vllm_cascade_cases();

class CascadeTest : public DeviceTest {
 protected:
  CascadeKernel prepare_cascade(const CascadeSpec& spec) {
    Result<CascadeKernel> kernel = engine().prepare(spec);
    EXPECT_TRUE(kernel.is_ok()) << kernel.status().to_string() << kernel.status().detail();
    return kernel ? *kernel : CascadeKernel();
  }

  CascadeBatch make(const CascadeSpec& spec, const CascadeCheckOptions& options) {
    CascadeBatchOptions batch_options = options.batch;
    batch_options.spec = spec;
    Result<CascadeBatch> batch = make_cascade_batch(batch_options);
    EXPECT_TRUE(batch.is_ok()) << batch.status().to_string();
    return batch ? std::move(batch).value() : CascadeBatch();
  }

  // Launches, waits and downloads.
  AttentionResults launch(const CascadeKernel& kernel, DeviceCascade& device) {
    Status status = device.flat().reset_results();
    if (status) status = kernel.launch(device.args(), nullptr);
    if (status) status = session().synchronize();
    EXPECT_TRUE(status.is_ok()) << status.to_string() << report();
    Result<AttentionResults> results = device.flat().download();
    EXPECT_TRUE(results.is_ok()) << results.status().to_string();
    return results ? std::move(results).value() : AttentionResults();
  }

  void expect_right(Engine& on, const CascadeCase& c) {
    const Result<CheckReport> result =
        run_cascade_check(on, session(), make_cascade(c.spec), c.options());
    ASSERT_TRUE(result.is_ok()) << c.name << ": " << result.status().to_string()
                                << result.status().detail() << report();
    expect_passed(*result, c.name);
  }
};

}  // namespace pagejit
