// Bugs planted in the templates of the families beside attention: each must be found by the checks
// that the families' tests are made of, and none where there is none.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "generator/renderer.h"
#include "runtime/engine/dependencies.h"
#include "tests/sweep/merge_batch.h"
#include "tests/sweep/test_device.h"

namespace pagejit {
namespace {

enum class Family { kMergeStates };

struct PlantedBug {
  const char* name;
  Family family;
  const char* file;
  const char* from;  // stands once in the file
  const char* to;
};

constexpr const char* kMerge = "merge_states/merge_states.cuh";
constexpr const char* kElements = "elements/elements.cuh";

const PlantedBug kBugs[] = {
    {"PositiveInfinityIsAWeight", Family::kMergeStates, kMerge,
     "value == kInfinity ? -kInfinity : value", "value"},
    {"StatesWithoutKeysAreRead", Family::kMergeStates, kMerge, "if (weight == 0.0f) continue;", ""},
    {"RowsWithoutKeysAreNaN", Family::kMergeStates, kMerge, "sum == 0.0f ? 0.0f : ", ""},
    {"UnmergedTokensAreMerged", Family::kMergeStates, kMerge,
     "token < p.num_merged_tokens ? 0 : p.num_states - 1", "0"},
    {"UnmergedTokensTakeTheFirstState", Family::kMergeStates, kMerge, "state_end(p.num_states)",
     "state_end(token < p.num_merged_tokens ? p.num_states : 1)"},
    {"LastTokenOfTheCtaIsWrittenTwice", Family::kMergeStates, kMerge,
     "row >= kRows || token >= params.num_tokens", "token >= params.num_tokens + 1"},
    {"HeadsShareTheirLse", Family::kMergeStates, kMerge, "+ head * p.lse_stride_head", ""},
    {"LseIsBase2", Family::kMergeStates, kMerge, "dev::log2_approx(sum) * kLn2",
     "dev::log2_approx(sum)"},
    {"OddElementsAreDropped", Family::kMergeStates, kElements,
     "i + 1 < kCount ? values[i + 1 < kCount ? i + 1 : i] : 0.0f", "values[i]"},
    {"UpperHalvesAreTheLower", Family::kMergeStates, kElements, "words[i / 2] >> (i % 2 * 16)",
     "words[i / 2]"},
};

class PlantedFamilyBugTest : public EmulatorTest {
 protected:
  // An engine whose kernels are rendered with `bug`; null for none.
  std::shared_ptr<Engine> make_engine(const PlantedBug* bug) {
    auto templates = std::make_shared<TemplateSet>(embedded_templates());
    if (bug != nullptr) {
      const std::string_view original = templates->at(bug->file);
      const size_t at = original.find(bug->from);
      EXPECT_NE(at, std::string_view::npos) << bug->file << " has no \"" << bug->from << "\"";
      if (at == std::string_view::npos) return nullptr;
      EXPECT_EQ(original.find(bug->from, at + 1), std::string_view::npos)
          << bug->file << " has \"" << bug->from << "\" twice";
      changed_ = std::string(original.substr(0, at)) + bug->to +
                 std::string(original.substr(at + std::string_view(bug->from).size()));
      templates->at(bug->file) = changed_;
    }
    EngineOptions options = device().options;
    options.disk_cache = false;
    EngineDependencies dependencies = default_dependencies(options);
    dependencies.render = [templates](const AnyConfig& config) {
      return render(config, *templates);
    };
    Result<std::shared_ptr<Engine>> made = create_engine(options, dependencies);
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    return made ? *made : nullptr;
  }

  // What is wrong with the engine's kernels of a family; empty if nothing was found.
  std::string find_bug(Engine& bugged, Family family) {
    switch (family) {
      case Family::kMergeStates:
        return find_merge_bug(bugged);
    }
    return "";
  }

 private:
  std::string find_merge_bug(Engine& bugged) {
    const MergeStatesSpec specs[] = {
        {DataType::kBFloat16, DataType::kBFloat16, 72},
        {DataType::kFloat16, DataType::kFloat32, 33, true},
    };
    for (const MergeStatesSpec& spec : specs) {
      // A kernel that does not compile shows nothing; it fails the test.
      EXPECT_TRUE(bugged.prepare(spec).is_ok());
      const std::string fault = check_merge(bugged, session(),
                                            {.spec = spec,
                                             .num_states = 3,
                                             .num_tokens = 50,
                                             .num_heads = 3,
                                             .num_merged_tokens = 40,
                                             .padded = true});
      if (!fault.empty()) return fault;
    }
    return "";
  }

  std::string changed_;
};

TEST_F(PlantedFamilyBugTest, NothingIsFoundInTheRealTemplates) {
  const std::shared_ptr<Engine> engine = make_engine(nullptr);
  EXPECT_EQ(find_bug(*engine, Family::kMergeStates), "");
}

class EachPlantedFamilyBugTest : public PlantedFamilyBugTest,
                                 public testing::WithParamInterface<PlantedBug> {};

TEST_P(EachPlantedFamilyBugTest, IsFound) {
  const std::shared_ptr<Engine> engine = make_engine(&GetParam());
  ASSERT_NE(engine, nullptr);
  const std::string found = find_bug(*engine, GetParam().family);
  EXPECT_NE(found, "");
  RecordProperty("found", found);
}

INSTANTIATE_TEST_SUITE_P(Bugs, EachPlantedFamilyBugTest, testing::ValuesIn(kBugs),
                         [](const testing::TestParamInfo<PlantedBug>& test) {
                           return std::string(test.param.name);
                         });

}  // namespace
}  // namespace pagejit
