// The cache write: every layout, type and scale, against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "generator/families.h"
#include "runtime/engine/dependencies.h"
#include "tests/sweep/cache_write_batch.h"
#include "tests/sweep/family_test.h"
#include "tools/reference/float8.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kF32 = DataType::kFloat32;
constexpr DataType kE4M3 = DataType::kFloat8E4m3;
constexpr DataType kE5M2 = DataType::kFloat8E5m2;
constexpr DataType kInt8 = DataType::kInt8;

class CacheWriteTest : public FamilyTest {
 protected:
  std::string write(const CacheWriteOptions& options) {
    const std::string fault = check_cache_write(engine(), session(), options);
    return fault.empty() ? fault : fault + report();
  }

  // An engine whose kernels are those of an architecture, on the emulator.
  std::shared_ptr<Engine> engine_of(int sm) {
    EngineOptions options = device().options;
    options.disk_cache = false;
    EngineDependencies dependencies = default_dependencies(options);
    dependencies.plan = [sm](const AnySpec& spec, const Target&) {
      return plan_any(spec, Target::host(sm));
    };
    Result<std::shared_ptr<Engine>> made = create_engine(options, dependencies);
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    return *made;
  }
};

std::string type_name(DataType type) { return std::string(data_type_name(type)); }

// vLLM's table of reshape_and_cache: 42 tokens, 8 heads; blocks enough for them in place of 1,024
// and 10,000.
using ChunkedCase = std::tuple<int, int, DataType, bool>;
class ChunkedKeysTest : public CacheWriteTest, public testing::WithParamInterface<ChunkedCase> {};

TEST_P(ChunkedKeysTest, EveryElementIsWhereItBelongs) {
  const auto [head_size, block_size, type, quantised] = GetParam();
  for (const int64_t num_blocks : {64, 150}) {
    EXPECT_EQ(write({.spec = {.dtype = type,
                              .kv_dtype = quantised ? kE4M3 : type,
                              .scale = quantised ? KvScale::kTensor : KvScale::kNone,
                              .layout = KvLayout::kChunkedKeys,
                              .head_size = head_size,
                              .block_size = block_size},
                     .num_blocks = num_blocks}),
              "");
  }
}

std::string chunked_name(const testing::TestParamInfo<ChunkedCase>& test) {
  const auto [head_size, block_size, type, quantised] = test.param;
  return "d" + std::to_string(head_size) + "_b" + std::to_string(block_size) + "_" +
         type_name(type) + (quantised ? "_fp8" : "");
}

INSTANTIATE_TEST_SUITE_P(Vllm, ChunkedKeysTest,
                         testing::Combine(testing::Values(64, 80, 256), testing::Values(8, 16, 32),
                                          testing::Values(kBF16, kF32), testing::Bool()),
                         chunked_name);

// vLLM's table of reshape_and_cache_flash, less nvfp4: 21 tokens; f16 beside bf16 and f32, e5m2
// beside e4m3.
using StridedCase = std::tuple<int, int, DataType, DataType>;
class StridedTest : public CacheWriteTest, public testing::WithParamInterface<StridedCase> {};

TEST_P(StridedTest, EveryElementIsWhereItBelongs) {
  const auto [head_size, block_size, type, kv_type] = GetParam();
  const bool quantised = kv_type != type;
  for (const RowOrder order : {RowOrder::kNhd, RowOrder::kHnd}) {
    for (const KvScale scale : {KvScale::kTensor, KvScale::kHead}) {
      if (!quantised && scale == KvScale::kHead) continue;
      for (const int64_t num_blocks : {32, 75}) {
        EXPECT_EQ(write({.spec = {.dtype = type,
                                  .kv_dtype = kv_type,
                                  .scale = quantised ? scale : KvScale::kNone,
                                  .head_size = head_size,
                                  .block_size = block_size},
                         .num_tokens = 21,
                         .num_blocks = num_blocks,
                         .order = order}),
                  "");
      }
    }
  }
}

std::vector<StridedCase> strided_cases() {
  std::vector<StridedCase> cases;
  for (const int head_size : {64, 80, 256}) {
    for (const int block_size : {8, 16, 32}) {
      for (const DataType type : {kF16, kBF16, kF32}) {
        for (const DataType kv : {type, kE4M3, kE5M2}) {
          cases.emplace_back(head_size, block_size, type, kv);
        }
      }
    }
  }
  return cases;
}

