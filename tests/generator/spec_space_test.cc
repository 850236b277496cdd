// The validator over the space of specs, without compiling: what it accepts can be planned, or is
// refused with the number that does not fit; what it refuses it refuses with a sentence.
#include "tests/generator/spec_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "generator/planner.h"
#include "tests/generator/spec_cover.h"

namespace pagejit {
namespace {

bool is_sentence(const Status& status) {
  const std::string& text = status.message();
  return (status.code() == StatusCode::kInvalidArgument ||
          status.code() == StatusCode::kUnsupported) &&
         (text.find(": must be ") != std::string::npos ||
          text.find("legal are") != std::string::npos);
}

// Every kind of spec with no switch, each one alone, each two, and all; shapes at random.
TEST(SpecSpaceTest, EveryCombinationIsLegalOrRefusedWithASentence) {
  SplitMix64 rng(1);
  int64_t num_legal = 0;
  int64_t num_refused = 0;
  const auto visit = [&](KernelSpec spec, uint32_t switches) {
    set_switches(spec, switches);
    draw_shape(rng, spec);
    if (rng.below(8) == 0) make_latent(rng, spec);
    const Status status = validate(spec);
    if (status) {
      ++num_legal;
    } else {
      ++num_refused;
      ASSERT_TRUE(is_sentence(status)) << status.to_string();
    }
  };
  for (uint64_t kind = 0; kind < kNumKinds; ++kind) {
    const KernelSpec spec = spec_of_kind(kind);
    visit(spec, 0);
    visit(spec, (1u << kNumSwitches) - 1);
    for (int i = 0; i < kNumSwitches; ++i) {
      visit(spec, 1u << i);
      for (int j = 0; j < i; ++j) visit(spec, 1u << i | 1u << j);
    }
  }
  EXPECT_GT(num_legal, 10000);
  EXPECT_GT(num_refused, 10000);
}

TEST(SpecSpaceTest, LegalSpecsSurviveTheirTextAndArePlannedOrRefusedWithANumber) {
  SplitMix64 rng(2);
  int num_planned = 0;
  for (int i = 0; i < 300; ++i) {
    const KernelSpec spec = i % 4 == 3 ? draw_legal_latent_spec(rng) : draw_legal_spec(rng);
    const Result<KernelSpec> parsed = parse_spec(canonical_text(spec));
    ASSERT_TRUE(parsed) << parsed.status().to_string();
    EXPECT_EQ(canonical_text(*parsed), canonical_text(spec));
    for (const char* name : {"sm_75", "sm_80", "sm_86", "sm_90a", "sm_120a", "host"}) {
      const Target target = *parse_target(name);
      const Status status = supports(spec, target);
      if (status) {
        ++num_planned;
      } else {
        EXPECT_EQ(status.code(), StatusCode::kUnsupported) << status.to_string();
        const bool has_reason =
            is_sentence(status) || status.message().find("no tile configuration") == 0;
        EXPECT_TRUE(has_reason) << status.to_string();
      }
    }
  }
  EXPECT_GT(num_planned, 300 * 3);
}

TEST(SpecCoverTest, HasEachTwoValuesThatLegalSpecsHaveTogether) {
  const Target target = *parse_target("sm_90a");
  const SpecCover cover = pairwise_cover(target);
  std::printf("%zu specs cover %zu pairs\n", cover.specs.size(), cover.num_pairs);
  EXPECT_LT(cover.specs.size(), 250u);
  EXPECT_GT(cover.num_pairs, 3000u);
  for (const KernelSpec& spec : cover.specs) {
    EXPECT_TRUE(supports(spec, target)) << canonical_text(spec);
  }
  SplitMix64 rng(6);
  for (int i = 0; i < 1000; ++i) {
    const KernelSpec spec = draw_legal_spec(rng);
    if (supports(spec, target)) {
      EXPECT_EQ(pairs_not_covered(cover, spec), 0u) << canonical_text(spec);
    }
  }
  EXPECT_GT(pairs_not_covered({}, KernelSpec{}), 0u);
}

}  // namespace
}  // namespace pagejit
