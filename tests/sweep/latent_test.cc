// Kernels whose K rows hold V, as multi-head latent attention (MLA) has them, against the float64
// reference: sizes of the latent and rotated parts, heads, query lengths, types, tables and splits.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sweep/family_test.h"
#include "tests/sweep/test_device.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kF32 = DataType::kFloat32;
constexpr DataType kE4m3 = DataType::kFloat8E4m3;
constexpr DataType kE5m2 = DataType::kFloat8E5m2;

struct LatentCase {
  std::string name;
  KernelSpec spec;
  std::vector<int> seq_lens = {0, 1, 63, 130, 64, 65};
  std::vector<int> query_lens = {};  // where queries are not one
  int num_kv_heads = 1;
  int num_splits = 0;
  CacheLayout layout = CacheLayout::kPadded;
  LogitRegime logits = LogitRegime::kNormal;
  bool with_lse = true;
  int list_len = 0;
};

KernelSpec make_latent(DataType type, int head_size, int head_size_v, int num_heads,
                       QueryLengths queries = QueryLengths::kOne) {
  KernelSpec spec = make_spec(type, head_size, 16, num_heads);
  spec.head_size_v = head_size_v;
  spec.latent = true;
  spec.queries = queries;
  if (queries != QueryLengths::kOne) spec.causality = Causality::kCausal;
  return spec;
}

class LatentTest : public DeviceTest, public testing::WithParamInterface<LatentCase> {};

TEST_P(LatentTest, IsAsCloseToFloat64AsTheNaiveComputation) {
  const LatentCase& c = GetParam();
  ASSERT_TRUE(validate(c.spec)) << validate(c.spec).to_string();
  CheckOptions options;
  options.batch.num_kv_heads = c.num_kv_heads;
  options.batch.seq_lens = c.seq_lens;
  if (c.spec.queries != QueryLengths::kOne) {
    options.batch.query_lens = c.query_lens.empty() ? std::vector{1, 0, 4, 16, 2, 1} : c.query_lens;
  }
  options.batch.window_left = 21;
  options.batch.list_len = c.list_len;
  options.batch.layout = c.layout;
  options.batch.logits = c.logits;
  options.num_splits = c.num_splits;
  options.with_lse = c.with_lse;
  expect_passes(c.spec, options);
}

// What a debug kernel says of the lists of two query tokens, of a cache of 10 blocks of 16 tokens.
class TokenListDebugTest : public FamilyTest {
 protected:
  std::string report_of(KvTable table, const std::vector<int32_t>& lists,
                        const std::vector<int32_t>& lens) {
    KernelSpec spec = make_latent(kBF16, 64, 48, 4);
    spec.kv_table = table;
    spec.debug = true;
    BatchOptions options;
    options.spec = spec;
    options.seq_lens = {50, 50};
    options.max_blocks_per_seq = 4;
    const AttentionBatch batch = make_batch(options);
    Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, true);
    EXPECT_TRUE(device_batch.is_ok());
    const Kernel kernel = prepare(spec);
    Result<Workspace> workspace =
        Workspace::create(session(), kernel, kernel.workspace_bytes(2, 1, 100, 1));
    EXPECT_TRUE(workspace.is_ok());
    AttentionArgs args = device_batch->args();
    workspace->put_into(args);
    const DeviceBuffer device_lists = upload(lists);
    const DeviceBuffer device_lens = upload(lens);
    args.token_lists = device_lists.data<int32_t>();
    args.token_list_stride = args.max_list_len = static_cast<int32_t>(lists.size() / 2);
    args.seq_lens = device_lens.data<int32_t>();
    args.num_blocks = 10;
    args.num_splits = 1;
    EXPECT_TRUE(run(kernel, args));
    return kernel.read_debug_report(workspace->buffer().data(), nullptr).message();
  }
};

