// Index keys: quantising into pages and gathering from them, against plain loops, to the byte.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sweep/family_test.h"
#include "tests/sweep/index_keys_batch.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kF32 = DataType::kFloat32;

class IndexKeysTest : public FamilyTest {
 protected:
  std::string write(const IndexWriteOptions& options) {
    return with_report(check_index_key_write(engine(), session(), options));
  }
  std::string gather(const IndexGatherOptions& options) {
    return with_report(check_index_key_gather(engine(), session(), options));
  }
};

TEST_F(IndexKeysTest, KeysAreQuantised) {
  for (const DataType type : {kF16, kBF16, kF32}) {
    for (const bool power_of_two : {false, true}) {
      for (const int block_size : {1, 16, 64}) {
        EXPECT_EQ(write({.spec = {.dtype = type,
                                  .block_size = block_size,
                                  .power_of_two_scale = power_of_two,
                                  .debug = power_of_two},
                         .num_tokens = 50,
                         .num_blocks = block_size == 1 ? 70 : 5,
                         .source_pad = 8}),
                  "")
            << data_type_name(type) << ", blocks of " << block_size << ", " << power_of_two;
      }
    }
  }
}

TEST_F(IndexKeysTest, HeadsHaveSeveralScales) {
  struct Shape {
    int head_size, quant_block_size, row_alignment;
  };
  for (const Shape& shape : {Shape{512, 128, 16},
                             {128, 32, 16},
                             {96, 96, 4},
                             {60, 20, 8},
                             {4096, 4096, 16},
                             {4, 4, 2},
                             {192, 64, 2}}) {
    EXPECT_EQ(write({.spec = {.head_size = shape.head_size,
                              .quant_block_size = shape.quant_block_size,
                              .block_size = 7,
                              .power_of_two_scale = shape.head_size == 60,
                              .row_alignment = shape.row_alignment},
                     .num_tokens = 33,
                     .source_pad = 24,
                     .page_gap = 64}),
              "")
        << shape.head_size << " by " << shape.quant_block_size;
  }
}

// No byte behind the last token is touched, whatever its number.
TEST_F(IndexKeysTest, AnyNumberOfTokensIsWritten) {
  for (const int num_tokens : {0, 1, 7, 8, 9, 1027}) {
    EXPECT_EQ(write({.spec = {}, .num_tokens = num_tokens, .num_blocks = 20}), "") << num_tokens;
  }
}

TEST_F(IndexKeysTest, KeysAreGathered) {
  for (const int block_size : {1, 16, 64}) {
    for (const bool with_starts : {false, true}) {
      EXPECT_EQ(gather({.spec = {.block_size = block_size, .debug = with_starts},
                        .seq_lens = {5, 0, 1, 63, 64, 65, 1027, 0},
                        .with_starts = with_starts}),
                "")
          << "blocks of " << block_size;
    }
  }
  EXPECT_EQ(gather({.spec = {.head_size = 512}, .page_gap = 16}), "");
  EXPECT_EQ(gather({.spec = {.head_size = 60, .quant_block_size = 12, .block_size = 5}}), "");
  EXPECT_EQ(gather({.spec = {.row_alignment = 4}, .seq_lens = {0, 0, 3}}), "");
  EXPECT_EQ(gather({.spec = {}, .seq_lens = {0}}), "");
}

