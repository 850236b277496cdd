// What only the emulator can count or vary: bytes read, bank conflicts, schedules, and its checked
// build.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "generator/planner.h"
#include "tests/sweep/test_device.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr int kHeadSizes[] = {16, 40, 64, 72, 80, 96, 112, 120, 128, 160, 192, 256};
constexpr int kGroups[] = {1, 8, 16, 71};

class DecodeOnEmulatorTest : public EmulatorTest {
 protected:
  // The counters of one launch over sequences of these lengths, in one split, one KV head.
  PagejitEmulatorCounters count(Engine& engine_to_use, const KernelSpec& spec,
                                const std::vector<int>& seq_lens, int num_splits = 1) {
    CheckOptions options;
    options.batch.seq_lens = seq_lens;
    options.num_splits = num_splits;
    emulator().reset_counters();
    const Result<CheckReport> result = run_check(engine_to_use, session(), spec, options);
    EXPECT_TRUE(result.is_ok()) << result.status().to_string() << result.status().detail()
                                << report();
    if (result) {
      EXPECT_TRUE(result->passed) << canonical_text(spec) << ": " << result->sentence;
    }
    return emulator().counters();
  }

  KernelConfig config_of(const KernelSpec& spec) {
    const Result<Target> target = engine().target_of_device(0);
    EXPECT_TRUE(target.is_ok()) << target.status().to_string();
    const Result<KernelConfig> config = plan(spec, *target);
    EXPECT_TRUE(config.is_ok()) << config.status().to_string();
    return *config;
  }
};

// From one whole number of tiles to twice as many, a token more costs its K and V row once,
// whatever the group, and its block id once per warp that copies the token group's rows.
TEST_F(DecodeOnEmulatorTest, EachKeyAndValueIsReadOnceWhateverTheGroup) {
  for (int head_size : kHeadSizes) {
    for (int group_size : kGroups) {
      const KernelSpec spec = make_spec(kBF16, head_size, 16, group_size);
      const KernelConfig config = config_of(spec);
      const int tokens = config.tile_tokens() * 2;
      const uint64_t once = count(engine(), spec, {tokens}).global_bytes_read;
      const uint64_t twice = count(engine(), spec, {2 * tokens}).global_bytes_read;
      const uint64_t kv_bytes = uint64_t{2} * static_cast<uint64_t>(head_size) * 2;
      const uint64_t id_bytes = uint64_t{4} * static_cast<uint64_t>(config.decode.head_warps);
      ASSERT_LT(id_bytes, kv_bytes) << "then a second reading could hide";
      EXPECT_EQ(twice - once, (kv_bytes + id_bytes) * static_cast<uint64_t>(tokens))
          << canonical_text(spec);
      // What does not grow with the tokens: each thread's seq_len, and q once per token group at
      // most.
      const auto fixed = static_cast<uint64_t>(
          config.threads_per_cta() * 4 + config.decode.token_groups * group_size * head_size * 2);
      EXPECT_LE(once, (kv_bytes + id_bytes) * static_cast<uint64_t>(tokens) + fixed)
          << canonical_text(spec);
    }
  }
}

TEST_F(DecodeOnEmulatorTest, BytesBeyondTheLastTokenAreNotRead) {
  const KernelSpec spec = make_spec(kF16, 128, 16, 4);
  const uint64_t one = count(engine(), spec, {17}).global_bytes_read;
  const uint64_t two = count(engine(), spec, {18}).global_bytes_read;
  EXPECT_EQ(two - one,
            2u * 128 * 2 + 4u * static_cast<uint64_t>(config_of(spec).decode.head_warps));
}

TEST_F(DecodeOnEmulatorTest, SharedMemoryIsReadWithoutBankConflicts) {
  for (int head_size : kHeadSizes) {
    for (int group_size : kGroups) {
      const KernelSpec spec = make_spec(kF16, head_size, 16, group_size);
      const PagejitEmulatorCounters counters = count(engine(), spec, {100, 33});
      EXPECT_GT(counters.ldmatrix_phases, 0u) << canonical_text(spec);
      EXPECT_EQ(counters.ldmatrix_extra_cycles, 0u) << canonical_text(spec);
    }
  }
}

