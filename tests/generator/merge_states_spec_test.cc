// The spec of merge_states kernels: its rules and its text.
#include <gtest/gtest.h>

#include <string>

#include "generator/merge_states.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kF32 = DataType::kFloat32;

TEST(MergeStatesSpecTest, EachRuleNamesItsFieldAndWhatIsLegal) {
  const auto message = [](const MergeStatesSpec& spec) { return validate(spec).message(); };
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message({kF32, kF16, 4096, true}), "");
  EXPECT_EQ(message({static_cast<DataType>(9), kF16, 64}),
            "in_dtype 9: legal are f16 (0), bf16 (1) and f32 (2)");
  EXPECT_EQ(message({kF16, static_cast<DataType>(9), 64}),
            "out_dtype 9: legal are f16 (0), bf16 (1) and f32 (2)");
  EXPECT_EQ(message({kF16, kF16, 0}), "head_size 0: must be in [1, 4096]");
  EXPECT_EQ(message({kF16, kF16, 4097}), "head_size 4097: must be in [1, 4096]");
}

TEST(MergeStatesSpecTest, CanonicalTextHasEveryField) {
  EXPECT_EQ(canonical_text(MergeStatesSpec{}), "merge_states in=bf16 out=bf16 head_size=128");
  EXPECT_EQ(canonical_text(MergeStatesSpec{kF16, kF32, 72, true}),
            "merge_states in=f16 out=f32 head_size=72 listed=1");
}

}  // namespace
}  // namespace pagejit
