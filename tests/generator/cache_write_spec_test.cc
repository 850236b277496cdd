// The specs of kernels that write into caches, latent ones too: their rules and their texts.
#include <gtest/gtest.h>

#include <string>

#include "generator/families.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kF32 = DataType::kFloat32;
constexpr DataType kE4M3 = DataType::kFloat8E4m3;
constexpr DataType kE5M2 = DataType::kFloat8E5m2;
constexpr DataType kInt8 = DataType::kInt8;
constexpr DataType kInt4 = DataType::kInt4;

TEST(CacheWriteSpecTest, EachRuleNamesItsFieldAndWhatIsLegal) {
  const auto message = [](auto change) {
    CacheWriteSpec spec;
    change(spec);
    return validate(spec).message();
  };
  EXPECT_EQ(message([](auto&) {}), "");
  EXPECT_EQ(message([](auto& s) { s.dtype = kInt8; }),
            "dtype 5: legal are f16 (0), bf16 (1) and f32 (2)");
  EXPECT_EQ(message([](auto& s) { s.kv_dtype = kF16; }),
            "kv_dtype f16: must be dtype (bf16), fp8_e4m3, fp8_e5m2, int8 or int4");
  EXPECT_EQ(message([](auto& s) { s.kv_dtype = static_cast<DataType>(9); }),
            "kv_dtype 9: must be dtype (bf16), fp8_e4m3, fp8_e5m2, int8 or int4");
  EXPECT_EQ(message([](auto& s) { s.scale = KvScale::kHead; }),
            "scale 2: must be none (0) where kv_dtype is dtype (bf16)");
  EXPECT_EQ(message([](auto& s) { s.scale = static_cast<KvScale>(4); }),
            "scale 4: legal are none (0), tensor (1), head (2) and token_head (3)");
  EXPECT_EQ(message([](auto& s) { s.kv_dtype = kE4M3; }),
            "scale 0: must be tensor (1), head (2) or token_head (3) where kv_dtype is fp8_e4m3");
  EXPECT_EQ(message([](auto& s) { s.kv_dtype = kInt8, s.scale = KvScale::kHead; }),
            "scale 2: must be token_head (3) where kv_dtype is int8");
  EXPECT_EQ(message([](auto& s) { s.kv_dtype = kInt4, s.scale = KvScale::kTensor; }),
            "scale 1: must be token_head (3) where kv_dtype is int4");
  const auto int4 = [&](auto change) {
    return message([&](auto& s) {
      s.kv_dtype = kInt4, s.scale = KvScale::kTokenHead;
      change(s);
    });
  };
  EXPECT_EQ(int4([](auto& s) { s.layout = KvLayout::kVllm; }),
            "layout vllm (1): must be rows (0) where kv_dtype is int4");
  EXPECT_EQ(int4([](auto& s) { s.head_size = 33; }),
            "head_size 33: must be even where kv_dtype is int4");
  EXPECT_EQ(int4([](auto& s) { s.head_size_v = 33; }),
            "head_size_v 33: must be even where kv_dtype is int4");
  EXPECT_EQ(int4([](auto& s) { s.row_alignment = 2; }),
            "row_alignment 2: must be at least two elements of dtype (4) where kv_dtype is int4");
  EXPECT_EQ(int4([](auto& s) { s.rope = RopeStyle::kNeox, s.rotary_dim = 6; }),
            "rotary_dim 6: must be a multiple of 4 where kv_dtype is int4 and rope neox (1)");
  EXPECT_EQ(message([](auto& s) { s.head_size_v = 4097; }),
            "head_size_v 4097: must be in [0, 4096]");
  EXPECT_EQ(message([](auto& s) {
              s.rope = RopeStyle::kInterleaved, s.rotary_dim = 64, s.head_size_v = 65;
            }),
            "head_size_v 65: must be even where rope is interleaved (2)");
  EXPECT_EQ(message([](auto& s) { s.layout = static_cast<KvLayout>(2); }),
            "layout 2: legal are rows (0) and vllm (1)");
  EXPECT_EQ(message([](auto& s) { s.head_size = 4097; }), "head_size 4097: must be in [1, 4096]");
  EXPECT_EQ(message([](auto& s) { s.block_size = 0; }), "block_size 0: must be in [1, 65536]");
  EXPECT_EQ(message([](auto& s) { s.row_alignment = 1; }),
            "row_alignment 1: must be a power of two in [2, 16] for dtype bf16");
  EXPECT_EQ(message([](auto& s) { s.row_alignment = 12; }),
            "row_alignment 12: must be a power of two in [2, 16] for dtype bf16");
  EXPECT_EQ(message([](auto& s) { s.layout = KvLayout::kVllm, s.head_size = 68; }),
            "head_size 68: must be a multiple of 8 where layout is vllm (1) and kv_dtype "
            "bf16");
  EXPECT_EQ(message([](auto& s) { s.rope = static_cast<RopeStyle>(3); }),
            "rope 3: legal are none (0), neox (1) and interleaved (2)");
  EXPECT_EQ(message([](auto& s) { s.rotary_dim = 64; }),
            "rotary_dim 64: must be 0 where rope is none (0)");
  EXPECT_EQ(message([](auto& s) { s.cos_sin_dtype = kBF16; }),
            "cos_sin_dtype bf16: must be f32 where rope is none (0)");
  EXPECT_EQ(message([](auto& s) { s.rope = RopeStyle::kNeox, s.rotary_dim = 130; }),
            "rotary_dim 130: must be even and in [2, head_size (128)]");
  EXPECT_EQ(message([](auto& s) { s.rope = RopeStyle::kNeox, s.rotary_dim = 63; }),
            "rotary_dim 63: must be even and in [2, head_size (128)]");
  EXPECT_EQ(message([](auto& s) {
              s.rope = RopeStyle::kInterleaved, s.rotary_dim = 64, s.head_size = 65;
            }),
            "head_size 65: must be even where rope is interleaved (2)");
  EXPECT_EQ(message([](auto& s) {
              s.rope = RopeStyle::kInterleaved, s.rotary_dim = 64, s.row_alignment = 2;
            }),
            "row_alignment 2: must be at least a pair of elements (4) where rope is interleaved "
            "(2)");
}

