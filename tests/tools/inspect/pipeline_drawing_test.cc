#include "tools/inspect/pipeline_drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/families.h"
#include "generator/spec_parser.h"

namespace pagejit::inspect {
namespace {

using testing::HasSubstr;
using testing::Not;

AnyConfig config_of(const char* spec, const char* target = "sm_90a") {
  const Result<AnySpec> parsed = parse_any_spec(spec);
  EXPECT_TRUE(parsed) << parsed.status().to_string();
  const Result<AnyConfig> config = plan_any(*parsed, *parse_target(target));
  EXPECT_TRUE(config) << config.status().to_string();
  return *config;
}

TEST(PipelineDrawingTest, ATileIsAskedForAsManyRoundsAheadAsTheRingHasStagesLessOne) {
  AnyConfig config = config_of("decode head_size=128 block_size=16 group_size=4");
  AttentionConfig& attention = std::get<KernelConfig>(config).attention;
  attention.num_stages = 3;
  attention.row_warps = 1;
  EXPECT_THAT(draw_pipeline(config), HasSubstr("round   -2    -1    0     1     2     3\n"
                                               "tile 0  C     ~     QSP\n"
                                               "tile 1        C     ~     QSP\n"
                                               "tile 2              C     ~     QSP\n"
                                               "tile 3                    C     ~     QSP\n"));
  EXPECT_THAT(draw_pipeline(config), HasSubstr("ask for K(t+2), V(t+2)"));
  EXPECT_THAT(draw_pipeline(config), HasSubstr("no barrier of the CTA"));
  attention.num_stages = 2;
  EXPECT_THAT(draw_pipeline(config), HasSubstr("round   -1    0     1     2     3\n"
                                               "tile 0  C     QSP\n"));
  attention.num_stages = 20;
  EXPECT_THAT(draw_pipeline(config), HasSubstr("drawn with 8 stages instead of 20"));
}

TEST(PipelineDrawingTest, SizesAreThoseOfTheConfiguration) {
  const AnyConfig config = config_of("decode head_size=128 block_size=16 group_size=4");
  const AttentionConfig& c = std::get<KernelConfig>(config).attention;
  const std::string text = draw_pipeline(config);
  EXPECT_THAT(text, HasSubstr(std::to_string(c.num_stages) + " stages of 8,704 B"));
  // (stages - 1) x tokens of a round x 512 bytes.
  ASSERT_EQ(c.num_stages, 3);
  ASSERT_EQ(c.token_groups * c.group_tokens, 64);
  EXPECT_THAT(text, HasSubstr("2 tiles of each group are under way: 65,536 B of K and V per CTA"));
}

TEST(PipelineDrawingTest, WarpsThatShareTokensMeet) {
  EXPECT_THAT(draw_pipeline(config_of("many head_size=128 block_size=16 group_size=4 causal=1")),
              HasSubstr("barrier of the CTA"));
}

TEST(PipelineDrawingTest, WithoutAsyncCopiesNothingIsUnderWay) {
  const std::string text = draw_pipeline(
      config_of("decode q=f16 kv=f16 out=f16 head_size=128 block_size=16 group_size=4", "sm_75"));
  EXPECT_THAT(text, HasSubstr("tile 0  CQSP\n"));
  EXPECT_THAT(text, HasSubstr("nothing is under way"));
  EXPECT_THAT(text, Not(HasSubstr("ask for")));
}

TEST(PipelineDrawingTest, LatentRowsAreCopiedOnce) {
  const std::string text = draw_pipeline(
      config_of("decode head_size=576 head_size_v=512 block_size=64 group_size=16 latent=1"));
  EXPECT_THAT(text, HasSubstr("K's rows hold V"));
  EXPECT_THAT(text, Not(HasSubstr("wait for V")));
}

TEST(PipelineDrawingTest, OtherFamiliesHaveNoRing) {
  for (const std::string_view family : family_names()) {
    if (family == "attention") continue;
    const Result<AnyConfig> config = plan_any(*default_spec(family), *parse_target("sm_90a"));
    if (!config) continue;  // its defaults are no whole spec
    EXPECT_THAT(draw_pipeline(*config), HasSubstr("no ring of stages")) << family;
  }
}

}  // namespace
}  // namespace pagejit::inspect
