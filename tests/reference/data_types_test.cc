// Batches and references of all data types: what holds for each legal combination.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "tests/reference/element_types.h"
#include "tests/reference/paged_and_dense.h"
#include "tools/reference/narrow_float.h"

namespace pagejit {
namespace {

constexpr CacheLayout kLayouts[] = {CacheLayout::kNhd, CacheLayout::kHnd, CacheLayout::kInterleaved,
                                    CacheLayout::kLayered, CacheLayout::kPadded};

AttentionBatch make(const BatchOptions& options) {
  Result<AttentionBatch> batch = make_attention_batch(options);
  EXPECT_TRUE(batch.is_ok()) << batch.status().to_string();
  return std::move(batch).value();
}

// Head sizes of 24 bytes and of 32, blocks of 5 tokens: nothing is aligned by itself.
BatchOptions make_options(const ElementTypes& types, int head_size) {
  BatchOptions options;
  options.spec = {.head_size = head_size, .block_size = 5, .group_size = 3};
  types.put_into(options.spec);
  options.num_kv_heads = 3;
  options.seq_lens = {6, 0, 11, 5};
  return options;
}

TEST(ElementTypesTest, AllThatTheSpecServesAreTested) {
  // f16 and bf16: q the same or f32; f32: q the same. The two of 8 bits: q of four types. out of
  // four.
  EXPECT_EQ(legal_types().size(), static_cast<size_t>((2 * 2 + 1 + 2 * 4) * 4));
  EXPECT_EQ(legal_inputs().size(), 13u);
}

class DataTypesTest : public testing::TestWithParam<ElementTypes> {};

TEST_P(DataTypesTest, PagedEqualsDense) {
  for (const bool per_head_scales : {false, true}) {
    for (const LogitRegime logits : {LogitRegime::kNormal, LogitRegime::kMixed}) {
      for (const CacheLayout layout : kLayouts) {
        BatchOptions options = make_options(GetParam(), 24);
        options.per_head_scales = per_head_scales;
        options.logits = logits;
        options.layout = layout;
        expect_paged_equals_dense(make(options));
      }
    }
  }
}

TEST_P(DataTypesTest, AllThatIsNotUsedIsNan) {
  for (const CacheLayout layout : kLayouts) {
    BatchOptions options = make_options(GetParam(), 24);
    options.layout = layout;
    const AttentionBatch batch = make(options);
    int64_t num_values = 0;
    int64_t num_elements = 0;
    for (const KvAllocation& allocation : batch.allocations) {
      EXPECT_EQ(allocation.data.type(), options.spec.kv_dtype);
      for (int64_t i = 0; i < allocation.data.size(); ++i) {
        if (!std::isnan(allocation.data.at(i))) ++num_values;
      }
      num_elements += allocation.data.size();
    }
    EXPECT_EQ(num_values, (6 + 11 + 5) * 3 * 24 * 2) << cache_layout_name(layout);
    EXPECT_EQ(num_values * data_type_bytes(options.spec.kv_dtype), batch.valid_kv_bytes());
    EXPECT_LT(num_values, num_elements);
    int64_t num_queries = 0;
    for (int64_t i = 0; i < batch.q.size(); ++i) num_queries += std::isnan(batch.q.at(i)) ? 0 : 1;
    EXPECT_EQ(num_queries, 4 * 9 * 24);
    for (int64_t i = 0; i < batch.out.size(); ++i) ASSERT_TRUE(std::isnan(batch.out.at(i)));
  }
}

TEST_P(DataTypesTest, StartsAndRowsAreAlignedAsTheContractSays) {
  for (const int head_size : {24, 32}) {
    for (const CacheLayout layout : kLayouts) {
      BatchOptions options = make_options(GetParam(), head_size);
      options.layout = layout;
      const AttentionBatch batch = make(options);
      const AttentionArgs args = batch.host_args();
      for (const void* start : {args.q, args.k_cache, args.v_cache}) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(start) % 16, 0u) << cache_layout_name(layout);
      }
      EXPECT_EQ(batch.out.offset_bytes(batch.out_index(0, 0)) % 256, 144);
      for (int64_t stride : {batch.q_stride_token, batch.q_stride_head, batch.out_stride_token,
                             batch.out_stride_head, args.q_stride_token, args.q_stride_head}) {
        EXPECT_EQ(stride % 8, 0);
      }
      const int bytes = data_type_bytes(GetParam().kv);
      const int alignment = head_size * bytes % 16 == 0 ? 16 : 8;
      for (const KvStrides& strides : {args.k_strides, args.v_strides}) {
        for (int64_t stride : {strides.block, strides.token, strides.head}) {
          EXPECT_EQ(stride * bytes % alignment, 0) << cache_layout_name(layout);
        }
      }
    }
  }
}

