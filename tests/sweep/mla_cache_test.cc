// The latent cache of MLA: its rows in every format, rotated or not, against plain loops.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/sweep/family_test.h"
#include "tests/sweep/mla_cache_batch.h"
#include "tests/sweep/sweep_main.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kF32 = DataType::kFloat32;
constexpr MlaFormat kFormats[] = {MlaFormat::kPlain, MlaFormat::kE4m3, MlaFormat::kDsMla};

class MlaCacheTest : public FamilyTest {
 protected:
  std::string write(const MlaWriteOptions& options) {
    const std::string fault = check_mla_cache_write(engine(), session(), options);
    return fault.empty() ? fault : canonical_text(options.spec) + ": " + fault + report();
  }
};

// vLLM's table of concat_and_cache_mla: 42 tokens, 8 blocks of 16; f16 beside its types. Here and
// below each slot is compared with its text, and the bytes between them with what they were.
TEST_F(MlaCacheTest, RowsAreWhereTheyBelong) {
  for (const int rank : {256, 512}) {
    for (const DataType type : {kF16, kBF16, kF32}) {
      for (const MlaFormat format : {MlaFormat::kPlain, MlaFormat::kE4m3}) {
        for (const bool with_extremes : {false, true}) {
          EXPECT_EQ(
              write({.spec =
                         {.dtype = type, .format = format, .kv_lora_rank = rank, .block_size = 16},
                     .with_extremes = with_extremes}),
              "");
        }
      }
    }
  }
}

// vLLM's table of the row of 656 bytes; f16 beside bf16, other blocks, odd counts of tokens.
TEST_F(MlaCacheTest, RowsOf656BytesAreWhatTheirTextSays) {
  for (const DataType type : {kBF16, kF16}) {
    for (const int block_size : {16, 64, 1, 7}) {
      for (const bool with_extremes : {false, true}) {
        for (const int num_tokens : {42, 1, 17}) {
          EXPECT_EQ(
              write({.spec = {.dtype = type, .format = MlaFormat::kDsMla, .block_size = block_size},
                     .num_tokens = num_tokens,
                     .num_blocks = 43 / block_size + 7,
                     .with_extremes = with_extremes}),
              "");
        }
      }
    }
  }
}

TEST_F(MlaCacheTest, RowsOfAnySizeAreWritten) {
  for (const auto& [rank, rope_dim] :
       {std::pair{512, 0}, {16, 16}, {528, 48}, {128, 112}, {144, 0}, {33, 7}, {4096, 4096}}) {
    for (const MlaFormat format : {MlaFormat::kPlain, MlaFormat::kE4m3}) {
      EXPECT_EQ(write({.spec = {.format = format,
                                .kv_lora_rank = rank,
                                .qk_rope_head_dim = rope_dim,
                                .block_size = 5},
                       .num_tokens = 13,
                       .num_blocks = 4}),
                "");
    }
  }
}

TEST_F(MlaCacheTest, RowsMayLieAnywhereAsFarAsTheAlignmentSays) {
  for (const DataType type : {kBF16, kF32}) {
    for (const MlaFormat format : kFormats) {
      for (const int alignment : {16, 8, 4, 2}) {
        const MlaCacheWriteSpec spec{
            .dtype = type, .format = format, .block_size = 3, .row_alignment = alignment};
        if (!validate(spec)) continue;
        const int elements = alignment / data_type_bytes(type);
        EXPECT_EQ(write({.spec = spec,
                         .num_tokens = 11,
                         .num_blocks = 9,
                         .source_pad = elements,
                         .cache_pad = format == MlaFormat::kDsMla ? alignment : elements}),
                  "");
      }
    }
  }
}

// vLLM's table of rotary_embedding_mla_cache_fused: 11 and 42 tokens, 128 heads, 64 blocks; here
// fewer blocks. Without --all each kernel has one of its block sizes.
using FusedCase = std::tuple<DataType, RopeStyle, int, MlaFormat, int>;
class FusedRopeTest : public MlaCacheTest, public testing::WithParamInterface<FusedCase> {};

TEST_P(FusedRopeTest, LatentRowsAndQueriesAreRotated) {
  const auto [type, rope, rope_dim, format, block_size] = GetParam();
  for (const int num_tokens : {11, 42}) {
    EXPECT_EQ(write({.spec = {.dtype = type,
                              .format = format,
                              .qk_rope_head_dim = rope_dim,
                              .block_size = block_size,
                              .rope = rope,
                              .cos_sin_dtype = type},
                     .num_tokens = num_tokens,
                     .num_q_heads = 128,
                     .num_blocks = 64 / block_size + 2}),
              "");
  }
}

