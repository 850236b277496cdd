// vLLM's entry points on vLLM's own sweeps: the table of its test of PagedAttention
// (test_attention.py), and that of block-sparse attention (test_blocksparse_attention.py), with own
// random inputs of the same distributions and shorter sequences. A case must meet vLLM's tolerances
// against the float64 reference, and the tighter rule of tools/check/compare.h. Every n-th case
// runs, all with --all.
#include "pagejit/paged_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/sweep/error_summary.h"
#include "tests/sweep/sweep_main.h"
#include "tests/sweep/test_device.h"
#include "tools/reference/random.h"

namespace pagejit {
namespace {

using ::testing::HasSubstr;

struct PagedCase {
  int version;
  int num_heads;
  int num_kv_heads;
  int head_size;
  bool alibi;
  int block_size;
  DataType dtype;
  std::string_view kv_cache_dtype;
  // Of the second table only.
  bool is_sparse = false;
  int head_sliding_step = 0;

  bool is_fp8() const { return kv_cache_dtype.starts_with("fp8"); }
  // What vLLM's test leaves out: 16 bytes of a key are 16 elements.
  bool is_skipped_by_vllm() const { return is_fp8() && head_size % 16 != 0; }
  bool is_f32_cache() const { return dtype == DataType::kFloat32 && kv_cache_dtype == "auto"; }
  bool is_served() const { return !is_skipped_by_vllm(); }

  // All but pointers, lengths and strides.
  PagedAttentionArgs args() const {
    static constexpr float kAnySlope = 1;
    return {.num_kv_heads = num_kv_heads,
            .scale = 1.0f / std::sqrt(static_cast<float>(head_size)),
            .block_size = block_size,
            .alibi_slopes = alibi ? &kAnySlope : nullptr,
            .kv_cache_dtype = kv_cache_dtype,
            .blocksparse_local_blocks = is_sparse ? 16 : 0,
            .blocksparse_vert_stride = is_sparse ? 8 : 0,
            .blocksparse_block_size = 64,
            .blocksparse_head_sliding_step = head_sliding_step,
            .dtype = dtype,
            .num_heads = num_heads,
            .head_size = head_size};
  }