TEST_F(TokenListDebugTest, BadEntriesAndLengthsAreReported) {
  EXPECT_EQ(report_of(KvTable::kSlots, {1, -1, 159, 0, 5, 6}, {3, 3}), "");
  EXPECT_EQ(report_of(KvTable::kSlots, {1, -1, 159, 0, 160, 6}, {3, 3}),
            "query token 1: entry 1 of its list is 160, beyond its blocks");
  EXPECT_EQ(report_of(KvTable::kSlots, {1, -1, 999, 0, 160, 6}, {2, 1}), "")
      << "what lies behind a list is not looked at";
  EXPECT_EQ(report_of(KvTable::kPositions, {1, 49, -7, 0, 3, 64}, {3, 3}),
            "query token 1: entry 2 of its list is 64, beyond its blocks");
  EXPECT_EQ(report_of(KvTable::kSlots, {1, 2, 3, 4, 5, 6}, {3, 4}),
            "query token 1: its list has 4 entries, must be in [0, max_list_len]");
  EXPECT_EQ(report_of(KvTable::kPositions, {1, 2, 3, 4, 5, 6}, {-1, 3}),
            "query token 0: its list has -1 entries, must be in [0, max_list_len]");
}

// Latent and rotated elements: the published ones, and what leaves warps without elements of V or
// with fewer than others.
void add_sizes(std::vector<LatentCase>& cases) {
  struct Sizes {
    int k;
    int v;
  };
  int number = 0;
  for (const Sizes sizes : {Sizes{576, 512},
                            {320, 256},
                            {512, 512},
                            {16, 16},
                            {64, 48},
                            {208, 144},
                            {576, 16},
                            {560, 496}}) {
    LatentCase c;
    c.spec =
        make_latent(number % 2 == 0 ? kBF16 : kF16, sizes.k, sizes.v, number % 3 == 0 ? 16 : 7);
    c.num_splits = number % 3;
    c.num_kv_heads = number % 4 == 1 ? 2 : 1;
    c.name = "d" + std::to_string(sizes.k) + "_v" + std::to_string(sizes.v);
    cases.push_back(c);
    ++number;
  }
}

void add_heads(std::vector<LatentCase>& cases) {
  for (const int num_heads : {1, 3, 9, 16, 33, 63, 64, 127, 128}) {
    LatentCase c;
    c.spec = make_latent(kBF16, 576, 512, num_heads);
    c.seq_lens = {63, 0, 1027 / (num_heads > 16 ? 4 : 1), 1};
    c.num_splits = num_heads % 2 == 1 ? 3 : 0;
    c.name = "one_h" + std::to_string(num_heads);
    cases.push_back(c);
  }
  for (const QueryLengths queries : {QueryLengths::kFew, QueryLengths::kMany}) {
    for (const int num_heads : {1, 16, 71, 128}) {
      LatentCase c;
      c.spec = make_latent(num_heads == 16 ? kF16 : kBF16, 576, 512, num_heads, queries);
      if (num_heads > 16) {
        c.seq_lens = {65, 0, 33};
        c.query_lens = {1, 1, 3};
      }
      c.num_splits = queries == QueryLengths::kFew ? 2 : 0;
      c.name = std::string(name_of(queries)) + "_h" + std::to_string(num_heads);
      cases.push_back(c);
    }
  }
}

void add_types(std::vector<LatentCase>& cases) {
  int number = 0;
  for (const DataType kv : {kF16, kBF16, kE4m3, kE5m2}) {
    for (const DataType q : {kF16, kBF16, kF32, kE4m3}) {
      LatentCase c;
      c.spec = make_latent(kv, 576, 512, number % 2 == 0 ? 8 : 20,
                           number % 3 == 0 ? QueryLengths::kFew : QueryLengths::kOne);
      c.spec.q_dtype = q;
      c.spec.out_dtype = number % 4 == 2 ? kE4m3 : number % 4 == 3 ? kF32 : q == kE4m3 ? kBF16 : q;
      if (!validate(c.spec)) continue;
      c.logits = number % 5 == 2   ? LogitRegime::kMixed
                 : number % 5 == 4 ? LogitRegime::kLow
                                   : LogitRegime::kNormal;
      c.num_splits = number % 3;
      c.name = "kv_" + std::string(data_type_name(kv)) + "_q_" + std::string(data_type_name(q));
      cases.push_back(c);
      ++number;
    }
  }
}