std::vector<FusedCase> fused_cases() {
  constexpr int kBlockSizes[] = {16, 64, 256};
  std::vector<FusedCase> cases;
  size_t number = 0;
  for (const DataType type : {kF16, kBF16, kF32}) {
    for (const RopeStyle rope : {RopeStyle::kNeox, RopeStyle::kInterleaved}) {
      for (const int rope_dim : {64, 128}) {
        for (const MlaFormat format : kFormats) {
          const MlaCacheWriteSpec spec{
              .dtype = type, .format = format, .qk_rope_head_dim = rope_dim};
          if (!validate(spec)) continue;
          ++number;
          for (size_t i = 0; i < 3; ++i) {
            if (!run_all() && i != number % 3) continue;
            cases.emplace_back(type, rope, rope_dim, format, kBlockSizes[i]);
          }
        }
      }
    }
  }
  return cases;
}

std::string fused_name(const testing::TestParamInfo<FusedCase>& test) {
  const auto [type, rope, rope_dim, format, block_size] = test.param;
  constexpr const char* kNames[] = {"plain", "fp8", "ds_mla"};
  return std::string(data_type_name(type)) + (rope == RopeStyle::kNeox ? "_neox" : "_interleaved") +
         std::to_string(rope_dim) + "_" + kNames[static_cast<int>(format)] + "_b" +
         std::to_string(block_size);
}

INSTANTIATE_TEST_SUITE_P(Vllm, FusedRopeTest, testing::ValuesIn(fused_cases()), fused_name);

TEST_F(MlaCacheTest, RotationsOfOtherSizesAndAlignmentsWork) {
  for (const RopeStyle rope : {RopeStyle::kNeox, RopeStyle::kInterleaved}) {
    for (const auto& [rope_dim, alignment] : {std::pair{2, 16}, {20, 8}, {48, 4}, {512, 16}}) {
      for (const int num_q_heads : {0, 3}) {
        EXPECT_EQ(write({.spec = {.format = MlaFormat::kE4m3,
                                  .kv_lora_rank = 100,
                                  .qk_rope_head_dim = rope_dim,
                                  .block_size = 5,
                                  .rope = rope,
                                  .row_alignment = alignment},
                         .num_tokens = 9,
                         .num_q_heads = num_q_heads,
                         .source_pad = alignment / 2,
                         .cache_pad = alignment / 2}),
                  "");
      }
    }
  }
}

// Of one layer as of many, each with its own tokens, slots, cache and scale.
TEST_F(MlaCacheTest, ManyLayersAreWrittenInOneLaunch) {
  for (const MlaFormat format : kFormats) {
    for (const bool debug : {false, true}) {
      for (const int num_layers : {1, 3, 61}) {
        EXPECT_EQ(
            write({.spec = {.format = format, .block_size = 7, .grouped = true, .debug = debug},
                   .num_tokens = 13,
                   .num_blocks = 3,
                   .source_pad = 8,
                   .cache_pad = 16,
                   .num_layers = num_layers}),
            "");
      }
    }
  }
  EXPECT_EQ(write({.spec = {.dtype = kF32, .qk_rope_head_dim = 0, .grouped = true},
                   .num_blocks = 1,
                   .num_layers = 4}),
            "");
}

// Slots behind 2^32 elements of the cache.
TEST_F(MlaCacheTest, SlotsBeyond32BitOffsetsAreWritten) {
  constexpr int64_t kBlockStride = (int64_t{1} << 31) + 16;
  const MlaCacheWriteKernel kernel =
      prepare_family(MlaCacheWriteSpec{.format = MlaFormat::kDsMla, .block_size = 1});
  Result<DeviceBuffer> cache = DeviceBuffer::allocate(session(), 3 * kBlockStride + 656);
  if (lacks_memory(cache.status())) GTEST_SKIP() << "not enough GPU memory";
  ASSERT_TRUE(cache.is_ok()) << cache.status().to_string();
  const DeviceBuffer rows = upload(std::vector<uint16_t>(576, 0x3f80));  // ones
  const DeviceBuffer slots = upload(std::vector<int64_t>{3});
  MlaCacheWriteArgs args;
  args.kv_c = rows.data();
  args.k_pe = rows.data<uint16_t>() + 512;
  args.cache = cache->data();
  args.cache_stride_block = kBlockStride;
  args.slot_mapping = slots.data<int64_t>();
  args.num_tokens = 1;
  ASSERT_TRUE(run(kernel, args));
  std::vector<uint8_t> got(656);
  ASSERT_TRUE(cache->download(static_cast<size_t>(3 * kBlockStride), got.data(), got.size()));
  EXPECT_EQ(got[0], 0x7e);  // 448, for the scale is 1 / 448
  EXPECT_EQ(got[511], 0x7e);
  EXPECT_EQ(got[655], 0x3f);
}

