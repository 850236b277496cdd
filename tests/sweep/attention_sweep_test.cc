// Rendered decode kernels against the float64 reference: the covering array, or with --all the full
// product of the spec's fields (long). The rule by which a case passes stands in
// tools/check/compare.h.
#include <gtest/gtest.h>

#include <string>

#include "tests/sweep/error_summary.h"
#include "tests/sweep/sweep_cases.h"
#include "tests/sweep/sweep_main.h"
#include "tests/sweep/test_device.h"

namespace pagejit {
namespace {

class AttentionSweep : public DeviceTest, public testing::WithParamInterface<SweepCase> {};

TEST_P(AttentionSweep, IsAsCloseToFloat64AsTheNaiveComputation) {
  const SweepCase& c = GetParam();
  if (device().emulator != nullptr) device().emulator->set_schedule(c.order, c.completion, 1);
  const Result<CheckReport> result = run_check(engine(), session(), c.spec(), c.check_options());
  ASSERT_TRUE(result.is_ok()) << result.status().to_string() << result.status().detail()
                              << report();
  expect_passed(*result);
}

INSTANTIATE_TEST_SUITE_P(Cases, AttentionSweep,
                         testing::ValuesIn(run_all() ? all_cases() : pairwise_cases()),
                         [](const testing::TestParamInfo<SweepCase>& test) {
                           return test.param.name();
                         });

}  // namespace
}  // namespace pagejit