// A page that lies more than 4 GiB behind the first one.
TEST_F(IndexKeysTest, PagesMayLieFarApart) {
  const IndexKeyWriteKernel writer = prepare_family(IndexKeyWriteSpec{.block_size = 2});
  const IndexKeyGatherKernel reader = prepare_family(IndexKeyGatherSpec{.block_size = 2});
  const DeviceBuffer pages = upload(std::vector<uint8_t>(3 * 264, 0));
  std::vector<uint16_t> ones(3 * 128, 0x3f80);
  const DeviceBuffer k = upload(ones);
  // Block 2 at the buffer's begin: the first page would lie 8 GiB in front of it.
  constexpr int64_t kStride = int64_t{1} << 32;
  auto* first = static_cast<uint8_t*>(pages.data()) - 2 * kStride;
  const DeviceBuffer slots = upload(std::vector<int64_t>{5});
  IndexKeyWriteArgs write_args;
  write_args.k = k.data();
  write_args.k_stride_token = 128;
  write_args.cache = first;
  write_args.block_stride_bytes = kStride;
  write_args.slot_mapping = slots.data<int64_t>();
  write_args.num_tokens = 1;
  ASSERT_TRUE(run(writer, write_args));
  const DeviceBuffer table = upload(std::vector<int32_t>{2});
  const DeviceBuffer cu_seq_lens = upload(std::vector<int32_t>{0, 2});
  const DeviceBuffer codes = upload(std::vector<uint8_t>(256, 1));
  const DeviceBuffer scales = upload(std::vector<float>(2, 7.0f));
  IndexKeyGatherArgs args;
  args.cache = first;
  args.block_stride_bytes = kStride;
  args.block_table = table.data<int32_t>();
  args.block_table_stride = 1;
  args.cu_seq_lens = cu_seq_lens.data<int32_t>();
  args.num_seqs = 1;
  args.num_tokens = 2;
  args.k_out = codes.data();
  args.k_out_stride_token = 128;
  args.scale_out = scales.data<float>();
  args.scale_out_stride_token = 1;
  ASSERT_TRUE(run(reader, args));
  const std::vector<uint8_t> got = download_all<uint8_t>(codes);
  EXPECT_EQ(got[127], 0);
  EXPECT_EQ(got[128], 0x7e);  // 448
  EXPECT_EQ(download_all<float>(scales), (std::vector<float>{0.0f, 1.0f / 448.0f}));
}

TEST_F(IndexKeysTest, DebugKernelsReportTheLowestTokenWithABadSlot) {
  const IndexKeyWriteKernel kernel = prepare_family(IndexKeyWriteSpec{.debug = true});
  const DeviceBuffer k = upload(std::vector<uint16_t>(40 * 128, 0x3f80));
  const DeviceBuffer cache = upload(std::vector<uint8_t>(2 * 64 * 132));
  const DeviceBuffer report = upload(std::vector<uint8_t>(kDebugReportBytes, 0xee));
  ASSERT_TRUE(kernel.init_debug_report(report.data(), nullptr));
  IndexKeyWriteArgs args;
  args.k = k.data();
  args.k_stride_token = 128;
  args.cache = cache.data();
  args.block_stride_bytes = 64 * 132;
  args.num_blocks = 2;
  args.debug_report = report.data();
  const auto message = [&](std::vector<int64_t> slots) {
    slots.resize(40, -1);
    const DeviceBuffer buffer = upload(slots);
    args.slot_mapping = buffer.data<int64_t>();
    args.num_tokens = 40;
    EXPECT_TRUE(run(kernel, args));
    return kernel.read_debug_report(report.data(), nullptr).message();
  };
  EXPECT_EQ(message({0, 127, -1}), "");
  EXPECT_EQ(message({0, -1, 5, 128, 4, -2}),
            "slot_mapping[3] is 128: must be -1, or in [0, num_blocks * block_size)");
  EXPECT_EQ(message({0, -7, 5, int64_t{1} << 40}),
            "slot_mapping[1] is -7: must be -1, or in [0, num_blocks * block_size)");
  EXPECT_EQ(message({0}), "") << "the report was not cleared";
}