TEST_F(MlaCacheTest, DebugKernelsReportTheLowestBadSlotAndPosition) {
  const MlaCacheWriteSpec spec{
      .format = MlaFormat::kDsMla, .block_size = 16, .rope = RopeStyle::kNeox, .debug = true};
  EXPECT_EQ(write({.spec = spec, .num_q_heads = 4}), "");
  const MlaCacheWriteKernel kernel = prepare_family(spec);
  const DeviceBuffer memory = upload(std::vector<uint8_t>(1 << 16));
  const DeviceBuffer report = upload(std::vector<uint8_t>(kDebugReportBytes, 0xee));
  ASSERT_TRUE(kernel.init_debug_report(report.data(), nullptr));
  MlaCacheWriteArgs args;
  args.cache = memory.data();
  args.kv_c = args.k_pe = args.cos_sin = memory.data();
  args.num_tokens = 40;
  args.num_blocks = 3;
  args.max_position = 10;
  args.debug_report = report.data();
  const auto launch = [&](size_t bad_slot, int64_t slot, size_t bad_position, int64_t position) {
    std::vector<int64_t> slots(40, -1);
    std::vector<int64_t> positions(40, 9);
    slots[1] = 47;  // the last that is there
    for (size_t i = bad_slot; i < 40; i += 3) slots[i] = slot;
    for (size_t i = bad_position; i < 40; i += 5) positions[i] = position;
    const DeviceBuffer slot_buffer = upload(slots);
    const DeviceBuffer position_buffer = upload(positions);
    args.slot_mapping = slot_buffer.data<int64_t>();
    args.positions = position_buffer.data<int64_t>();
    EXPECT_TRUE(run(kernel, args));
    return kernel.read_debug_report(report.data(), nullptr).message();
  };
  EXPECT_EQ(launch(40, 0, 40, 0), "");
  EXPECT_EQ(launch(7, 48, 3, -1),
            "slot_mapping[7] is 48: must be -1, or in [0, num_blocks * block_size)");
  EXPECT_EQ(launch(4, -2, 40, 0),
            "slot_mapping[4] is -2: must be -1, or in [0, num_blocks * block_size)");
  EXPECT_EQ(launch(40, 0, 12, 10), "positions[12] is 10: must be in [0, max_position)");
  EXPECT_EQ(launch(40, 0, 40, 0), "") << "the report was not cleared";
}

TEST_F(MlaCacheTest, DebugKernelsOfManyLayersReportTheFirstBadSlot) {
  const MlaCacheWriteKernel kernel =
      prepare_family(MlaCacheWriteSpec{.block_size = 16, .grouped = true, .debug = true});
  const DeviceBuffer memory = upload(std::vector<uint8_t>(1 << 17));
  const DeviceBuffer caches = upload(std::vector<void*>(5, memory.data()));
  const DeviceBuffer report = upload(std::vector<uint8_t>(kDebugReportBytes));
  std::vector<int64_t> slots(5 * 12, -1);
  slots[9] = slots[4 * 12] = 1000;  // behind the ninth token, which there is not, and in layer 4
  slots[2 * 12 + 5] = 48;
  slots[3 * 12 + 1] = -7;
  const DeviceBuffer slot_buffer = upload(slots);
  MlaCacheWriteArgs args;
  args.kv_c = args.k_pe = memory.data();
  args.caches = caches.data<void*>();
  args.num_layers = 5;
  args.slot_mapping = slot_buffer.data<int64_t>();
  args.slot_mapping_stride_layer = 12;
  args.num_tokens = 9;
  args.num_blocks = 3;
  args.debug_report = report.data();
  ASSERT_TRUE(run(kernel, args));
  EXPECT_EQ(kernel.read_debug_report(report.data(), nullptr).message(),
            "slot_mapping of layer * num_tokens + token = 23 is 48: must be -1, or in [0, "
            "num_blocks * block_size)");
  EXPECT_EQ(kernel.read_debug_report(report.data(), nullptr).message(), "");
}

