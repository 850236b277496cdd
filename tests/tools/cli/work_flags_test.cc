#include "tools/cli/work_flags.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace pagejit::cli {
namespace {

SpecFlags spec_flags() {
  SpecFlags flags;
  flags.head_size = 128;
  flags.group_size = 4;
  return flags;
}

std::string error_of(const SpecFlags& flags) {
  const Result<WorkList> list = make_work_list(flags);
  EXPECT_EQ(list.status().code(), StatusCode::kInvalidArgument);
  return list.status().message();
}

TEST(SpecFlagsTest, ParsesEveryFlag) {
  CLI::App app;
  SpecFlags flags;
  add_spec_flags(app, &flags, true);
  app.parse(
      "--head-size 80 --block-size 32 --num-heads 12 --num-kv-heads 4 --dtype f16 --tp 2 "
      "--debug-checks --pdl");
  EXPECT_EQ(flags.head_size, 80);
  EXPECT_EQ(flags.block_size, 32);
  EXPECT_EQ(flags.group_size, std::nullopt);
  const Result<WorkList> list = make_work_list(flags);
  ASSERT_TRUE(list.is_ok()) << list.status().to_string();
  ASSERT_EQ(list->items.size(), 1u);
  EXPECT_EQ(canonical_text(list->items[0].spec),
            "decode q=f16 kv=f16 out=f16 head_size=80 block_size=32 group_size=3 debug=1 pdl=1");
  EXPECT_EQ(list->items[0].num_kv_heads, 2);
}

TEST(SpecFlagsTest, RowsThatHoldKeysAndValues) {
  CLI::App app;
  SpecFlags flags;
  add_spec_flags(app, &flags, true);
  app.parse("--head-size 576 --head-size-v 512 --latent --group-size 16 --block-size 64");
  const Result<WorkList> list = make_work_list(flags);
  ASSERT_TRUE(list.is_ok()) << list.status().to_string();
  EXPECT_EQ(canonical_text(list->items[0].spec),
            "decode q=bf16 kv=bf16 out=bf16 head_size=576 head_size_v=512 block_size=64 "
            "group_size=16 latent=1");
}

TEST(SpecFlagsTest, QueriesMasksAndScoreChanges) {
  SpecFlags flags = spec_flags();
  flags.queries = "many";
  flags.causal = true;
  flags.window = 100;
  flags.soft_cap = 30;
  flags.alibi = flags.sinks = flags.qq_bias = flags.bidirectional_ranges = true;
  flags.custom_mask = true;
  const Result<WorkList> list = make_work_list(flags);
  ASSERT_TRUE(list.is_ok()) << list.status().to_string();
  EXPECT_EQ(canonical_text(list->items[0].spec),
            "many q=bf16 kv=bf16 out=bf16 head_size=128 block_size=16 group_size=4 causal=1 "
            "window=1 custom_mask=1 bidirectional_ranges=1 soft_cap=1 alibi=1 qq_bias=1 sinks=1");
  EXPECT_EQ(list->items[0].window_left, 99);
  EXPECT_EQ(list->items[0].soft_cap, 30);
  flags.queries = "two";
  EXPECT_EQ(error_of(flags), "--queries two: must be one, few, many or shared");
  flags.queries = "one";
  EXPECT_EQ(error_of(flags),
            "causality 1: must be none (0) where queries is one (0), since a single query token "
            "sees all keys");
  flags = spec_flags();
  flags.window = 0;
  EXPECT_EQ(error_of(flags), "--window 0: must be at least 1");
  flags = spec_flags();
  flags.chunk = 0;
  EXPECT_EQ(error_of(flags), "--chunk 0: must be at least 1");
  flags.chunk = 8;
  EXPECT_EQ(make_work_list(flags)->items[0].chunk_size, 8);
  flags = spec_flags();
  flags.block_sparse = {16, 8};
  EXPECT_EQ(make_work_list(flags)->items[0].block_sparse,
            (BlockSparseArgs{.local_blocks = 16, .vert_stride = 8, .block_size = 64}));
  flags.block_sparse = {1, 2, 32, -3};
  EXPECT_EQ(make_work_list(flags)->items[0].block_sparse,
            (BlockSparseArgs{
                .local_blocks = 1, .vert_stride = 2, .block_size = 32, .head_sliding_step = -3}));
  EXPECT_TRUE(make_work_list(flags)->items[0].spec.block_sparse);
  flags.block_sparse = {1};
  EXPECT_EQ(error_of(flags), "--block-sparse: must be LOCAL,STRIDE[,TOKENS[,STEP]]");
  flags = spec_flags();
  flags.soft_cap = -1;
  EXPECT_EQ(error_of(flags), "--soft-cap -1.000000: must be positive and finite");
}

TEST(SpecFlagsTest, Defaults) {
  const Result<KernelSpec> spec = make_spec(spec_flags());
  ASSERT_TRUE(spec.is_ok());
  EXPECT_EQ(canonical_text(*spec),
            "decode q=bf16 kv=bf16 out=bf16 head_size=128 block_size=16 group_size=4");
}

TEST(SpecFlagsTest, SentencesForWhatIsMissingOrContradicts) {
  EXPECT_EQ(error_of({}),
            "which kernels is not said: give --model FILE, or --head-size and --group-size");
  SpecFlags flags;
  flags.group_size = 4;
  EXPECT_EQ(error_of(flags), "--head-size is missing");
  flags = {};
  flags.head_size = 128;
  EXPECT_EQ(error_of(flags), "--group-size is missing; or give --num-heads and --num-kv-heads");
  flags.num_heads = 8;
  EXPECT_EQ(error_of(flags), "--num-heads needs --num-kv-heads");
  flags.num_kv_heads = 3;
  EXPECT_EQ(error_of(flags), "--num-heads 8: must be a multiple of --num-kv-heads 3");
  flags.num_kv_heads = 0;
  EXPECT_EQ(error_of(flags), "--num-kv-heads 0: must be at least 1");
  flags.num_kv_heads = 2;
  flags.group_size = 3;
  EXPECT_EQ(error_of(flags),
            "--group-size 3: must be 4, which --num-heads and --num-kv-heads give");
  flags = spec_flags();
  flags.tensor_parallel = {2};
  EXPECT_EQ(error_of(flags), "--tp needs --model, or --num-heads and --num-kv-heads");
  flags = spec_flags();
  flags.models = {"config.json"};
  EXPECT_EQ(error_of(flags),
            "--model excludes --head-size, --head-size-v, --latent, --group-size, --num-heads, "
            "--num-kv-heads, --causal, "
            "--window, --chunk, --block-sparse, --soft-cap, --alibi and --sinks");
  flags = spec_flags();
  flags.dtype = "fp8";
  EXPECT_EQ(
      error_of(flags),
      "--dtype: fp8_e4m3: must be bf16, f16 or f32; other types have --q-dtype, --kv-dtype and "
      "--out-dtype");
  flags.dtype = "bf61";
  EXPECT_EQ(error_of(flags).substr(0, 27), "--dtype: data type \"bf61\": ");
  flags = spec_flags();
  flags.kv_dtype = "f32";
  EXPECT_EQ(make_work_list(flags).status().to_string(),
            "unsupported: q_dtype bf16: must be f32 where kv_dtype is f32");
  flags = spec_flags();
  flags.kv_dtype = "int4";
  EXPECT_EQ(make_work_list(flags).status().message(),
            "token_scales 0: must be 1 where kv_dtype is int4");
  flags.token_scales = true;
  EXPECT_TRUE(make_work_list(flags)) << make_work_list(flags).status().to_string();
  flags = spec_flags();
  flags.out_dtype = "int5";
  EXPECT_EQ(error_of(flags).substr(0, 31), "--out-dtype: data type \"int5\": ");
  flags = spec_flags();
  flags.kv_layout = "nhd";
  EXPECT_EQ(error_of(flags), "--kv-layout nhd: must be rows, vllm or ds_mla");
  flags = spec_flags();
  flags.head_size = 100;
  EXPECT_EQ(
      error_of(flags),
      "head_size 100: must be a multiple of 8 in [8, 256], or 512, or 576 with head_size_v 512");
}

TEST(WorkListTest, EqualKernelsOfSeveralModelsAreMadeOnce) {
  WorkList list;
  models::ModelShape shape;
  shape.model_type = "llama";
  shape.num_layers = 2;
  models::LayerAttention attention;
  attention.num_heads = 8;
  attention.num_kv_heads = 2;
  attention.head_size = 64;
  attention.scale = 0.125;
  shape.kinds = {{attention, {0, 1}}};
  ASSERT_TRUE(add_model(shape, "a", {}, &list).is_ok());
  ASSERT_TRUE(add_model(shape, "b", {}, &list).is_ok());
  ASSERT_EQ(list.items.size(), 1u);
  EXPECT_EQ(list.items[0].model, "a, b");
  EXPECT_EQ(list.items[0].scale, 0);  // the usual one

  // Another scale is another launch of the same kernel.
  shape.kinds[0].attention.scale = 0.5;
  ASSERT_TRUE(add_model(shape, "c", {}, &list).is_ok());
  EXPECT_EQ(list.items.size(), 2u);
  EXPECT_EQ(list.items[1].scale, 0.5);
  EXPECT_EQ(list.specs().size(), 1u);
}

TEST(WorkListTest, LayersWithoutAKernelAreNeverDropped) {
  WorkList list;
  models::ModelShape shape;
  shape.num_layers = 2;
  models::LayerAttention attention;
  attention.num_heads = attention.num_kv_heads = 1;
  attention.head_size = 64;
  attention.mask = models::MaskKind::kBidirectional;
  shape.kinds = {{attention, {0, 1}}};
  ASSERT_TRUE(add_model(shape, "m", {}, &list).is_ok());
  EXPECT_TRUE(list.items.empty());
  EXPECT_EQ(list.unsupported, std::vector<std::string>{
                                  "m: all 2 layers: not supported yet: bidirectional attention"});
}

TEST(WorkListTest, ThePrefixOfAModelIsARange) {
  models::ModelShape shape;
  shape.num_layers = 1;
  models::LayerAttention attention;
  attention.num_heads = attention.num_kv_heads = 1;
  attention.head_size = 64;
  attention.mask = models::MaskKind::kPrefix;
  shape.kinds = {{attention, {0}}};
  SpecFlags flags;
  WorkList decode;
  ASSERT_TRUE(add_model(shape, "m", flags, &decode).is_ok());
  ASSERT_EQ(decode.items.size(), 1u);
  EXPECT_FALSE(decode.items[0].spec.bidirectional_ranges) << "one query token sees all";
  flags.queries = "many";
  WorkList prefill;
  ASSERT_TRUE(add_model(shape, "m", flags, &prefill).is_ok());
  ASSERT_EQ(prefill.items.size(), 1u);
  EXPECT_TRUE(prefill.items[0].spec.bidirectional_ranges);
  EXPECT_EQ(prefill.items[0].spec.causality, Causality::kCausal);
  // Images of a model that is causal otherwise, and trees of speculated tokens, are asked for.
  attention.mask = models::MaskKind::kCausal;
  shape.kinds = {{attention, {0}}};
  flags.bidirectional_ranges = flags.ranges_within_window = flags.qq_bias = true;
  WorkList asked;
  ASSERT_TRUE(add_model(shape, "m", flags, &asked).is_ok());
  EXPECT_TRUE(asked.items[0].spec.bidirectional_ranges);
  EXPECT_TRUE(asked.items[0].spec.qq_bias);
  EXPECT_TRUE(asked.items[0].ranges_within_window);
  flags.bidirectional_ranges = false;
  EXPECT_EQ(add_model(shape, "m", flags, &asked).message(),
            "m: --ranges-within-window needs --bidirectional-ranges");
}

TEST(WorkListTest, WindowsAndCapsOfAModelAreLaunchArguments) {
  WorkList list;
  models::ModelShape shape;
  shape.num_layers = 3;
  models::LayerAttention attention;
  attention.num_heads = attention.num_kv_heads = 1;
  attention.head_size = 64;
  attention.soft_cap = 50;
  attention.mask = models::MaskKind::kSlidingWindow;
  attention.window = 64;
  models::LayerAttention wider = attention;
  wider.window = 128;
  models::LayerAttention both_sides = attention;
  both_sides.mask = models::MaskKind::kBidirectional;
  shape.kinds = {{attention, {0}}, {wider, {1}}, {both_sides, {2}}};
  SpecFlags flags;
  flags.queries = "many";
  ASSERT_TRUE(add_model(shape, "m", flags, &list).is_ok());
  ASSERT_EQ(list.items.size(), 3u);
  EXPECT_EQ(list.specs().size(), 2u) << "the width of a window is no part of the spec";
  EXPECT_EQ(list.items[0].window_left, 63) << "64 keys, the query's own included";
  EXPECT_EQ(list.items[0].window_right, -1);
  EXPECT_EQ(list.items[0].soft_cap, 50);
  EXPECT_EQ(list.items[1].window_left, 127);
  EXPECT_EQ(list.items[2].spec.causality, Causality::kNone);
  EXPECT_EQ(list.items[2].window_right, 63);
}

TEST(TargetsTest, CommasAndRepetitionEachOnce) {
  const auto targets = parse_targets({"sm_80,sm_90a", "host", "sm_80"});
  ASSERT_TRUE(targets.is_ok());
  ASSERT_EQ(targets->size(), 3u);
  EXPECT_EQ((*targets)[1].to_string(), "sm_90a");
  EXPECT_TRUE((*targets)[2].is_host());
  EXPECT_FALSE(parse_targets({"sm_80,"}).is_ok());
  EXPECT_FALSE(parse_targets({""}).is_ok());
  EXPECT_TRUE(parse_targets({})->empty());
}

TEST(ModelNameTest, OfFileAndFolder) {
  EXPECT_EQ(model_name("/models/llama-3.1-8b/config.json"), "llama-3.1-8b");
  EXPECT_EQ(model_name("/models/llama-3.1-8b/"), "llama-3.1-8b");
  EXPECT_EQ(model_name("/models/llama-3.1-8b"), "llama-3.1-8b");
  EXPECT_EQ(model_name("phi-2.json"), "phi-2");
  EXPECT_EQ(model_name("config.json"), "config");
}

}  // namespace
}  // namespace pagejit::cli
