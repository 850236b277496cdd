#include "runtime/split_policy.h"

#include <algorithm>

#include "templates/shared/attention_params.h"

namespace pagejit {
namespace {

// Fixed costs, from published latency floors of decode kernels on Hopper; only their ratio to the
// streaming time matters.
constexpr double kCtaStartNs = 1500;     // kernel start, block table, first K
constexpr double kMergeFixedNs = 1500;   // partials written, fence, counter, first partials read
constexpr double kMergeBytesPerNs = 64;  // what one merging CTA reads from L2

// More rounds of CTAs than this are hardly better balanced than the last of them.
constexpr int kMaxRounds = 4;
// Tokens beyond this change no choice; with it all numbers here fit in 31 bits.
constexpr int64_t kMaxTokens = int64_t{1} << 30;

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// floor(a / b) for 0 <= a < 2^31 and 0 < b < 2^31, by the floating-point unit: 64-bit integer
// division is several times slower on many processors, and this runs at each launch. Exact: the
// quotient is at least 1/a away from the next integer, relatively, and a double has 53 bits.
inline int divide(int a, int b) { return static_cast<int>(static_cast<double>(a) / b); }
inline int divide_up(int a, int b) {
  const int quotient = divide(a, b);
  return quotient + (quotient * b != a);
}

// The estimate for one device and one launch shape, with what does not depend on the number of
// splits computed once.
class Model {
 public:
  Model(const SplitDevice& device, int num_units, int64_t max_seq_len)
      : num_units_(num_units),
        slots_(device.slots()),
        tiles_(static_cast<int>(
            std::max<int64_t>(1, ceil_div(std::min(max_seq_len, kMaxTokens), device.tile_tokens)))),
        tile_bytes_(static_cast<double>(device.tile_tokens) * device.token_bytes),
        ns_per_byte_(1 / (device.sm_bytes_per_ns * device.num_sms)),
        cta_ns_per_byte_(1 / device.cta_bytes_per_ns),
        later_round_ns_(kCtaStartNs / device.ctas_per_sm) {
    const int rows = std::min(device.rows, pagejit_shared::kMergeUnitRows);
    const double row_bytes = device.head_size_v * 4.0 + sizeof(pagejit_shared::PartialStats);
    merge_ns_per_split_ = rows * row_bytes / kMergeBytesPerNs;
    // Partials are written and read once more, by all CTAs together.
    partial_ns_per_cta_ = 2.0 * device.rows * row_bytes * ns_per_byte_;
  }

  // The splits that get tiles when all tiles are dealt evenly to at most `most` splits.
  int used_splits(int most) const { return divide_up(tiles_, divide_up(tiles_, most)); }

  double nanoseconds(int num_splits) const {
    const int tiles_per_split = divide_up(tiles_, num_splits);
    const int num_ctas = num_units_ * num_splits;
    const int full_rounds = divide(num_ctas, slots_);
    const int rest = num_ctas - full_rounds * slots_;
    // CTAs run in rounds of `slots`; in a round each gets its share of the bandwidth, up to what it
    // can have in flight.
    const double cta_bytes = tiles_per_split * tile_bytes_;
    double total = kCtaStartNs + full_rounds * round_ns(cta_bytes, slots_);
    if (rest > 0) total += round_ns(cta_bytes, rest);
    // Later rounds start while other CTAs of the SM still stream.
    total += (full_rounds + (rest > 0) - 1) * later_round_ns_;
    if (num_splits > 1) {
      total += kMergeFixedNs + num_splits * merge_ns_per_split_ + num_ctas * partial_ns_per_cta_;
    }
    return total;
  }

 private:
  double round_ns(double cta_bytes, int num_ctas) const {
    return cta_bytes * std::max(cta_ns_per_byte_, num_ctas * ns_per_byte_);
  }

  int num_units_;
  int slots_;
  int tiles_;
  double tile_bytes_;
  double ns_per_byte_;      // of the whole GPU
  double cta_ns_per_byte_;  // of a CTA alone
  double later_round_ns_;
  double merge_ns_per_split_;
  double partial_ns_per_cta_;
};

}  // namespace

double estimate_decode_ns(const SplitDevice& device, int num_units, int64_t max_seq_len,
                          int num_splits) {
  return Model(device, num_units, max_seq_len).nanoseconds(num_splits);
}

int choose_splits(const SplitDevice& device, int64_t num_units, int64_t max_seq_len) {
  // Nothing to gain where even one CTA per unit makes several full rounds.
  if (num_units <= 0 || num_units >= max_partials(device) ||
      num_units * pagejit_shared::merge_units(device.rows) >
          pagejit_shared::kMergeCounterCapacity ||
      max_seq_len <= device.min_split_tokens()) {
    return 1;
  }
  const int units = static_cast<int>(num_units);
  const int limit = static_cast<int>(std::min<int64_t>(
      kMaxSplits, ceil_div(std::min(max_seq_len, kMaxTokens), device.min_split_tokens())));
  const Model model(device, units, max_seq_len);
  int best = 1;
  int last_tried = 1;
  double best_ns = model.nanoseconds(1);
  // Within one round fewer CTAs seldom beat the fullest, so of each round only the fullest is a
  // candidate; and of the first round also those that leave SMs or slots free, since a merge of
  // fewer partials is cheaper. `ctas` grows from call to call.
  auto consider = [&](int ctas) {
    const int most = std::min(limit, divide(ctas, units));
    if (most <= last_tried) return;
    last_tried = most;
    const int splits = model.used_splits(most);
    const double ns = model.nanoseconds(splits);
    if (ns < best_ns) {
      best = splits;
      best_ns = ns;
    }
  };
  consider(device.num_sms / 4);
  consider(device.num_sms / 2);
  for (int per_sm = 1; per_sm < device.ctas_per_sm; ++per_sm) consider(device.num_sms * per_sm);
  for (int round = 1; round <= kMaxRounds; ++round) consider(device.slots() * round);
  if (device.fixed_split_tokens == 0 || best == 1) return best;
  const int64_t all = ceil_div(std::min(max_seq_len, kMaxTokens), device.fixed_split_tokens);
  return all <= kMaxSplits && units * all <= max_partials(device) ? static_cast<int>(all) : 1;
}

int64_t max_partials(const SplitDevice& device) { return int64_t{kMaxRounds} * device.slots(); }

}  // namespace pagejit
