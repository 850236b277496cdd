// Legal specs of every family at random. Every field is drawn, by its member and not by the tables
// of generator/spec_fields.h, which these specs are to test. Thread-safety: free functions without
// state.
#pragma once

#include <iterator>

#include "generator/families.h"
#include "tests/generator/spec_space.h"

namespace pagejit {

class SpecDraw {
 public:
  explicit SpecDraw(SplitMix64& rng) : rng_(rng) {}

  DataType type() { return static_cast<DataType>(rng_.below(7)); }
  DataType wide() { return static_cast<DataType>(rng_.below(3)); }
  template <class Enum>
  Enum number(int count) {
    return static_cast<Enum>(rng_.below(count));
  }
  bool coin() { return rng_.below(2) != 0; }
  int head_size() { return of({1, 2, 48, 64, 128, 192, 256, 512, 4096}); }
  int block_size() { return of({1, 5, 16, 64, 65536}); }
  int alignment() { return of({1, 2, 4, 8, 16}); }
  int of(std::initializer_list<int> values) {
    return values.begin()[rng_.below(static_cast<int64_t>(values.size()))];
  }

  void draw(MergeStatesSpec& s) { s = {wide(), wide(), head_size(), coin(), coin()}; }
  void draw(CacheWriteSpec& s) {
    s = {.dtype = wide(),
         .kv_dtype = type(),
         .scale = number<KvScale>(4),
         .layout = number<KvLayout>(2),
         .head_size = head_size(),
         .head_size_v = of({0, 64, 128, 2}),
         .block_size = block_size(),
         .rope = number<RopeStyle>(3),
         .rotary_dim = of({0, 32, 64, 128}),
         .cos_sin_dtype = wide(),
         .row_alignment = alignment(),
         .debug = coin(),
         .pdl = coin()};
  }
  void draw(CopyBlocksSpec& s) { s = {alignment(), coin()}; }
  void draw(GatherCacheSpec& s) {
    s = {.kv_dtype = type(),
         .out_dtype = wide(),
         .scale = number<KvScale>(4),
         .layout = number<KvLayout>(3),
         .head_size = head_size(),
         .head_size_v = of({0, 64, 128, 2}),
         .block_size = block_size(),
         .row_alignment = alignment(),
         .debug = coin()};
  }
  void draw(ConvertFloat8Spec& s) { s = {type(), type()}; }
  void draw(MlaCacheWriteSpec& s) {
    s = {.dtype = wide(),
         .format = number<MlaFormat>(3),
         .kv_lora_rank = of({512, 512, 256, 8}),
         .qk_rope_head_dim = of({64, 64, 32, 0}),
         .block_size = block_size(),
         .rope = number<RopeStyle>(3),
         .cos_sin_dtype = wide(),
         .grouped = coin(),
         .row_alignment = alignment(),
         .debug = coin(),
         .pdl = coin()};
  }
  void draw(IndexKeyWriteSpec& s) {
    s = {.dtype = wide(),
         .head_size = head_size(),
         .quant_block_size = of({4, 64, 128}),
         .block_size = block_size(),
         .power_of_two_scale = coin(),
         .row_alignment = alignment(),
         .debug = coin()};
  }
  void draw(IndexKeyGatherSpec& s) {
    s = {head_size(), of({4, 64, 128}), block_size(), alignment(), coin()};
  }
  void draw(TopKSpec& s) { s = {alignment(), coin()}; }
  void draw(IndexLogitsSpec& s) {
    s = {of({8, 64, 128}), of({32, 64, 128, 256}), of({0, 1, 16, 64}), coin(), coin()};
  }
  void draw(KernelSpec& s) { s = coin() ? draw_legal_spec(rng_) : draw_legal_latent_spec(rng_); }

 private:
  SplitMix64& rng_;
};

// Of the family of `spec`.
inline AnySpec draw_legal_any(SplitMix64& rng, AnySpec spec) {
  SpecDraw draw(rng);
  while (true) {
    std::visit([&](auto& s) { draw.draw(s); }, spec);
    if (validate_any(spec)) return spec;
  }
}

}  // namespace pagejit
