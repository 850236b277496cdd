// Bugs planted in the templates of the families beside attention: each must be found by the checks
// that the families' tests are made of, and none where there is none.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "generator/families.h"
#include "tests/sweep/cache_ops_batch.h"
#include "tests/sweep/cache_write_batch.h"
#include "tests/sweep/edited_engine.h"
#include "tests/sweep/index_keys_batch.h"
#include "tests/sweep/index_logits_batch.h"
#include "tests/sweep/merge_batch.h"
#include "tests/sweep/mla_cache_batch.h"
#include "tests/sweep/planted_family_bugs.h"
#include "tests/sweep/test_device.h"
#include "tests/sweep/top_k_batch.h"

namespace pagejit {
namespace {

class PlantedFamilyBugTest : public EmulatorTest {
 protected:
  // An engine whose kernels are rendered with `bug`; null for none.
  std::shared_ptr<Engine> make_engine(const PlantedFamilyBug* bug,
                                      HostBuild build = HostBuild::kPlain) {
    EngineOptions options = device().options;
    options.host_build = build;
    TemplateEdit edit;
    if (bug != nullptr) edit = {bug->file, bug->from, bug->to};
    // Without the instructions for 8 bits, so that the arithmetic in their place is tested.
    return make_edited_engine(options, edit, [](const AnySpec& spec, const Target&) {
      return plan_any(spec, Target::host(80));
    });
  }

  // What is wrong with the engine's kernels of a family; empty if nothing was found.
  std::string find_bug(Engine& bugged, Family family) {
    switch (family) {
      case Family::kMergeStates:
        return find_merge_bug(bugged);
      case Family::kCacheWrite:
        return find_write_bug(bugged);
      case Family::kCopyBlocks:
        return check_copy_blocks(bugged, session(), {.block_bytes = 20000, .gap_bytes = 48});
      case Family::kGatherCache:
        return find_gather_bug(bugged);
      case Family::kConvertFloat8:
        return find_convert_bug(bugged);
      case Family::kMlaCacheWrite:
        return find_mla_write_bug(bugged);
      case Family::kIndexKeys:
        return find_index_key_bug(bugged);
      case Family::kTopK:
        return find_top_k_bug(bugged);
      case Family::kIndexLogits:
        return find_logits_bug(bugged);
    }
    return "";
  }

 private:
  std::string find_merge_bug(Engine& bugged) {
    const MergeStatesSpec specs[] = {
        {DataType::kBFloat16, DataType::kBFloat16, 72},
        {DataType::kFloat16, DataType::kFloat32, 33, true},
    };
    for (const MergeStatesSpec& spec : specs) {
      // A kernel that does not compile shows nothing; it fails the test.
      EXPECT_TRUE(bugged.prepare(spec).is_ok());
      const std::string fault = check_merge(bugged, session(),
                                            {.spec = spec,
                                             .num_states = 3,
                                             .num_tokens = 50,
                                             .num_heads = 3,
                                             .num_merged_tokens = 40,
                                             .counted_tokens = spec.listed ? 47 : -1,
                                             .padded = true});
      if (!fault.empty()) return fault;
    }
    return "";
  }

  std::string find_write_bug(Engine& bugged) {
    CacheWriteSpec plain{.head_size = 72, .block_size = 5};
    plain.rope = RopeStyle::kNeox;
    plain.rotary_dim = 48;
    CacheWriteSpec chunked{.kv_dtype = DataType::kFloat8E4m3,
                           .scale = KvScale::kHead,
                           .layout = KvLayout::kVllm,
                           .head_size = 64,
                           .block_size = 8};
    CacheWriteSpec small = chunked;
    small.dtype = DataType::kFloat16;
    small.kv_dtype = DataType::kFloat8E5m2;
    CacheWriteSpec found{.kv_dtype = DataType::kInt8,
                         .scale = KvScale::kTokenHead,
                         .head_size = 128,
                         .rope = RopeStyle::kInterleaved,
                         .rotary_dim = 64};
    CacheWriteSpec int4 = found;
    int4.kv_dtype = DataType::kInt4;
    int4.head_size_v = 72;
    for (const CacheWriteSpec& spec : {plain, chunked, small, found, int4}) {
      EXPECT_TRUE(bugged.prepare(spec).is_ok());
      const std::string fault = check_cache_write(
          bugged, session(),
          {.spec = spec,
           .num_tokens = 33,
           .num_kv_heads = 3,
           .num_q_heads = spec.rope == RopeStyle::kNone ? 0 : 5,
           .num_blocks = 20,
           .order = spec.layout == KvLayout::kRows ? RowOrder::kInterleaved : RowOrder::kNhd,
           .source_pad = 8});
      if (!fault.empty()) return fault;
    }
    return "";
  }