  std::string name() const {
    char text[120];
    std::snprintf(text, sizeof text, "v%d_h%d_%d_d%d_b%d_%s_kv_%s%s", version, num_heads,
                  num_kv_heads, head_size, block_size, std::string(data_type_name(dtype)).c_str(),
                  std::string(kv_cache_dtype).c_str(), alibi ? "_alibi" : "");
    std::string name = text;
    if (!is_sparse) return name;
    const int step = head_sliding_step;
    return name + (step < 0 ? "_step_minus" : "_step") + std::to_string(std::abs(step));
  }
};

// Each n-th case of the tables runs; n shares no factor with the numbers of values.
constexpr size_t kDenseStep = 31;
constexpr size_t kSparseStep = 43;
constexpr int kVersions[] = {1, 2};
constexpr std::string_view kCacheTypes[] = {"auto", "fp8"};
constexpr DataType kTypes[] = {DataType::kFloat16, DataType::kBFloat16, DataType::kFloat32};
// (40, 40) and (64, 8) in the wide sweep, (32, 8) in the later one.
constexpr int kHeads[][2] = {{40, 40}, {64, 8}, {32, 8}};

std::vector<PagedCase> paged_table() {
  std::vector<PagedCase> table;
  for (const int version : kVersions) {
    for (const auto& heads : kHeads) {
      for (const int head_size : {32, 64, 80, 96, 112, 120, 128, 192, 256}) {
        for (const bool alibi : {false, true}) {
          for (const int block_size : {16, 32}) {
            for (const DataType dtype : kTypes) {
              for (const std::string_view kv : kCacheTypes) {
                table.push_back(
                    {version, heads[0], heads[1], head_size, alibi, block_size, dtype, kv});
              }
            }
          }
        }
      }
    }
  }
  return table;
}

std::vector<PagedCase> sparse_table() {
  std::vector<PagedCase> table;
  for (const int version : kVersions) {
    for (const auto& heads : {kHeads[0], kHeads[1]}) {
      for (const int head_size : {64, 112}) {
        for (const int block_size : {16, 32}) {
          for (const int step : {0, 2, -1}) {
            for (const bool alibi : {false, true}) {
              for (const DataType dtype : {DataType::kFloat16, DataType::kBFloat16}) {
                for (const std::string_view kv : kCacheTypes) {
                  table.push_back({version, heads[0], heads[1], head_size, alibi, block_size, dtype,
                                   kv, true, step});
                }
              }
            }
          }
        }
      }
    }
  }
  return table;
}

// Each `step`-th of those that are served.
std::vector<PagedCase> sample(const std::vector<PagedCase>& table, size_t step) {
  std::vector<PagedCase> cases;
  size_t number = 0;
  for (const PagedCase& c : table) {
    if (c.is_served() && number++ % step == 0) cases.push_back(c);
  }
  return cases;
}
std::vector<PagedCase> cases_to_run(const std::vector<PagedCase>& table, size_t step) {
  return sample(table, run_all() ? 1 : step);
}

// Shapes and types that vLLM has no kernels for.
const PagedCase kBeyondVllm[] = {
    {1, 4, 4, 16, false, 8, DataType::kFloat16, "fp8_e4m3"},
    {2, 6, 2, 48, true, 8, DataType::kBFloat16, "bfloat16"},
    {1, 71, 1, 64, false, 24, DataType::kFloat32, "float16"},
    {2, 12, 4, 176, true, 64, DataType::kBFloat16, "fp8_e5m2"},
    {1, 5, 1, 512, false, 16, DataType::kFloat32, "bfloat16"},
    {2, 8, 8, 8, false, 128, DataType::kFloat16, "float16"},
};

class PagedAttentionDeviceTest : public DeviceTest {
 protected:
  // A batch as vLLM's test has it, but for its lengths.
  static AttentionBatch make_case_batch(const PagedCase& c, std::vector<int> seq_lens = {}) {
    const PagedAttentionArgs args = c.args();
    const Result<KernelSpec> spec = paged_attention_spec(args);
    EXPECT_TRUE(spec.is_ok()) << spec.status().to_string();
    BatchOptions options;
    options.spec = *spec;
    options.num_kv_heads = c.num_kv_heads;
    options.vllm_values = true;
    options.padded_rows = false;
    SplitMix64 rng(static_cast<uint64_t>(c.head_size + c.block_size + c.version));
    // K and V apart, in one allocation, and with gaps.
    constexpr CacheLayout kLayouts[] = {CacheLayout::kNhd, CacheLayout::kInterleaved,
                                        CacheLayout::kPadded};
    options.layout = kLayouts[rng.below(3)];
    options.seq_lens = std::move(seq_lens);
    const int num_seqs = c.is_sparse ? 3 : 7;
    // With many KV heads the emulator takes long for long sequences; one head of a sparse sequence
    // has to see less than all of 16 local blocks and the others' eighth.
    const int longest = c.is_sparse ? 1700 : c.num_kv_heads == 8 ? 2048 : 500;
    if (options.seq_lens.empty()) {
      for (int seq = 1; seq < num_seqs; ++seq) {
        options.seq_lens.push_back(1 + static_cast<int>(rng.below(c.is_sparse ? 1300 : 120)));
      }
      options.seq_lens.push_back(longest);
    }
    options.block_sparse = {.local_blocks = args.blocksparse_local_blocks,
                            .vert_stride = args.blocksparse_vert_stride,
                            .block_size = args.blocksparse_block_size,
                            .head_sliding_step = args.blocksparse_head_sliding_step};
    AttentionBatch batch = make_batch(options);
    for (float& slope : batch.alibi_slopes) slope = rng.normal();
    return batch;
  }

  // The call, waited for.
  void call(int version, const PagedAttentionArgs& args) {
    const Status status = version == 1 ? paged_attention_v1(attention(), args, nullptr)
                                       : paged_attention_v2(attention(), args, nullptr);
    ASSERT_TRUE(status.is_ok()) << status.to_string() << status.detail() << report();
    ASSERT_TRUE(session().synchronize().is_ok()) << report();
  }

  PagedAttention& attention() {
    if (attention_ == nullptr) attention_ = std::make_unique<PagedAttention>(device().engine);
    return *attention_;
  }

