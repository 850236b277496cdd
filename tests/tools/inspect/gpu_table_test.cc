#include "tools/inspect/gpu_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "generator/arch.h"
#include "tools/inspect/occupancy.h"

namespace pagejit::inspect {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> ids_of(const char* target) {
  std::vector<std::string> ids;
  for (const Gpu& gpu : gpus_of(*parse_target(target))) ids.push_back(gpu.id);
  return ids;
}

TEST(GpuTableTest, EachRowHasWhatOccupancyAndRooflineNeed) {
  std::set<std::string> ids;
  int last_sm = 0;
  for (const Gpu& gpu : known_gpus()) {
    EXPECT_TRUE(ids.insert(gpu.id).second) << gpu.id;
    EXPECT_GE(gpu.sm, last_sm) << gpu.id << ": rows are ordered";
    last_sm = gpu.sm;
    EXPECT_GT(gpu.num_sms, 0) << gpu.id;
    EXPECT_GT(gpu.bandwidth_gb_s, 100) << gpu.id;
    EXPECT_GE(gpu.tensor_tflops, 0) << gpu.id;
    EXPECT_GT(std::string(gpu.source).size(), 10u) << gpu.id;
    EXPECT_TRUE(occupancy_of({.threads = 128, .registers = 64}, gpu.sm)) << gpu.id;
  }
}

// The planner's table has the same GPUs by bandwidth of an SM, written down by others.
TEST(GpuTableTest, BandwidthsAreThoseOfThePlanner) {
  // Of sm_90 the planner has what was read, not what the paper says.
  for (const char* id :
       {"a100-80", "rtx3090", "agx-orin", "rtx4090", "b200", "thor-t5000", "rtx5090", "gb10"}) {
    const Gpu gpu = *find_gpu(id);
    EXPECT_NEAR(gpu.bandwidth_gb_s / gpu.num_sms,
                arch_of({.sm = gpu.sm})->bandwidth_bytes_per_us / 1e3, 0.05)
        << id;
  }
}

TEST(GpuTableTest, FoundByIdOrTitleInEitherCase) {
  EXPECT_EQ(find_gpu("H200")->num_sms, 132);
  EXPECT_STREQ(find_gpu("rtx 4090")->id, "rtx4090");
  const auto none = find_gpu("h2000");
  EXPECT_EQ(none.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(none.status().message(), HasSubstr("known are t4, a100-80"));
}

TEST(GpuTableTest, ACubinRunsOnItsFamily) {
  EXPECT_THAT(ids_of("sm_90a"), ElementsAre("h200", "h100", "h100-pcie", "gh200-96"));
  EXPECT_THAT(ids_of("sm_86"),
              ElementsAre("a10", "a40", "rtx3090", "l40s", "l40", "l4", "rtx4090"));
  EXPECT_THAT(ids_of("sm_80"), ElementsAre("a100-80", "a100-40", "a30", "a10", "a40", "rtx3090",
                                           "l40s", "l40", "l4", "rtx4090"));
  EXPECT_THAT(ids_of("sm_120f"), ElementsAre("rtx5090", "gb10"));
  EXPECT_THAT(ids_of("sm_120a"), ElementsAre("rtx5090"));
  EXPECT_THAT(ids_of("host"), ElementsAre());
}

TEST(GpuTableTest, TheRidgeIsRateOverBandwidth) {
  EXPECT_NEAR(find_gpu("h200")->ridge(), 206.1, 0.1);
  EXPECT_EQ(find_gpu("gb10")->ridge(), 0) << "its rate is not known";
}

}  // namespace
}  // namespace pagejit::inspect