  std::string find_mla_write_bug(Engine& bugged) {
    const MlaCacheWriteSpec plain{.kv_lora_rank = 200, .qk_rope_head_dim = 8, .block_size = 5};
    const MlaCacheWriteSpec codes{
        .format = MlaFormat::kE4m3, .kv_lora_rank = 256, .rope = RopeStyle::kInterleaved};
    const MlaCacheWriteSpec ds_mla{.format = MlaFormat::kDsMla, .block_size = 7};
    MlaCacheWriteSpec rotated = ds_mla;
    rotated.dtype = DataType::kFloat16;
    rotated.rope = RopeStyle::kNeox;
    MlaCacheWriteSpec grouped = codes;
    grouped.rope = RopeStyle::kNone;
    grouped.grouped = true;
    for (const MlaCacheWriteSpec& spec : {plain, codes, ds_mla, rotated, grouped}) {
      EXPECT_TRUE(bugged.prepare(spec).is_ok());
      const std::string fault =
          check_mla_cache_write(bugged, session(),
                                {.spec = spec,
                                 .num_tokens = 33,
                                 .num_q_heads = spec.rope == RopeStyle::kNone ? 0 : 37,
                                 .source_pad = 8,
                                 .cache_pad = 16,
                                 .num_layers = spec.grouped ? 3 : 0,
                                 .with_extremes = spec.rope == RopeStyle::kNone});
      if (!fault.empty()) return fault;
    }
    return "";
  }

  std::string find_gather_bug(Engine& bugged) {
    const GatherCacheSpec wide{.head_size = 72, .block_size = 5};
    const GatherCacheSpec small{.kv_dtype = DataType::kFloat8E4m3,
                                .scale = KvScale::kTokenHead,
                                .layout = KvLayout::kVllm,
                                .head_size = 64,
                                .block_size = 8};
    const GatherCacheSpec int4{.kv_dtype = DataType::kInt4,
                               .scale = KvScale::kTokenHead,
                               .head_size = 64,
                               .head_size_v = 48,
                               .block_size = 5};
    const GatherCacheSpec latent{.kv_dtype = DataType::kFloat8E4m3,
                                 .out_dtype = DataType::kFloat16,
                                 .layout = KvLayout::kDsMla,
                                 .head_size = 576,
                                 .block_size = 7};
    for (const GatherCacheSpec& spec : {wide, small, int4, latent}) {
      EXPECT_TRUE(bugged.prepare(spec).is_ok());
      const bool is_latent = spec == latent;
      const std::string fault = check_gather_cache(
          bugged, session(),
          {.spec = spec, .with_values = !is_latent, .num_kv_heads = is_latent ? 1 : 3});
      if (!fault.empty()) return fault;
    }
    return "";
  }

  std::string find_convert_bug(Engine& bugged) {
    constexpr DataType kSmall = DataType::kFloat8E4m3;
    constexpr DataType kWide = DataType::kBFloat16;
    for (const ConvertFloat8Spec& spec :
         {ConvertFloat8Spec{kSmall, kWide}, ConvertFloat8Spec{kWide, kSmall}}) {
      EXPECT_TRUE(bugged.prepare(spec).is_ok());
      const std::string fault = check_convert_float8(bugged, session(), spec, 0.75f);
      if (!fault.empty()) return fault;
    }
    return "";
  }