// Each thing that the main loop, the scores or the splits look at.
void add_options(std::vector<LatentCase>& cases) {
  int number = 0;
  const auto add = [&](std::string name, const auto& change) {
    LatentCase c;
    const QueryLengths queries = number % 2 == 0 ? QueryLengths::kFew : QueryLengths::kMany;
    c.spec = make_latent(number % 3 == 1 ? kE4m3 : kBF16, 320, 256, 12, queries);
    if (c.spec.kv_dtype == kE4m3) c.spec.q_dtype = c.spec.out_dtype = kBF16;
    c.num_splits = number % 3;
    change(c);
    c.name = std::move(name);
    cases.push_back(c);
    ++number;
  };
  for (const int block_size : {1, 5, 24, 64, 528}) {
    add("b" + std::to_string(block_size), [&](LatentCase& c) { c.spec.block_size = block_size; });
  }
  for (const int alignment : {8, 4}) {
    add("by" + std::to_string(alignment), [&](LatentCase& c) { c.spec.kv_alignment = alignment; });
  }
  add("csr", [](LatentCase& c) { c.spec.kv_table = KvTable::kCsr; });
  add("contiguous", [](LatentCase& c) {
    c.spec.kv_table = KvTable::kContiguous;
    c.spec.block_size = 1;
  });
  add("not_causal", [](LatentCase& c) { c.spec.causality = Causality::kNone; });
  add("by_flag", [](LatentCase& c) { c.spec.causality = Causality::kPerSequence; });
  add("window", [](LatentCase& c) { c.spec.window = c.spec.sinks = true; });
  add("chunks", [](LatentCase& c) { c.spec.chunked = true; });
  add("ranges", [](LatentCase& c) { c.spec.bidirectional_ranges = true; });
  add("changes", [](LatentCase& c) { c.spec.soft_cap = c.spec.alibi = true; });
  add("qq_bias", [](LatentCase& c) { c.spec.qq_bias = true; });
  add("shared", [](LatentCase& c) {
    c.spec.queries = QueryLengths::kShared;
    c.spec.causality = Causality::kNone;
  });
  add("invariant", [](LatentCase& c) {
    c.spec.batch_invariant = true;
    c.seq_lens = {2500, 0, 130};
    c.query_lens = {3, 1, 20};
  });
  add("debug", [](LatentCase& c) { c.spec.debug = true; });
  add("no_lse", [](LatentCase& c) { c.with_lse = false; });
  add("many_splits", [](LatentCase& c) {
    c.spec = make_latent(kBF16, 64, 48, 4);
    c.seq_lens = {3000, 100};
    c.num_splits = 40;
  });
}