TEST_P(DataTypesTest, ScalesAreThereWhereElementsHave8Bits) {
  const bool has_q_scale = data_type_bytes(GetParam().q) == 1;
  for (const bool per_head_scales : {false, true}) {
    BatchOptions options = make_options(GetParam(), 24);
    options.per_head_scales = per_head_scales;
    const AttentionBatch batch = make(options);
    const AttentionArgs args = batch.host_args();
    EXPECT_EQ(args.q_scale != nullptr, has_q_scale);
    EXPECT_EQ(args.k_scale != nullptr, GetParam().has_8_bit_kv());
    EXPECT_EQ(args.v_scale != nullptr, GetParam().has_8_bit_kv());
    EXPECT_EQ(args.kv_scale_stride != 0, GetParam().has_8_bit_kv() && per_head_scales);
    std::set<float> scales;
    for (const std::vector<float>* all : {&batch.q_scale, &batch.k_scale, &batch.v_scale}) {
      for (const float scale : *all) {
        if (std::isnan(scale)) continue;
        EXPECT_GT(scale, 0);
        int exponent = 0;
        EXPECT_NE(std::frexp(scale, &exponent), 0.5f) << "a power of two hides roundings";
        scales.insert(scale);
      }
    }
    const size_t of_kv = GetParam().has_8_bit_kv() ? (per_head_scales ? 6 : 2) : 0;
    EXPECT_EQ(scales.size(), of_kv + (has_q_scale ? 1 : 0)) << "all are different";
  }
}

// As ScoresLieInTheirRegimeAndAreExactInFloat32 for 16 bits, of the elements without their scales.
TEST_P(DataTypesTest, LargeScoresAreExactAndInTheirRegime) {
  for (const int head_size : {16, 72, 128, 256}) {
    for (const LogitRegime regime : {LogitRegime::kHigh, LogitRegime::kLow, LogitRegime::kMixed}) {
      BatchOptions options = make_options(GetParam(), head_size);
      options.seq_lens = {40};
      options.logits = regime;
      options.per_head_scales = true;
      const AttentionBatch batch = make(options);
      for (int kv_head = 0; kv_head < 3; ++kv_head) {
        const int64_t q = batch.q_index(0, kv_head * 3);
        const ElementScales scales = batch.scales_of(kv_head);
        double least = std::numeric_limits<double>::infinity();
        double greatest = 0;
        for (int token = 0; token < 40; ++token) {
          const float* k = batch.dense_k[0].data() + (kv_head * 40 + token) * head_size;
          double exact = 0;
          float forward = 0;
          float backward = 0;
          for (int i = 0; i < head_size; ++i) {
            exact += static_cast<double>(batch.q.at(q + i)) * k[i];
            forward += batch.q.at(q + i) * k[i];
            backward += batch.q.at(q + head_size - 1 - i) * k[head_size - 1 - i];
            ASSERT_EQ(round_to_type(compute_type(options.spec), batch.q.at(q + i)),
                      batch.q.at(q + i));
          }
          ASSERT_EQ(exact, static_cast<double>(forward));
          ASSERT_EQ(exact, static_cast<double>(backward));
          const double score = exact * scales.q * scales.k * batch.scale;
          ASSERT_GT(std::abs(score), 5e4);
          ASSERT_LT(std::abs(score), 6e4);
          if (regime != LogitRegime::kMixed) {
            ASSERT_EQ(score > 0, regime == LogitRegime::kHigh);
          }
          least = std::min(least, std::abs(score));
          greatest = std::max(greatest, std::abs(score));
        }
        EXPECT_GT(greatest - least, 1) << "scores must differ, or softmax is a mean";
        EXPECT_LT(greatest - least, 20) << "scores must be near, or softmax picks one token";
      }
    }
  }
}

