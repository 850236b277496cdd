// What only the emulator can vary or see: schedules, architectures, races.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/sweep/attention_on_emulator.h"

namespace pagejit {
namespace {

TEST_F(AttentionOnEmulatorTest, EverySchedulePasses) {
  std::vector<KernelSpec> specs = {
      make_spec(kBF16, 64, 16, 4),      make_spec(kF16, 72, 5, 20),
      make_spec(kBF16, 256, 32, 71),    make_fp8(64, 16, KvLayout::kRows),
      make_fp8(80, 8, KvLayout::kVllm), make_latent(kBF16, 96, 80, 16)};
  for (uint64_t seed : {1u, 2u}) {
    PagejitEmulatorOptions options = emulator().options();
    options.seed = seed;
    emulator().configure(options);
    emulator().for_each_schedule([&] {
      for (const KernelSpec& spec : specs) count(engine(), spec, {0, 1, 150, 65}, 3);
    });
  }
}

// CTAs of a grid in any interleaving: the last one to arrive merges, whichever it is.
TEST_F(AttentionOnEmulatorTest, ResidentCtasMayInterleave) {
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

TEST_F(AttentionOnEmulatorTest, EverySchedulePassesForRaggedQueries) {
  KernelSpec changed = make_ragged(QueryLengths::kFew, kF16, 72, 3);
  changed.window = changed.soft_cap = changed.alibi = changed.sinks = true;
  emulator().for_each_schedule([&] {
    for (const KernelSpec& spec : {make_ragged(QueryLengths::kFew, kBF16, 64, 4),
                                   make_ragged(QueryLengths::kMany, kBF16, 128, 4),
                                   make_ragged(QueryLengths::kShared, kBF16, 64, 9), changed}) {
      count(engine(), spec, {0, 90, 210, 65}, 3, {1, 40, 2, 0});
    }
  });
}

// Each architecture's configuration of a kernel is right, not only the default one's.
TEST_F(AttentionOnEmulatorTest, EveryArchitecturesConfigurationPasses) {
  for (int sm : {80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121}) {
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
    count(**fresh, make_ragged(QueryLengths::kFew, kBF16, 128, 8), {200, 17}, 2, {3, 17});
    count(**fresh, make_ragged(QueryLengths::kMany, kBF16, 128, 8), {200, 17}, 2, {30, 1});
    count(**fresh, make_ragged(QueryLengths::kShared, kBF16, 128, 8), {200, 17}, 2, {30, 1});
  }
}

// Races, uninitialised shared memory and accesses out of bounds, by instrumentation of the kernel.
TEST_F(AttentionOnEmulatorTest, TheCheckedBuildFindsNothingAndDidLook) {
  std::vector<KernelSpec> specs = {
      make_spec(kBF16, 64, 16, 4),   make_spec(kF16, 40, 5, 1),
      make_spec(kF16, 72, 1, 20),    make_spec(kBF16, 128, 16, 71),
      make_spec(kBF16, 256, 528, 3), make_spec(kF16, 128, 32, 8, true)};
  for (const KernelSpec& spec : other_kernels()) specs.push_back(spec);
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

TEST_F(AttentionOnEmulatorTest, TheCheckedBuildFindsNothingInRaggedKernels) {
  KernelSpec changed = make_ragged(QueryLengths::kFew, kF16, 72, 3);
  changed.causality = Causality::kPerSequence;
  changed.window = changed.soft_cap = changed.alibi = changed.sinks = true;
  for (const KernelSpec& spec : {make_ragged(QueryLengths::kFew, kBF16, 64, 4),
                                 make_ragged(QueryLengths::kMany, kF16, 128, 7),
                                 make_ragged(QueryLengths::kShared, kF16, 64, 7), changed}) {
    for (PagejitEmulatorOrder order : {kPagejitEmulatorFifo, kPagejitEmulatorLifo}) {
      emulator().set_schedule(order, kPagejitEmulatorLate, 1);
      const PagejitEmulatorCounters counters =
          count(checked_engine(), spec, {0, 90, 210, 65}, 3, {1, 40, 2, 0});
      EXPECT_GT(counters.checked_shared_accesses, 0u) << canonical_text(spec);
      EXPECT_GT(counters.checked_global_accesses, 0u) << canonical_text(spec);
    }
  }
}

}  // namespace
}  // namespace pagejit
