// The cache write: every layout, type and scale, against plain loops.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/sweep/cache_write_batch.h"
#include "tests/sweep/family_test.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kF32 = DataType::kFloat32;
constexpr DataType kE4M3 = DataType::kFloat8E4m3;
constexpr DataType kE5M2 = DataType::kFloat8E5m2;
constexpr DataType kInt8 = DataType::kInt8;
constexpr DataType kInt4 = DataType::kInt4;

class CacheWriteTest : public FamilyTest {
 protected:
  std::string write(const CacheWriteOptions& options) {
    return with_report(check_cache_write(engine(), session(), options));
  }
};

std::string type_name(DataType type) { return std::string(data_type_name(type)); }

// vLLM's table of reshape_and_cache: 42 tokens, 8 heads; blocks enough for them in place of 1,024
// and 10,000.
using ChunkedCase = std::tuple<int, int, DataType, bool>;
class ChunkedKeysTest : public CacheWriteTest, public testing::WithParamInterface<ChunkedCase> {};

TEST_P(ChunkedKeysTest, EveryElementIsWhereItBelongs) {
  const auto [head_size, block_size, type, quantised] = GetParam();
  for (const int64_t num_blocks : {64, 150}) {
    EXPECT_EQ(write({.spec = {.dtype = type,
                              .kv_dtype = quantised ? kE4M3 : type,
                              .scale = quantised ? KvScale::kTensor : KvScale::kNone,
                              .layout = KvLayout::kVllm,
                              .head_size = head_size,
                              .block_size = block_size},
                     .num_blocks = num_blocks}),
              "");
  }
}

std::string chunked_name(const testing::TestParamInfo<ChunkedCase>& test) {
  const auto [head_size, block_size, type, quantised] = test.param;
  return "d" + std::to_string(head_size) + "_b" + std::to_string(block_size) + "_" +
         type_name(type) + (quantised ? "_fp8" : "");
}

INSTANTIATE_TEST_SUITE_P(Vllm, ChunkedKeysTest,
                         testing::Combine(testing::Values(64, 80, 256), testing::Values(8, 16, 32),
                                          testing::Values(kBF16, kF32), testing::Bool()),
                         chunked_name);

// vLLM's table of reshape_and_cache_flash, less nvfp4: 21 tokens; f16 beside bf16 and f32, e5m2
// beside e4m3.
using StridedCase = std::tuple<int, int, DataType, DataType>;
class StridedTest : public CacheWriteTest, public testing::WithParamInterface<StridedCase> {};

TEST_P(StridedTest, EveryElementIsWhereItBelongs) {
  const auto [head_size, block_size, type, kv_type] = GetParam();
  const bool quantised = kv_type != type;
  for (const RowOrder order : {RowOrder::kNhd, RowOrder::kHnd}) {
    for (const KvScale scale : {KvScale::kTensor, KvScale::kHead}) {
      if (!quantised && scale == KvScale::kHead) continue;
      for (const int64_t num_blocks : {32, 75}) {
        EXPECT_EQ(write({.spec = {.dtype = type,
                                  .kv_dtype = kv_type,
                                  .scale = quantised ? scale : KvScale::kNone,
                                  .head_size = head_size,
                                  .block_size = block_size},
                         .num_tokens = 21,
                         .num_blocks = num_blocks,
                         .order = order}),
                  "");
      }
    }
  }
}

std::vector<StridedCase> strided_cases() {
  std::vector<StridedCase> cases;
  for (const int head_size : {64, 80, 256}) {
    for (const int block_size : {8, 16, 32}) {
      for (const DataType type : {kF16, kBF16, kF32}) {
        for (const DataType kv : {type, kE4M3, kE5M2}) {
          cases.emplace_back(head_size, block_size, type, kv);
        }
      }
    }
  }
  return cases;
}

std::string strided_name(const testing::TestParamInfo<StridedCase>& test) {
  const auto [head_size, block_size, type, kv] = test.param;
  return "d" + std::to_string(head_size) + "_b" + std::to_string(block_size) + "_" +
         type_name(type) + "_" + type_name(kv);
}

