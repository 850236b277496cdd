// Logits of an indexer, against sums in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/sweep/family_test.h"
#include "tests/sweep/index_logits_batch.h"
#include "tests/sweep/sweep_main.h"
#include "tools/reference/random.h"

namespace pagejit {
namespace {

class IndexLogitsTest : public FamilyTest {
 protected:
  std::string logits(const IndexLogitsOptions& options) {
    return with_report(check_index_logits(engine(), session(), options));
  }
};

TEST_F(IndexLogitsTest, ContiguousKeys) {
  for (const bool clean : {false, true}) {
    for (const int num_heads : {8, 32, 64}) {
      EXPECT_EQ(logits({.spec = {.num_heads = num_heads, .clean = clean, .debug = clean},
                        .lengths = {0, 1, 63, 64, 65, 130, 17},
                        .last_begin = 60}),
                "")
          << num_heads << " heads";
    }
  }
}

// As a prefill has them: row i sees the keys up to i.
TEST_F(IndexLogitsTest, RowsThatEndAtTheDiagonal) {
  std::vector<int> lengths;
  for (int i = 0; i < 90; ++i) lengths.push_back(i + 1);
  EXPECT_EQ(logits({.spec = {.num_heads = 16, .clean = true}, .lengths = lengths, .num_keys = 90}),
            "");
}

TEST_F(IndexLogitsTest, PagesOfEachSize) {
  for (const int block_size : {1, 16, 64}) {
    EXPECT_EQ(logits({.spec = {.num_heads = 32, .block_size = block_size, .clean = true},
                      .lengths = {0, 1, 63, 64, 65, 130}}),
              "")
        << "blocks of " << block_size;
  }
}

TEST_F(IndexLogitsTest, SeveralTokensOfASequence) {
  for (const int next_n : {1, 2, 3, 4, 7}) {
    for (const bool by_row : {false, true}) {
      EXPECT_EQ(logits({.spec = {.num_heads = 32, .block_size = 16, .debug = by_row},
                        .lengths = {0, 1, 3, 64, 70},
                        .next_n = next_n,
                        .lengths_by_row = by_row}),
                "")
          << next_n;
    }
  }
}

TEST_F(IndexLogitsTest, RowsOfPagesMayBegin) {
  for (const bool debug : {false, true}) {
    for (const int column_begin : {0, 20}) {
      EXPECT_EQ(logits({.spec = {.num_heads = 8, .block_size = 16, .clean = true, .debug = debug},
                        .lengths = {130, 0, 64, 40, 77},
                        .next_n = 2,
                        .lengths_by_row = true,
                        .last_begin = 90,
                        .column_begin = column_begin}),
                "");
    }
  }
}

TEST_F(IndexLogitsTest, HeadsOfEachSize) {
  for (const int head_size : {32, 64, 96, 128, 160, 256}) {
    EXPECT_EQ(logits({.spec = {.num_heads = 24, .head_size = head_size},
                      .lengths = {40, 0, 77},
                      .last_begin = 5}),
              "")
        << head_size;
    EXPECT_EQ(logits({.spec = {.num_heads = 8, .head_size = head_size, .block_size = 5},
                      .lengths = {40, 0, 77},
                      .next_n = 2,
                      .page_gap = 16}),
              "")
        << head_size;
  }
  EXPECT_EQ(logits({.spec = {.num_heads = 128, .head_size = 128}, .lengths = {20, 9}}), "");
}

// More columns than a CTA has, with and without borders on those of tiles.
TEST_F(IndexLogitsTest, LongRows) {
  EXPECT_EQ(logits({.spec = {.num_heads = 8, .head_size = 32, .block_size = 64, .clean = true},
                    .lengths = {1027, 512, 513, 5}}),
            "");
  EXPECT_EQ(logits({.spec = {.num_heads = 8, .head_size = 160, .clean = true},
                    .lengths = {1027, 3, 700},
                    .num_keys = 2000,
                    .last_begin = 900}),
            "");
  if (!run_all()) return;
  EXPECT_EQ(
      logits({.spec = {.num_heads = 64, .block_size = 64}, .lengths = {8000, 70}, .next_n = 2}),
      "");
}

// vLLM's table (test_deepgemm_attention.py): 512 rows of up to 1,024 keys; 4 and 2 sequences of
// about 2,048 tokens with 1, 2 and 4 query tokens; 32 heads of 128. Without --all 32 of the rows.
TEST_F(IndexLogitsTest, DeepGemmsShapes) {
  SplitMix64 rng(1);
  const auto draw = [&](int count, int least, int most) {
    std::vector<int> lengths;
    for (int i = 0; i < count; ++i) {
      lengths.push_back(least + static_cast<int>(rng.below(most - least + 1)));
    }
    return lengths;
  };
  EXPECT_EQ(logits({.spec = {.num_heads = 32},
                    .lengths = draw(run_all() ? 512 : 32, 1, 1024),
                    .num_keys = 1224,
                    .last_begin = 200}),
            "");
  struct Batch {
    int num_seqs;
    int next_n;
  };
  for (const auto [num_seqs, next_n] : {Batch{4, 1}, {2, 2}, {2, 4}}) {
    EXPECT_EQ(logits({.spec = {.num_heads = 32, .block_size = 64},
                      .lengths = draw(num_seqs, 1638, 2458),
                      .next_n = next_n}),
              "")
        << num_seqs << " sequences";
  }
}

// The logits need not lie in memory all at once.
TEST_F(IndexLogitsTest, PartsOfTheColumns) {
  for (const int column_begin : {0, 1, 50, 128}) {
    for (const int num_columns : {1, 33, 72}) {
      for (const int block_size : {0, 16}) {
        EXPECT_EQ(logits({.spec = {.num_heads = 8,
                                   .head_size = 64,
                                   .block_size = block_size,
                                   .clean = true,
                                   .debug = true},
                          .last_begin = block_size == 0 ? 30 : 0,
                          .column_begin = column_begin,
                          .num_columns = num_columns}),
                  "")
            << column_begin << ", " << num_columns;
      }
    }
  }
}

// From keys to indices, as an engine goes: keys are written into pages, and what the logits of the
// pages are the greatest of is known beforehand.
TEST_F(IndexLogitsTest, WrittenKeysAreFoundByTheirLogits) {
  constexpr int kBlockSize = 16;
  constexpr int kKeys = 100;
  constexpr int kNextN = 2;
  constexpr int kTaken = 3;
  // Key n is (n * 37 % 101) times the first unit vector, and lies in block 6 - n / 16.
  std::vector<float> k(kKeys * 128);
  std::vector<int64_t> slots;
  for (int n = 0; n < kKeys; ++n) {
    k[static_cast<size_t>(n) * 128] = static_cast<float>(n * 37 % 101);
    slots.push_back((6 - n / kBlockSize) * kBlockSize + n % kBlockSize);
  }
  const DeviceBuffer k_buffer = upload(k);
  const DeviceBuffer slot_buffer = upload(slots);
  const DeviceBuffer cache = upload(std::vector<uint8_t>(7 * kBlockSize * 132, 0x7f));
  IndexKeyWriteArgs write;
  write.k = k_buffer.data();
  write.k_stride_token = 128;
  write.cache = cache.data();
  write.block_stride_bytes = kBlockSize * 132;
  write.slot_mapping = slot_buffer.data<int64_t>();
  write.num_tokens = kKeys;
  ASSERT_TRUE(
      run(prepare_family(IndexKeyWriteSpec{.dtype = DataType::kFloat32, .block_size = kBlockSize}),
          write));

  // Every head of q is the unit vector; the weights add up to 1, or to -1.
  std::vector<uint8_t> q(kNextN * 8 * 128);
  for (size_t head = 0; head < kNextN * 8; ++head) q[head * 128] = 0x38;  // 1
  std::vector<float> weights(kNextN * 8, 0.125f);
  std::fill_n(weights.begin() + 8, 8, -0.125f);
  const DeviceBuffer q_buffer = upload(q);
  const DeviceBuffer weight_buffer = upload(weights);
  const DeviceBuffer table = upload(std::vector<int32_t>{6, 5, 4, 3, 2, 1, 0});
  const DeviceBuffer seq_lens = upload(std::vector<int32_t>{kKeys});
  const DeviceBuffer logits = upload(std::vector<float>(kNextN * kKeys));
  IndexLogitsArgs score;
  score.q = q_buffer.data();
  score.q_stride_row = 8 * 128;
  score.q_stride_head = 128;
  score.weights = weight_buffer.data<float>();
  score.weights_stride = 8;
  score.k = cache.data();
  score.k_stride = kBlockSize * 132;
  score.block_table = table.data<int32_t>();
  score.ranges = {.seq_lens = seq_lens.data<int32_t>(), .next_n = kNextN};
  score.num_rows = kNextN;
  score.num_columns = kKeys;
  score.logits = logits.data<float>();
  score.logits_stride = index_logits_stride(kKeys);
  ASSERT_TRUE(
      run(prepare_family(IndexLogitsSpec{.num_heads = 8, .block_size = kBlockSize}), score));

  const DeviceBuffer indices = upload(std::vector<int32_t>(kNextN * kTaken));
  TopKArgs top;
  top.logits = score.logits;
  top.logits_stride = score.logits_stride;
  top.ranges = score.ranges;
  top.num_rows = kNextN;
  top.num_columns = kKeys;
  top.k = kTaken;
  top.indices = indices.data<int32_t>();
  top.indices_stride = kTaken;
  ASSERT_TRUE(run(prepare_family(TopKSpec{}), top));
  // 37 * 30 = 100, 37 * 60 = 99, 37 * 90 = 98 modulo 101; the least are those of 0, 71 and 41.
  EXPECT_EQ(download_all<int32_t>(indices), (std::vector<int32_t>{30, 60, 90, 0, 41, 71}));
  const std::vector<float> values = download_all<float>(logits);
  for (int n = 0; n < kKeys; ++n) {
    const auto value = static_cast<float>(n * 37 % 101);
    EXPECT_FLOAT_EQ(values[static_cast<size_t>(kKeys + n)], -value) << n;
    if (n == kKeys - 1) break;  // which the first query token does not see
    EXPECT_FLOAT_EQ(values[static_cast<size_t>(n)], value) << n;
  }
}

TEST_F(IndexLogitsTest, RowsInABudgetAreCounted) {
  EXPECT_EQ(index_logits_rows(int64_t{512} << 20, 131072), 1024);
  EXPECT_EQ(index_logits_rows(int64_t{512} << 20, 163837), (int64_t{512} << 20) / 4 / 163840);
  EXPECT_EQ(index_logits_rows(15, 4), 0);
  EXPECT_EQ(index_logits_rows(16, 1), 1);
  EXPECT_EQ(index_logits_rows(16, 0), 0);
}

TEST_F(IndexLogitsTest, DebugKernelsReportTheLowestSequenceWithABadBlock) {
  const IndexLogitsKernel kernel = prepare_family(
      IndexLogitsSpec{.num_heads = 8, .head_size = 32, .block_size = 4, .debug = true});
  const DeviceBuffer zeros = upload(std::vector<uint8_t>(4096));
  const DeviceBuffer lengths = upload(std::vector<int32_t>{5, 12, 600});
  const DeviceBuffer logits = upload(std::vector<float>(3 * 600));
  const DeviceBuffer report = upload(std::vector<uint8_t>(kDebugReportBytes));
  IndexLogitsArgs args;
  args.q = zeros.data();
  args.q_stride_head = 32;
  args.q_stride_row = 256;
  args.weights = zeros.data<float>();
  args.weights_stride = 8;
  args.k = zeros.data();
  args.k_stride = 4 * 36;
  args.block_table_stride = 150;
  args.num_blocks = 7;
  args.ranges.seq_lens = lengths.data<int32_t>();
  args.num_rows = 3;
  args.num_columns = 600;
  args.logits = logits.data<float>();
  args.logits_stride = 600;
  args.debug_report = report.data();
  const auto message = [&](const std::vector<std::pair<int, int>>& changes) {
    std::vector<int32_t> table(450, 3);
    table[2] = -5;         // behind the end of the first sequence
    table[150 + 3] = 900;  // of the second
    for (const auto& [at, block] : changes) table[static_cast<size_t>(at)] = block;
    const DeviceBuffer buffer = upload(table);
    args.block_table = buffer.data<int32_t>();
    EXPECT_TRUE(run(kernel, args));
    return kernel.read_debug_report(report.data(), nullptr).message();
  };
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message({{449, 7}}), "block_table[2][149] is 7: must be in [0, num_blocks)");
  EXPECT_EQ(message({{449, 7}, {300 + 131, -2}}),
            "block_table[2][131] is -2: must be in [0, num_blocks)");
  EXPECT_EQ(message({{449, 7}, {152, 99}}), "block_table[1][2] is 99: must be in [0, num_blocks)");
  EXPECT_EQ(message({}), "") << "the report was not cleared";
  args.column_begin = 8;
  args.num_columns = 500;
  EXPECT_EQ(message({{150, 99}, {449, -1}}), "") << "blocks of other columns were looked at";
}

TEST_F(IndexLogitsTest, DebugKernelsReportTheLowestRowWithABadRange) {
  const IndexLogitsKernel kernel =
      prepare_family(IndexLogitsSpec{.num_heads = 8, .head_size = 32, .debug = true});
  const DeviceBuffer zeros = upload(std::vector<uint8_t>(4096));
  const DeviceBuffer begins = upload(std::vector<int32_t>{0, 3, -1, -4});
  const DeviceBuffer ends = upload(std::vector<int32_t>{9, 20, 19, 18});
  const DeviceBuffer logits = upload(std::vector<float>(4 * 20));
  const DeviceBuffer report = upload(std::vector<uint8_t>(kDebugReportBytes));
  IndexLogitsArgs args;
  args.q = args.k = zeros.data();
  args.q_stride_head = args.k_stride = 32;
  args.q_stride_row = 256;
  args.weights = args.k_scale = zeros.data<float>();
  args.weights_stride = 8;
  args.num_keys = 18;
  args.ranges.row_begins = begins.data<int32_t>();
  args.ranges.row_ends = ends.data<int32_t>();
  args.num_rows = 4;
  args.num_columns = 18;
  args.logits = logits.data<float>();
  args.logits_stride = 20;
  args.debug_report = report.data();
  ASSERT_TRUE(run(kernel, args));
  EXPECT_EQ(kernel.read_debug_report(report.data(), nullptr).message(),
            "row 2 begins at -1: must not be negative");
  args.num_rows = 2;
  ASSERT_TRUE(run(kernel, args));
  EXPECT_EQ(kernel.read_debug_report(report.data(), nullptr).message(),
            "row 1 ends at 20: must be at most the number of columns");
}

TEST_F(IndexLogitsTest, ArgumentsAreChecked) {
  const IndexLogitsKernel contiguous = prepare_family(IndexLogitsSpec{.num_heads = 8});
  const IndexLogitsKernel paged =
      prepare_family(IndexLogitsSpec{.num_heads = 8, .block_size = 64, .debug = true});
  const DeviceBuffer memory = upload(std::vector<float>(64));
  const auto refusal = [&](const IndexLogitsKernel& kernel, auto change) {
    IndexLogitsArgs args;
    args.q = args.k = memory.data();
    args.weights = args.k_scale = memory.data<float>();
    args.k_stride = 64 * 132;
    args.num_keys = 40;
    args.block_table = memory.data<int32_t>();
    args.ranges.row_ends = memory.data<int32_t>();
    args.num_rows = 2;
    args.num_columns = 40;
    args.logits = memory.data<float>();
    args.debug_report = memory.data();
    change(args);
    return kernel.launch(args, nullptr).message();
  };
  EXPECT_EQ(refusal(contiguous, [](auto& a) { a.q_stride_row = 6; }),
            "q_stride_row 6: must be a multiple of 4");
  EXPECT_EQ(refusal(contiguous, [](auto& a) { a.k_stride = 136; }),
            "k_stride 136: must be a multiple of 16");
  EXPECT_EQ(refusal(contiguous, [](auto& a) { a.k_scale = nullptr; }),
            "k_scale is null: must be a device pointer");
  EXPECT_EQ(refusal(contiguous, [](auto& a) { a.column_begin = 1; }),
            "num_columns 40: columns from 1 on must end within num_keys (40)");
  EXPECT_EQ(refusal(contiguous, [](auto& a) { a.column_begin = -1; }),
            "column_begin -1: must be in [0, 2147418112]");
  EXPECT_EQ(refusal(contiguous, [](auto& a) { a.num_columns = 65535 * 512 + 1; }),
            "num_columns 33553921: must be in [0, 33553920]");
  EXPECT_EQ(refusal(contiguous, [](auto& a) { a.logits = nullptr; }),
            "logits is null: must be a device pointer");
  EXPECT_EQ(refusal(paged, [](auto& a) { a.block_table = nullptr; }),
            "block_table is null: must be a device pointer");
  EXPECT_EQ(refusal(paged, [](auto& a) { a.ranges.next_n = 3; }),
            "next_n 3: must be at least 1 and divide num_rows (2)");
  EXPECT_EQ(refusal(paged, [](auto& a) { a.debug_report = nullptr; }),
            "debug_report is null: must be a device pointer");
  EXPECT_EQ(refusal(paged, [](auto& a) { a.num_columns = 0, a.q = nullptr; }), "");
}

}  // namespace
}  // namespace pagejit
