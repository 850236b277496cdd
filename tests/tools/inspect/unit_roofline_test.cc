#include "tools/inspect/unit_roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/families.h"
#include "generator/spec_parser.h"

namespace pagejit::inspect {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

AnyConfig config_of(const char* text) {
  const Result<AnySpec> spec = parse_any_spec(text);
  EXPECT_TRUE(spec) << spec.status().to_string();
  const Result<AnyConfig> config = plan_any(*spec, *parse_target("sm_90a"));
  EXPECT_TRUE(config) << config.status().to_string();
  return *config;
}

struct Expected {
  const char* spec;
  const char* unit;
  double read_bytes;
  double written_bytes;
  double flops = 0;
};

TEST(UnitRooflineTest, EachFamilyMovesWhatItsTensorsHave) {
  const Expected all[] = {
      {"merge_states in=bf16 out=f32 head_size=128", "token and head of 2 states",
       2 * (128 * 2 + 4), 128 * 4 + 4},
      {"cache_write dtype=bf16 kv=bf16 head_size=128 block_size=16", "token and KV head",
       2 * 128 * 2, 2 * 128 * 2},
      {"cache_write dtype=f32 kv=int4 scale=token_head head_size=128 head_size_v=64 block_size=16",
       "token and KV head", 192 * 4, 96 + 8},
      {"copy_blocks", "byte of a block", 1, 1},
      {"gather_cache kv=int8 out=bf16 scale=token_head head_size=128 block_size=16",
       "token and KV head", 256 + 8, 256 * 2},
      {"gather_cache kv=fp8_e4m3 out=bf16 layout=ds_mla head_size=576 block_size=64", "token", 656,
       576 * 2},
      {"convert_float8 from=f32 to=fp8_e4m3", "element", 4, 1},
      {"mla_cache_write dtype=bf16 format=plain kv_lora_rank=512 qk_rope_head_dim=64 block_size=64",
       "token", 1152, 1152},
      {"mla_cache_write dtype=bf16 format=fp8_ds_mla kv_lora_rank=512 qk_rope_head_dim=64 "
       "block_size=64",
       "token", 1152, 656},
      {"index_key_write dtype=bf16 head_size=128 quant_block_size=64 block_size=64", "token", 256,
       128 + 8},
      {"index_key_gather head_size=128 quant_block_size=128 block_size=64", "token", 132, 132},
      {"index_logits num_heads=64 head_size=128 block_size=64", "key, of one row", 132, 4,
       2 * 64 * 128},
      {"top_k", "column of a row", 4, 0},
  };
  for (const Expected& expected : all) {
    SCOPED_TRACE(expected.spec);
    const UnitWork work = unit_work(config_of(expected.spec));
    EXPECT_EQ(work.unit, expected.unit);
    EXPECT_EQ(work.read_bytes, expected.read_bytes);
    EXPECT_EQ(work.written_bytes, expected.written_bytes);
    EXPECT_EQ(work.flops, expected.flops);
    EXPECT_EQ(work.operations.empty(), expected.flops == 0);
  }
}

TEST(UnitRooflineTest, TheLimitIsThatOfMemoryOrOfProducts) {
  const Gpu gpu = *find_gpu("h200");  // 4800 GB/s, 989.5 TFLOP/s
  const UnitRoofline copy = unit_roofline_of(config_of("copy_blocks"), gpu);
  EXPECT_TRUE(copy.is_memory_bound());
  EXPECT_DOUBLE_EQ(copy.memory_ns, 2 / 4800.0);
  EXPECT_EQ(copy.compute_ns, 0);
  const UnitRoofline logits =
      unit_roofline_of(config_of("index_logits num_heads=128 head_size=256"), gpu);
  EXPECT_DOUBLE_EQ(logits.memory_ns, (256 + 4 + 4) / 4800.0);
  EXPECT_DOUBLE_EQ(logits.compute_ns, 2 * 128 * 256 / 989.5e3);
  EXPECT_FALSE(logits.is_memory_bound());
  EXPECT_DOUBLE_EQ(logits.limit_ns(), logits.compute_ns);
}

TEST(UnitRooflineTest, TheTextHasTheNumbersAndTheirSources) {
  const Gpu gpu = *find_gpu("h200");
  const UnitRoofline r = unit_roofline_of(
      config_of("cache_write dtype=bf16 kv=int4 scale=token_head head_size=128 block_size=16"),
      gpu);
  const std::string text = explain_unit_roofline(r, gpu);
  EXPECT_THAT(text, HasSubstr("unit of work  token and KV head\n"));
  EXPECT_THAT(text, HasSubstr("read          (128 + 128) x 2 B = 512"));
  EXPECT_THAT(text, HasSubstr("written       (128 + 128) x 0.5 B + 2 x 4 B = 136"));
  EXPECT_THAT(text, HasSubstr("operations    no products of matrices\n"));
  EXPECT_THAT(text, HasSubstr("a million units take at least 135"));
  EXPECT_THAT(unit_roofline_caveats(r, gpu),
              ElementsAre("each byte counts once; not counted: slots", HasSubstr("H200")));
}

}  // namespace
}  // namespace pagejit::inspect