TEST_F(IndexKeysTest, DebugKernelsReportTheLowestTokenWithABadBlock) {
  const IndexKeyGatherKernel kernel =
      prepare_family(IndexKeyGatherSpec{.block_size = 4, .debug = true});
  const DeviceBuffer cache = upload(std::vector<uint8_t>(3 * 4 * 132));
  const DeviceBuffer report = upload(std::vector<uint8_t>(kDebugReportBytes));
  const DeviceBuffer cu_seq_lens = upload(std::vector<int32_t>{0, 9, 17});
  const DeviceBuffer codes = upload(std::vector<uint8_t>(20 * 128));
  const DeviceBuffer scales = upload(std::vector<float>(20));
  IndexKeyGatherArgs args;
  args.cache = cache.data();
  args.block_stride_bytes = 4 * 132;
  args.block_table_stride = 3;
  args.cu_seq_lens = cu_seq_lens.data<int32_t>();
  args.num_seqs = 2;
  args.num_tokens = 20;
  args.k_out = codes.data();
  args.k_out_stride_token = 128;
  args.scale_out = scales.data<float>();
  args.scale_out_stride_token = 1;
  args.num_blocks = 3;
  args.debug_report = report.data();
  const auto message = [&](const std::vector<int32_t>& table) {
    const DeviceBuffer buffer = upload(table);
    args.block_table = buffer.data<int32_t>();
    EXPECT_TRUE(run(kernel, args));
    return kernel.read_debug_report(report.data(), nullptr).message();
  };
  EXPECT_EQ(message({0, 1, 2, 2, 1, -99}), "");
  EXPECT_EQ(message({0, 1, 3, -1, 1, 0}), "token 8: its block is 3, must be in [0, num_blocks)");
  EXPECT_EQ(message({0, 1, 2, 2, -5, 0}), "token 13: its block is -5, must be in [0, num_blocks)");
}

TEST_F(IndexKeysTest, ArgumentsAreChecked) {
  const IndexKeyWriteKernel writer = prepare_family(IndexKeyWriteSpec{.debug = true});
  const IndexKeyGatherKernel reader = prepare_family(IndexKeyGatherSpec{});
  const DeviceBuffer memory = upload(std::vector<uint8_t>(1024));
  auto* p = static_cast<uint8_t*>(memory.data());
  const auto refusal = [&](auto change) {
    IndexKeyWriteArgs args;
    args.k = args.cache = p;
    args.k_stride_token = 128;
    args.block_stride_bytes = 64 * 132;
    args.slot_mapping = memory.data<int64_t>();
    args.num_tokens = 1;
    args.debug_report = p;
    change(args);
    return writer.launch(args, nullptr).message();
  };
  EXPECT_EQ(refusal([](auto& a) { a.num_tokens = -1; }),
            "num_tokens -1: must be in [0, 2147483647]");
  EXPECT_EQ(refusal([](auto& a) { a.k = nullptr; }), "k is null: must be a device pointer");
  EXPECT_EQ(refusal([](auto& a) { a.k_stride_token = 132; }),
            "k_stride_token 132: must be a multiple of 8 elements");
  EXPECT_EQ(refusal([](auto& a) { a.block_stride_bytes += 4; }),
            "block_stride_bytes 8452: must be a multiple of 8");
  EXPECT_EQ(refusal([](auto& a) { a.slot_mapping = nullptr; }),
            "slot_mapping is null: must be a device pointer");
  EXPECT_EQ(refusal([](auto& a) { a.debug_report = nullptr; }),
            "debug_report is null: must be a device pointer");
  const auto gather_refusal = [&](auto change) {
    IndexKeyGatherArgs args;
    args.cache = args.k_out = p;
    args.block_stride_bytes = 64 * 132;
    args.block_table = args.cu_seq_lens = memory.data<int32_t>();
    args.num_seqs = args.num_tokens = 1;
    args.k_out_stride_token = 128;
    args.scale_out = memory.data<float>();
    change(args);
    return reader.launch(args, nullptr).message();
  };
  EXPECT_EQ(gather_refusal([](auto& a) { a.k_out_stride_token = 136; }),
            "k_out_stride_token 136: must be a multiple of 16");
  EXPECT_EQ(gather_refusal([](auto& a) { a.cu_seq_lens = nullptr; }),
            "cu_seq_lens is null: must be a device pointer");
  EXPECT_EQ(gather_refusal([](auto& a) { a.scale_out = nullptr; }),
            "scale_out is null: must be a device pointer");
  EXPECT_EQ(gather_refusal([](auto& a) { a.num_seqs = -1; }),
            "num_seqs -1: must be in [1, 2147483647]");
  EXPECT_EQ(IndexKeyWriteKernel().launch({}, nullptr).message(),
            "the Kernel is empty: launch one that Engine::prepare() returned");
}

}  // namespace
}  // namespace pagejit