std::string strided_name(const testing::TestParamInfo<StridedCase>& test) {
  const auto [head_size, block_size, type, kv] = test.param;
  return "d" + std::to_string(head_size) + "_b" + std::to_string(block_size) + "_" +
         type_name(type) + "_" + type_name(kv);
}

INSTANTIATE_TEST_SUITE_P(Vllm, StridedTest, testing::ValuesIn(strided_cases()), strided_name);

TEST_F(CacheWriteTest, ScalesPerTokenAndHeadAreFoundAndWritten) {
  for (const DataType kv : {kInt8, kE4M3, kE5M2}) {
    for (const DataType type : {kF16, kBF16, kF32}) {
      for (const KvLayout layout : {KvLayout::kStrided, KvLayout::kChunkedKeys}) {
        // Rows of 2, 9 and 32 vectors, and more than a warp's.
        for (const int head_size : {16, 144, 256, 1040}) {
          EXPECT_EQ(write({.spec = {.dtype = type,
                                    .kv_dtype = kv,
                                    .scale = KvScale::kTokenHead,
                                    .layout = layout,
                                    .head_size = head_size,
                                    .block_size = 4},
                           .num_tokens = 10,
                           .num_kv_heads = 3,
                           .num_blocks = 6}),
                    "")
              << type_name(type) << " to " << type_name(kv) << ", head size " << head_size;
        }
      }
    }
  }
}

TEST_F(CacheWriteTest, NoHeadIsDroppedHoweverManyThereAre) {
  for (const auto& [num_heads, head_size] :
       {std::pair{64, 128}, {128, 256}, {1, 4096}, {300, 64}, {7, 1}}) {
    for (const KvLayout layout : {KvLayout::kStrided, KvLayout::kChunkedKeys}) {
      if (layout == KvLayout::kChunkedKeys && head_size % 8 != 0) continue;
      EXPECT_EQ(write({.spec = {.layout = layout, .head_size = head_size, .block_size = 2},
                       .num_tokens = 4,
                       .num_kv_heads = num_heads,
                       .num_blocks = 3}),
                "")
          << num_heads << " heads of " << head_size;
    }
  }
}

TEST_F(CacheWriteTest, RowsMayLieAnywhereAsFarAsTheAlignmentSays) {
  for (const DataType type : {kBF16, kF32}) {
    for (const DataType kv : {type, kE4M3}) {
      for (const int alignment : {16, 8, 4, 2}) {
        if (alignment < data_type_bytes(type)) continue;
        EXPECT_EQ(write({.spec = {.dtype = type,
                                  .kv_dtype = kv,
                                  .scale = kv == type ? KvScale::kNone : KvScale::kHead,
                                  .head_size = 72,
                                  .block_size = 5,
                                  .row_alignment = alignment},
                         .num_tokens = 11,
                         .num_kv_heads = 3,
                         .num_blocks = 9,
                         .order = RowOrder::kInterleaved,
                         .source_pad = alignment / data_type_bytes(type)}),
                  "")
            << type_name(type) << " to " << type_name(kv) << ", " << alignment;
      }
    }
  }
}

TEST_F(CacheWriteTest, KeysAndQueriesAreRotated) {
  for (const RopeStyle rope : {RopeStyle::kNeox, RopeStyle::kInterleaved}) {
    for (const DataType type : {kF16, kBF16, kF32}) {
      for (const DataType cos_sin : {kF32, type}) {
        for (const int rotary_dim : {128, 64, 20, 2}) {
          for (const DataType kv : {type, kE4M3, kInt8}) {
            EXPECT_EQ(write({.spec = {.dtype = type,
                                      .kv_dtype = kv,
                                      .scale = kv == type    ? KvScale::kNone
                                               : kv == kInt8 ? KvScale::kTokenHead
                                                             : KvScale::kHead,
                                      .head_size = 128,
                                      .block_size = 8,
                                      .rope = rope,
                                      .rotary_dim = rotary_dim,
                                      .cos_sin_dtype = cos_sin},
                             .num_tokens = 9,
                             .num_kv_heads = 2,
                             .num_q_heads = 5,
                             .num_blocks = 4,
                             .source_pad = 8}),
                      "")
                << type_name(type) << " to " << type_name(kv) << ", rotary_dim " << rotary_dim;
          }
        }
      }
    }
  }
}

