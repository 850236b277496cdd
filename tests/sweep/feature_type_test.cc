// Each yes of the support matrix's features by type (generator/support.md), with the tiles of the
// device at hand, against the float64 reference: without --all for one kind of queries each.
#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <tuple>
#include <vector>

#include "tests/docs/support_tables.h"
#include "tests/sweep/sweep_cases.h"
#include "tests/sweep/sweep_main.h"
#include "tests/sweep/test_device.h"

namespace pagejit {
namespace {

class FeatureTypeTest : public DeviceTest,
                        public testing::WithParamInterface<std::tuple<int, DataType>> {};

TEST_P(FeatureTypeTest, IsRightForAllQueriesThatItIsServedFor) {
  const auto& [index, type] = GetParam();
  const Result<Target> target = engine().target_of_device(0);
  ASSERT_TRUE(target) << target.status().to_string();
  std::vector<KernelSpec> specs;
  for (const QueryLengths queries : docs::kQueries) {
    KernelSpec spec = docs::spec_of(type, queries);
    docs::features()[static_cast<size_t>(index)].apply(spec);
    if (docs::is_served(spec, *target)) specs.push_back(spec);
  }
  if (!run_all() && !specs.empty()) {
    specs = {specs[static_cast<size_t>(index + static_cast<int>(type)) % specs.size()]};
  }
  for (const KernelSpec& spec : specs) {
    CheckOptions options = small_check(spec);
    options.num_splits = 2;
    options.batch.seed = 7;
    expect_passes(spec, options);
  }
}

std::string name_of(const testing::TestParamInfo<std::tuple<int, DataType>>& info) {
  const auto& [index, type] = info.param;
  std::string name = docs::features()[static_cast<size_t>(index)].name;
  name += "_" + std::string(data_type_name(type));
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(, FeatureTypeTest,
                         testing::Combine(testing::Range(0,
                                                         static_cast<int>(docs::features().size())),
                                          testing::ValuesIn(docs::kDataTypes)),
                         name_of);

}  // namespace
}  // namespace pagejit