TEST(CacheWriteSpecTest, CanonicalTextHasEveryFieldThatIsSet) {
  EXPECT_EQ(canonical_text(CacheWriteSpec{}),
            "cache_write dtype=bf16 kv=bf16 scale=none head_size=128 block_size=16");
  EXPECT_EQ(
      canonical_text(CacheWriteSpec{kF16, kE5M2, KvScale::kTokenHead, KvLayout::kVllm, 96, 64, 8,
                                    RopeStyle::kInterleaved, 32, kF16, 4, true}),
      "cache_write dtype=f16 kv=fp8_e5m2 scale=token_head head_size=96 head_size_v=64 block_size=8 "
      "layout=vllm rope=interleaved rotary_dim=32 cos_sin=f16 row_alignment=4 "
      "debug=1");
}

TEST(MlaCacheWriteSpecTest, EachRuleNamesItsFieldAndWhatIsLegal) {
  const auto message = [](auto change) {
    MlaCacheWriteSpec spec;
    change(spec);
    return validate(spec).message();
  };
  EXPECT_EQ(message([](auto&) {}), "");
  EXPECT_EQ(message([](auto& s) { s.kv_lora_rank = 33, s.qk_rope_head_dim = 0; }), "");
  EXPECT_EQ(message([](auto& s) { s.dtype = kE4M3; }),
            "dtype 3: legal are f16 (0), bf16 (1) and f32 (2)");
  EXPECT_EQ(message([](auto& s) { s.format = static_cast<MlaFormat>(3); }),
            "format 3: legal are plain (0), fp8_e4m3 (1) and fp8_ds_mla (2)");
  EXPECT_EQ(message([](auto& s) { s.kv_lora_rank = 0; }), "kv_lora_rank 0: must be in [1, 4096]");
  EXPECT_EQ(message([](auto& s) { s.qk_rope_head_dim = -1; }),
            "qk_rope_head_dim -1: must be in [0, 4096]");
  EXPECT_EQ(message([](auto& s) { s.block_size = 65537; }),
            "block_size 65537: must be in [1, 65536]");
  EXPECT_EQ(message([](auto& s) { s.row_alignment = 32; }),
            "row_alignment 32: must be a power of two in [2, 16] for dtype bf16");
  const auto ds_mla = [&](auto change) {
    return message([&](auto& s) {
      s.format = MlaFormat::kDsMla;
      change(s);
    });
  };
  EXPECT_EQ(ds_mla([](auto& s) { s.dtype = kF16; }), "");
  EXPECT_EQ(ds_mla([](auto& s) { s.dtype = kF32; }),
            "dtype f32: must be f16 or bf16 where format is fp8_ds_mla (2)");
  EXPECT_EQ(ds_mla([](auto& s) { s.kv_lora_rank = 256; }),
            "kv_lora_rank 256: must be 512 where format is fp8_ds_mla (2)");
  EXPECT_EQ(ds_mla([](auto& s) { s.qk_rope_head_dim = 0; }),
            "qk_rope_head_dim 0: must be 64 where format is fp8_ds_mla (2)");
  EXPECT_EQ(ds_mla([](auto& s) { s.row_alignment = 2; }),
            "row_alignment 2: must be at least 4 where format is fp8_ds_mla (2)");
  EXPECT_EQ(message([](auto& s) { s.rope = static_cast<RopeStyle>(3); }),
            "rope 3: legal are none (0), neox (1) and interleaved (2)");
  EXPECT_EQ(message([](auto& s) { s.cos_sin_dtype = kBF16; }),
            "cos_sin_dtype bf16: must be f32 where rope is none (0)");
  EXPECT_EQ(message([](auto& s) { s.rope = RopeStyle::kNeox, s.grouped = true; }),
            "rope 1: must be none (0) where grouped is 1");
  EXPECT_EQ(message([](auto& s) { s.rope = RopeStyle::kNeox, s.qk_rope_head_dim = 0; }),
            "qk_rope_head_dim 0: must be even and not 0 where rope is neox (1)");
  EXPECT_EQ(message([](auto& s) { s.rope = RopeStyle::kInterleaved, s.qk_rope_head_dim = 63; }),
            "qk_rope_head_dim 63: must be even and not 0 where rope is interleaved (2)");
  EXPECT_EQ(message([](auto& s) { s.rope = RopeStyle::kInterleaved, s.kv_lora_rank = 63; }),
            "kv_lora_rank 63: must be even where rope is interleaved (2)");
  EXPECT_EQ(message([](auto& s) { s.rope = RopeStyle::kInterleaved, s.row_alignment = 2; }),
            "row_alignment 2: must be at least a pair of elements (4) where rope is interleaved "
            "(2)");
}

TEST(MlaCacheWriteSpecTest, CanonicalTextHasEveryFieldThatIsSet) {
  EXPECT_EQ(canonical_text(MlaCacheWriteSpec{}),
            "mla_cache_write dtype=bf16 format=plain kv_lora_rank=512 qk_rope_head_dim=64 "
            "block_size=64");
  EXPECT_EQ(canonical_text(MlaCacheWriteSpec{kF16, MlaFormat::kDsMla, 512, 64, 16,
                                             RopeStyle::kInterleaved, kF16, true, 4, true, true}),
            "mla_cache_write dtype=f16 format=fp8_ds_mla kv_lora_rank=512 qk_rope_head_dim=64 "
            "block_size=16 rope=interleaved cos_sin=f16 grouped=1 row_alignment=4 debug=1 pdl=1");
}

}  // namespace
}  // namespace pagejit
