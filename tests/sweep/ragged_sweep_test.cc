// Ragged kernels against the float64 reference: a covering array over everything that a ragged
// launch may have, and with --all also the shapes of vLLM's sweeps of its unified attention and of
// FlashAttention's varlen kernels (test_triton_unified_attention.py, test_flash_attn.py; their
// 16-bit cases, own random inputs). The rule by which a case passes stands in tools/check/compare.h
// and is tighter than their tolerances.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/sweep/error_summary.h"
#include "tests/sweep/sweep_main.h"
#include "tests/sweep/test_device.h"

namespace pagejit {
namespace {

enum class Mask { kNone, kWindowLeft, kWindowRight, kWindowBoth, kChunks };
constexpr const char* kMaskNames[] = {"all", "left", "right", "both", "chunks"};

enum class Lengths {
  kMixed,        // a decode step, no queries, a prompt, a chunk, more queries than keys, no keys
  kDecode,       // one query token each
  kPrompts,      // as many queries as keys
  kSpeculative,  // 2 to 5 query tokens behind a cache
  kLong,         // a chunk behind 2,000 tokens
};
constexpr const char* kLengthsNames[] = {"mixed", "decode", "prompts", "speculative", "long"};

struct SequenceLengths {
  std::vector<int> queries;
  std::vector<int> keys;
};

SequenceLengths lengths_of(Lengths lengths) {
  switch (lengths) {
    case Lengths::kMixed:
      return {{1, 0, 37, 20, 5, 2}, {130, 9, 37, 101, 3, 0}};
    case Lengths::kDecode:
      return {{1, 1, 1, 1}, {1, 600, 17, 64}};
    case Lengths::kPrompts:
      return {{1, 40, 16, 90}, {1, 40, 16, 90}};
    case Lengths::kSpeculative:
      return {{2, 5, 3, 4}, {300, 5, 64, 129}};
    case Lengths::kLong:
      return {{20}, {2020}};
  }
  return {};
}

// The order of the fields is that of make_covering_array.py.
struct RaggedSweepCase {
  int head_size;
  int group_size;
  int block_size;
  DataType type;
  QueryLengths queries;
  Causality causality;
  KvTable kv_table;
  Mask mask;
  bool soft_cap;
  bool alibi;
  bool sinks;
  Lengths lengths;
  int num_splits;
  CacheLayout layout;
  LogitRegime logits;
  bool with_lse;
  PagejitEmulatorOrder order;
  PagejitEmulatorCompletion completion;

  KernelSpec spec() const {
    const bool has_blocks = kv_table != KvTable::kContiguous;
    KernelSpec spec = make_spec(type, head_size, has_blocks ? block_size : 1, group_size);
    spec.queries = queries;
    spec.causality = causality;
    spec.kv_table = kv_table;
    spec.window = mask != Mask::kNone && mask != Mask::kChunks;
    spec.chunked = mask == Mask::kChunks;
    spec.soft_cap = soft_cap;
    spec.alibi = alibi;
    spec.sinks = sinks;
    return spec;
  }

  CheckOptions check_options() const {
    CheckOptions options;
    options.batch.num_kv_heads = 2;
    const SequenceLengths sequences = lengths_of(lengths);
    options.batch.seq_lens = sequences.keys;
    options.batch.query_lens = sequences.queries;
    options.batch.unused_queries = 1;
    if (mask == Mask::kWindowLeft || mask == Mask::kWindowBoth) options.batch.window_left = 50;
    if (mask == Mask::kWindowRight || mask == Mask::kWindowBoth) options.batch.window_right = 3;
    options.batch.chunk_size = 48;
    options.batch.layout = layout;
    options.batch.logits = logits;
    options.num_splits = num_splits;
    options.with_lse = with_lse;
    return options;
  }