INSTANTIATE_TEST_SUITE_P(Vllm, StridedTest, testing::ValuesIn(strided_cases()), strided_name);

TEST_F(CacheWriteTest, ScalesPerTokenAndHeadAreFoundAndWritten) {
  for (const DataType kv : {kInt8, kInt4, kE4M3, kE5M2}) {
    for (const DataType type : {kF16, kBF16, kF32}) {
      for (const KvLayout layout : {KvLayout::kRows, KvLayout::kVllm}) {
        if (kv == kInt4 && layout == KvLayout::kVllm) continue;
        // Rows of 2, 9 and 32 vectors, and more than a warp's.
        for (const int head_size : {16, 144, 256, 1040}) {
          EXPECT_EQ(write({.spec = {.dtype = type,
                                    .kv_dtype = kv,
                                    .scale = KvScale::kTokenHead,
                                    .layout = layout,
                                    .head_size = head_size,
                                    .block_size = 4},
                           .num_tokens = 10,
                           .num_kv_heads = 3,
                           .num_blocks = 6}),
                    "")
              << type_name(type) << " to " << type_name(kv) << ", head size " << head_size;
        }
      }
    }
  }
}

TEST_F(CacheWriteTest, NoHeadIsDroppedHoweverManyThereAre) {
  for (const auto& [num_heads, head_size] :
       {std::pair{64, 128}, {128, 256}, {1, 4096}, {300, 64}, {7, 1}}) {
    for (const KvLayout layout : {KvLayout::kRows, KvLayout::kVllm}) {
      if (layout == KvLayout::kVllm && head_size % 8 != 0) continue;
      EXPECT_EQ(write({.spec = {.layout = layout, .head_size = head_size, .block_size = 2},
                       .num_tokens = 4,
                       .num_kv_heads = num_heads,
                       .num_blocks = 3}),
                "")
          << num_heads << " heads of " << head_size;
    }
  }
}

TEST_F(CacheWriteTest, RowsMayLieAnywhereAsFarAsTheAlignmentSays) {
  for (const DataType type : {kBF16, kF32}) {
    for (const DataType kv : {type, kE4M3}) {
      for (const int alignment : {16, 8, 4, 2}) {
        if (alignment < data_type_bytes(type)) continue;
        EXPECT_EQ(write({.spec = {.dtype = type,
                                  .kv_dtype = kv,
                                  .scale = kv == type ? KvScale::kNone : KvScale::kHead,
                                  .head_size = 72,
                                  .block_size = 5,
                                  .row_alignment = alignment},
                         .num_tokens = 11,
                         .num_kv_heads = 3,
                         .num_blocks = 9,
                         .order = RowOrder::kInterleaved,
                         .source_pad = alignment / data_type_bytes(type)}),
                  "")
            << type_name(type) << " to " << type_name(kv) << ", " << alignment;
      }
    }
  }
}

TEST_F(CacheWriteTest, CodesOfFourBitsMayLieAnywhereAsFarAsTheAlignmentSays) {
  for (const DataType type : {kF16, kF32}) {
    for (const int head_size : {2, 6, 72}) {
      for (const int alignment : {16, 8, 4}) {
        if (alignment < 2 * data_type_bytes(type)) continue;
        EXPECT_EQ(write({.spec = {.dtype = type,
                                  .kv_dtype = kInt4,
                                  .scale = KvScale::kTokenHead,
                                  .head_size = head_size,
                                  .block_size = 5,
                                  .row_alignment = alignment},
                         .num_tokens = 11,
                         .num_kv_heads = 3,
                         .num_blocks = 9,
                         .order = RowOrder::kInterleaved,
                         .source_pad = alignment / data_type_bytes(type)}),
                  "")
            << type_name(type) << ", head size " << head_size << ", " << alignment;
      }
    }
  }
}

