// Data types, cache layouts and extreme head sizes against the float64 reference.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sweep/test_device.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kF32 = DataType::kFloat32;
constexpr DataType kE4m3 = DataType::kFloat8E4m3;
constexpr DataType kE5m2 = DataType::kFloat8E5m2;
constexpr DataType kInt8 = DataType::kInt8;
constexpr DataType kInt4 = DataType::kInt4;

struct ElementCase {
  std::string name;
  KernelSpec spec;
  int num_splits = 0;
  CacheLayout layout = CacheLayout::kPadded;
  LogitRegime logits = LogitRegime::kNormal;
  bool per_head_scales = true;
};

class ElementTest : public DeviceTest, public testing::WithParamInterface<ElementCase> {};

TEST_P(ElementTest, IsAsCloseToFloat64AsTheNaiveComputation) {
  const ElementCase& c = GetParam();
  ASSERT_TRUE(validate(c.spec)) << validate(c.spec).to_string();
  CheckOptions options;
  options.batch.num_kv_heads = 3;
  options.batch.seq_lens = {130, 9, 37, 101, 258, 3, 0, 16};
  if (c.spec.queries != QueryLengths::kOne) {
    options.batch.query_lens = {1, 0, 37, 20, 3, 5, 2, 16};
  }
  options.batch.window_left = 21;
  options.batch.layout = c.layout;
  options.batch.logits = c.logits;
  options.batch.per_head_scales = c.per_head_scales;
  options.num_splits = c.num_splits;
  expect_passes(c.spec, options);
}

// Each legal combination of the three types, with shapes that change from one to the next.
void add_types(std::vector<ElementCase>& cases) {
  struct Shape {
    int head_size;
    int block_size;
    int group_size;
  };
  constexpr Shape kShapes[] = {{64, 16, 4}, {72, 5, 7}, {128, 32, 1}, {40, 1, 16}, {256, 24, 2}};
  int number = 0;
  for (const DataType kv : {kF16, kBF16, kE4m3, kE5m2, kF32}) {
    for (const DataType q : {kF16, kBF16, kF32, kE4m3}) {
      for (const DataType out : {kF16, kBF16, kF32, kE4m3}) {
        const Shape& shape = kShapes[number % 5];
        ElementCase c;
        c.spec = make_spec(kv, shape.head_size, shape.block_size, shape.group_size);
        c.spec.q_dtype = q;
        c.spec.out_dtype = out;
        if (!validate(c.spec)) continue;
        if (number % 2 == 1) {
          c.spec.queries = number % 4 == 1 ? QueryLengths::kFew : QueryLengths::kMany;
          c.spec.causality = Causality::kCausal;
        }
        c.num_splits = number % 3;
        c.per_head_scales = number % 4 < 2;
        if (number % 5 == 3) c.logits = LogitRegime::kMixed;
        c.name = "kv_" + std::string(data_type_name(kv)) + "_q_" + std::string(data_type_name(q)) +
                 "_out_" + std::string(data_type_name(out));
        cases.push_back(c);
        ++number;
      }
    }
  }
}

void add_layouts(std::vector<ElementCase>& cases) {
  for (const DataType kv : {kF16, kBF16, kE4m3, kE5m2, kF32}) {
    for (const int block_size : {8, 16, 24, 32, 128}) {
      ElementCase c;
      const int group_size = block_size == 16 ? 4 : 1;
      c.spec = make_spec(kv, block_size == 24 ? 80 : 64, block_size, group_size);
      if (data_type_bytes(kv) == 1) c.spec.q_dtype = c.spec.out_dtype = kBF16;
      c.spec.kv_layout = KvLayout::kVllm;
      c.num_splits = block_size == 32 ? 3 : 0;
      c.layout = block_size == 8    ? CacheLayout::kNhd
                 : block_size == 16 ? CacheLayout::kInterleaved
                                    : CacheLayout::kPadded;
      c.name = "vllm_" + std::string(data_type_name(kv)) + "_b" + std::to_string(block_size);
      cases.push_back(c);
      if (block_size % 16 != 0) continue;
      // Windows that begin inside of a block, and all that looks at positions.
      c.name += "_masks";
      c.spec.queries = block_size == 16 ? QueryLengths::kFew : QueryLengths::kMany;
      c.spec.causality = Causality::kCausal;
      c.spec.window = c.spec.alibi = c.spec.soft_cap = true;
      c.spec.custom_mask = block_size == 16;
      c.spec.kv_table = block_size == 32 ? KvTable::kCsr : KvTable::kBlocks;
      cases.push_back(c);
    }
  }
}