  // The case's arguments with a batch's device pointers and, for v2, a workspace that was garbage.
  PagedAttentionArgs device_args(const PagedCase& c, const AttentionArgs& from) {
    PagedAttentionArgs args = c.args();
    args.out = from.out;
    args.query = from.q;
    args.key_cache = from.k_cache;
    args.value_cache = from.v_cache;
    args.block_tables = from.block_table;
    args.seq_lens = from.seq_lens;
    args.max_seq_len = from.max_blocks_per_seq * c.block_size;
    args.alibi_slopes = c.alibi ? from.alibi_slopes : nullptr;
    args.k_scale = from.k_scale;
    args.v_scale = from.v_scale;
    args.num_seqs = from.num_seqs;
    args.max_num_blocks_per_seq = from.max_blocks_per_seq;
    args.kv_block_stride = from.k_strides.block;
    args.kv_head_stride = from.k_strides.head;
    if (c.version == 1) return args;
    const Result<size_t> bytes = attention().workspace_bytes(args);
    EXPECT_TRUE(bytes.is_ok()) << bytes.status().to_string();
    const std::vector<uint8_t> garbage(*bytes, 0xff);
    Result<DeviceBuffer> workspace =
        DeviceBuffer::copy_of(session(), garbage.data(), garbage.size());
    EXPECT_TRUE(workspace.is_ok()) << workspace.status().to_string();
    workspace_ = std::move(workspace).value();
    args.workspace = workspace_.data();
    args.workspace_bytes = workspace_.size_bytes();
    const Status status = attention().init_workspace(args.workspace, args.workspace_bytes, nullptr);
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    return args;
  }

  void expect_right(const PagedCase& c, const AttentionBatch& batch,
                    const DeviceBatch& device_batch) {
    const Result<AttentionResults> results = device_batch.download();
    ASSERT_TRUE(results.is_ok()) << results.status().to_string();
    const ReferenceResults reference = compute_reference(batch);
    const CheckReport report = compare_results(batch, reference, *results, false, 0);
    expect_passed(report);
    // vLLM's tolerances.
    const double atol = c.is_fp8() ? 1e-2 : 1e-3;
    constexpr double kRtol = 1e-5;
    for (int query = 0; query < batch.num_queries; ++query) {
      for (int head = 0; head < batch.num_heads; ++head) {
        const int64_t row = (int64_t{query} * batch.num_heads + head) * c.head_size;
        for (int i = 0; i < c.head_size; ++i) {
          const double want = reference.out[static_cast<size_t>(row + i)];
          const double got = results->out.at(batch.out_index(query, head) + i);
          ASSERT_LE(std::abs(got - want), atol + kRtol * std::abs(want))
              << "query " << query << ", head " << head << ", element " << i;
        }
      }
    }
  }

 private:
  std::unique_ptr<PagedAttention> attention_;
  DeviceBuffer workspace_;
};

class PagedAttentionSweepTest : public PagedAttentionDeviceTest,
                                public testing::WithParamInterface<PagedCase> {};

TEST_P(PagedAttentionSweepTest, MeetsVllmsTolerancesAndTheRule) {
  const PagedCase& c = GetParam();
  const AttentionBatch batch = make_case_batch(c);
  const Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, false);
  ASSERT_TRUE(device_batch.is_ok()) << device_batch.status().to_string();
  call(c.version, device_args(c, device_batch->args()));
  expect_right(c, batch, *device_batch);
}

const auto kName = [](const auto& test) { return test.param.name(); };
INSTANTIATE_TEST_SUITE_P(Dense, PagedAttentionSweepTest,
                         testing::ValuesIn(cases_to_run(paged_table(), kDenseStep)), kName);
INSTANTIATE_TEST_SUITE_P(Sparse, PagedAttentionSweepTest,
                         testing::ValuesIn(cases_to_run(sparse_table(), kSparseStep)), kName);
INSTANTIATE_TEST_SUITE_P(BeyondVllm, PagedAttentionSweepTest, testing::ValuesIn(kBeyondVllm),
                         kName);

// q, K and V of a token in one row, as a model's projection leaves them.
TEST_F(PagedAttentionDeviceTest, RowsOfQueriesMayLieApart) {
  const PagedCase c = {1, 8, 2, 64, false, 16, DataType::kBFloat16, "auto"};
  const AttentionBatch batch = make_case_batch(c, {40, 1, 333});
  const Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, false);
  ASSERT_TRUE(device_batch.is_ok()) << device_batch.status().to_string();
  PagedAttentionArgs args = device_args(c, device_batch->args());
  args.q_stride = (8 + 2 + 2) * 64;
  std::vector<uint16_t> rows(static_cast<size_t>(3 * args.q_stride), 0x7fff);  // NaN
  for (int64_t i = 0; i < int64_t{3} * 8 * 64; ++i) {
    const int64_t at = i / (8 * 64) * args.q_stride + i % (8 * 64);
    const uint32_t code = batch.q.code(AttentionBatch::guard_elements(batch.q.type()) + i);
    rows[static_cast<size_t>(at)] = static_cast<uint16_t>(code);
  }
  const Result<DeviceBuffer> query =
      DeviceBuffer::copy_of(session(), rows.data(), rows.size() * sizeof(uint16_t));
  ASSERT_TRUE(query.is_ok()) << query.status().to_string();
  args.query = query->data();
  call(c.version, args);
  expect_right(c, batch, *device_batch);
}