TEST_F(CacheWriteTest, RotationWithoutQueriesAndWithManyWorks) {
  for (const int num_q_heads : {0, 71}) {
    EXPECT_EQ(write({.spec = {.layout = KvLayout::kChunkedKeys,
                              .head_size = 80,
                              .rope = RopeStyle::kNeox,
                              .rotary_dim = 32},
                     .num_tokens = 6,
                     .num_kv_heads = 1,
                     .num_q_heads = num_q_heads,
                     .num_blocks = 2}),
              "");
  }
}

// All f16 through every way to 8 bits: with and without the instruction; NaN stays NaN.
TEST_F(CacheWriteTest, EveryF16IsRoundedBitForBit) {
  constexpr int kTokens = 256;
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  std::vector<int64_t> slot_list(kTokens);
  for (int i = 0; i < kTokens; ++i) slot_list[static_cast<size_t>(i)] = i;
  std::vector<std::shared_ptr<Engine>> engines = {nullptr};  // the device's own
  if (session().is_emulator()) engines = {engine_of(80), engine_of(89), engine_of(90)};
  for (const std::shared_ptr<Engine>& some : engines) {
    for (const DataType kv : {kE4M3, kE5M2}) {
      for (const float scale : {1.0f, 0.3f, 3.0e-3f, -1.0f}) {
        const CacheWriteSpec spec{
            .dtype = kF16, .kv_dtype = kv, .scale = KvScale::kTensor, .head_size = 256};
        const Result<CacheWriteKernel> kernel = (some ? *some : engine()).prepare(spec);
        ASSERT_TRUE(kernel.is_ok()) << kernel.status().to_string() << kernel.status().detail();
        const DeviceBuffer key = upload(all);
        const DeviceBuffer cache = upload(std::vector<uint8_t>(65536));
        const DeviceBuffer slots = upload(slot_list);
        const DeviceBuffer scales = upload(std::vector<float>{scale});
        CacheWriteArgs args;
        args.key = args.value = key.data();
        args.k_cache = args.v_cache = cache.data();
        args.key_stride_token = args.value_stride_token = 256;
        args.k_strides = args.v_strides = {16 * 256, 256, 0};
        args.slot_mapping = slots.data<int64_t>();
        args.num_tokens = kTokens;
        args.num_kv_heads = 1;
        args.k_scale = args.v_scale = scales.data<float>();
        ASSERT_TRUE(run(*kernel, args));
        const std::vector<uint8_t> got = download_all<uint8_t>(cache);
        for (size_t i = 0; i < all.size(); ++i) {
          const float value = float_from_f16(all[i]) / scale;
          ASSERT_EQ(int{got[i]}, int{encode_float8(kv, value)})
              << type_name(kv) << " of " << value << ", f16 " << i;
        }
      }
    }
  }
}

// Slots behind 2^32 elements of the cache, which is touched only there.
TEST_F(CacheWriteTest, SlotsBeyond32BitOffsetsAreWritten) {
  constexpr int64_t kBlockStride = (int64_t{1} << 30) + 8;
  const CacheWriteKernel kernel = prepare_family(CacheWriteSpec{.head_size = 64, .block_size = 1});
  Result<DeviceBuffer> cache = DeviceBuffer::allocate(session(), 2 * (5 * kBlockStride + 64));
  if (!session().is_emulator() && !cache) GTEST_SKIP() << "not enough GPU memory";
  ASSERT_TRUE(cache.is_ok());
  std::vector<uint16_t> rows(6 * 64);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<uint16_t>(i);
  const DeviceBuffer key = upload(rows);
  const DeviceBuffer slots = upload(std::vector<int64_t>{4, 2, 5});
  CacheWriteArgs args;
  args.key = args.value = key.data();
  args.key_stride_token = args.value_stride_token = 64;
  args.k_cache = args.v_cache = cache->data();
  args.k_strides = args.v_strides = {kBlockStride, 0, 0};
  args.slot_mapping = slots.data<int64_t>();
  args.num_tokens = 3;
  args.num_kv_heads = 1;
  ASSERT_TRUE(run(kernel, args));
  int64_t token = 0;
  for (const int64_t slot : {4, 2, 5}) {
    std::vector<uint16_t> got(64);
    ASSERT_TRUE(cache->download(static_cast<size_t>(2 * slot * kBlockStride), got.data(), 128));
    EXPECT_TRUE(std::equal(got.begin(), got.end(), rows.begin() + token * 64)) << "slot " << slot;
    ++token;
  }
}

