// What the tables of the latent cache cannot hold: slots beyond 32-bit offsets, debug reports, bad
// arguments.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sweep/family_test.h"
#include "tests/sweep/mla_cache_batch.h"

namespace pagejit {
namespace {

class MlaCacheSpecialTest : public FamilyTest {};

// Slots behind 2^32 elements of the cache.
TEST_F(MlaCacheSpecialTest, SlotsBeyond32BitOffsetsAreWritten) {
  constexpr int64_t kBlockStride = (int64_t{1} << 31) + 16;
  const MlaCacheWriteKernel kernel =
      prepare_family(MlaCacheWriteSpec{.format = MlaFormat::kDsMla, .block_size = 1});
  Result<DeviceBuffer> cache = DeviceBuffer::allocate(session(), 3 * kBlockStride + 656);
  if (lacks_memory(cache.status())) GTEST_SKIP() << "this GPU has too little memory";
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

TEST_F(MlaCacheSpecialTest, DebugKernelsReportTheLowestBadSlotAndPosition) {
  const MlaCacheWriteSpec spec{
      .format = MlaFormat::kDsMla, .block_size = 16, .rope = RopeStyle::kNeox, .debug = true};
  EXPECT_EQ(check_mla_cache_write(engine(), session(), {.spec = spec, .num_q_heads = 4}), "");
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

TEST_F(MlaCacheSpecialTest, DebugKernelsOfManyLayersReportTheFirstBadSlot) {
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

TEST_F(MlaCacheSpecialTest, BadArgumentsAreNamed) {
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
