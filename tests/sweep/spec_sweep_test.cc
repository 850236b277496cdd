// Legal specs at random against the float64 reference: every field at once, some in each run, with
// --all two hundred.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/generator/spec_space.h"
#include "tests/sweep/sweep_cases.h"
#include "tests/sweep/sweep_main.h"
#include "tests/sweep/test_device.h"

namespace pagejit {
namespace {

constexpr int kSome = 16;
constexpr int kAll = 200;
constexpr int kSeed = 4;

class SpecSweepTest : public DeviceTest, public testing::WithParamInterface<int> {
 protected:
  void check_a_spec(KernelSpec (&draw)(SplitMix64&));
};

void SpecSweepTest::check_a_spec(KernelSpec (&draw)(SplitMix64&)) {
  SplitMix64 rng(static_cast<uint64_t>(kSeed + GetParam()));
  // One that the GPU or emulator has a tile for; spec_space_test looks at the others.
  KernelSpec spec;
  Status status;
  do {
    spec = draw(rng);
    status = engine().prepare(spec, 0).status();
  } while (status.code() == StatusCode::kUnsupported);
  ASSERT_TRUE(status) << canonical_text(spec) << ": " << status.to_string();
  CheckOptions options = small_check(spec);
  options.batch.layout = static_cast<CacheLayout>(rng.below(5));
  options.batch.logits = static_cast<LogitRegime>(rng.below(4));
  options.batch.per_head_scales = rng.below(2) == 0;
  options.batch.seed = rng.next();
  options.num_splits = static_cast<int>(rng.below(4));
  expect_passes(spec, options);
}

TEST_P(SpecSweepTest, IsAsCloseToFloat64AsTheNaiveComputation) { check_a_spec(draw_legal_spec); }

TEST_P(SpecSweepTest, SoAreKernelsWhoseKeysHoldTheirValues) {
  check_a_spec(draw_legal_latent_spec);
}

INSTANTIATE_TEST_SUITE_P(Specs, SpecSweepTest, testing::Range(0, run_all() ? kAll : kSome));

}  // namespace
}  // namespace pagejit
