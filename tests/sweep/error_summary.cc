#include "tests/sweep/error_summary.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace pagejit {
namespace {

class ErrorSummary : public testing::Environment {
 public:
  void add(const CheckReport& report, const std::string& name) {
    ++num_launches_;
    if (!name_of_worst_.empty() && report.worst_ratio <= worst_.worst_ratio) return;
    worst_ = report;
    name_of_worst_ = name;
  }

  void TearDown() override {
    if (num_launches_ == 0) return;
    std::printf("compared %d launches, worst %.3f of its limit: error %.2e, naive %.2e, %s\n",
                num_launches_, worst_.worst_ratio, worst_.max_error, worst_.naive_max_error,
                name_of_worst_.c_str());
  }

 private:
  int num_launches_ = 0;
  CheckReport worst_;
  std::string name_of_worst_;
};

// GoogleTest owns it, and tears it down after the last test.
ErrorSummary* const error_summary =
    static_cast<ErrorSummary*>(testing::AddGlobalTestEnvironment(new ErrorSummary));

std::string name_of_test() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  return std::string(test->test_suite_name()) + "." + test->name();
}

}  // namespace

void expect_passed(const CheckReport& report, const std::string& what) {
  const std::string name = what.empty() ? name_of_test() : what;
  EXPECT_TRUE(report.passed) << name << ": " << report.sentence;
  error_summary->add(report, name);
}

}  // namespace pagejit