  // A number first: cases that differ in what the name leaves out are told apart.
  std::string name(size_t index) const {
    char text[160];
    std::snprintf(text, sizeof text, "%03d_%s_d%d_b%d_g%d_%s_c%d_t%d_%s_%s_s%d",
                  static_cast<int>(index), queries == QueryLengths::kFew ? "few" : "many",
                  head_size, block_size, group_size, std::string(data_type_name(type)).c_str(),
                  static_cast<int>(causality), static_cast<int>(kv_table),
                  kMaskNames[static_cast<int>(mask)], kLengthsNames[static_cast<int>(lengths)],
                  num_splits);
    return text;
  }
};

const RaggedSweepCase kCases[] = {
#include "tests/sweep/covering_ragged.inc"
};

class RaggedSweepTest : public DeviceTest, public testing::WithParamInterface<size_t> {};

TEST_P(RaggedSweepTest, IsAsCloseToFloat64AsTheNaiveComputation) {
  const RaggedSweepCase& c = kCases[GetParam()];
  if (device().emulator != nullptr) device().emulator->set_schedule(c.order, c.completion, 1);
  const Result<CheckReport> result = run_check(engine(), session(), c.spec(), c.check_options());
  ASSERT_TRUE(result.is_ok()) << canonical_text(c.spec()) << ": " << result.status().to_string()
                              << result.status().detail() << report();
  expect_passed(*result, canonical_text(c.spec()));
}

INSTANTIATE_TEST_SUITE_P(Cases, RaggedSweepTest, testing::Range(size_t{0}, std::size(kCases)),
                         [](const testing::TestParamInfo<size_t>& test) {
                           return kCases[test.param].name(test.param);
                         });

// ---- vLLM's sweeps ----

struct VllmCase {
  std::string name;
  SequenceLengths sequences;
  int num_heads;
  int num_kv_heads;
  int head_size;
  int window;  // keys, 0: none
  float soft_cap;
  int num_splits;
  bool is_fp8;        // q, K and V of e4m3 with scales
  bool is_far_apart;  // as a cache of 32,768 blocks: beyond 2^31 bytes
};

// Unified attention, 768: two sets of sequences, three of heads, two head sizes, four windows, with
// and without a soft cap, split and not split, two types, two sizes of caches. And of the varlen
// sweep's 640 those of its other head sizes; that sweep also has two versions of kernels, which are
// the two kernels here, and tells the result's memory given from made.
std::vector<VllmCase> vllm_cases() {
  std::vector<VllmCase> cases;
  if (!run_all()) return cases;
  const SequenceLengths sets[] = {{{1, 5, 129}, {1328, 18, 463}}, {{1, 1, 1}, {523, 37, 2011}}};
  constexpr int kHeads[][2] = {{4, 4}, {8, 2}, {5, 1}};
  const auto add = [&](int set, const int(&heads)[2], int head_size, int window, float soft_cap,
                       int num_splits) {
    for (const bool is_fp8 : {false, true}) {
      for (const bool is_far_apart : {false, true}) {
        char name[120];
        std::snprintf(name, sizeof name, "set%d_h%d_%d_d%d_w%d_cap%d_s%d%s%s", set, heads[0],
                      heads[1], head_size, window, static_cast<int>(soft_cap), num_splits,
                      is_fp8 ? "_fp8" : "", is_far_apart ? "_far" : "");
        cases.push_back({name, sets[set], heads[0], heads[1], head_size, window, soft_cap,
                         num_splits, is_fp8, is_far_apart});
      }
    }
  };
  for (int set : {0, 1}) {
    for (const auto& heads : kHeads) {
      for (int head_size : {128, 256}) {
        for (int window : {0, 64, 128, 256}) {
          for (float soft_cap : {0.0f, 50.0f}) {
            for (int num_splits : {1, 8}) {
              add(set, heads, head_size, window, soft_cap, num_splits);
            }
          }
        }
      }
      if (heads[1] == 1) continue;
      for (int head_size : {40, 72, 80}) {
        for (int window : {0, 256}) add(set, heads, head_size, window, 0, 0);
      }
    }
  }
  return cases;
}

class VllmSweepTest : public DeviceTest, public testing::WithParamInterface<VllmCase> {};

TEST_P(VllmSweepTest, IsAsCloseToFloat64AsTheNaiveComputation) {
  const VllmCase& c = GetParam();
  for (const QueryLengths queries : {QueryLengths::kFew, QueryLengths::kMany}) {
    KernelSpec spec = make_ragged_spec(queries, Causality::kCausal,
                                       c.is_fp8 ? DataType::kFloat8E4m3 : DataType::kBFloat16,
                                       c.head_size, c.num_heads / c.num_kv_heads);
    spec.out_dtype = DataType::kBFloat16;
    spec.window = c.window > 0;
    spec.soft_cap = c.soft_cap > 0;
    CheckOptions options;
    options.batch.num_kv_heads = c.num_kv_heads;
    options.batch.seq_lens = c.sequences.keys;
    options.batch.query_lens = c.sequences.queries;
    options.batch.window_left = c.window - 1;
    options.batch.soft_cap = c.soft_cap;
    if (c.is_far_apart) {
      // The batch has at least 113 blocks: 290 times as far apart they are as far as 32,768.
      options.batch.device_block_stride = int64_t{290} * 16 * c.num_kv_heads * c.head_size;
    }
    options.num_splits = c.num_splits;
    const Result<CheckReport> result = run_check(engine(), session(), spec, options);
    ASSERT_TRUE(result.is_ok()) << result.status().to_string() << report();
    expect_passed(*result, canonical_text(spec));
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VllmSweepTest);
INSTANTIATE_TEST_SUITE_P(Cases, VllmSweepTest, testing::ValuesIn(vllm_cases()),
                         [](const testing::TestParamInfo<VllmCase>& test) {
                           return test.param.name;
                         });

}  // namespace
}  // namespace pagejit
