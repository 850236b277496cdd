// The specs of the kernels of an indexer: their rules, their texts, their plans.
#include <gtest/gtest.h>

#include <string>

#include "generator/families.h"
#include "pagejit/indexer.h"

namespace pagejit {
namespace {

constexpr DataType kF32 = DataType::kFloat32;
constexpr DataType kE4M3 = DataType::kFloat8E4m3;

TEST(IndexKeySpecTest, EachRuleNamesItsFieldAndWhatIsLegal) {
  const auto message = [](auto change) {
    IndexKeyWriteSpec spec;
    change(spec);
    return validate(spec).message();
  };
  EXPECT_EQ(message([](auto&) {}), "");
  EXPECT_EQ(message([](auto& s) { s.dtype = kE4M3; }),
            "dtype 3: legal are f16 (0), bf16 (1) and f32 (2)");
  EXPECT_EQ(message([](auto& s) { s.head_size = 0; }), "head_size 0: must be in [4, 4096]");
  const std::string rule = ": must be a multiple of 4 that divides head_size (128)";
  for (const int size : {0, -4, 2, 96, 256}) {
    EXPECT_EQ(message([&](auto& s) { s.quant_block_size = size; }),
              "quant_block_size " + std::to_string(size) + rule);
  }
  EXPECT_EQ(message([](auto& s) { s.block_size = 65537; }),
            "block_size 65537: must be in [1, 65536]");
  EXPECT_EQ(message([](auto& s) { s.row_alignment = 1; }),
            "row_alignment 1: must be a power of two in [2, 16]");
  EXPECT_EQ(validate(IndexKeyGatherSpec{}).message(), "");
  EXPECT_EQ(validate(IndexKeyGatherSpec{.quant_block_size = 96}).message(),
            "quant_block_size 96" + rule);
  EXPECT_EQ(validate(IndexKeyGatherSpec{.row_alignment = 2}).message(),
            "row_alignment 2: must be a power of two in [4, 16]");
}

TEST(IndexKeySpecTest, CanonicalTextHasEveryFieldThatIsSet) {
  EXPECT_EQ(canonical_text(IndexKeyWriteSpec{}),
            "index_key_write dtype=bf16 head_size=128 quant_block_size=128 block_size=64");
  EXPECT_EQ(canonical_text(IndexKeyWriteSpec{kF32, 64, 32, 16, true, 8, true}),
            "index_key_write dtype=f32 head_size=64 quant_block_size=32 block_size=16 "
            "power_of_two_scale=1 row_alignment=8 debug=1");
  EXPECT_EQ(canonical_text(IndexKeyGatherSpec{64, 32, 16, 8, true}),
            "index_key_gather head_size=64 quant_block_size=32 block_size=16 row_alignment=8 "
            "debug=1");
}

TEST(IndexLogitsSpecTest, EachRuleNamesItsFieldAndWhatIsLegal) {
  const auto message = [](int num_heads, int head_size, int block_size) {
    return validate(IndexLogitsSpec{num_heads, head_size, block_size}).message();
  };
  EXPECT_EQ(message(64, 128, 0), "");
  EXPECT_EQ(message(8, 32, 65536), "");
  EXPECT_EQ(message(0, 128, 0), "num_heads 0: must be a multiple of 8 in [8, 128]");
  EXPECT_EQ(message(12, 128, 0), "num_heads 12: must be a multiple of 8 in [8, 128]");
  EXPECT_EQ(message(64, 144, 0), "head_size 144: must be a multiple of 32 in [32, 256]");
  EXPECT_EQ(message(64, 288, 0), "head_size 288: must be a multiple of 32 in [32, 256]");
  EXPECT_EQ(message(64, 128, -1), "block_size -1: must be in [0, 65536]");
  const auto config =
      plan_any(IndexLogitsSpec{.num_heads = 128, .head_size = 256}, *parse_target("sm_75"));
  EXPECT_EQ(config.status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(config.status().message(),
            "num_heads 128: with head_size 256 q takes 66064 bytes of shared memory; sm_75 has "
            "65536");
}

TEST(IndexLogitsSpecTest, CanonicalTextHasEveryFieldThatIsSet) {
  EXPECT_EQ(canonical_text(IndexLogitsSpec{}),
            "index_logits num_heads=64 head_size=128 block_size=0");
  EXPECT_EQ(canonical_text(IndexLogitsSpec{32, 64, 16, true, true}),
            "index_logits num_heads=32 head_size=64 block_size=16 clean=1 debug=1");
}

TEST(TopKSpecTest, RulesAndText) {
  EXPECT_EQ(validate(TopKSpec{}).message(), "");
  EXPECT_EQ(validate(TopKSpec{.row_alignment = 2}).message(),
            "row_alignment 2: must be a power of two in [4, 16]");
  EXPECT_EQ(canonical_text(TopKSpec{}), "top_k");
  EXPECT_EQ(canonical_text(TopKSpec{8, true}), "top_k row_alignment=8 debug=1");
}

// A page of one token is 132 bytes: pages that follow each other are then aligned to 4.
TEST(IndexKeySpecTest, AccessesFitPagesThatFollowEachOther) {
  const auto vector = [](const IndexKeyGatherSpec& spec) {
    const auto config = plan_any(spec, *parse_target("sm_90a"));
    return std::get<IndexKeyGatherConfig>(*config).constants.vector_bytes;
  };
  EXPECT_EQ(vector({}), 16);
  EXPECT_EQ(vector({.block_size = 1}), 4);
  EXPECT_EQ(vector({.block_size = 2}), 8);
  EXPECT_EQ(vector({.row_alignment = 8}), 8);
  EXPECT_EQ(vector({.head_size = 60, .quant_block_size = 60}), 4);
}

}  // namespace
}  // namespace pagejit
