// The specs of the families beside attention: their rules, their texts, their sources.
#include "generator/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "generator/renderer.h"

namespace pagejit {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kF32 = DataType::kFloat32;
constexpr DataType kE4M3 = DataType::kFloat8E4m3;
constexpr DataType kE5M2 = DataType::kFloat8E5m2;
constexpr DataType kInt8 = DataType::kInt8;
constexpr DataType kInt4 = DataType::kInt4;

std::string kernel_text(const AnySpec& spec, const char* target) {
  const auto config = plan_any(spec, *parse_target(target));
  EXPECT_TRUE(config) << config.status().to_string();
  const auto source = render(*config);
  EXPECT_TRUE(source) << source.status().to_string();
  return source->text.substr(source->text.find(kKernelTextMarker));
}

// One spec of each family.
std::vector<AnySpec> one_of_each() {
  return {MergeStatesSpec{kBF16, kF32, 72, true},
          CacheWriteSpec{.kv_dtype = kE4M3,
                         .scale = KvScale::kHead,
                         .rope = RopeStyle::kNeox,
                         .rotary_dim = 64,
                         .debug = true},
          CopyBlocksSpec{16, true},
          GatherCacheSpec{.kv_dtype = kE4M3, .scale = KvScale::kHead, .debug = true},
          ConvertFloat8Spec{},
          MlaCacheWriteSpec{.format = MlaFormat::kDsMla, .rope = RopeStyle::kNeox, .debug = true},
          IndexKeyWriteSpec{.power_of_two_scale = true, .debug = true},
          IndexKeyGatherSpec{.debug = true},
          IndexLogitsSpec{.block_size = 16, .clean = true, .debug = true},
          TopKSpec{.debug = true}};
}

TEST(FamiliesTest, KernelTextIsTheSameForGpuAndHost) {
  for (const AnySpec& spec : one_of_each()) {
    for (const int sm : {75, 80, 90, 120}) {
      const std::string host = "host_" + std::to_string(sm);
      const std::string gpu = "sm_" + std::to_string(sm);
      EXPECT_EQ(kernel_text(spec, gpu.c_str()), kernel_text(spec, host.c_str())) << text_of(spec);
    }
  }
}

TEST(FamiliesTest, KernelTextHasNoInlineAssemblyAndNoConditionalCompilation) {
  for (const AnySpec& spec : one_of_each()) {
    const std::string text = std::regex_replace(
        kernel_text(spec, "sm_90a"),
        std::regex("#ifndef PAGEJIT_HOST_DEVICE\n#define PAGEJIT_HOST_DEVICE\n#endif\n"), "");
    EXPECT_THAT(text, Not(HasSubstr("asm"))) << text_of(spec);
    EXPECT_THAT(text, Not(HasSubstr("threadIdx"))) << text_of(spec);
    EXPECT_FALSE(std::regex_search(text, std::regex("\n#\\s*(if|include)"))) << text_of(spec);
    EXPECT_THAT(text, HasSubstr("//   " + text_of(spec) + "\n"));
  }
}

TEST(FamiliesTest, ProgrammaticDependentLaunchNeedsSm90) {
  for (const AnySpec& spec :
       {AnySpec(MergeStatesSpec{.pdl = true}), AnySpec(CacheWriteSpec{.pdl = true}),
        AnySpec(MlaCacheWriteSpec{.pdl = true})}) {
    EXPECT_THAT(text_of(spec), HasSubstr(" pdl=1"));
    EXPECT_THAT(kernel_text(spec, "sm_90a"), HasSubstr("begin_behind_previous_grid();"));
    EXPECT_EQ(kernel_text(spec, "sm_90a"), kernel_text(spec, "host"));
    EXPECT_TRUE(uses_pdl(*plan_any(spec, *parse_target("sm_100a"))));
    EXPECT_THAT(plan_any(spec, *parse_target("sm_89")).status().message(),
                HasSubstr("pdl 1: must be 0 for sm_89"));
  }
  for (const AnySpec& spec : one_of_each()) {
    EXPECT_FALSE(uses_pdl(*plan_any(spec, *parse_target("sm_90a")))) << text_of(spec);
    EXPECT_THAT(kernel_text(spec, "sm_90a"), Not(HasSubstr("grid_dependency"))) << text_of(spec);
  }
}

TEST(FamiliesTest, EachSpecHasItsOwnTextAndKernelName) {
  std::vector<AnySpec> specs = one_of_each();
  specs.emplace_back(KernelSpec{});
  specs.emplace_back(MergeStatesSpec{});
  specs.emplace_back(MergeStatesSpec{kF16, kBF16, 128});
  specs.emplace_back(MergeStatesSpec{kBF16, kF16, 128});
  specs.emplace_back(MergeStatesSpec{kBF16, kBF16, 64});
  specs.emplace_back(MergeStatesSpec{kBF16, kBF16, 128, true});
  specs.emplace_back(MergeStatesSpec{.pdl = true});
  const CacheWriteSpec write;
  specs.emplace_back(write);
  const auto add = [&](auto change) {
    CacheWriteSpec spec = write;
    change(spec);
    specs.emplace_back(spec);
  };
  add([](auto& s) { s.dtype = s.kv_dtype = kF16; });
  add([](auto& s) { s.kv_dtype = kE4M3, s.scale = KvScale::kTensor; });
  add([](auto& s) { s.kv_dtype = kE5M2, s.scale = KvScale::kTensor; });
  add([](auto& s) { s.kv_dtype = kE4M3, s.scale = KvScale::kTokenHead; });
  add([](auto& s) { s.head_size = 64; });
  add([](auto& s) { s.block_size = 64; });
  add([](auto& s) { s.layout = KvLayout::kVllm; });
  add([](auto& s) { s.rope = RopeStyle::kNeox, s.rotary_dim = 64; });
  add([](auto& s) { s.rope = RopeStyle::kInterleaved, s.rotary_dim = 64; });
  add([](auto& s) { s.rope = RopeStyle::kNeox, s.rotary_dim = 32; });
  add([](auto& s) { s.rope = RopeStyle::kNeox, s.rotary_dim = 32, s.cos_sin_dtype = kBF16; });
  add([](auto& s) { s.row_alignment = 8; });
  add([](auto& s) { s.debug = true; });
  add([](auto& s) { s.pdl = true; });
  specs.emplace_back(CopyBlocksSpec{8, true});
  specs.emplace_back(CopyBlocksSpec{16, false});
  specs.emplace_back(GatherCacheSpec{});
  specs.emplace_back(GatherCacheSpec{.out_dtype = kF32});
  specs.emplace_back(GatherCacheSpec{.kv_dtype = kF32});
  specs.emplace_back(GatherCacheSpec{.kv_dtype = kE4M3, .scale = KvScale::kHead});
  specs.emplace_back(GatherCacheSpec{.kv_dtype = kE4M3, .scale = KvScale::kTensor});
  specs.emplace_back(GatherCacheSpec{.layout = KvLayout::kVllm});
  specs.emplace_back(GatherCacheSpec{.head_size = 64});
  specs.emplace_back(GatherCacheSpec{.block_size = 64});
  specs.emplace_back(GatherCacheSpec{.row_alignment = 8});
  specs.emplace_back(GatherCacheSpec{.kv_dtype = kE4M3, .head_size = 576, .ds_mla = true});
  specs.emplace_back(ConvertFloat8Spec{kE4M3, kBF16});
  specs.emplace_back(ConvertFloat8Spec{kF32, kE5M2});
  const auto add_mla = [&](auto change) {
    MlaCacheWriteSpec spec;
    change(spec);
    specs.emplace_back(spec);
  };
  add_mla([](auto&) {});
  add_mla([](auto& s) { s.dtype = kF16; });
  add_mla([](auto& s) { s.format = MlaFormat::kE4m3; });
  add_mla([](auto& s) { s.format = MlaFormat::kDsMla; });
  add_mla([](auto& s) { s.kv_lora_rank = 256; });
  add_mla([](auto& s) { s.qk_rope_head_dim = 0; });
  add_mla([](auto& s) { s.block_size = 16; });
  add_mla([](auto& s) { s.rope = RopeStyle::kNeox; });
  add_mla([](auto& s) { s.rope = RopeStyle::kInterleaved; });
  add_mla([](auto& s) { s.rope = RopeStyle::kInterleaved, s.cos_sin_dtype = kBF16; });
  add_mla([](auto& s) { s.row_alignment = 8; });
  add_mla([](auto& s) { s.grouped = true; });
  add_mla([](auto& s) { s.debug = true; });
  add_mla([](auto& s) { s.pdl = true; });
  const auto add_index = [&](auto spec, auto change) {
    change(spec);
    specs.emplace_back(spec);
  };
  add_index(IndexKeyWriteSpec{}, [](auto&) {});
  add_index(IndexKeyWriteSpec{}, [](auto& s) { s.dtype = kF16; });
  add_index(IndexKeyWriteSpec{}, [](auto& s) { s.power_of_two_scale = true; });
  add_index(IndexKeyGatherSpec{}, [](auto&) {});
  const auto add_pages = [&](auto change) {
    add_index(IndexKeyWriteSpec{}, change);
    add_index(IndexKeyGatherSpec{}, change);
  };
  add_pages([](auto& s) { s.head_size = 256; });
  add_pages([](auto& s) { s.quant_block_size = 64; });
  add_pages([](auto& s) { s.block_size = 1; });
  add_pages([](auto& s) { s.row_alignment = 8; });
  add_index(IndexLogitsSpec{}, [](auto&) {});
  add_index(IndexLogitsSpec{}, [](auto& s) { s.num_heads = 32; });
  add_index(IndexLogitsSpec{}, [](auto& s) { s.head_size = 64; });
  add_index(IndexLogitsSpec{}, [](auto& s) { s.block_size = 16; });
  add_index(IndexLogitsSpec{}, [](auto& s) { s.clean = true; });
  specs.emplace_back(TopKSpec{});
  specs.emplace_back(TopKSpec{.row_alignment = 4});
  std::set<std::string> texts;
  std::set<std::string> names;
  for (const AnySpec& spec : specs) {
    texts.insert(text_of(spec));
    names.insert(render(*plan_any(spec, Target::host()))->kernel_name);
  }
  EXPECT_EQ(texts.size(), specs.size());
  EXPECT_EQ(names.size(), specs.size());
}

TEST(FamiliesTest, UnknownTargetsAreRefused) {
  for (const AnySpec& spec : one_of_each()) {
    const auto config = plan_any(spec, *parse_target("sm_70"));
    EXPECT_EQ(config.status().code(), StatusCode::kUnsupported) << text_of(spec);
  }
}

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
      s.ds_mla = true, s.kv_dtype = kE4M3, s.head_size = 576;
      change(s);
    });
  };
  EXPECT_EQ(ds_mla([](auto&) {}), "");
  EXPECT_EQ(ds_mla([](auto& s) { s.kv_dtype = kBF16; }),
            "kv_dtype bf16: must be fp8_e4m3 where ds_mla is 1");
  EXPECT_EQ(ds_mla([](auto& s) { s.scale = KvScale::kTensor; }),
            "scale 1: must be none (0) where ds_mla is 1");
  EXPECT_EQ(ds_mla([](auto& s) { s.layout = KvLayout::kVllm; }),
            "layout vllm (1): must be rows (0) where ds_mla is 1");
  EXPECT_EQ(ds_mla([](auto& s) { s.head_size = 512; }),
            "head_size 512: must be 576 where ds_mla is 1");
  EXPECT_EQ(ds_mla([](auto& s) { s.head_size_v = 512; }),
            "head_size_v 512: must be 0 where ds_mla is 1");
  EXPECT_EQ(ds_mla([](auto& s) { s.row_alignment = 2; }),
            "row_alignment 2: must be at least 4 where ds_mla is 1");
}

TEST(CacheOpsSpecTest, CanonicalTextHasEveryFieldThatIsSet) {
  EXPECT_EQ(canonical_text(CopyBlocksSpec{8, true}), "copy_blocks alignment=8 debug=1");
  EXPECT_EQ(canonical_text(ConvertFloat8Spec{}), "convert_float8 from=bf16 to=fp8_e4m3");
  EXPECT_EQ(
      canonical_text(
          GatherCacheSpec{kInt8, kF16, KvScale::kTokenHead, KvLayout::kVllm, 96, 64, 8, 4, true}),
      "gather_cache kv=int8 out=f16 scale=token_head head_size=96 head_size_v=64 block_size=8 "
      "layout=vllm row_alignment=4 debug=1");
  EXPECT_EQ(canonical_text(GatherCacheSpec{.kv_dtype = kE4M3, .head_size = 576, .ds_mla = true}),
            "gather_cache kv=fp8_e4m3 out=bf16 scale=none head_size=576 block_size=16 ds_mla=1");
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