// Rows of 656 bytes: heads, queries, tables, alignments, types of the result, large scores.
void add_ds_mla(std::vector<LatentCase>& cases) {
  int number = 0;
  const auto add = [&](std::string name, int num_heads, const auto& change) {
    LatentCase c;
    c.spec = make_latent(kE4m3, 576, 512, num_heads);
    c.spec.kv_layout = KvLayout::kDsMla;
    c.spec.q_dtype = c.spec.out_dtype = kBF16;
    c.num_splits = number % 3;
    if (num_heads > 16) c.seq_lens = {65, 0, 33};
    if (number % 4 == 3) c.logits = LogitRegime::kMixed;
    change(c);
    if (c.spec.queries != QueryLengths::kOne && num_heads > 16) c.query_lens = {1, 1, 3};
    c.name = "ds_mla_" + std::move(name);
    cases.push_back(c);
    ++number;
  };
  const auto ragged = [](QueryLengths queries) {
    return [queries](LatentCase& c) {
      c.spec.queries = queries;
      c.spec.causality = Causality::kCausal;
    };
  };
  for (const int num_heads : {1, 7, 16, 33, 64, 128}) {
    add("h" + std::to_string(num_heads), num_heads, [](LatentCase&) {});
  }
  add("few", 9, ragged(QueryLengths::kFew));
  add("few_h128", 128, ragged(QueryLengths::kFew));
  add("many", 16, ragged(QueryLengths::kMany));
  for (const KvTable table :
       {KvTable::kCsr, KvTable::kContiguous, KvTable::kSlots, KvTable::kPositions}) {
    add("table" + std::to_string(static_cast<int>(table)), 16, [table](LatentCase& c) {
      c.spec.kv_table = table;
      c.spec.block_size = table == KvTable::kContiguous ? 1 : 64;
    });
  }
  for (const int alignment : {8, 4}) {
    add("by" + std::to_string(alignment), 16, [alignment](LatentCase& c) {
      c.spec.kv_alignment = alignment;
      c.spec.block_size = 5;
    });
  }
  for (const DataType out : {kF16, kF32, kE4m3}) {
    add("out_" + std::string(data_type_name(out)), 8,
        [out](LatentCase& c) { c.spec.out_dtype = out; });
  }
  for (const LogitRegime logits : {LogitRegime::kHigh, LogitRegime::kLow}) {
    add(std::string(logit_regime_name(logits)), 16, [logits](LatentCase& c) { c.logits = logits; });
  }
  add("window", 16, [](LatentCase& c) {
    c.spec.queries = QueryLengths::kMany;
    c.spec.causality = Causality::kCausal;
    c.spec.window = c.spec.sinks = c.spec.soft_cap = c.spec.debug = true;
  });
  add("invariant", 16, [](LatentCase& c) {
    c.spec.queries = QueryLengths::kFew;
    c.spec.causality = Causality::kCausal;
    c.spec.batch_invariant = true;
    c.seq_lens = {2500, 0, 130};
    c.query_lens = {3, 1, 20};
  });
  add("long_list", 16, [](LatentCase& c) {
    c.spec.kv_table = KvTable::kSlots;
    c.seq_lens = {2048, 0, 700, 5};
    c.list_len = 512;
  });
}

// Lists of tokens: blocks of any size, splits, elements of 8 bits, no row but padding.
void add_lists(std::vector<LatentCase>& cases) {
  for (const KvTable table : {KvTable::kSlots, KvTable::kPositions}) {
    const std::string name = table == KvTable::kSlots ? "slots" : "positions";
    int number = 0;
    for (const int num_heads : {1, 16, 64, 128}) {
      LatentCase c;
      c.spec = make_latent(number == 1 ? kE4m3 : kBF16, 576, 512, num_heads);
      if (number == 1) c.spec.q_dtype = c.spec.out_dtype = kBF16;
      c.spec.kv_table = table;
      c.spec.block_size = number == 2 ? 5 : number == 3 ? 1 : 64;
      c.seq_lens = {0, 1, 63, 300, 64, 65};
      c.num_splits = number % 3;
      c.logits = number == 3 ? LogitRegime::kMixed : LogitRegime::kNormal;
      c.name = name + "_h" + std::to_string(num_heads);
      cases.push_back(c);
      ++number;
    }
    LatentCase c;
    c.spec = make_latent(kF16, 320, 256, 9);
    c.spec.kv_table = table;
    c.spec.sinks = c.spec.soft_cap = c.spec.debug = true;
    c.seq_lens = {2048, 0, 700, 5};
    c.name = name + "_long";
    cases.push_back(c);
    c.list_len = 64;  // shorter than most sequences
    c.name = name + "_of_64";
    cases.push_back(c);
    c.list_len = 1;  // nothing but padding
    c.spec.sinks = false;
    c.name = name + "_without_tokens";
    cases.push_back(c);
  }
}

std::vector<LatentCase> make_cases() {
  std::vector<LatentCase> cases;
  add_sizes(cases);
  add_heads(cases);
  add_types(cases);
  add_options(cases);
  add_lists(cases);
  add_ds_mla(cases);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, LatentTest, testing::ValuesIn(make_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace pagejit
