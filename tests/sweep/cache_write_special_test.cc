// What the tables of the cache write cannot hold: every f16 rounded to 8 bits, slots beyond 32-bit
// offsets, debug reports, bad arguments.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "generator/families.h"
#include "runtime/engine/dependencies.h"
#include "tests/sweep/cache_write_batch.h"
#include "tests/sweep/family_test.h"
#include "tools/reference/narrow_float.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kE4M3 = DataType::kFloat8E4m3;
constexpr DataType kE5M2 = DataType::kFloat8E5m2;

class CacheWriteSpecialTest : public FamilyTest {
 protected:
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

// All f16 through every way to 8 bits: with and without the instruction; NaN stays NaN.
TEST_F(CacheWriteSpecialTest, EveryF16IsRoundedBitForBit) {
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
          const float value = decode_float(DataType::kFloat16, all[i]) / scale;
          ASSERT_EQ(uint32_t{got[i]}, encode_float(kv, value))
              << data_type_name(kv) << " of " << value << ", f16 " << i;
        }
      }
    }
  }
}

// Slots behind 2^32 elements of the cache, which is touched only there.
TEST_F(CacheWriteSpecialTest, SlotsBeyond32BitOffsetsAreWritten) {
  constexpr int64_t kBlockStride = (int64_t{1} << 30) + 8;
  const CacheWriteKernel kernel = prepare_family(CacheWriteSpec{.head_size = 64, .block_size = 1});
  Result<DeviceBuffer> cache = DeviceBuffer::allocate(session(), 2 * (5 * kBlockStride + 64));
  if (lacks_memory(cache.status())) GTEST_SKIP() << "this GPU has too little memory";
  ASSERT_TRUE(cache.is_ok()) << cache.status().to_string();
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

TEST_F(CacheWriteSpecialTest, DebugKernelsReportTheLowestBadSlotAndPosition) {
  const CacheWriteSpec spec{
      .head_size = 64, .rope = RopeStyle::kNeox, .rotary_dim = 64, .debug = true};
  EXPECT_EQ(
      check_cache_write(engine(), session(), {.spec = spec, .num_kv_heads = 2, .num_q_heads = 4}),
      "");
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

TEST_F(CacheWriteSpecialTest, BadArgumentsAreNamed) {
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
  // Every kind of scales, of each type that has them.
  for (const DataType kv : {kE4M3, kE5M2, DataType::kInt8, DataType::kInt4}) {
    for (const KvScale scale : {KvScale::kTensor, KvScale::kHead, KvScale::kTokenHead}) {
      const CacheWriteSpec spec{.kv_dtype = kv, .scale = scale, .head_size = 64};
      if (!validate(spec)) continue;
      const CacheWriteKernel some = prepare_family(spec);
      CacheWriteArgs args = good;
      args.v_scale = memory.data<float>();
      EXPECT_EQ(some.launch(args, nullptr).message(), "k_scale is null: must be a device pointer");
      std::swap(args.k_scale, args.v_scale);
      EXPECT_EQ(some.launch(args, nullptr).message(), "v_scale is null: must be a device pointer");
    }
  }
  // Rows of codes by the byte: strides are elements, and whole vectors.
  const CacheWriteKernel int4 = prepare_family(
      CacheWriteSpec{.kv_dtype = DataType::kInt4, .scale = KvScale::kTokenHead, .head_size = 64});
  CacheWriteArgs codes = good;
  codes.k_scale = codes.v_scale = memory.data<float>();
  codes.k_strides.token = 68;
  EXPECT_EQ(int4.launch(codes, nullptr).message(),
            "k_strides.token 68: must be a multiple of 8 elements");
  EXPECT_TRUE(session().synchronize());
}

}  // namespace
}  // namespace pagejit
