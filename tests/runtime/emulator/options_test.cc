#include "runtime/emulator/options.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace pagejit_emulator {
namespace {

using ::testing::HasSubstr;

class OptionsTest : public ::testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    for (const char* name :
         {"ORDER", "COMPLETION", "SEED", "RESIDENT", "SM", "WATCHDOG_S", "REPORT"}) {
      unsetenv((std::string("PAGEJIT_EMULATOR_") + name).c_str());
    }
  }
  static void set(const char* name, const char* value) {
    setenv((std::string("PAGEJIT_EMULATOR_") + name).c_str(), value, 1);
  }
  std::string complaint_;
};

TEST_F(OptionsTest, EmptyEnvironmentGivesTheDefaults) {
  const Options options = options_from_environment(&complaint_);
  EXPECT_EQ(complaint_, "");
  EXPECT_EQ(options.values.order, kPagejitEmulatorFifo);
  EXPECT_EQ(options.values.completion, kPagejitEmulatorLate);
  EXPECT_EQ(options.values.resident, 1);
  EXPECT_EQ(options.values.sm, 90);
  EXPECT_EQ(options.values.watchdog_s, 60);
  EXPECT_EQ(options.report_path, "");
  EXPECT_TRUE(valid(options.values));
}

TEST_F(OptionsTest, EnvironmentSetsEveryField) {
  set("ORDER", "random");
  set("COMPLETION", "early");
  set("SEED", "99");
  set("RESIDENT", "4");
  set("SM", "86");
  set("WATCHDOG_S", "2.5");
  set("REPORT", "stderr");
  const Options options = options_from_environment(&complaint_);
  EXPECT_EQ(complaint_, "");
  EXPECT_EQ(options.values.order, kPagejitEmulatorRandom);
  EXPECT_EQ(options.values.completion, kPagejitEmulatorEarly);
  EXPECT_EQ(options.values.seed, 99u);
  EXPECT_EQ(options.values.resident, 4);
  EXPECT_EQ(options.values.sm, 86);
  EXPECT_EQ(options.values.watchdog_s, 2.5);
  EXPECT_EQ(options.report_path, "stderr");
}

TEST_F(OptionsTest, MalformedValuesAreNamedAndLeftOut) {
  set("ORDER", "sideways");
  set("RESIDENT", "65");
  set("SM", "91");
  set("WATCHDOG_S", "soon");
  const Options options = options_from_environment(&complaint_);
  EXPECT_THAT(complaint_,
              HasSubstr("PAGEJIT_EMULATOR_ORDER=sideways: must be one of fifo, lifo, random"));
  EXPECT_THAT(complaint_, HasSubstr("PAGEJIT_EMULATOR_RESIDENT=65"));
  EXPECT_THAT(complaint_, HasSubstr("PAGEJIT_EMULATOR_SM=91"));
  EXPECT_THAT(complaint_, HasSubstr("PAGEJIT_EMULATOR_WATCHDOG_S=soon"));
  EXPECT_EQ(options.values.order, kPagejitEmulatorFifo);
  EXPECT_EQ(options.values.resident, 1);
  EXPECT_EQ(options.values.sm, 90);
}

TEST_F(OptionsTest, ShorterStructsOfOlderCallersKeepTheOtherFields) {
  PagejitEmulatorOptions from = default_options().values;
  from.order = kPagejitEmulatorLifo;
  from.sm = 80;
  PagejitEmulatorOptions to = default_options().values;
  copy_fields(from, offsetof(PagejitEmulatorOptions, sm), &to, sizeof(to));
  EXPECT_EQ(to.order, kPagejitEmulatorLifo);
  EXPECT_EQ(to.sm, 90);
  EXPECT_EQ(to.struct_size, sizeof(PagejitEmulatorOptions));
}

}  // namespace
}  // namespace pagejit_emulator
