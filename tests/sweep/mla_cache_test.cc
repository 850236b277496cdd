// The latent cache of MLA: its rows in every format, rotated or not, against plain loops.
#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/sweep/family_test.h"
#include "tests/sweep/mla_cache_batch.h"
#include "tests/sweep/sweep_main.h"
#include "tools/reference/random.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kF32 = DataType::kFloat32;
constexpr MlaFormat kFormats[] = {MlaFormat::kPlain, MlaFormat::kE4m3, MlaFormat::kDsMla};

class MlaCacheTest : public FamilyTest {
 protected:
  std::string write(const MlaWriteOptions& options) {
    const std::string fault = check_mla_cache_write(engine(), session(), options);
    return fault.empty() ? fault : with_report(canonical_text(options.spec) + ": " + fault);
  }
};

// vLLM's table of concat_and_cache_mla: 42 tokens, 8 blocks of 16; f16 beside its types. Here and
// below each slot is compared with its text, and the bytes between them with what they were.
TEST_F(MlaCacheTest, RowsAreWhereTheyBelong) {
  for (const int rank : {256, 512}) {
    for (const DataType type : {kF16, kBF16, kF32}) {
      for (const MlaFormat format : {MlaFormat::kPlain, MlaFormat::kE4m3}) {
        for (const bool with_extremes : {false, true}) {
          EXPECT_EQ(
              write({.spec =
                         {.dtype = type, .format = format, .kv_lora_rank = rank, .block_size = 16},
                     .with_extremes = with_extremes}),
              "");
        }
      }
    }
  }
}

// vLLM's table of the row of 656 bytes; f16 beside bf16, other blocks, odd counts of tokens.
TEST_F(MlaCacheTest, RowsOf656BytesAreWhatTheirTextSays) {
  for (const DataType type : {kBF16, kF16}) {
    for (const int block_size : {16, 64, 1, 7}) {
      for (const bool with_extremes : {false, true}) {
        for (const int num_tokens : {42, 1, 17}) {
          EXPECT_EQ(
              write({.spec = {.dtype = type, .format = MlaFormat::kDsMla, .block_size = block_size},
                     .num_tokens = num_tokens,
                     .num_blocks = 43 / block_size + 7,
                     .with_extremes = with_extremes}),
              "");
        }
      }
    }
  }
}

TEST_F(MlaCacheTest, RowsOfAnySizeAreWritten) {
  for (const auto& [rank, rope_dim] :
       {std::pair{512, 0}, {16, 16}, {528, 48}, {128, 112}, {144, 0}, {33, 7}, {4096, 4096}}) {
    for (const MlaFormat format : {MlaFormat::kPlain, MlaFormat::kE4m3}) {
      EXPECT_EQ(write({.spec = {.format = format,
                                .kv_lora_rank = rank,
                                .qk_rope_head_dim = rope_dim,
                                .block_size = 5},
                       .num_tokens = 13,
                       .num_blocks = 4}),
                "");
    }
  }
}

TEST_F(MlaCacheTest, RowsMayLieAnywhereAsFarAsTheAlignmentSays) {
  for (const DataType type : {kBF16, kF32}) {
    for (const MlaFormat format : kFormats) {
      for (const int alignment : {16, 8, 4, 2}) {
        const MlaCacheWriteSpec spec{
            .dtype = type, .format = format, .block_size = 3, .row_alignment = alignment};
        if (!validate(spec)) continue;
        const int elements = alignment / data_type_bytes(type);
        EXPECT_EQ(write({.spec = spec,
                         .num_tokens = 11,
                         .num_blocks = 9,
                         .source_pad = elements,
                         .cache_pad = format == MlaFormat::kDsMla ? alignment : elements}),
                  "");
      }
    }
  }
}

// vLLM's table of rotary_embedding_mla_cache_fused: 11 and 42 tokens, 128 heads, 64 blocks; here
// fewer blocks. Without --all each kernel has one of its block sizes.
using FusedCase = std::tuple<DataType, RopeStyle, int, MlaFormat, int>;
class FusedRopeTest : public MlaCacheTest, public testing::WithParamInterface<FusedCase> {};

TEST_P(FusedRopeTest, LatentRowsAndQueriesAreRotated) {
  const auto [type, rope, rope_dim, format, block_size] = GetParam();
  for (const int num_tokens : {11, 42}) {
    EXPECT_EQ(write({.spec = {.dtype = type,
                              .format = format,
                              .qk_rope_head_dim = rope_dim,
                              .block_size = block_size,
                              .rope = rope,
                              .cos_sin_dtype = type},
                     .num_tokens = num_tokens,
                     .num_q_heads = 128,
                     .num_blocks = 64 / block_size + 2}),
              "");
  }
}

std::vector<FusedCase> fused_cases() {
  constexpr int kBlockSizes[] = {16, 64, 256};
  std::vector<FusedCase> cases;
  size_t number = 0;
  for (const DataType type : {kF16, kBF16, kF32}) {
    for (const RopeStyle rope : {RopeStyle::kNeox, RopeStyle::kInterleaved}) {
      for (const int rope_dim : {64, 128}) {
        for (const MlaFormat format : kFormats) {
          const MlaCacheWriteSpec spec{
              .dtype = type, .format = format, .qk_rope_head_dim = rope_dim};
          if (!validate(spec)) continue;
          ++number;
          for (size_t i = 0; i < 3; ++i) {
            if (!run_all() && i != number % 3) continue;
            cases.emplace_back(type, rope, rope_dim, format, kBlockSizes[i]);
          }
        }
      }
    }
  }
  return cases;
}