TEST_F(DecodeOnEmulatorTest, EverySupportedHeadSizeIsFreeOfBankConflicts) {
  for (int head_size = 16; head_size <= 256; head_size += 8) {
    const KernelSpec spec = make_spec(kBF16, head_size, 16, 4);
    EXPECT_EQ(count(engine(), spec, {40}).ldmatrix_extra_cycles, 0u) << canonical_text(spec);
  }
}

TEST_F(DecodeOnEmulatorTest, EverySchedulePasses) {
  const KernelSpec specs[] = {make_spec(kBF16, 64, 16, 4), make_spec(kF16, 72, 5, 20),
                              make_spec(kBF16, 256, 32, 71)};
  for (PagejitEmulatorOrder order :
       {kPagejitEmulatorFifo, kPagejitEmulatorLifo, kPagejitEmulatorRandom}) {
    for (PagejitEmulatorCompletion completion :
         {kPagejitEmulatorLate, kPagejitEmulatorEarly, kPagejitEmulatorRandomCompletion}) {
      for (uint64_t seed : {1u, 2u}) {
        emulator().set_schedule(order, completion, seed);
        for (const KernelSpec& spec : specs) count(engine(), spec, {0, 1, 150, 65}, 3);
      }
    }
  }
}

// CTAs of a grid in any interleaving: the last one to arrive merges, whichever it is.
TEST_F(DecodeOnEmulatorTest, ResidentCtasMayInterleave) {
  PagejitEmulatorOptions options = emulator().options();
  options.order = kPagejitEmulatorRandom;
  for (int resident : {2, 7}) {
    for (uint64_t seed : {1u, 2u, 3u}) {
      options.resident = resident;
      options.seed = seed;
      emulator().configure(options);
      count(engine(), make_spec(kF16, 64, 16, 20), {300, 40}, 5);
    }
  }
}

// Each architecture's configuration of a kernel is right, not only the default one's.
TEST_F(DecodeOnEmulatorTest, EveryArchitecturesConfigurationPasses) {
  for (int sm : {80, 86, 89, 90, 100, 103, 110, 120, 121}) {
    PagejitEmulatorOptions options = emulator().options();
    options.sm = sm;
    emulator().configure(options);
    // An engine asks a device only once for what it is.
    Result<std::shared_ptr<Engine>> fresh = Engine::create(device().options);
    ASSERT_TRUE(fresh.is_ok());
    const Result<Target> target = (*fresh)->target_of_device(0);
    ASSERT_TRUE(target.is_ok()) << target.status().to_string();
    EXPECT_EQ(target->sm, sm);
    count(**fresh, make_spec(kBF16, 128, 16, 8), {200, 17}, 2);
    count(**fresh, make_spec(kF16, 256, 16, 71), {100, 0}, 2);
  }
}

// Races, uninitialised shared memory and accesses out of bounds, by instrumentation of the kernel.
TEST_F(DecodeOnEmulatorTest, TheCheckedBuildFindsNothingAndDidLook) {
  const KernelSpec specs[] = {make_spec(kBF16, 64, 16, 4),   make_spec(kF16, 40, 5, 1),
                              make_spec(kF16, 72, 1, 20),    make_spec(kBF16, 128, 16, 71),
                              make_spec(kBF16, 256, 528, 3), make_spec(kF16, 128, 32, 8, true)};
  for (const KernelSpec& spec : specs) {
    for (PagejitEmulatorOrder order : {kPagejitEmulatorFifo, kPagejitEmulatorLifo}) {
      emulator().set_schedule(order, kPagejitEmulatorLate, 1);
      const PagejitEmulatorCounters counters =
          count(checked_engine(), spec, {0, 1, 150, spec.block_size + 1}, 3);
      EXPECT_GT(counters.checked_shared_accesses, 0u) << canonical_text(spec);
      EXPECT_GT(counters.checked_global_accesses, 0u) << canonical_text(spec);
    }
  }
}

}  // namespace
}  // namespace pagejit
