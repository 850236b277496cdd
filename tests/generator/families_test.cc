// What holds for the specs and sources of all families beside attention.
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
  specs.emplace_back(
      GatherCacheSpec{.kv_dtype = kE4M3, .layout = KvLayout::kDsMla, .head_size = 576});
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

}  // namespace
}  // namespace pagejit