std::string fused_name(const testing::TestParamInfo<FusedCase>& test) {
  const auto [type, rope, rope_dim, format, block_size] = test.param;
  constexpr const char* kNames[] = {"plain", "fp8", "ds_mla"};
  return std::string(data_type_name(type)) + (rope == RopeStyle::kNeox ? "_neox" : "_interleaved") +
         std::to_string(rope_dim) + "_" + kNames[static_cast<int>(format)] + "_b" +
         std::to_string(block_size);
}

INSTANTIATE_TEST_SUITE_P(Vllm, FusedRopeTest, testing::ValuesIn(fused_cases()), fused_name);

TEST_F(MlaCacheTest, RotationsOfOtherSizesAndAlignmentsWork) {
  for (const RopeStyle rope : {RopeStyle::kNeox, RopeStyle::kInterleaved}) {
    for (const auto& [rope_dim, alignment] : {std::pair{2, 16}, {20, 8}, {48, 4}, {512, 16}}) {
      for (const int num_q_heads : {0, 3}) {
        EXPECT_EQ(write({.spec = {.format = MlaFormat::kE4m3,
                                  .kv_lora_rank = 100,
                                  .qk_rope_head_dim = rope_dim,
                                  .block_size = 5,
                                  .rope = rope,
                                  .row_alignment = alignment},
                         .num_tokens = 9,
                         .num_q_heads = num_q_heads,
                         .source_pad = alignment / 2,
                         .cache_pad = alignment / 2}),
                  "");
      }
    }
  }
}

// Of one layer as of many, each with its own tokens, slots, cache and scale.
TEST_F(MlaCacheTest, ManyLayersAreWrittenInOneLaunch) {
  for (const MlaFormat format : kFormats) {
    for (const bool debug : {false, true}) {
      for (const int num_layers : {1, 3, 61}) {
        EXPECT_EQ(
            write({.spec = {.format = format, .block_size = 7, .grouped = true, .debug = debug},
                   .num_tokens = 13,
                   .num_blocks = 3,
                   .source_pad = 8,
                   .cache_pad = 16,
                   .num_layers = num_layers}),
            "");
      }
    }
  }
  EXPECT_EQ(write({.spec = {.dtype = kF32, .qk_rope_head_dim = 0, .grouped = true},
                   .num_blocks = 1,
                   .num_layers = 4}),
            "");
}

TEST_F(MlaCacheTest, NanAndInfinityTurnAsTheySay) {
  for (const DataType type : {kF16, kBF16, kF32}) {
    for (const RopeStyle rope : {RopeStyle::kNeox, RopeStyle::kInterleaved}) {
      const bool is_wide = type == kF32;
      EXPECT_EQ(write({.spec = {.dtype = type,
                                .format = is_wide ? MlaFormat::kPlain : MlaFormat::kDsMla,
                                .rope = rope},
                       .with_extremes = true}),
                "");
    }
  }
}

// Legal specs at random.
TEST_F(MlaCacheTest, AnyLegalSpecIsRight) {
  constexpr DataType kTypes[] = {kF16, kBF16, kF32};
  constexpr int kRanks[] = {512, 1, 16, 40, 128, 192, 255, 576};
  constexpr int kRopeDims[] = {64, 0, 1, 6, 16, 32, 72, 128};
  SplitMix64 rng(11);
  const auto one_of = [&](const auto& list) {
    return list[static_cast<size_t>(rng.below(static_cast<int64_t>(std::size(list))))];
  };
  for (int i = 0; i < (run_all() ? 400 : 24);) {
    MlaCacheWriteSpec spec;
    spec.dtype = one_of(kTypes);
    spec.format = one_of(kFormats);
    const bool is_fixed = spec.format == MlaFormat::kDsMla;
    spec.kv_lora_rank = is_fixed ? 512 : one_of(kRanks);
    spec.qk_rope_head_dim = is_fixed ? 64 : one_of(kRopeDims);
    spec.block_size = static_cast<int>(1 + rng.below(33));
    spec.rope = static_cast<RopeStyle>(rng.below(3));
    spec.cos_sin_dtype = spec.rope == RopeStyle::kNone ? kF32 : one_of(kTypes);
    spec.grouped = rng.below(3) == 0;
    spec.row_alignment = 2 << rng.below(4);
    spec.debug = rng.below(4) == 0;
    if (!validate(spec)) continue;
    ++i;
    const int num_tokens = static_cast<int>(1 + rng.below(30));
    // Pads that keep whole vectors, in the source and in the cache.
    const int pad = spec.row_alignment * static_cast<int>(rng.below(3));
    EXPECT_EQ(write({.spec = spec,
                     .num_tokens = num_tokens,
                     .num_q_heads = static_cast<int>(rng.below(6)),
                     .num_blocks = num_tokens / spec.block_size + 2,
                     .source_pad = pad,
                     .cache_pad = pad,
                     .num_layers = spec.grouped ? static_cast<int>(1 + rng.below(4)) : 0,
                     .with_extremes = rng.below(2) == 0,
                     .seed = rng.next()}),
              "");
  }
}

}  // namespace
}  // namespace pagejit
