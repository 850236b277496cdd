// The specs of kernels that copy, gather and convert caches: their rules and their texts.
#include <gtest/gtest.h>

#include <string>

#include "generator/cache_ops.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kF32 = DataType::kFloat32;
constexpr DataType kE4M3 = DataType::kFloat8E4m3;
constexpr DataType kInt8 = DataType::kInt8;
constexpr DataType kInt4 = DataType::kInt4;

TEST(CacheOpsSpecTest, EachRuleNamesItsFieldAndWhatIsLegal) {
  EXPECT_EQ(validate(CopyBlocksSpec{}).message(), "");
  EXPECT_EQ(validate(CopyBlocksSpec{12}).message(),
            "alignment 12: must be a power of two in [1, 16]");
  EXPECT_EQ(validate(ConvertFloat8Spec{}).message(), "");
  EXPECT_EQ(validate(ConvertFloat8Spec{kBF16, kF16}).message(),
            "from_dtype bf16: one of from_dtype and to_dtype (f16) must be fp8_e4m3 or fp8_e5m2, "
            "the other not");
  EXPECT_EQ(validate(ConvertFloat8Spec{kE4M3, kInt8}).message(),
            "to_dtype 5: legal are f16 (0), bf16 (1) and f32 (2)");
  const auto message = [](auto change) {
    GatherCacheSpec spec;
    change(spec);
    return validate(spec).message();
  };
  EXPECT_EQ(message([](auto&) {}), "");
  EXPECT_EQ(message([](auto& s) { s.out_dtype = kE4M3; }),
            "out_dtype 3: legal are f16 (0), bf16 (1) and f32 (2)");
  EXPECT_EQ(message([](auto& s) { s.scale = KvScale::kHead; }),
            "scale 2: must be none (0) where kv_dtype is bf16");
  EXPECT_EQ(message([](auto& s) { s.kv_dtype = kInt8; }),
            "scale 0: must be tensor (1), head (2) or token_head (3) where kv_dtype is int8");
  EXPECT_EQ(message([](auto& s) { s.layout = KvLayout::kVllm, s.head_size = 20; }),
            "head_size 20: must be a multiple of 8 where layout is vllm (1) and kv_dtype "
            "bf16");
  EXPECT_EQ(message([](auto& s) { s.kv_dtype = kInt4, s.scale = KvScale::kHead; }),
            "scale 2: must be token_head (3) where kv_dtype is int4");
  EXPECT_EQ(message([](auto& s) {
              s.kv_dtype = kInt4, s.scale = KvScale::kTokenHead, s.row_alignment = 2;
            }),
            "row_alignment 2: must be at least two elements of out_dtype (4) where kv_dtype is "
            "int4");
  EXPECT_EQ(message([](auto& s) { s.row_alignment = 2, s.out_dtype = kF32; }),
            "row_alignment 2: must be a power of two in [4, 16]");
  const auto ds_mla = [&](auto change) {
    return message([&](auto& s) {
      s.layout = KvLayout::kDsMla, s.kv_dtype = kE4M3, s.head_size = 576;
      change(s);
    });
  };
  EXPECT_EQ(ds_mla([](auto&) {}), "");
  EXPECT_EQ(ds_mla([](auto& s) { s.kv_dtype = kBF16; }),
            "kv_dtype bf16: must be fp8_e4m3 where layout is ds_mla (2)");
  EXPECT_EQ(ds_mla([](auto& s) { s.scale = KvScale::kTensor; }),
            "scale 1: must be none (0) where layout is ds_mla (2)");
  EXPECT_EQ(message([](auto& s) { s.layout = static_cast<KvLayout>(3); }),
            "layout 3: legal are rows (0), vllm (1) and ds_mla (2)");
  EXPECT_EQ(ds_mla([](auto& s) { s.head_size = 512; }),
            "head_size 512: must be 576 where layout is ds_mla (2)");
  EXPECT_EQ(ds_mla([](auto& s) { s.head_size_v = 512; }),
            "head_size_v 512: must be 0 where layout is ds_mla (2)");
  EXPECT_EQ(ds_mla([](auto& s) { s.row_alignment = 2; }),
            "row_alignment 2: must be at least 4 where layout is ds_mla (2)");
}

TEST(CacheOpsSpecTest, CanonicalTextHasEveryFieldThatIsSet) {
  EXPECT_EQ(canonical_text(CopyBlocksSpec{8, true}), "copy_blocks alignment=8 debug=1");
  EXPECT_EQ(canonical_text(ConvertFloat8Spec{}), "convert_float8 from=bf16 to=fp8_e4m3");
  EXPECT_EQ(
      canonical_text(
          GatherCacheSpec{kInt8, kF16, KvScale::kTokenHead, KvLayout::kVllm, 96, 64, 8, 4, true}),
      "gather_cache kv=int8 out=f16 scale=token_head head_size=96 head_size_v=64 block_size=8 "
      "layout=vllm row_alignment=4 debug=1");
  EXPECT_EQ(
      canonical_text(
          GatherCacheSpec{.kv_dtype = kE4M3, .layout = KvLayout::kDsMla, .head_size = 576}),
      "gather_cache kv=fp8_e4m3 out=bf16 scale=none head_size=576 block_size=16 layout=ds_mla");
}

}  // namespace
}  // namespace pagejit