TEST_P(DataTypesTest, NormalScoresHaveVarianceOne) {
  BatchOptions options = make_options(GetParam(), 128);
  options.seq_lens = {1000};
  const AttentionBatch batch = make(options);
  const ElementScales scales = batch.scales_of(0);
  double sum_of_squares = 0;
  for (int token = 0; token < 1000; ++token) {
    double dot = 0;
    for (int i = 0; i < 128; ++i) {
      dot += static_cast<double>(batch.q.at(batch.q_index(0, 0) + i)) *
             batch.dense_k[0][token * 128 + i];
    }
    sum_of_squares += std::pow(dot * scales.q * scales.k * batch.scale, 2);
  }
  // One element of eight is small where there are 8 bits, which takes up to 1/8 each of q and K.
  EXPECT_NEAR(sum_of_squares / 1000, data_type_bytes(GetParam().kv) == 1 ? 0.85 : 1, 0.5);
}

INSTANTIATE_TEST_SUITE_P(Types, DataTypesTest, testing::ValuesIn(legal_types()),
                         element_types_name);

TEST(ElementTypesTest, ElementsOf8BitsTakeAllOfTheirRange) {
  for (const ElementTypes& types : legal_inputs()) {
    if (!types.has_8_bit_kv()) continue;
    BatchOptions options = make_options(types, 128);
    options.seq_lens = {200};
    const AttentionBatch batch = make(options);
    for (const KvAllocation& allocation : batch.allocations) {
      std::set<uint32_t> codes;
      float greatest = 0;
      for (int64_t i = 0; i < allocation.data.size(); ++i) {
        const float value = allocation.data.at(i);
        if (std::isnan(value)) continue;
        codes.insert(allocation.data.code(i));
        greatest = std::max(greatest, std::abs(value));
      }
      // All but the last few, which the margin of the scale leaves out.
      EXPECT_GT(codes.size(), 230u);
      EXPECT_TRUE(codes.contains(0x01) && codes.contains(0x81)) << "the least subnormal numbers";
      EXPECT_GT(greatest, greatest_value(types.kv) / 2);
    }
  }
}

// A spec with a scale for each token, and one with values of another size.
BatchOptions make_token_options(int alignment, CacheLayout layout, DataType kv = DataType::kInt8) {
  BatchOptions options;
  options.spec = {.kv_dtype = kv,
                  .head_size = 24,
                  .block_size = 5,
                  .group_size = 3,
                  .token_scales = true,
                  .kv_alignment = alignment};
  options.num_kv_heads = 3;
  options.seq_lens = {6, 0, 11, 5};
  options.layout = layout;
  return options;
}

TEST(TokenScalesTest, PagedEqualsDense) {
  for (const int alignment : {16, 8, 4}) {
    for (const LogitRegime logits : {LogitRegime::kNormal, LogitRegime::kMixed}) {
      for (const CacheLayout layout : kLayouts) {
        for (const DataType kv : {DataType::kInt8, DataType::kInt4}) {
          BatchOptions options = make_token_options(alignment, layout, kv);
          options.logits = logits;
          options.share_prefix = true;
          expect_paged_equals_dense(make(options));
        }
      }
    }
  }
}

