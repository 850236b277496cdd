// generator/support.md is what the validator answers now, and every test that it names is there.
#include "tests/docs/support_matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace pagejit::docs {
namespace {

std::vector<std::string> gpu_results() {
  std::vector<std::string> names;
  const std::filesystem::path folder = PAGEJIT_TEST_SOURCE_DIR "/tools/bench/results";
  if (std::filesystem::exists(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::ranges::sort(names);
  return names;
}

TEST(SupportMatrixTest, IsWhatTheValidatorAnswers) {
  const std::string path = PAGEJIT_TEST_SOURCE_DIR "/generator/support.md";
  const std::string text = support_heading(gpu_results()) + support_tables();
  if (std::getenv("PAGEJIT_UPDATE_DOCS") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  ASSERT_TRUE(file) << path << " is missing; PAGEJIT_UPDATE_DOCS=1 writes it";
  std::stringstream kept;
  kept << file.rdbuf();
  EXPECT_TRUE(kept.str() == text)
      << path << " is not what the validator answers; PAGEJIT_UPDATE_DOCS=1 writes it anew";
}

TEST(SupportMatrixTest, SaysWhatRanOnAGpuAndWhatDidNot) {
  EXPECT_NE(support_heading({}).find("Nothing here has run on a GPU"), std::string::npos);
  const std::string with_results = support_heading({"sm_80_a100.json"});
  EXPECT_EQ(with_results.find("Nothing here has run on a GPU"), std::string::npos);
  EXPECT_NE(with_results.find("by the records in `tools/bench/results/`: sm_80_a100.json"),
            std::string::npos);
  // Only of what the record is of.
  EXPECT_NE(with_results.find("`TuringTest.*` | never |"), std::string::npos);
  EXPECT_NE(with_results.find("sweeps take sm_90's | sm_80_a100.json |"), std::string::npos);
  EXPECT_NE(with_results.find("`PdlTest.*` | never |"), std::string::npos);
}

}  // namespace
}  // namespace pagejit::docs