  std::string find_index_key_bug(Engine& bugged) {
    const IndexKeyWriteSpec wide{.dtype = DataType::kFloat32, .block_size = 4};
    const IndexKeyWriteSpec small{
        .head_size = 96, .quant_block_size = 32, .block_size = 5, .power_of_two_scale = true};
    for (const IndexKeyWriteSpec& spec : {wide, small}) {
      EXPECT_TRUE(bugged.prepare(spec).is_ok());
      const std::string fault =
          check_index_key_write(bugged, session(), {.spec = spec, .num_blocks = 13});
      if (!fault.empty()) return fault;
    }
    const IndexKeyGatherSpec gather{.head_size = 96, .quant_block_size = 32, .block_size = 5};
    EXPECT_TRUE(bugged.prepare(gather).is_ok());
    return check_index_key_gather(bugged, session(), {.spec = gather, .page_gap = 16});
  }

  std::string find_top_k_bug(Engine& bugged) {
    const TopKOptions cases[] = {
        {.k = 100, .lengths = {99, 100, 101, 700}, .last_begin = 9},
        {.kind = LogitKind::kLowBits, .k = 100, .lengths = {3000, 150}, .next_n = 2},
        {.kind = LogitKind::kFew, .k = 100, .lengths = {3000, 170}},
        {.k = 40, .lengths = {1000, 90, 700}, .last_begin = 9, .num_splits = 4},
        {.kind = LogitKind::kSpecial, .k = 290, .lengths = {300, 291, 10}},
    };
    for (const TopKOptions& options : cases) {
      EXPECT_TRUE(bugged.prepare(options.spec).is_ok());
      const std::string fault = check_top_k(bugged, session(), options);
      if (!fault.empty()) return fault;
    }
    return "";
  }

  std::string find_logits_bug(Engine& bugged) {
    const IndexLogitsOptions cases[] = {
        {.spec = {.num_heads = 16, .clean = true}, .lengths = {40, 0, 17}, .last_begin = 50},
        {.spec = {.num_heads = 8, .head_size = 96, .block_size = 5},
         .lengths = {71, 3, 60},
         .next_n = 5,
         .column_begin = 7},
        {.spec = {.num_heads = 8, .head_size = 160, .clean = true},
         .lengths = {20, 600},
         .num_keys = 620,
         .last_begin = 20},
    };
    for (const IndexLogitsOptions& options : cases) {
      EXPECT_TRUE(bugged.prepare(options.spec).is_ok());
      const std::string fault = check_index_logits(bugged, session(), options);
      if (!fault.empty()) return fault;
    }
    return "";
  }
};

TEST_F(PlantedFamilyBugTest, NothingIsFoundInTheRealTemplates) {
  for (const HostBuild build : {HostBuild::kPlain, HostBuild::kChecked}) {
    const std::shared_ptr<Engine> engine = make_engine(nullptr, build);
    for (const Family family : kFamilies) {
      EXPECT_EQ(find_bug(*engine, family), "") << static_cast<int>(family) << report();
    }
  }
}

class EachPlantedFamilyBugTest : public PlantedFamilyBugTest,
                                 public testing::WithParamInterface<PlantedFamilyBug> {};

TEST_P(EachPlantedFamilyBugTest, IsFound) {
  const std::shared_ptr<Engine> engine = make_engine(&GetParam());
  ASSERT_NE(engine, nullptr);
  const std::string found = find_bug(*engine, GetParam().family);
  EXPECT_NE(found, "");
  RecordProperty("found", found);
}

INSTANTIATE_TEST_SUITE_P(Bugs, EachPlantedFamilyBugTest, testing::ValuesIn(planted_family_bugs()),
                         [](const testing::TestParamInfo<PlantedFamilyBug>& test) {
                           return std::string(test.param.name);
                         });

}  // namespace
}  // namespace pagejit
