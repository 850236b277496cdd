#include <string>
#include <utility>
#include <vector>

#include "tests/sweep/cascade_fixture.h"
#include "tests/sweep/sweep_main.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kE4m3 = DataType::kFloat8E4m3;

KernelSpec fp8(int head_size, int group_size) {
  KernelSpec spec = make_spec(kE4m3, head_size, 16, group_size);
  spec.q_dtype = spec.out_dtype = kBF16;
  return spec;
}

}  // namespace

std::vector<CascadeCase> cascade_cases() {
  std::vector<CascadeCase> cases;
  const auto add = [&](std::string name, const KernelSpec& spec) -> CascadeCase& {
    CascadeCase& c = cases.emplace_back();
    c.name = std::move(name);
    c.spec = spec;
    c.prefixes = {{{3, 150}, {1, 0}, {2, 33}}};
    c.suffixes = {1, 70, 16, 40, 0, 15};
    return c;
  };
  // Each number of levels. One level is the flat computation, in two launches.
  for (const DataType type : {kF16, kBF16}) {
    const std::string kind = type == kF16 ? "f16_" : "bf16_";
    for (const int num_splits : {0, 1, 3}) {
      const std::string splits = "_s" + std::to_string(num_splits);
      CascadeCase& one = add(kind + "one_level" + splits, make_spec(type, 64, 16, 4));
      one.prefixes.clear();
      one.num_splits = num_splits;
      CascadeCase& two = add(kind + "two_levels" + splits, make_spec(type, 128, 16, 4));
      two.num_splits = num_splits;
      CascadeCase& three = add(kind + "three_levels" + splits, make_spec(type, 64, 16, 2));
      // Groups of no sequence too.
      three.prefixes = {{{6, 300}}, {{1, 9}, {3, 0}, {0, 50}, {2, 65}}};
      three.num_splits = num_splits;
    }
  }
  // Lengths at the borders of blocks, on every level.
  for (const int block_size : {1, 5, 16}) {
    for (const int length : {0, 1, block_size - 1, block_size, block_size + 1}) {
      CascadeCase& c = add("b" + std::to_string(block_size) + "_length" + std::to_string(length) +
                               "_" + std::to_string(cases.size()),
                           make_spec(kBF16, 64, block_size, 4));
      c.prefixes = {{{5, length}}, {{2, block_size}, {2, length}, {1, 3}}};
      c.suffixes = {length, 0, 1, block_size + 1, length};
    }
  }
  // Nothing at all: results are 0, their lse -inf.
  CascadeCase& empty = add("no_keys", make_spec(kBF16, 64, 16, 4));
  empty.prefixes = {{{6, 0}}};
  empty.suffixes = {0, 0, 0, 0, 0, 0};
  // Ragged queries, none among them, with rows behind them that must stay as they are.
  for (const QueryLengths queries :
       {QueryLengths::kFew, QueryLengths::kMany, QueryLengths::kShared}) {
    const std::string kind = std::string(name_of(queries)) + "_";
    const auto add_ragged = [&](const std::string& name, const KernelSpec& spec) -> CascadeCase& {
      CascadeCase& c = add(kind + name, spec);
      c.prefixes = {{{6, 100}}, {{2, 0}, {3, 47}, {1, 16}}};
      c.suffixes = {5, 64, 20, 0, 41, 3};
      c.queries = {5, 1, 17, 0, 40, 2};
      c.unused_queries = 3;
      return c;
    };
    add_ragged("causal", ragged(queries, kBF16, 128, 16, 4));
    add_ragged("causal_split", ragged(queries, kF16, 64, 16, 3)).num_splits = 2;
    KernelSpec spec = ragged(queries, kBF16, 64, 16, 5);
    spec.causality = Causality::kNone;
    add_ragged("full", spec).queries = {7, 1, 30, 2, 50, 0};
    spec.causality = Causality::kPerSequence;
    add_ragged("flags", spec);
    spec = ragged(queries, kBF16, 64, 16, 4);
    spec.soft_cap = spec.sinks = true;
    add_ragged("cap_sinks", spec);
    spec = ragged(queries, kBF16, 64, 16, 4);
    spec.custom_mask = true;
    add_ragged("mask", spec);
    spec.causality = Causality::kNone;
    add_ragged("mask_full", spec).num_splits = 2;
    spec = ragged(queries, kBF16, 64, 16, 4);
    spec.kv_table = KvTable::kCsr;
    add_ragged("csr", spec);
    spec.kv_table = KvTable::kContiguous;
    spec.block_size = 1;
    add_ragged("contiguous", spec);
    spec = fp8(64, 4);
    spec.queries = queries;
    spec.causality = Causality::kCausal;
    add_ragged("fp8", spec);
    spec.debug = true;
    add_ragged("fp8_debug", spec).num_splits = 2;
  }
  // Decode: score changes, types, layouts, groups.
  KernelSpec spec = make_spec(kBF16, 64, 16, 4);
  spec.soft_cap = true;
  add("cap", spec);
  spec.soft_cap = false;
  spec.sinks = true;
  add("sinks", spec).num_splits = 2;
  CascadeCase& only_sinks = add("sinks_no_keys", spec);
  only_sinks.prefixes = {{{6, 0}}};
  only_sinks.suffixes = {0, 0, 0, 0, 0, 0};
  spec.sinks = false;
  spec.custom_mask = true;
  add("mask", spec);
  spec.custom_mask = false;
  spec.debug = true;
  add("debug", spec);
  spec.debug = false;
  spec.out_dtype = DataType::kFloat32;
  add("f32_out", spec);
  spec.q_dtype = DataType::kFloat32;
  add("f32_q", spec);
  spec.kv_dtype = DataType::kFloat32;
  add("f32_kv", spec);
  add("fp8", fp8(128, 4)).num_splits = 2;
  KernelSpec other = fp8(64, 1);
  other.kv_dtype = DataType::kFloat8E5m2;
  other.out_dtype = kF16;
  other.q_dtype = kF16;
  add("e5m2", other);
  other = fp8(64, 8);
  other.q_dtype = kE4m3;
  add("fp8_q", other);
  other = fp8(64, 4);
  other.kv_layout = KvLayout::kVllm;
  add("fp8_vllm", other).layout = CacheLayout::kNhd;
  other = make_spec(kF16, 64, 16, 2);
  other.kv_layout = KvLayout::kVllm;
  add("vllm", other).layout = CacheLayout::kNhd;
  add("d512", make_spec(kBF16, 512, 16, 9));
  add("d256_g71", make_spec(kF16, 256, 16, 71));
  add("d72_g7", make_spec(kBF16, 72, 5, 7));
  // Rows of many tiles, each split.
  CascadeCase& tall = add("many_tiles", make_spec(kBF16, 64, 16, 16));
  tall.prefixes = {{{20, 700}, {4, 300}}};
  tall.suffixes = std::vector<int>(24, 20);
  tall.num_splits = 3;
  return cases;
}

