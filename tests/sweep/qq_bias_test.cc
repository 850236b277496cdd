// The bias between query tokens of a sequence against the float64 reference, beside each mask and
// score change; and a tree of speculated tokens as both a bias and a custom mask.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/sweep/error_summary.h"
#include "tests/sweep/test_device.h"

namespace pagejit {
namespace {

constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kF16 = DataType::kFloat16;

struct BiasCase {
  std::string name;
  KernelSpec spec;
  int num_splits = 0;
  bool is_shared = false;
  float scale = 0;
};

KernelSpec with_bias(QueryLengths queries, Causality causality, DataType type, int head_size,
                     int group_size) {
  KernelSpec spec = make_ragged_spec(queries, causality, type, head_size, group_size);
  spec.qq_bias = true;
  return spec;
}

class QqBiasTest : public DeviceTest, public testing::WithParamInterface<BiasCase> {};

TEST_P(QqBiasTest, IsAddedToTheScoresOfQueryTokens) {
  const BiasCase& c = GetParam();
  CheckOptions options;
  options.batch.num_kv_heads = 2;
  // A decode step, no query, a prompt, chunks behind a cache, more queries than keys, no key.
  options.batch.seq_lens = {130, 9, 37, 301, 258, 3, 0};
  if (c.spec.queries != QueryLengths::kOne) {
    options.batch.query_lens = {1, 0, 37, 40, 3, 5, 2};
    options.batch.unused_queries = 2;
  }
  options.batch.window_left = 19;
  options.batch.shared_qq_bias = c.is_shared;
  options.batch.scale = c.scale;
  options.batch.layout = CacheLayout::kPadded;
  options.num_splits = c.num_splits;
  expect_passes(c.spec, options);
}

std::vector<BiasCase> make_cases() {
  std::vector<BiasCase> cases;
  const auto add = [&](std::string name, KernelSpec spec) -> BiasCase& {
    cases.push_back({std::move(name), spec});
    return cases.back();
  };
  for (const QueryLengths queries :
       {QueryLengths::kFew, QueryLengths::kMany, QueryLengths::kShared}) {
    const std::string kind = std::string(name_of(queries)) + "_";
    const KernelSpec causal = with_bias(queries, Causality::kCausal, kBF16, 64, 4);
    add(kind + "causal", causal);
    add(kind + "one_matrix", causal).is_shared = true;
    add(kind + "causal_split", with_bias(queries, Causality::kCausal, kF16, 128, 1)).num_splits = 3;
    add(kind + "full", with_bias(queries, Causality::kNone, kBF16, 64, 4)).num_splits = 2;
    add(kind + "full_one_matrix", with_bias(queries, Causality::kNone, kF16, 128, 2)).is_shared =
        true;
    add(kind + "flagged", with_bias(queries, Causality::kPerSequence, kBF16, 80, 3));
    add(kind + "negative_scale", causal).scale = -0.25f;
    KernelSpec spec = causal;
    spec.window = true;
    add(kind + "window", spec).num_splits = 2;
    spec.soft_cap = spec.alibi = spec.sinks = spec.custom_mask = true;
    add(kind + "everything", spec);
    spec = causal;
    spec.soft_cap = true;
    add(kind + "cap", spec);
    spec = causal;
    spec.alibi = true;
    add(kind + "alibi", spec).num_splits = 2;
    spec = causal;
    spec.sinks = true;
    add(kind + "sinks", spec).num_splits = 3;
    spec = causal;
    spec.custom_mask = true;
    spec.causality = Causality::kNone;
    add(kind + "mask", spec).num_splits = 2;
    spec = causal;
    spec.block_sparse = true;
    add(kind + "sparse", spec);
    spec = causal;
    spec.chunked = true;
    add(kind + "chunked", spec);
    spec = causal;
    spec.kv_table = KvTable::kCsr;
    spec.debug = true;
    add(kind + "csr_debug", spec).num_splits = 2;
    spec = causal;
    spec.kv_table = KvTable::kContiguous;
    spec.block_size = 1;
    add(kind + "contiguous", spec);
    spec = causal;
    spec.kv_dtype = DataType::kFloat8E4m3;
    add(kind + "fp8", spec).num_splits = 2;
    spec.kv_layout = KvLayout::kVllm;
    add(kind + "fp8_vllm", spec);
    spec = causal;
    spec.kv_dtype = DataType::kInt8;
    spec.token_scales = true;
    add(kind + "int8_token_scales", spec);
    if (queries == QueryLengths::kShared) continue;
    spec = causal;
    spec.batch_invariant = true;
    add(kind + "invariant", spec);
  }
  KernelSpec one = with_bias(QueryLengths::kOne, Causality::kNone, kBF16, 128, 4);
  add("one", one).num_splits = 2;
  one.alibi = true;
  add("one_alibi", one);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases, QqBiasTest, testing::ValuesIn(make_cases()),
                         [](const testing::TestParamInfo<BiasCase>& test) {
                           return test.param.name;
                         });

class TokenTreeTest : public DeviceTest {};

// A tree of speculated tokens: each sees the cache, its ancestors and itself. As a bias of 0 and
// -inf, beside a causal mask, and as a custom mask it gives the same result but for its rounding.
TEST_F(TokenTreeTest, ABiasHidesWhatACustomMaskHides) {
  constexpr int kParents[] = {-1, 0, 0, 1, 1, 2, 3, 5};
  constexpr int kTokens = static_cast<int>(std::size(kParents));
  constexpr int kSeqLen = 141;
  BatchOptions options;
  options.spec = with_bias(QueryLengths::kFew, Causality::kCausal, kBF16, 64, 4);
  options.seq_lens = {kSeqLen};
  options.query_lens = {kTokens};
  AttentionBatch batch = make_batch(options);
  BatchOptions mask_options = options;
  mask_options.spec.qq_bias = false;
  mask_options.spec.custom_mask = true;
  AttentionBatch masked = make_batch(mask_options);
  batch.qq_bias.assign(kTokens * kTokens, -std::numeric_limits<float>::infinity());
  batch.qq_bias_stride_row = kTokens;
  batch.qq_bias_stride_seq = 0;
  const auto set = [&](int query, int key, bool is_seen) {
    const int bit = query * kSeqLen + key;
    uint8_t& byte = masked.custom_mask[static_cast<size_t>(bit / 8)];
    const int flag = 1 << bit % 8;
    byte = static_cast<uint8_t>(is_seen ? byte | flag : byte & ~flag);
  };
  for (int i = 0; i < kTokens; ++i) {
    for (int key = 0; key < kSeqLen; ++key) set(i, key, key < kSeqLen - kTokens);
    for (int j = i; j >= 0; j = kParents[j]) {
      batch.qq_bias[static_cast<size_t>(i * kTokens + j)] = 0;
      set(i, kSeqLen - kTokens + j, true);
    }
  }
  const auto run = [&](const AttentionBatch& from) {
    Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), from, true);
    EXPECT_TRUE(device_batch.is_ok()) << device_batch.status().to_string();
    AttentionArgs args = device_batch->args();
    args.num_splits = 1;
    const CheckReport result = launch_and_compare(prepare(from.options.spec), *device_batch, args,
                                                  from, compute_reference(from));
    expect_passed(result);
    return device_batch->download().value();
  };
  const AttentionResults by_bias = run(batch);
  const AttentionResults by_mask = run(masked);
  // Scores are scaled a step earlier beside a bias, which moves their last bits.
  for (int query = 0; query < kTokens; ++query) {
    for (int head = 0; head < batch.num_heads; ++head) {
      for (int i = 0; i < 64; ++i) {
        const int64_t at = batch.out_index(query, head) + i;
        EXPECT_NEAR(by_bias.out.at(at), by_mask.out.at(at), 0.02);
      }
    }
  }
}

}  // namespace
}  // namespace pagejit