void add_head_sizes(std::vector<ElementCase>& cases) {
  for (const int head_size : {8, 24, 512}) {
    for (const DataType kv : {kBF16, kE4m3}) {
      for (const QueryLengths queries :
           {QueryLengths::kOne, QueryLengths::kFew, QueryLengths::kMany}) {
        ElementCase c;
        c.spec = make_spec(kv, head_size, 16, queries == QueryLengths::kFew ? 3 : 8);
        c.spec.q_dtype = c.spec.out_dtype = kBF16;
        c.spec.queries = queries;
        if (queries != QueryLengths::kOne) c.spec.causality = Causality::kCausal;
        c.num_splits = queries == QueryLengths::kMany ? 0 : 2;
        c.name = "d" + std::to_string(head_size) + "_" + std::string(data_type_name(kv)) + "_" +
                 std::to_string(static_cast<int>(queries));
        cases.push_back(c);
      }
    }
  }
}

// Scales of tokens, separate and in line, with all that changes scores and with splits.
void add_token_scales(std::vector<ElementCase>& cases) {
  int number = 0;
  for (const DataType kv : {kInt8, kE4m3, kE5m2}) {
    for (const DataType q : {kBF16, kF16, kE4m3}) {
      for (const int alignment : {16, 8, 4}) {
        ElementCase c;
        const int head_size = alignment == 16 ? 128 : alignment == 8 ? 40 : 72;
        c.spec = make_spec(kv, head_size, number % 2 == 0 ? 16 : 5, number % 3 == 0 ? 4 : 1);
        c.spec.q_dtype = q;
        c.spec.out_dtype = q == kE4m3 ? kF32 : q;
        c.spec.token_scales = true;
        c.spec.kv_alignment = alignment;
        c.num_splits = number % 4;
        c.layout = static_cast<CacheLayout>(number % 5);
        if (number % 3 == 1) {
          c.spec.queries = number % 2 == 0 ? QueryLengths::kFew : QueryLengths::kMany;
          c.spec.causality = Causality::kCausal;
          c.spec.window = c.spec.soft_cap = c.spec.alibi = number % 4 == 0;
          c.spec.kv_table = number % 4 == 1 ? KvTable::kCsr : KvTable::kBlocks;
        }
        if (number % 3 == 2) c.logits = number % 2 == 0 ? LogitRegime::kMixed : LogitRegime::kLow;
        if (number % 9 == 3) {
          c.spec.kv_table = KvTable::kContiguous;
          c.spec.block_size = 1;
        }
        c.spec.sinks = number % 5 == 0;
        c.name = "token_scales_" + std::string(data_type_name(kv)) + "_q_" +
                 std::string(data_type_name(q)) + "_by_" + std::to_string(alignment);
        cases.push_back(c);
        ++number;
      }
    }
  }
}

// Two elements to a byte: copies of 16, 8 and 4 bytes by head size and by alignment, separate
// scales and in line, heads with and without a pad, each source of q.
void add_int4(std::vector<ElementCase>& cases) {
  int number = 0;
  for (const int head_size : {8, 40, 48, 64, 72, 80, 128, 256, 512}) {
    for (const int alignment : {16, 8, 4}) {
      ElementCase c;
      c.spec = make_spec(kInt4, head_size, number % 2 == 0 ? 16 : 5, number % 3 == 0 ? 4 : 1);
      constexpr DataType kQueries[] = {kBF16, kF16, kF32, kE4m3};
      c.spec.q_dtype = kQueries[number % 4];
      c.spec.out_dtype = number % 5 == 0 ? kE4m3 : kBF16;
      c.spec.token_scales = true;
      c.spec.kv_alignment = alignment;
      c.num_splits = number % 4;
      c.layout = static_cast<CacheLayout>(number % 5);
      if (number % 3 != 0) {
        c.spec.queries = number % 2 == 0 ? QueryLengths::kFew : QueryLengths::kMany;
        c.spec.causality = Causality::kCausal;
        c.spec.window = c.spec.soft_cap = c.spec.alibi = number % 4 == 0;
        c.spec.kv_table = number % 4 == 1 ? KvTable::kCsr : KvTable::kBlocks;
        c.spec.batch_invariant = number % 6 == 1;
      }
      if (number % 5 == 2) c.logits = number % 2 == 0 ? LogitRegime::kMixed : LogitRegime::kLow;
      if (number % 9 == 3) {
        c.spec.kv_table = KvTable::kContiguous;
        c.spec.block_size = 1;
      }
      c.spec.sinks = number % 5 == 0;
      c.name = "int4_d" + std::to_string(head_size) + "_by_" + std::to_string(alignment);
      cases.push_back(c);
      ++number;
    }
  }
}