TEST(TokenScalesTest, UnusedScalesAreNanAndStartsAndRowsAreAligned) {
  for (const int alignment : {16, 8, 4}) {
    for (const CacheLayout layout : kLayouts) {
      const AttentionBatch batch = make(make_token_options(alignment, layout));
      const AttentionArgs args = batch.host_args();
      EXPECT_EQ(batch.has_inline_scales(), alignment == 4);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(args.k_cache) % alignment, 0u);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(args.v_cache) % alignment, 0u);
      const int row_alignment = std::min(alignment, 8);  // rows of 24 bytes
      for (const KvStrides& strides : {args.k_strides, args.v_strides}) {
        for (const int64_t stride : {strides.block, strides.token, strides.head}) {
          EXPECT_EQ(stride % row_alignment, 0) << cache_layout_name(layout);
        }
      }
      const auto count_numbers = [&](const float* scales, const KvStrides& strides) {
        int count = 0;
        for (int64_t block = 0; block < batch.num_blocks; ++block) {
          for (int64_t token = 0; token < 5; ++token) {
            for (int64_t head = 0; head < 3; ++head) {
              const float scale =
                  scales[block * strides.block + token * strides.token + head * strides.head];
              if (!std::isnan(scale)) ++count;
            }
          }
        }
        return count;
      };
      EXPECT_EQ(count_numbers(args.k_scale, args.k_scale_strides), (6 + 11 + 5) * 3);
      EXPECT_EQ(count_numbers(args.v_scale, args.v_scale_strides), (6 + 11 + 5) * 3);
    }
  }
}

TEST(TokenScalesTest, ScalesDifferFromTokenToTokenAndCodesTakeTheWholeRange) {
  BatchOptions options = make_token_options(16, CacheLayout::kNhd);
  options.spec.head_size = 128;
  options.seq_lens = {200};
  const AttentionBatch batch = make(options);
  const auto [least, greatest] =
      std::minmax_element(batch.dense_v_scale[0].begin(), batch.dense_v_scale[0].end());
  EXPECT_GT(*greatest / *least, 64);
  for (const std::vector<float>* rows : {&batch.dense_k[0], &batch.dense_v[0]}) {
    const std::set<float> codes(rows->begin(), rows->end());
    EXPECT_GT(codes.size(), 150u);
  }
}

// The -8 of other makers' caches too.
TEST(TokenScalesTest, CodesOfInt4TakeTheWholeRange) {
  BatchOptions options = make_token_options(16, CacheLayout::kNhd, DataType::kInt4);
  options.spec.head_size = 128;
  options.seq_lens = {200};
  const AttentionBatch batch = make(options);
  for (const std::vector<float>* rows : {&batch.dense_k[0], &batch.dense_v[0]}) {
    const std::set<float> codes(rows->begin(), rows->end());
    EXPECT_GE(codes.size(), 14u)
        << "all but the greatest, which the margin of K's scale leaves out";
    EXPECT_TRUE(codes.contains(-8));
  }
}

TEST(DsMlaTest, PagedEqualsDense) {
  for (const LogitRegime logits : {LogitRegime::kNormal, LogitRegime::kMixed}) {
    for (const CacheLayout layout : kLayouts) {
      BatchOptions options;
      options.spec = {.kv_dtype = DataType::kFloat8E4m3,
                      .head_size = 576,
                      .head_size_v = 512,
                      .block_size = 8,
                      .group_size = 2,
                      .kv_layout = KvLayout::kDsMla,
                      .latent = true};
      options.seq_lens = {9, 0, 3};
      options.layout = layout;
      options.logits = logits;
      expect_paged_equals_dense(make(options));
    }
  }
}

TEST(ValueHeadSizeTest, PagedEqualsDense) {
  for (const KvLayout kv_layout : {KvLayout::kRows, KvLayout::kVllm}) {
    for (const CacheLayout layout : kLayouts) {
      BatchOptions options;
      options.spec = {.head_size = 192, .head_size_v = 128, .block_size = 8, .group_size = 2};
      options.spec.kv_layout = kv_layout;
      options.num_kv_heads = 2;
      options.seq_lens = {9, 0, 3};
      options.layout = layout;
      expect_paged_equals_dense(make(options));
    }
  }
}

}  // namespace
}  // namespace pagejit
