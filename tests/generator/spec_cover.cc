#include "tests/generator/spec_cover.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "generator/planner.h"
#include "tests/generator/spec_space.h"

namespace pagejit {
namespace {

// The fields in the order of Levels: those that spec_of_kind() counts through, head sizes, block
// size and group size, switches.
constexpr size_t kNumKindFields = 8;
constexpr size_t kHeadSizeField = kNumKindFields;
constexpr size_t kBlockSizeField = kHeadSizeField + 1;
constexpr size_t kGroupSizeField = kBlockSizeField + 1;
constexpr size_t kFirstSwitch = kGroupSizeField + 1;
constexpr int kNumFields = static_cast<int>(kFirstSwitch) + kNumSwitches;
constexpr int kTries = 2000;

// The values of a spec's fields, as indices.
using Levels = std::array<int, kNumFields>;
// (field, value, field, value), the first field before the second.
using Pair = std::array<int, 4>;

Levels num_levels() {
  Levels levels = {4,
                   3,
                   7,
                   7,
                   7,
                   3,
                   2,
                   3,
                   static_cast<int>(std::size(kHeadSizes)),
                   static_cast<int>(std::size(kBlockSizes)),
                   static_cast<int>(std::size(kGroupSizes))};
  std::fill(levels.begin() + kFirstSwitch, levels.end(), 2);
  return levels;
}

KernelSpec spec_of(const Levels& levels) {
  uint64_t kind = 0;
  uint64_t radix = 1;
  const Levels counts = num_levels();
  for (size_t i = 0; i < kNumKindFields; ++i) {
    kind += radix * static_cast<uint64_t>(levels[i]);
    radix *= static_cast<uint64_t>(counts[i]);
  }
  KernelSpec spec = spec_of_kind(kind);
  spec.head_size = kHeadSizes[levels[kHeadSizeField]].k;
  spec.head_size_v = kHeadSizes[levels[kHeadSizeField]].v;
  spec.block_size = kBlockSizes[levels[kBlockSizeField]];
  spec.group_size = kGroupSizes[levels[kGroupSizeField]];
  for (size_t i = 0; i < kNumSwitches; ++i) {
    spec.*kSpecSwitches[i] = levels[kFirstSwitch + i] != 0;
  }
  return spec;
}

template <class Values, class Is>
int index_of(const Values& values, Is is) {
  int index = 0;
  while (!is(values[index])) ++index;
  return index;
}

// The other way round.
Levels levels_of(const KernelSpec& spec) {
  Levels levels = {
      static_cast<int>(spec.queries),
      static_cast<int>(spec.causality),
      static_cast<int>(spec.q_dtype),
      static_cast<int>(spec.kv_dtype),
      static_cast<int>(spec.out_dtype),
      static_cast<int>(spec.kv_table),
      static_cast<int>(spec.kv_layout),
      spec.kv_alignment == 16  ? 0
      : spec.kv_alignment == 8 ? 1
                               : 2,
      index_of(kHeadSizes,
               [&](HeadSizes s) { return s.k == spec.head_size && s.v == spec.head_size_v; }),
      index_of(kBlockSizes, [&](int size) { return size == spec.block_size; }),
      index_of(kGroupSizes, [&](int size) { return size == spec.group_size; })};
  for (size_t i = 0; i < kNumSwitches; ++i) {
    levels[kFirstSwitch + i] = spec.*kSpecSwitches[i] ? 1 : 0;
  }
  return levels;
}

std::vector<Pair> pairs_of(const Levels& levels) {
  std::vector<Pair> pairs;
  for (int i = 0; i < kNumFields; ++i) {
    for (int j = i + 1; j < kNumFields; ++j) {
      pairs.push_back({i, levels[static_cast<size_t>(i)], j, levels[static_cast<size_t>(j)]});
    }
  }
  return pairs;
}

bool is_served(const Levels& levels, const Target& target) {
  const KernelSpec spec = spec_of(levels);
  return validate(spec) && plan(spec, target);
}

// A spec with the two values that is legal: the others are those of a plain bf16 kernel, more and
// more of them by chance.
bool find_spec_with(const Pair& pair, const Target& target, SplitMix64& rng, Levels& found) {
  const Levels plain = levels_of(KernelSpec{});
  const Levels counts = num_levels();
  for (int attempt = 0; attempt < kTries; ++attempt) {
    Levels levels = plain;
    for (size_t i = 0; i < kNumFields; ++i) {
      if (rng.below(kTries) < attempt) levels[i] = static_cast<int>(rng.below(counts[i]));
    }
    levels[static_cast<size_t>(pair[0])] = pair[1];
    levels[static_cast<size_t>(pair[2])] = pair[3];
    if (!is_served(levels, target)) continue;
    found = levels;
    return true;
  }
  return false;
}

// As many other values as may be, so that few specs cover many pairs.
void enrich(Levels& levels, const Pair& kept, const std::set<Pair>& open, const Target& target,
            SplitMix64& rng) {
  const Levels counts = num_levels();
  const auto num_open = [&](const Levels& l) {
    size_t count = 0;
    for (const Pair& pair : pairs_of(l)) count += open.count(pair);
    return count;
  };
  size_t best = num_open(levels);
  for (int attempt = 0; attempt < 150; ++attempt) {
    const auto field = static_cast<size_t>(rng.below(kNumFields));
    if (static_cast<int>(field) == kept[0] || static_cast<int>(field) == kept[2]) continue;
    Levels changed = levels;
    changed[field] = static_cast<int>(rng.below(counts[field]));
    const size_t count = num_open(changed);
    if (count < best || !is_served(changed, target)) continue;
    best = count;
    levels = changed;
  }
}

}  // namespace

SpecCover pairwise_cover(const Target& target) {
  SplitMix64 rng(5);
  const Levels counts = num_levels();
  std::set<Pair> open;
  for (int i = 0; i < kNumFields; ++i) {
    for (int j = i + 1; j < kNumFields; ++j) {
      for (int a = 0; a < counts[static_cast<size_t>(i)]; ++a) {
        for (int b = 0; b < counts[static_cast<size_t>(j)]; ++b) open.insert({i, a, j, b});
      }
    }
  }
  SpecCover cover;
  while (!open.empty()) {
    const Pair pair = *open.begin();
    Levels levels;
    if (!find_spec_with(pair, target, rng, levels)) {
      open.erase(pair);  // no legal spec has both
      continue;
    }
    enrich(levels, pair, open, target, rng);
    for (const Pair& p : pairs_of(levels)) {
      if (open.erase(p) > 0) ++cover.num_pairs;
    }
    cover.specs.push_back(spec_of(levels));
  }
  return cover;
}

size_t pairs_not_covered(const SpecCover& cover, const KernelSpec& spec) {
  std::set<Pair> open;
  for (const Pair& pair : pairs_of(levels_of(spec))) open.insert(pair);
  for (const KernelSpec& covered : cover.specs) {
    for (const Pair& pair : pairs_of(levels_of(covered))) open.erase(pair);
  }
  return open.size();
}

}  // namespace pagejit