// V and the result have a head size of their own.
void add_value_head_sizes(std::vector<ElementCase>& cases) {
  for (const int head_size : {192, 576}) {
    for (const DataType kv : {kBF16, kF16, kE4m3, kInt8, kInt4}) {
      for (const QueryLengths queries :
           {QueryLengths::kOne, QueryLengths::kFew, QueryLengths::kMany}) {
        ElementCase c;
        c.spec = make_spec(kv, head_size, kv == kF16 ? 5 : 16, kv == kE4m3 ? 5 : 1);
        if (data_type_bytes(kv) == 1) c.spec.q_dtype = c.spec.out_dtype = kBF16;
        if (kv == kE4m3) c.spec.out_dtype = kE4m3;
        c.spec.head_size_v = head_size == 192 ? 128 : 512;
        c.spec.token_scales = kv == kInt8 || kv == kInt4;
        c.spec.queries = queries;
        if (queries != QueryLengths::kOne) c.spec.causality = Causality::kCausal;
        c.num_splits = queries == QueryLengths::kMany ? 0 : 2;
        c.layout = kv == kBF16 ? CacheLayout::kInterleaved : CacheLayout::kPadded;
        if (kv == kF16 && queries == QueryLengths::kOne) {
          c.spec.kv_layout = KvLayout::kVllm;
          c.spec.block_size = 24;
        }
        c.name = "d" + std::to_string(head_size) + "_v_" + std::string(data_type_name(kv)) + "_" +
                 std::to_string(static_cast<int>(queries));
        cases.push_back(c);
      }
    }
  }
}

// K and V of f32: everything that looks at operands, scores or rows, and shapes at both ends; each
// for two numbers of queries in turn.
void add_f32_caches(std::vector<ElementCase>& cases) {
  int row = 0;
  const auto add = [&](std::string name, const auto& change) {
    constexpr QueryLengths kPairs[][2] = {{QueryLengths::kOne, QueryLengths::kMany},
                                          {QueryLengths::kFew, QueryLengths::kShared}};
    for (const QueryLengths queries : kPairs[row++ % 2]) {
      ElementCase c;
      c.spec = make_spec(kF32, 128, 16, 4);
      c.spec.queries = queries;
      if (queries == QueryLengths::kFew || queries == QueryLengths::kMany) {
        c.spec.causality = Causality::kCausal;
      }
      c.num_splits = static_cast<int>(cases.size() % 3);
      change(c);
      if (!validate(c.spec)) continue;
      c.name = "f32_" + name + "_" + std::to_string(static_cast<int>(queries));
      cases.push_back(c);
    }
  };
  add("plain", [](ElementCase&) {});
  for (const int head_size : {8, 24, 112, 256}) {
    add("d" + std::to_string(head_size), [&](ElementCase& c) {
      c.spec.head_size = head_size;
      c.spec.group_size = 5;
    });
  }
  add("d192_v128", [](ElementCase& c) {
    c.spec.head_size = 192;
    c.spec.head_size_v = 128;
    c.spec.group_size = 1;
  });
  add("large_logits", [](ElementCase& c) { c.logits = LogitRegime::kMixed; });
  add("low_logits", [](ElementCase& c) { c.logits = LogitRegime::kLow; });
  for (const int alignment : {8, 4}) {
    add("by" + std::to_string(alignment), [&](ElementCase& c) {
      c.spec.head_size = 72;
      c.spec.block_size = 5;
      c.spec.kv_alignment = alignment;
    });
  }
  add("window", [](ElementCase& c) { c.spec.window = c.spec.sinks = true; });
  add("chunks", [](ElementCase& c) { c.spec.chunked = true; });
  add("changes", [](ElementCase& c) { c.spec.soft_cap = c.spec.alibi = true; });
  add("mask", [](ElementCase& c) { c.spec.custom_mask = true; });
  add("sparse", [](ElementCase& c) { c.spec.block_sparse = true; });
  add("csr", [](ElementCase& c) { c.spec.kv_table = KvTable::kCsr; });
  add("contiguous", [](ElementCase& c) {
    c.spec.kv_table = KvTable::kContiguous;
    c.spec.block_size = 1;
  });
  add("invariant", [](ElementCase& c) { c.spec.batch_invariant = c.spec.window = true; });
  add("debug", [](ElementCase& c) { c.spec.debug = true; });
}

std::vector<ElementCase> make_cases() {
  std::vector<ElementCase> cases;
  add_types(cases);
  add_layouts(cases);
  add_head_sizes(cases);
  add_token_scales(cases);
  add_int4(cases);
  add_value_head_sizes(cases);
  add_f32_caches(cases);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, ElementTest, testing::ValuesIn(make_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace pagejit