// vLLM's keeps all scores of a sequence in shared memory, 58,000 at most.
TEST_F(PagedAttentionDeviceTest, V1TakesSequencesOfAnyLength) {
  const PagedCase c = {1, 2, 1, 32, false, 16, DataType::kFloat16, "auto"};
  const AttentionBatch batch = make_case_batch(c, {70000});
  const Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, false);
  ASSERT_TRUE(device_batch.is_ok()) << device_batch.status().to_string();
  call(c.version, device_args(c, device_batch->args()));
  expect_right(c, batch, *device_batch);
}

TEST_F(PagedAttentionDeviceTest, V2SplitsAndItsWorkspaceServesCallAfterCall) {
  PagedCase c = {2, 64, 8, 64, true, 16, DataType::kBFloat16, "auto"};
  const AttentionBatch batch = make_case_batch(c, {2000, 3, 700});
  Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, false);
  ASSERT_TRUE(device_batch.is_ok()) << device_batch.status().to_string();
  const PagedAttentionArgs args = device_args(c, device_batch->args());
  const Kernel kernel = prepare(batch.options.spec);
  ASSERT_GT(kernel.choose_num_splits(args.num_seqs, args.num_kv_heads, args.max_seq_len), 1);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(device_batch->reset_results().is_ok());
    call(2, args);
    expect_right(c, batch, *device_batch);
  }
}

// ---- The tables themselves; no device needed ----

// 864 cases in vLLM's wide sweep, of which its test skips 48; half as many again with (32, 8)
// heads.
TEST(PagedAttentionTableTest, HasAllCasesOfVllmsSweep) {
  int num_wide = 0;
  int num_skipped = 0;
  int num_f32_caches = 0;
  const std::vector<PagedCase> table = paged_table();
  for (const PagedCase& c : table) {
    if (c.num_heads == 32) continue;
    ++num_wide;
    num_skipped += c.is_skipped_by_vllm() ? 1 : 0;
    num_f32_caches += c.is_f32_cache() ? 1 : 0;
  }
  EXPECT_EQ(num_wide, 864);
  EXPECT_EQ(num_skipped, 48);
  EXPECT_EQ(num_f32_caches, 144);
  EXPECT_EQ(table.size(), 1296u);
  EXPECT_EQ(sample(table, 1).size(), 1224u);
  EXPECT_EQ(sparse_table().size(), 384u);
  EXPECT_EQ(sample(sparse_table(), 1).size(), 384u);
}

TEST(PagedAttentionTableTest, WhatIsNotServedIsRefusedWithASentence) {
  for (const PagedCase& c : paged_table()) {
    const Result<KernelSpec> spec = paged_attention_spec(c.args());
    if (c.is_served()) {
      EXPECT_TRUE(spec.is_ok()) << c.name() << ": " << spec.status().to_string();
    } else {
      EXPECT_EQ(spec.status().code(), StatusCode::kInvalidArgument) << c.name();
      EXPECT_THAT(spec.status().message(), HasSubstr("head_size 120: must be a multiple of 16"));
    }
  }
}

// Each value of each factor, and some pairs of them.
TEST(PagedAttentionTableTest, TheSampleHasAllValues) {
  const auto expect_all = [](const std::vector<PagedCase>& table, size_t step, auto value_of) {
    std::set<decltype(value_of(table[0]))> all;
    std::set<decltype(value_of(table[0]))> sampled;
    for (const PagedCase& c : sample(table, 1)) all.insert(value_of(c));
    for (const PagedCase& c : sample(table, step)) sampled.insert(value_of(c));
    EXPECT_EQ(sampled.size(), all.size());
  };
  for (const auto& [table, step] :
       {std::pair(paged_table(), kDenseStep), std::pair(sparse_table(), kSparseStep)}) {
    expect_all(table, step, [](const PagedCase& c) { return std::pair(c.version, c.num_heads); });
    expect_all(table, step, [](const PagedCase& c) { return std::pair(c.alibi, c.version); });
    expect_all(table, step, [](const PagedCase& c) { return c.head_size; });
    expect_all(table, step, [](const PagedCase& c) { return c.block_size; });
    expect_all(table, step, [](const PagedCase& c) { return std::pair(c.dtype, c.is_fp8()); });
    expect_all(table, step, [](const PagedCase& c) { return c.head_sliding_step; });
  }
}

}  // namespace
}  // namespace pagejit
