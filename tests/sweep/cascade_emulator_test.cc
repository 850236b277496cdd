// What only the emulator shows of cascades: schedules, races, bytes.
#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/sweep/cascade_fixture.h"
#include "tests/sweep/error_summary.h"

namespace pagejit {
namespace {

constexpr DataType kBF16 = DataType::kBFloat16;

class CascadeOnEmulatorTest : public OnEmulator<CascadeTest> {
 protected:
  uint64_t bytes_read(const CascadeCase& c) {
    emulator().reset_counters();
    CascadeCheckOptions options = c.options();
    options.batch.batch.num_kv_heads = 1;
    options.batch.batch.padded_rows = false;
    const CascadeKernel kernel = prepare_cascade(make_cascade(c.spec));
    const CascadeBatch batch = make(kernel.spec(), options);
    Result<DeviceCascade> device = DeviceCascade::upload(session(), kernel, batch, c.num_splits);
    EXPECT_TRUE(device.is_ok()) << device.status().to_string();
    emulator().reset_counters();
    launch(kernel, *device);
    EXPECT_EQ(emulator().counters().launches, batch.levels.size() + 1);
    return emulator().counters().global_bytes_read;
  }
};

// Every order of threads and CTAs gives the same bits.
TEST_F(CascadeOnEmulatorTest, EveryScheduleGivesTheSameBits) {
  const CascadeKernel kernel =
      prepare_cascade(make_cascade(ragged(QueryLengths::kFew, kBF16, 64, 16, 4)));
  CascadeCheckOptions options;
  options.batch.prefixes = {{{4, 260}}, {{1, 33}, {3, 100}}};
  options.batch.batch.num_kv_heads = 2;
  options.batch.batch.seq_lens = {30, 40, 90, 0};
  options.batch.batch.query_lens = {2, 40, 1, 0};
  const CascadeBatch batch = make(kernel.spec(), options);
  Result<DeviceCascade> device = DeviceCascade::upload(session(), kernel, batch, 3);
  ASSERT_TRUE(device.is_ok()) << device.status().to_string();
  const AttentionResults first = launch(kernel, *device);
  const CheckReport report =
      compare_results(batch.flat, compute_reference(batch.flat), first, true, 3);
  expect_passed(report);
  emulator().for_each_schedule([&] {
    const AttentionResults again = launch(kernel, *device);
    EXPECT_EQ(again.out, first.out);
    for (size_t i = 0; i < first.lse.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(again.lse[i]), std::bit_cast<uint32_t>(first.lse[i])) << i;
    }
  });
}

TEST_F(CascadeOnEmulatorTest, TheCheckedBuildFindsNothingAndDidLook) {
  for (const CascadeCase& c : cascade_cases()) {
    if (c.name != "bf16_three_levels_s3" && c.name != "few_cap_sinks" && c.name != "fp8") continue;
    emulator().reset_counters();
    expect_right(checked_engine(), c);
    EXPECT_GT(emulator().counters().checked_shared_accesses, 0u) << c.name;
    EXPECT_GT(emulator().counters().checked_global_accesses, 0u) << c.name;
  }
}

// A prefix of 8,192 tokens before 64 suffixes of 512. The flat kernel reads each sequence's 8,704
// tokens, so 64 times what it reads for one of them. The prefix is read once for each tile of 128
// rows: 64 sequences of up to 2 query heads per KV head are one tile.
TEST_F(CascadeOnEmulatorTest, ASharedPrefixIsReadOncePerTileOfRows) {
  constexpr int kSeqs = 64;
  constexpr int kPrefix = 8192;
  constexpr int kSuffix = 512;
  constexpr int kRowBytes = 2 * 128 * 2;  // K and V of a token
  for (const int group_size : {1, 2, 4, 8}) {
    const KernelSpec spec = make_spec(kBF16, 128, 16, group_size);
    CascadeCase c;
    c.spec = spec;
    c.prefixes = {{{kSeqs, kPrefix}}};
    c.suffixes = std::vector<int>(kSeqs, kSuffix);
    c.num_splits = 1;
    c.layout = CacheLayout::kNhd;
    const double cascade = static_cast<double>(bytes_read(c));

    CascadeCase one = c;  // as a flat sequence
    one.prefixes.clear();
    one.suffixes = {kPrefix + kSuffix};
    CheckOptions flat;
    flat.batch.seq_lens = one.suffixes;
    flat.num_splits = 1;
    emulator().reset_counters();
    const Result<CheckReport> checked = run_check(engine(), session(), spec, flat);
    ASSERT_TRUE(checked.is_ok() && checked->passed);
    const double flat_bytes = static_cast<double>(emulator().counters().global_bytes_read) * kSeqs;

    const int tiles = (kSeqs * group_size + 127) / 128;
    const double kv_ratio =
        static_cast<double>(kSeqs * (kPrefix + kSuffix)) / (tiles * kPrefix + kSeqs * kSuffix);
    const double ratio = flat_bytes / cascade;
    RecordProperty("ratio_g" + std::to_string(group_size), std::to_string(ratio));
    std::printf("group size %d: %.1f MB instead of %.1f MB, %.2f times fewer (of K and V %.2f)\n",
                group_size, cascade * 1e-6, flat_bytes * 1e-6, ratio, kv_ratio);
    // All bytes, q, block ids, and the levels' results among them.
    if (group_size <= 2) {
      EXPECT_GE(ratio, 12) << group_size;
    }
    EXPECT_GE(ratio, 0.93 * kv_ratio) << group_size;
    EXPECT_GE(cascade, (tiles * kPrefix + kSeqs * kSuffix) * double{kRowBytes})
        << "then the emulator did not count";
  }
}

}  // namespace
}  // namespace pagejit