// V's head size is its own: smaller or greater, with what is written beside it, found and rotated.
TEST_F(CacheWriteTest, ValuesMayHaveTheirOwnHeadSize) {
  for (const auto& [head_size, head_size_v] :
       {std::pair{192, 128}, {576, 512}, {64, 72}, {40, 1040}, {33, 1}}) {
    for (const DataType kv : {kBF16, kE4M3, kInt8, kInt4}) {
      if (kv == kInt4 && head_size % 2 != 0) continue;
      for (const RopeStyle rope : {RopeStyle::kNone, RopeStyle::kNeox}) {
        for (const RowOrder order : {RowOrder::kNhd, RowOrder::kHnd, RowOrder::kInterleaved}) {
          const bool rotates = rope != RopeStyle::kNone;
          EXPECT_EQ(write({.spec = {.kv_dtype = kv,
                                    .scale = kv == kBF16   ? KvScale::kNone
                                             : kv == kE4M3 ? KvScale::kHead
                                                           : KvScale::kTokenHead,
                                    .head_size = head_size,
                                    .head_size_v = head_size_v,
                                    .block_size = 4,
                                    .rope = rope,
                                    .rotary_dim = rotates ? head_size / 8 * 4 : 0},
                           .num_tokens = 9,
                           .num_kv_heads = 2,
                           .num_q_heads = rotates ? 3 : 0,
                           .num_blocks = 5,
                           .order = order,
                           .source_pad = head_size % 8 == 0 ? 8 : 0}),
                    "")
              << type_name(kv) << ", " << head_size << " and " << head_size_v;
        }
      }
    }
    if (head_size % 8 != 0) continue;
    EXPECT_EQ(write({.spec = {.layout = KvLayout::kVllm,
                              .head_size = head_size,
                              .head_size_v = head_size_v,
                              .block_size = 8},
                     .num_tokens = 9,
                     .num_kv_heads = 2,
                     .num_blocks = 3}),
              "")
        << head_size << " and " << head_size_v;
  }
}

TEST_F(CacheWriteTest, KeysAndQueriesAreRotated) {
  for (const RopeStyle rope : {RopeStyle::kNeox, RopeStyle::kInterleaved}) {
    for (const DataType type : {kF16, kBF16, kF32}) {
      for (const DataType cos_sin : {kF32, type}) {
        for (const int rotary_dim : {128, 64, 20, 2}) {
          for (const DataType kv : {type, kE4M3, kInt8, kInt4}) {
            // A pair of codes is one thread's.
            if (kv == kInt4 && rope == RopeStyle::kNeox && rotary_dim % 4 != 0) continue;
            EXPECT_EQ(write({.spec = {.dtype = type,
                                      .kv_dtype = kv,
                                      .scale = kv == type    ? KvScale::kNone
                                               : kv == kE4M3 ? KvScale::kHead
                                                             : KvScale::kTokenHead,
                                      .head_size = 128,
                                      .block_size = 8,
                                      .rope = rope,
                                      .rotary_dim = rotary_dim,
                                      .cos_sin_dtype = cos_sin},
                             .num_tokens = 9,
                             .num_kv_heads = 2,
                             .num_q_heads = 5,
                             .num_blocks = 4,
                             .source_pad = 8}),
                      "")
                << type_name(type) << " to " << type_name(kv) << ", rotary_dim " << rotary_dim;
          }
        }
      }
    }
  }
}

TEST_F(CacheWriteTest, RotationWithoutQueriesAndWithManyWorks) {
  for (const int num_q_heads : {0, 71}) {
    EXPECT_EQ(write({.spec = {.layout = KvLayout::kVllm,
                              .head_size = 80,
                              .rope = RopeStyle::kNeox,
                              .rotary_dim = 32},
                     .num_tokens = 6,
                     .num_kv_heads = 1,
                     .num_q_heads = num_q_heads,
                     .num_blocks = 2}),
              "");
  }
}

}  // namespace
}  // namespace pagejit
