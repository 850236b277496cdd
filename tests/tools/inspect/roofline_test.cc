#include "tools/inspect/roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/planner.h"

namespace pagejit::inspect {
namespace {

using testing::HasSubstr;

KernelConfig config_of(const char* spec, const char* target = "sm_90a") {
  const Result<KernelSpec> parsed = parse_spec(spec);
  EXPECT_TRUE(parsed) << parsed.status().to_string();
  return *plan(*parsed, *parse_target(target));
}

TEST(RooflineTest, DecodeIsLimitedByMemory) {
  const KernelConfig config = config_of("decode head_size=128 block_size=16 group_size=4");
  const Gpu gpu = *find_gpu("h200");
  const Roofline r = roofline_of(config, {.batch = 8, .seq_len = 8192, .num_kv_heads = 8}, gpu);
  EXPECT_EQ(r.problem.query_len, 1);
  EXPECT_DOUBLE_EQ(r.kv_bytes, 8.0 * 8192 * 8 * 128 * 2 * 2);
  EXPECT_DOUBLE_EQ(r.query_bytes, 8.0 * 32 * 128 * 2 * 2);
  EXPECT_DOUBLE_EQ(r.flops, 2.0 * 8 * 8192 * 32 * 256);
  EXPECT_NEAR(r.memory_us, (268435456 + 131072) / 4800e9 * 1e6, 1e-9);
  EXPECT_NEAR(r.compute_us, 1073741824 / 989.5e12 * 1e6, 1e-9);
  EXPECT_TRUE(r.is_memory_bound());
  EXPECT_NEAR(r.intensity(), 4, 0.01);
  const std::string text = explain_roofline(r, config.spec, gpu);
  EXPECT_THAT(text, HasSubstr("batch 8 x seq_len 8,192 x KV heads 8 x 512 B a token = 268.4 MB"));
  EXPECT_THAT(text, HasSubstr("memory is the limit: 55.95 us, 4,800 GB/s"));
}

TEST(RooflineTest, APromptIsLimitedByProducts) {
  const KernelConfig config = config_of("many head_size=128 block_size=16 group_size=4 causal=1");
  const Gpu gpu = *find_gpu("a100-80");
  const Roofline r = roofline_of(config, {.batch = 2, .seq_len = 16384, .num_kv_heads = 8}, gpu);
  EXPECT_EQ(r.problem.query_len, 16384) << "all of it";
  EXPECT_DOUBLE_EQ(r.flops, 2 * 4.0 * 16384 * 16384 / 2 * 32 * 128);
  EXPECT_DOUBLE_EQ(r.query_bytes, 2 * 16384.0 * 32 * 128 * 4);
  EXPECT_FALSE(r.is_memory_bound());
  EXPECT_DOUBLE_EQ(r.limit_us(), r.compute_us);
  EXPECT_NEAR(r.tflops(), 312, 1e-9);
  EXPECT_THAT(explain_roofline(r, config.spec, gpu), HasSubstr("products are the limit"));
}

TEST(RooflineTest, F32TakesSixProducts) {
  const Gpu gpu = *find_gpu("h200");
  const Roofline wide = roofline_of(
      config_of("decode q=f32 kv=f32 out=f32 head_size=64 block_size=16 group_size=8"), {}, gpu);
  EXPECT_EQ(wide.products_each, 6);
  EXPECT_NEAR(wide.compute_us, 6 * wide.flops / 989.5e6, 1e-9);
  const Roofline latent = roofline_of(
      config_of("decode head_size=576 head_size_v=512 block_size=64 group_size=16 latent=1"),
      {.batch = 1, .seq_len = 1000}, gpu);
  EXPECT_EQ(latent.problem.num_kv_heads, 1);
  EXPECT_EQ(wide.problem.num_kv_heads, 8);
  EXPECT_DOUBLE_EQ(latent.kv_bytes, 1000 * 576 * 2);
  EXPECT_DOUBLE_EQ(latent.flops, 2.0 * 1000 * 16 * (576 + 512));
}

TEST(RooflineTest, CausalSharedQueriesLieWithinTheSequence) {
  const Gpu gpu = *find_gpu("a100-80");
  const KernelConfig causal =
      config_of("shared head_size=64 block_size=16 group_size=4 causal=1", "sm_80");
  const Roofline r = roofline_of(causal, {.batch = 1, .seq_len = 10, .num_kv_heads = 1}, gpu);
  EXPECT_EQ(r.problem.query_len, 10);
  EXPECT_DOUBLE_EQ(r.flops, 2.0 * 10 * (10 - 5) * 4 * 128);
  EXPECT_EQ(usual_query_len(causal.spec, 1000), 64);
  const KernelConfig all = config_of("shared head_size=64 block_size=16 group_size=4", "sm_80");
  EXPECT_EQ(usual_query_len(all.spec, 10), 64) << "each sees every key";
}

TEST(RooflineTest, TheScalesOfTokensAreCounted) {
  const Gpu gpu = *find_gpu("h200");
  const KernelConfig config =
      config_of("decode kv=int4 token_scales=1 head_size=64 block_size=16 group_size=4");
  const Roofline r = roofline_of(config, {.batch = 2, .seq_len = 1000, .num_kv_heads = 8}, gpu);
  EXPECT_DOUBLE_EQ(r.kv_bytes, 2.0 * 1000 * 8 * (64 + 2 * 4));
  EXPECT_THAT(explain_roofline(r, config.spec, gpu),
              HasSubstr("KV heads 8 x (64 B + 2 scales x 4 B) a token = 1.152 MB"));
}

TEST(RooflineTest, TheMostHeadsThatAreLegalArePrinted) {
  const Gpu gpu = *find_gpu("h200");
  const KernelConfig config = config_of("decode head_size=128 block_size=16 group_size=4");
  const Roofline r = roofline_of(config, {.num_kv_heads = 1 << 30}, gpu);
  EXPECT_THAT(explain_roofline(r, config.spec, gpu), HasSubstr("x heads 4,294,967,296 x"));
}

TEST(RooflineTest, WithoutARateOnlyMemoryIsSaid) {
  const KernelConfig config =
      config_of("decode head_size=128 block_size=16 group_size=4", "sm_121a");
  const Gpu gpu = *find_gpu("gb10");
  const Roofline r = roofline_of(config, {}, gpu);
  EXPECT_EQ(r.compute_us, 0);
  EXPECT_THAT(explain_roofline(r, config.spec, gpu), HasSubstr("no rate of products is known"));
}

TEST(RooflineTest, OnlyKeysWithinTheWindowAreCounted) {
  const Gpu gpu = *find_gpu("h200");
  const KernelConfig decode = config_of("decode head_size=128 block_size=16 group_size=4 window=1");
  const Problem long_one = {.batch = 8, .seq_len = 32768, .num_kv_heads = 8, .window = 512};
  const Roofline r = roofline_of(decode, long_one, gpu);
  EXPECT_TRUE(r.is_windowed);
  EXPECT_DOUBLE_EQ(r.kv_bytes, 8.0 * 512 * 8 * 512) << "and not 64 times as much";
  EXPECT_DOUBLE_EQ(r.flops, 2.0 * 8 * 512 * 32 * 256);
  EXPECT_DOUBLE_EQ(r.query_bytes, 8.0 * 32 * 128 * 4);
  const std::string text = explain_roofline(r, decode.spec, gpu);
  EXPECT_THAT(text, HasSubstr("batch 8 x keys seen 512 x KV heads 8 x 512 B a token = 16.78 MB"));
  EXPECT_THAT(text, HasSubstr("query_len x keys of a query 512 x heads"));
  EXPECT_THAT(text, testing::Not(HasSubstr("seq_len")));

  // Of several query tokens each has a window of its own, a token further on.
  const KernelConfig few = config_of("few head_size=128 block_size=16 group_size=4 window=1");
  const Roofline four = roofline_of(
      few, {.batch = 1, .seq_len = 1000, .num_kv_heads = 1, .query_len = 4, .window = 10}, gpu);
  EXPECT_EQ(four.num_keys, 13);
  // Without causality the first of them sees 13 keys, the last 10.
  EXPECT_DOUBLE_EQ(four.flops, 2.0 * (13 + 12 + 11 + 10) * 4 * 256);
  const KernelConfig many =
      config_of("many head_size=128 block_size=16 group_size=4 causal=1 window=1");
  const Problem prompt = {.batch = 1, .seq_len = 4096, .num_kv_heads = 1, .query_len = 4096};
  Problem within = prompt;
  within.window = 256;
  // The first 256 query tokens see half of that on the average, the others all of it.
  const double pairs = 256 * 256 / 2.0 + (4096 - 256) * 256.0;
  EXPECT_NEAR(roofline_of(many, within, gpu).flops / (2 * pairs * 4 * 256), 1, 1e-2);
  EXPECT_DOUBLE_EQ(roofline_of(many, within, gpu).kv_bytes, 4096.0 * 512);
  // A window that holds everything changes nothing.
  within.window = 4096;
  EXPECT_DOUBLE_EQ(roofline_of(many, within, gpu).flops, roofline_of(many, prompt, gpu).flops);
  EXPECT_DOUBLE_EQ(roofline_of(many, within, gpu).kv_bytes,
                   roofline_of(many, prompt, gpu).kv_bytes);
}

TEST(RooflineTest, WhatIsNotCountedIsSaid) {
  const auto caveats = [](const char* spec, Problem problem, const char* gpu_name,
                          const char* target) {
    const KernelConfig config = config_of(spec, target);
    const Gpu gpu = *find_gpu(gpu_name);
    std::string text;
    for (const std::string& line : roofline_caveats(roofline_of(config, problem, gpu), config, gpu))
      text += line + "\n";
    return text;
  };
  const char* plain = "decode head_size=128 block_size=16 group_size=4";
  const std::string on_h200 = caveats(plain, {}, "h200", "sm_90a");
  EXPECT_THAT(on_h200, HasSubstr("bytes are those of every key once\n"));
  EXPECT_THAT(on_h200, HasSubstr("that of wgmma or tcgen05; these kernels use mma.sync\n"));
  EXPECT_THAT(on_h200, HasSubstr("GPU: H200 data sheet"));
  EXPECT_THAT(caveats(plain, {}, "a100-80", "sm_80"), testing::Not(HasSubstr("wgmma")));

  const char* window = "decode head_size=128 block_size=16 group_size=4 window=1";
  EXPECT_THAT(caveats(window, {.window = 512}, "h200", "sm_90a"),
              HasSubstr("every key within the window of 512 once\n"));
  const std::string unknown = caveats(window, {}, "h200", "sm_90a");
  EXPECT_THAT(unknown, HasSubstr("of every pair, whatever the window may hide\n"));
  EXPECT_THAT(unknown, HasSubstr("the size of the window is not known; --window tells it\n"));
  EXPECT_THAT(
      caveats("decode head_size=128 block_size=16 group_size=4 chunked=1", {}, "h200", "sm_90a"),
      HasSubstr("whatever the chunks may hide\n"));
  // Ranges show keys that a window hides; how many is not known.
  const char* ranges =
      "many head_size=128 block_size=16 group_size=4 causal=1 window=1 bidirectional_ranges=1";
  EXPECT_THAT(caveats(ranges, {.window = 512}, "h200", "sm_90a"),
              HasSubstr("whatever the window may hide\nwhat ranges show of later keys"));
}

TEST(RooflineTest, ProblemsThatAreNoneAreRefused) {
  const KernelSpec decode = *parse_spec("decode head_size=128 block_size=16 group_size=4");
  const KernelSpec many = *parse_spec("many head_size=128 block_size=16 group_size=4 causal=1");
  EXPECT_TRUE(check_problem({}, decode));
  EXPECT_EQ(check_problem({.batch = 0}, decode).message(), "--batch 0: must be 1 to 1073741824");
  EXPECT_FALSE(check_problem({.seq_len = -1}, decode));
  EXPECT_FALSE(check_problem({.num_kv_heads = -1}, decode));
  EXPECT_EQ(check_problem({.window = 512}, decode).message(),
            "--window 512: the kernel has no window");
  EXPECT_FALSE(check_problem({.window = -1}, decode));
  EXPECT_THAT(check_problem({.query_len = 2}, decode).message(), HasSubstr("must be 1 for"));
  EXPECT_TRUE(check_problem({.seq_len = 100, .query_len = 100}, many));
  EXPECT_FALSE(check_problem({.seq_len = 100, .query_len = 101}, many));
}

}  // namespace
}  // namespace pagejit::inspect
