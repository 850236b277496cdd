#include "runtime/split_policy.h"

#include <algorithm>

#include "templates/shared/decode_params.h"

namespace pagejit {
namespace {

// Fixed costs, from published latency floors of decode kernels on Hopper; only their ratio to the
// streaming time matters.
constexpr double kCtaStartNs = 1500;  // kernel start, block table, first K
constexpr double kMergeFixedNs =
    1500;  // partials written, fence, counter, first partials read back
constexpr double kMergeBytesPerNs = 64;  // what one merging CTA reads from L2

// More rounds of CTAs than this are no better balanced than the last of them.
constexpr int kMaxRounds = 4;

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Splits that really get work when `tiles` tiles are dealt to `num_splits` splits evenly.
int64_t used_splits(int64_t tiles, int64_t num_splits) {
  return ceil_div(tiles, ceil_div(tiles, num_splits));
}

}  // namespace

double estimate_decode_ns(const SplitDevice& device, int64_t num_units, int64_t max_seq_len,
                          int num_splits) {
  const int64_t tiles = std::max<int64_t>(1, ceil_div(max_seq_len, device.tile_tokens));
  const int64_t tiles_per_split = ceil_div(tiles, num_splits);
  const int64_t num_ctas = num_units * ceil_div(tiles, tiles_per_split);
  const int64_t slots = device.slots();
  const double bandwidth = device.sm_bytes_per_ns * device.num_sms;
  const double cta_bytes =
      static_cast<double>(tiles_per_split * device.tile_tokens) * device.token_bytes;

  // CTAs run in rounds of `slots`; in a round each gets its share of the bandwidth, up to what it
  // can have in flight.
  auto round_ns = [&](int64_t ctas) {
    return cta_bytes / std::min(device.cta_bytes_per_ns, bandwidth / static_cast<double>(ctas));
  };
  const int64_t full_rounds = num_ctas / slots;
  const int64_t rest = num_ctas % slots;
  double total = static_cast<double>(full_rounds) * round_ns(slots) + (rest ? round_ns(rest) : 0);
  // Later rounds start while other CTAs of the SM still stream.
  const int64_t rounds = full_rounds + (rest ? 1 : 0);
  total += kCtaStartNs * (1 + static_cast<double>(rounds - 1) / device.ctas_per_sm);
  if (num_splits > 1) {
    const int heads = std::min(device.group_size, pagejit_shared::kMergeUnitHeads);
    const double partial_bytes =
        heads * (device.head_size * 4.0 + sizeof(pagejit_shared::PartialStats));
    total += kMergeFixedNs + num_splits * partial_bytes / kMergeBytesPerNs;
    // Written and read once more by all CTAs together.
    total += 2.0 * static_cast<double>(num_ctas) * device.group_size * device.head_size * 4.0 /
             bandwidth;
  }
  return total;
}

int choose_splits(const SplitDevice& device, int64_t num_units, int64_t max_seq_len) {
  const int64_t slots = device.slots();
  const int64_t merge_units = num_units * pagejit_shared::merge_units(device.group_size);
  if (num_units <= 0 || merge_units > pagejit_shared::kMergeCounterCapacity) return 1;
  // Nothing to gain where even one CTA per unit makes several full rounds.
  if (num_units >= kMaxRounds * slots) return 1;
  const int64_t limit =
      std::min<int64_t>(kMaxSplits, ceil_div(max_seq_len, device.min_split_tokens()));
  if (limit <= 1) return 1;

  const int64_t tiles = ceil_div(max_seq_len, device.tile_tokens);
  int64_t best = 1;
  double best_ns = estimate_decode_ns(device, num_units, max_seq_len, 1);
  // Within one round fewer CTAs never beat the fullest, so only the fullest of each round is a
  // candidate; and of the first round also those that put 1, 2, ... CTAs on each SM, since a merge
  // of fewer partials is cheaper.
  auto consider = [&](int64_t ctas) {
    const int64_t most = std::min(limit, ctas / num_units);
    if (most <= 1) return;
    const int64_t splits = used_splits(tiles, most);
    if (splits == best) return;
    const double ns = estimate_decode_ns(device, num_units, max_seq_len, static_cast<int>(splits));
    if (ns < best_ns) {
      best = splits;
      best_ns = ns;
    }
  };
  consider(device.num_sms / 4);
  consider(device.num_sms / 2);
  for (int per_sm = 1; per_sm < device.ctas_per_sm; ++per_sm)
    consider(int64_t{device.num_sms} * per_sm);
  for (int round = 1; round <= kMaxRounds; ++round) consider(slots * round);
  return static_cast<int>(best);
}

int64_t max_partials(const SplitDevice& device) { return int64_t{kMaxRounds} * device.slots(); }

}  // namespace pagejit