TEST_F(MlaCacheTest, BadArgumentsAreNamed) {
  const DeviceBuffer memory = upload(std::vector<uint8_t>(1 << 16));
  MlaCacheWriteArgs good;
  good.kv_c = good.k_pe = good.cache = memory.data();
  good.slot_mapping = memory.data<int64_t>();
  good.num_tokens = 1;
  const auto message = [&](const MlaCacheWriteSpec& spec, auto change) {
    MlaCacheWriteArgs args = good;
    change(args);
    return prepare_family(spec).launch(args, nullptr).message();
  };
  const MlaCacheWriteSpec plain;
  const std::string null = " is null: must be a device pointer";
  EXPECT_EQ(message(plain, [](auto&) {}), "");
  EXPECT_EQ(message(plain, [](auto& a) { a.num_tokens = -1; }),
            "num_tokens -1: must be in [0, 2147483647]");
  EXPECT_EQ(message(plain, [](auto& a) { a.kv_c = nullptr; }), "kv_c" + null);
  EXPECT_EQ(message(plain, [](auto& a) { a.k_pe = nullptr; }), "k_pe" + null);
  EXPECT_EQ(message({.qk_rope_head_dim = 0}, [](auto& a) { a.k_pe = nullptr; }), "");
  EXPECT_EQ(message(plain, [](auto& a) { a.slot_mapping = nullptr; }), "slot_mapping" + null);
  EXPECT_EQ(message(plain, [](auto& a) { a.kv_c_stride_token = 12; }),
            "kv_c_stride_token 12: must be a multiple of 8 elements");
  EXPECT_EQ(message(plain, [](auto& a) { a.k_pe_stride_token = 12; }),
            "k_pe_stride_token 12: must be a multiple of 8 elements");
  EXPECT_EQ(message(plain, [](auto& a) { a.cache_stride_token = 580; }),
            "cache_stride_token 580: must be a multiple of 8 elements");
  EXPECT_EQ(message({.format = MlaFormat::kE4m3}, [](auto&) {}), "scale" + null);
  EXPECT_EQ(message({.format = MlaFormat::kDsMla}, [](auto& a) { a.cache_stride_block = 664; }),
            "cache_stride_block 664: must be a multiple of 16 elements");
  const MlaCacheWriteSpec grouped{.grouped = true};
  EXPECT_EQ(message(grouped, [](auto&) {}), "") << "no layer";
  EXPECT_EQ(message(grouped, [](auto& a) { a.num_layers = 1; }), "caches" + null);
  EXPECT_EQ(message(grouped, [](auto& a) { a.num_layers = -1; }),
            "num_layers -1: must be in [0, 65535]");
  EXPECT_EQ(message(grouped, [](auto& a) { a.num_tokens = 1 << 20, a.num_layers = 2048; }),
            "num_layers 2048: must be in [0, 2047]");
  EXPECT_EQ(message(grouped, [](auto& a) { a.num_layers = 1, a.k_pe_stride_layer = 4; }),
            "k_pe_stride_layer 4: must be a multiple of 8 elements");
  EXPECT_EQ(message(grouped, [](auto& a) { a.num_layers = 1, a.kv_c_stride_layer = 4; }),
            "kv_c_stride_layer 4: must be a multiple of 8 elements");
  const MlaCacheWriteSpec turned{.rope = RopeStyle::kNeox};
  EXPECT_EQ(message(turned, [](auto&) {}), "positions" + null);
  const auto with_rope = [&](auto change) {
    return message(turned, [&](auto& a) {
      a.positions = good.slot_mapping;
      a.cos_sin = good.kv_c;
      change(a);
    });
  };
  EXPECT_EQ(with_rope([](auto& a) { a.cos_sin = nullptr; }), "cos_sin" + null);
  EXPECT_EQ(with_rope([](auto& a) { a.num_q_heads = 1; }), "q_pe" + null);
  EXPECT_EQ(with_rope([](auto& a) { a.num_q_heads = 65001; }),
            "num_q_heads 65001: must be in [0, 65000]");
  EXPECT_EQ(with_rope([&](auto& a) {
              a.num_q_heads = 1, a.q_pe = memory.data(), a.q_pe_stride_head = 4;
            }),
            "q_pe_stride_head 4: must be a multiple of 8 elements");
  EXPECT_TRUE(session().synchronize());
}

}  // namespace
}  // namespace pagejit
