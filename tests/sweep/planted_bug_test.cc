// A bug planted in a template must fail the check: the emulator runs the text that NVRTC gets, and
// the reference sees what it does wrong. Each case changes one place of one template.
#include <gtest/gtest.h>

#include <memory>

#include "generator/renderer.h"
#include "runtime/engine/dependencies.h"
#include "tools/check/check.h"

namespace pagejit {
namespace {

struct PlantedBug {
  const char* name;
  const char* file;
  const char* right;
  const char* wrong;
  int head_size = 64;
  int group_size = 4;
};

constexpr PlantedBug kBugs[] = {
    {"NoZeroFillPastTheEnd", "decode/load_kv.cuh", "column, row < num_valid);", "column, true);"},
    {"TailMaskOffByOne", "decode/attention.cuh", ">= num_valid) scores", "> num_valid) scores"},
    {"NoWaitForK", "decode/decode.cuh", "dev::cp_async_wait<2 * (kStages - 1) - 1>();", ""},
    {"NoWaitForV", "decode/decode.cuh", "dev::cp_async_wait<2 * (kStages - 1)>();", ""},
    {"WaitForKOneGroupShort", "decode/decode.cuh", "dev::cp_async_wait<2 * (kStages - 1) - 1>();",
     "dev::cp_async_wait<2 * (kStages - 1)>();"},
    {"PadNotCleared", "decode/decode.cuh", "stream.clear_pad();", "", 72},
    {"WrongTokenInBlock", "decode/load_kv.cuh", "static_cast<uint32_t>(token) % C.block_size",
     "static_cast<uint32_t>(token + 1) % C.block_size"},
    {"WrongBlock", "decode/load_kv.cuh", "static_cast<uint32_t>(token) / C.block_size",
     "static_cast<uint32_t>(token) / (C.block_size + 1)"},
    {"NoRescale", "decode/attention.cuh", "acc[depth][j][e] *= factor[e % 2];", ""},
    {"SumsNotAdded", "decode/attention.cuh",
     "row_sum[j][h] += dev::shuffle_xor(row_sum[j][h], 16);", ""},
    {"PNotTransposed", "decode/attention.cuh", "p[i][j][1] = dev::movmatrix_trans(",
     "p[i][j][1] = ("},
    {"WrongHeadOfQ", "decode/decode.cuh",
     "work.kv_head_idx * static_cast<int64_t>(C.group_size) * params.q_stride_head",
     "work.kv_head_idx * params.q_stride_head"},
    {"LastSplitNotMerged", "decode/merge.cuh", "if (first + b < num_splits) {",
     "if (first + b + 1 < num_splits) {"},
    {"NobodyIsLast", "decode/merge.cuh", "shared_flag = arrived == limit;", "shared_flag = 0;"},
    {"EveryoneIsLast", "decode/merge.cuh", "shared_flag = arrived == limit;", "shared_flag = 1;"},
    {"EmptySequenceNotWritten", "decode/decode.cuh", "if (work.split_idx == 0) store_empty",
     "if (false) store_empty"},
    {"LseInBase2", "decode/merge.cuh", "kLn2 * (partial.row_max", "(partial.row_max"},
    {"HeadsOfOtherWarps", "decode/merge.cuh", "head_warp * Traits::kWarpHeads + j * 8 -", "j * 8 -",
     64, 71},
};

class PlantedBugTest : public ::testing::TestWithParam<PlantedBug> {};

CheckOptions check_options() {
  CheckOptions options;
  options.batch.num_kv_heads = 2;
  options.batch.seq_lens = {0, 1, 15, 17, 600};
  options.num_splits = 2;
  return options;
}

Result<CheckReport> check_with(const TemplateSet& templates, const PlantedBug& bug) {
  const Result<EngineOptions> options = EngineOptions::from_environment();
  if (!options) return options.status();
  EngineDependencies dependencies = default_dependencies(*options);
  dependencies.render = [&templates](const KernelConfig& config) {
    return render(config, templates);
  };
  const auto engine = create_engine(*options, std::move(dependencies));
  if (!engine) return engine.status();
  const KernelSpec spec{.head_size = bug.head_size, .block_size = 16, .group_size = bug.group_size};
  return run_check(**engine, spec, check_options());
}

TEST_P(PlantedBugTest, FailsTheCheck) {
  const PlantedBug& bug = GetParam();
  TemplateSet templates = embedded_templates();
  std::string text(templates.at(bug.file));
  const size_t place = text.find(bug.right);
  ASSERT_NE(place, std::string::npos) << bug.file << " no longer has: " << bug.right;
  text.replace(place, std::string(bug.right).size(), bug.wrong);
  templates[bug.file] = text;

  const Result<CheckReport> report = check_with(templates, bug);
  // Either the emulator stops it with a report, or the comparison finds the results wrong; never a
  // failed compile.
  if (report) {
    EXPECT_FALSE(report->passed) << "the bug was not seen";
  } else {
    EXPECT_EQ(report.status().code(), StatusCode::kDriverError)
        << report.status().to_string() << report.status().detail();
  }
}

TEST_P(PlantedBugTest, TheSameShapePassesWithoutIt) {
  const Result<CheckReport> report = check_with(embedded_templates(), GetParam());
  ASSERT_TRUE(report) << report.status().to_string() << report.status().detail();
  EXPECT_TRUE(report->passed) << report->sentence;
}

INSTANTIATE_TEST_SUITE_P(All, PlantedBugTest, ::testing::ValuesIn(kBugs),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace pagejit
