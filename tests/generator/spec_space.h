// The space of attention specs: every combination of the fields by a number, legal or not, and
// legal ones at random. Thread-safety: free functions without state.
#pragma once

#include <cstdint>
#include <iterator>

#include "pagejit/spec.h"
#include "tools/reference/random.h"

namespace pagejit {

struct HeadSizes {
  int k;
  int v;
};
inline constexpr HeadSizes kHeadSizes[] = {{8, 0},   {16, 0},    {40, 0},  {64, 0},
                                           {72, 0},  {80, 0},    {128, 0}, {192, 0},
                                           {256, 0}, {192, 128}, {512, 0}, {576, 512}};
inline constexpr int kBlockSizes[] = {16, 1, 5, 8, 24, 528};
inline constexpr int kGroupSizes[] = {4, 1, 3, 7, 8, 16, 71, 128};

// Takes digits of mixed radix from a number.
class Digits {
 public:
  explicit Digits(uint64_t number) : rest_(number) {}
  int next(int radix) {
    const auto digit = static_cast<int>(rest_ % static_cast<uint64_t>(radix));
    rest_ /= static_cast<uint64_t>(radix);
    return digit;
  }

 private:
  uint64_t rest_;
};

inline constexpr bool KernelSpec::*kSpecSwitches[] = {&KernelSpec::window,
                                                      &KernelSpec::chunked,
                                                      &KernelSpec::batch_invariant,
                                                      &KernelSpec::token_scales,
                                                      &KernelSpec::soft_cap,
                                                      &KernelSpec::alibi,
                                                      &KernelSpec::sinks,
                                                      &KernelSpec::debug,
                                                      &KernelSpec::custom_mask,
                                                      &KernelSpec::block_sparse,
                                                      &KernelSpec::pdl,
                                                      &KernelSpec::qq_bias,
                                                      &KernelSpec::bidirectional_ranges};
inline constexpr int kNumSwitches = static_cast<int>(std::size(kSpecSwitches));

// All but the switches and the shape: query lengths, causality, three types, table, layout,
// alignment.
inline constexpr uint64_t kNumKinds = uint64_t{4} * 3 * 7 * 7 * 7 * 3 * 2 * 3;

inline KernelSpec spec_of_kind(uint64_t number) {
  Digits digits(number);
  KernelSpec spec;
  spec.queries = static_cast<QueryLengths>(digits.next(4));
  spec.causality = static_cast<Causality>(digits.next(3));
  spec.q_dtype = static_cast<DataType>(digits.next(7));
  spec.kv_dtype = static_cast<DataType>(digits.next(7));
  spec.out_dtype = static_cast<DataType>(digits.next(7));
  spec.kv_table = static_cast<KvTable>(digits.next(3));
  spec.kv_layout = static_cast<KvLayout>(digits.next(2));
  spec.kv_alignment = 16 >> digits.next(3);
  return spec;
}

inline void set_switches(KernelSpec& spec, uint32_t bits) {
  for (int i = 0; i < kNumSwitches; ++i) spec.*kSpecSwitches[i] = (bits >> i & 1) != 0;
}

inline void draw_shape(SplitMix64& rng, KernelSpec& spec) {
  const auto one_of = [&](const auto& all) {
    return all[static_cast<size_t>(rng.below(static_cast<int64_t>(std::size(all))))];
  };
  const HeadSizes sizes = one_of(kHeadSizes);
  spec.head_size = sizes.k;
  spec.head_size_v = sizes.v;
  spec.block_size = one_of(kBlockSizes);
  spec.group_size = one_of(kGroupSizes);
}

// Any legal spec; each switch is set in one of four.
inline KernelSpec draw_legal_spec(SplitMix64& rng) {
  while (true) {
    KernelSpec spec = spec_of_kind(rng.next() % kNumKinds);
    const auto bits = static_cast<uint32_t>(rng.next() & rng.next());
    set_switches(spec, bits);
    draw_shape(rng, spec);
    if (validate(spec)) return spec;
  }
}

// Of rows that hold K and V.
inline constexpr HeadSizes kLatentSizes[] = {{576, 512}, {320, 256}, {512, 0}, {16, 0},
                                             {80, 48},   {176, 160}, {576, 64}};
inline constexpr int kNumTables = 5;

inline void make_latent(SplitMix64& rng, KernelSpec& spec) {
  spec.latent = true;
  spec.kv_table = static_cast<KvTable>(rng.below(kNumTables));
  const HeadSizes sizes = kLatentSizes[rng.below(static_cast<int64_t>(std::size(kLatentSizes)))];
  spec.head_size = sizes.k;
  spec.head_size_v = sizes.v;
  if (rng.below(4) != 0) return;
  spec.kv_layout = KvLayout::kDsMla;
  if (rng.below(8) == 0) return;  // what it needs comes by chance, or is refused
  spec.head_size = 576;
  spec.head_size_v = 512;
  spec.q_dtype = DataType::kBFloat16;
  spec.kv_dtype = DataType::kFloat8E4m3;
}

// Any legal spec whose K rows hold V; each switch is set in one of four.
inline KernelSpec draw_legal_latent_spec(SplitMix64& rng) {
  while (true) {
    KernelSpec spec = spec_of_kind(rng.next() % kNumKinds);
    set_switches(spec, static_cast<uint32_t>(rng.next() & rng.next()));
    draw_shape(rng, spec);
    make_latent(rng, spec);
    if (validate(spec)) return spec;
  }
}

}  // namespace pagejit
