#include "tests/sweep/sweep_cases.h"

#include <algorithm>
#include <cstdio>

#include "tests/sweep/test_device.h"
#include "tools/reference/random.h"

namespace pagejit {
namespace {

// The values of one field among the pairwise cases, in ascending order.
template <class T>
std::vector<T> values_of(T SweepCase::*field) {
  std::vector<T> values;
  for (const SweepCase& c : pairwise_cases()) values.push_back(c.*field);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

template <class T>
void draw(T SweepCase::*field, SweepCase& to, SplitMix64& rng) {
  const std::vector<T> values = values_of(field);
  to.*field = values[static_cast<size_t>(rng.below(static_cast<int64_t>(values.size())))];
}

const char* lengths_name(Lengths lengths) {
  switch (lengths) {
    case Lengths::kEmptyAndOne:
      return "empty";
    case Lengths::kBlockBorders:
      return "borders";
    case Lengths::kMedium:
      return "medium";
    case Lengths::kLong:
      return "long";
    case Lengths::kAll:
      return "all";
  }
  return "unknown";
}

}  // namespace

KernelSpec SweepCase::spec() const { return make_spec(type, head_size, block_size, group_size); }

std::vector<int> SweepCase::seq_lens() const {
  switch (lengths) {
    case Lengths::kEmptyAndOne:
      return {0, 1, 0, 2};
    case Lengths::kBlockBorders:
      return {block_size - 1, block_size, block_size + 1};
    case Lengths::kMedium:
      return {600, 0, block_size};
    case Lengths::kLong:
      return {2049};
    case Lengths::kAll:
      return default_seq_lens(block_size);
  }
  return {};
}

CheckOptions SweepCase::check_options() const {
  CheckOptions options;
  options.batch.num_kv_heads = num_kv_heads;
  options.batch.seq_lens = seq_lens();
  options.batch.layout = layout;
  options.batch.logits = logits;
  options.batch.share_prefix = share_prefix;
  options.batch.padded_rows = padded_rows;
  options.num_splits = num_splits;
  options.with_lse = with_lse;
  return options;
}

std::string SweepCase::name() const {
  char text[160];
  std::snprintf(text, sizeof text, "d%d_b%d_g%d_%s_%s_s%d_%s_%s_h%d%s%s%s_o%d%d", head_size,
                block_size, group_size, std::string(data_type_name(type)).c_str(),
                lengths_name(lengths), num_splits, std::string(cache_layout_name(layout)).c_str(),
                std::string(logit_regime_name(logits)).c_str(), num_kv_heads,
                with_lse ? "_lse" : "", share_prefix ? "_shared" : "", padded_rows ? "" : "_packed",
                order, completion);
  return text;
}

const std::vector<SweepCase>& pairwise_cases() {
  static const std::vector<SweepCase> cases = {
#include "tests/sweep/covering_decode.inc"
  };
  return cases;
}

std::vector<SweepCase> all_cases() {
  std::vector<SweepCase> cases;
  SplitMix64 rng(2);
  for (int head_size : values_of(&SweepCase::head_size)) {
    for (int block_size : values_of(&SweepCase::block_size)) {
      for (int group_size : values_of(&SweepCase::group_size)) {
        for (DataType type : values_of(&SweepCase::type)) {
          SweepCase c = {};
          c.head_size = head_size;
          c.block_size = block_size;
          c.group_size = group_size;
          c.type = type;
          draw(&SweepCase::lengths, c, rng);
          draw(&SweepCase::num_splits, c, rng);
          draw(&SweepCase::layout, c, rng);
          draw(&SweepCase::logits, c, rng);
          draw(&SweepCase::num_kv_heads, c, rng);
          draw(&SweepCase::with_lse, c, rng);
          draw(&SweepCase::share_prefix, c, rng);
          draw(&SweepCase::padded_rows, c, rng);
          draw(&SweepCase::order, c, rng);
          draw(&SweepCase::completion, c, rng);
          cases.push_back(c);
        }
      }
    }
  }
  return cases;
}

CheckOptions small_check(const KernelSpec& spec) {
  CheckOptions options;
  options.batch.num_kv_heads = 2;
  options.batch.seq_lens = {17, 0, 130, 70, 1};
  if (spec.queries != QueryLengths::kOne) {
    options.batch.query_lens = {2, 1, 9, 0, 1};
    options.batch.unused_queries = 1;
  }
  options.batch.window_left = 21;
  options.batch.window_right = 5;
  options.batch.chunk_size = 48;
  return options;
}

}  // namespace pagejit