TEST_F(CacheWriteTest, DebugKernelsReportTheLowestBadSlotAndPosition) {
  const CacheWriteSpec spec{
      .head_size = 64, .rope = RopeStyle::kNeox, .rotary_dim = 64, .debug = true};
  EXPECT_EQ(write({.spec = spec, .num_kv_heads = 2, .num_q_heads = 4}), "");
  const CacheWriteKernel kernel = prepare_family(spec);
  const DeviceBuffer memory = upload(std::vector<uint8_t>(1 << 16));
  const DeviceBuffer report = upload(std::vector<uint8_t>(kDebugReportBytes, 0xee));
  ASSERT_TRUE(kernel.init_debug_report(report.data(), nullptr));
  CacheWriteArgs args;
  args.k_cache = args.v_cache = memory.data();
  args.key = args.value = args.cos_sin = memory.data();
  args.num_tokens = 40;
  args.num_kv_heads = 1;
  args.num_blocks = 3;
  args.max_position = 10;
  args.debug_report = report.data();
  const auto launch = [&](int bad_slot, int64_t slot, int bad_position, int64_t position) {
    std::vector<int64_t> slots(40, -1);
    std::vector<int64_t> positions(40, 9);
    slots[1] = 47;  // the last that is there
    for (int i = bad_slot; i < 40; i += 3) slots[static_cast<size_t>(i)] = slot + i - bad_slot;
    for (int i = bad_position; i < 40; i += 5) positions[static_cast<size_t>(i)] = position;
    const DeviceBuffer slot_buffer = upload(slots);
    const DeviceBuffer position_buffer = upload(positions);
    args.slot_mapping = slot_buffer.data<int64_t>();
    args.positions = position_buffer.data<int64_t>();
    EXPECT_TRUE(run(kernel, args));
    return kernel.read_debug_report(report.data(), nullptr).to_string();
  };
  EXPECT_EQ(launch(40, 0, 40, 0), "ok");
  EXPECT_EQ(launch(7, 48, 3, -1),
            "device check failed: slot_mapping[7] is 48: must be -1, or in [0, num_blocks * "
            "block_size)");
  EXPECT_EQ(launch(4, -1000, 40, 0),
            "device check failed: slot_mapping[4] is -1000: must be -1, or in [0, num_blocks * "
            "block_size)");
  EXPECT_EQ(launch(40, 0, 12, 10),
            "device check failed: positions[12] is 10: must be in [0, max_position)");
  EXPECT_EQ(launch(40, 0, 40, 0), "ok") << "the report was not cleared";
}

TEST_F(CacheWriteTest, BadArgumentsAreNamed) {
  const CacheWriteKernel kernel = prepare_family(CacheWriteSpec{.head_size = 64});
  const CacheWriteKernel quantised =
      prepare_family(CacheWriteSpec{.kv_dtype = kE4M3, .scale = KvScale::kTensor, .head_size = 64});
  const DeviceBuffer memory = upload(std::vector<uint8_t>(1 << 16));
  CacheWriteArgs good;
  good.k_cache = good.v_cache = memory.data();
  good.key = good.value = memory.data();
  good.slot_mapping = memory.data<int64_t>();
  good.num_tokens = good.num_kv_heads = 1;
  const auto message = [&](auto change) {
    CacheWriteArgs args = good;
    change(args);
    return kernel.launch(args, nullptr).message();
  };
  EXPECT_EQ(message([](auto&) {}), "");
  EXPECT_EQ(message([](auto& a) { a.num_tokens = -1; }),
            "num_tokens -1: must be in [0, 2147483647]");
  EXPECT_EQ(message([](auto& a) { a.num_kv_heads = 0; }), "num_kv_heads 0: must be in [1, 65535]");
  EXPECT_EQ(message([](auto& a) { a.v_cache = nullptr; }),
            "v_cache is null: must be a device pointer");
  EXPECT_EQ(message([](auto& a) { a.key_stride_token = 3; }),
            "key_stride_token 3: must be a multiple of 8 elements");
  EXPECT_EQ(message([](auto& a) { a.v_strides.token = 12; }),
            "v_strides.token 12: must be a multiple of 8 elements");
  EXPECT_EQ(message([](auto& a) { a.slot_mapping = nullptr; }),
            "slot_mapping is null: must be a device pointer");
  EXPECT_EQ(quantised.launch(good, nullptr).message(), "k_scale is null: must be a device pointer");
  EXPECT_TRUE(session().synchronize());
}

}  // namespace
}  // namespace pagejit