// {query tokens, KV tokens} of each sequence, a common prefix; the pairs of heads, head sizes and
// soft caps of its test. Without --all the numbers of tokens are cut to an eighth and each of the
// second batch's four sequences comes three times instead of a hundred times.
std::vector<CascadeCase> vllm_cascade_cases() {
  using Lengths = std::vector<std::pair<int, int>>;
  const Lengths first = {{129, 871}, {18, 280}, {37, 988}, {1023, 2304}, {1, 257}};
  const Lengths second = {{1, 1023}, {1, 879}, {1, 778}, {1, 1777}};
  constexpr int kHeads[][2] = {{4, 4}, {8, 2}, {16, 2}};
  const int divisor = run_all() ? 1 : 8;
  const int repeats = run_all() ? 100 : 3;
  std::vector<CascadeCase> cases;
  for (const auto& heads : kHeads) {
    for (const int head_size : {128, 192, 256}) {
      for (const float soft_cap : {0.0f, 50.0f}) {
        for (const bool is_first : {true, false}) {
          // A row of each factor is enough beside the other cases.
          if (!run_all() && (head_size == 192) != (heads[0] == 8)) continue;
          CascadeCase& c = cases.emplace_back();
          c.spec = ragged(is_first ? QueryLengths::kMany : QueryLengths::kFew,
                          soft_cap == 0 ? kBF16 : kF16, head_size, 16, heads[0] / heads[1]);
          c.spec.soft_cap = soft_cap != 0;
          c.soft_cap = soft_cap;
          const int prefix = is_first ? 256 : 512;
          for (int i = 0; i < (is_first ? 1 : repeats); ++i) {
            for (const auto& [queries, tokens] : is_first ? first : second) {
              c.queries.push_back((queries + divisor - 1) / divisor);
              c.suffixes.push_back((tokens - prefix + divisor - 1) / divisor);
            }
          }
          c.prefixes = {{{static_cast<int>(c.queries.size()), prefix / divisor}}};
          c.name = std::string(is_first ? "prefill" : "decode") + "_h" + std::to_string(heads[0]) +
                   "_" + std::to_string(heads[1]) + "_d" + std::to_string(head_size) + "_cap" +
                   std::to_string(static_cast<int>(soft_cap));
        }
      }
    }
  }
  return cases;
}

}  // namespace pagejit
