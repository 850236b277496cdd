#include "runtime/split_policy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "templates/shared/attention_params.h"

namespace pagejit {
namespace {

SplitDevice h200() { return {.num_sms = 132, .ctas_per_sm = 2, .rows = 4}; }

TEST(SplitPolicyTest, ShortSequencesAreNotSplit) {
  for (int64_t tokens : {0, 1, 64, 255, 256}) EXPECT_EQ(choose_splits(h200(), 1, tokens), 1);
}

TEST(SplitPolicyTest, OneLongSequenceFillsTheGpu) {
  // 8 KV heads of 32k tokens: the splits must keep most SMs busy, in at most one round.
  const int splits = choose_splits(h200(), 8, 32768);
  EXPECT_GE(8 * splits, 132 * 3 / 4);
  EXPECT_LE(8 * splits, 264);
}

TEST(SplitPolicyTest, SplitsOfAFixedSizeAreAllOfTheLongestSequenceOrOne) {
  SplitDevice device = h200();
  device.fixed_split_tokens = 2048;
  EXPECT_EQ(choose_splits(device, 8, 32768), 16);
  EXPECT_EQ(choose_splits(device, 8, 32769), 17);
  EXPECT_EQ(choose_splits(device, 1, 200), 1);
  EXPECT_EQ(choose_splits(device, 264, 32768), 1) << "a batch that fills the GPU";
  EXPECT_EQ(choose_splits(device, 200, 32768), 1) << "more partials than the largest workspace has";
}

TEST(SplitPolicyTest, LargeBatchesAreNotSplit) {
  EXPECT_EQ(choose_splits(h200(), 264 * 8, 4096), 1);
  EXPECT_EQ(choose_splits(h200(), 100000, 131072), 1);
}

TEST(SplitPolicyTest, ABatchThatFillsTheSlotsIsNotSplit) {
  EXPECT_EQ(choose_splits(h200(), 264, 4096), 1);
}

TEST(SplitPolicyTest, MoreUnitsThanCountersAreNotSplit) {
  SplitDevice device = h200();
  device.num_sms = 1 << 20;  // slots beyond the counters
  EXPECT_EQ(choose_splits(device, pagejit_shared::kMergeCounterCapacity + 1, 1 << 20), 1);
  EXPECT_GT(choose_splits(device, pagejit_shared::kMergeCounterCapacity, 1 << 20), 1);
  device.rows = 17;  // two merge units per KV head
  EXPECT_EQ(choose_splits(device, pagejit_shared::kMergeCounterCapacity / 2 + 1, 1 << 20), 1);
}

// Over many shapes: what the header promises, and no worse than any number of splits by its own
// estimate but for a margin.
TEST(SplitPolicyTest, ChoiceIsLegalAndNearTheEstimatesMinimum) {
  for (int sms : {1, 20, 72, 132, 148}) {
    for (int ctas : {1, 2, 3}) {
      for (int group : {1, 4, 8, 71, 128}) {
        SplitDevice device = {.num_sms = sms, .ctas_per_sm = ctas, .rows = group};
        for (int units : {1, 2, 7, 8, 32, 100, 263, 264, 265, 1000}) {
          for (int64_t tokens : {300, 1000, 4096, 32768, 131072, 1000000}) {
            const int splits = choose_splits(device, units, tokens);
            ASSERT_GE(splits, 1);
            ASSERT_LE(splits, kMaxSplits);
            ASSERT_LE((splits - 1) * int64_t{kMinSplitTokens}, tokens);
            if (splits > 1) {
              ASSERT_LE(units * splits, max_partials(device));
            }
            const double chosen = estimate_decode_ns(device, units, tokens, splits);
            const int64_t limit =
                std::min<int64_t>(kMaxSplits, (tokens + kMinSplitTokens - 1) / kMinSplitTokens);
            double best = chosen;
            for (int n = 1; n <= limit && units * n <= max_partials(device); ++n) {
              best = std::min(best, estimate_decode_ns(device, units, tokens, n));
            }
            ASSERT_LE(chosen, best * 1.15)
                << sms << " SMs x " << ctas << ", group " << group << ", " << units << " units, "
                << tokens << " tokens, " << splits << " splits";
          }
        }
      }
    }
  }
}

TEST(SplitPolicyTest, NoSplitIsEmpty) {
  for (int64_t tokens = 257; tokens < 20000; tokens += 61) {
    const SplitDevice device = h200();
    const int64_t splits = choose_splits(device, 3, tokens);
    const int64_t tiles = (tokens + device.tile_tokens - 1) / device.tile_tokens;
    const int64_t tiles_per_split = (tiles + splits - 1) / splits;
    ASSERT_EQ((tiles + tiles_per_split - 1) / tiles_per_split, splits) << tokens;
  }
}

TEST(SplitPolicyTest, MinSplitTokensAreWholeTiles) {
  SplitDevice device;
  device.tile_tokens = 96;
  EXPECT_EQ(device.min_split_tokens(), 288);
  device.tile_tokens = 512;
  EXPECT_EQ(device.min_split_tokens(), 512);
}

TEST(SplitPolicyTest, ManyHeadsToMergeMakeFewerSplits) {
  SplitDevice few = h200(), many = h200();
  few.rows = 1;
  many.rows = 128;
  EXPECT_LE(choose_splits(many, 1, 65536), choose_splits(few, 1, 65536));
}

}  // namespace
TEST(SplitReciprocalTest, IsADivisionRoundedUp) {
  const auto expect_quotient = [](uint64_t num_tiles, int num_splits) {
    const uint32_t reciprocal = pagejit_shared::split_reciprocal(num_splits);
    const uint64_t quotient = (num_tiles + num_splits - 1) / num_splits;
    const uint64_t found =
        pagejit_shared::tiles_per_split(static_cast<uint32_t>(num_tiles), num_splits, reciprocal);
    if (num_tiles + num_splits <= (uint64_t{1} << 32) / num_splits) {
      EXPECT_EQ(found, quotient) << num_tiles << " by " << num_splits;
    } else {
      EXPECT_GE(found, quotient) << num_tiles << " by " << num_splits;
      EXPECT_LE(found, quotient + 1) << num_tiles << " by " << num_splits;
    }
  };
  for (int num_splits = 2; num_splits <= kMaxSplits; ++num_splits) {
    for (uint64_t num_tiles = 0; num_tiles <= 3000; ++num_tiles) {
      expect_quotient(num_tiles, num_splits);
    }
    for (uint64_t last : {uint64_t{1} << 22, uint64_t{1} << 27, (uint64_t{1} << 31) - 1}) {
      for (uint64_t num_tiles = last - 1000; num_tiles <= last; ++num_tiles) {
        expect_quotient(num_tiles, num_splits);
      }
    }
  }
}

}  // namespace pagejit
