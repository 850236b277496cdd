// The greatest values of rows, against a stable sort, exactly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sweep/family_test.h"
#include "tests/sweep/sweep_main.h"
#include "tests/sweep/top_k_batch.h"

namespace pagejit {
namespace {

class TopKTest : public FamilyTest {
 protected:
  std::string top_k(const TopKOptions& options) {
    return with_report(check_top_k(engine(), session(), options));
  }
};

constexpr LogitKind kKinds[] = {LogitKind::kNormal, LogitKind::kLowBits, LogitKind::kFew,
                                LogitKind::kSpecial};

// vLLM's table of prefill rows, for each number of rows the lengths that end with it.
TEST_F(TopKTest, RowsWithRanges) {
  for (const LogitKind kind : {LogitKind::kNormal, LogitKind::kLowBits}) {
    for (const int k : {512, 1024, 2048, 3000}) {
      for (const int num_rows : {1, 32}) {
        std::vector<int> lengths;
        for (int i = 0; i < num_rows; ++i) lengths.push_back(6000 - i * 150);
        EXPECT_EQ(top_k({.kind = kind, .k = k, .lengths = lengths, .last_begin = 70}), "")
            << num_rows << " rows, k " << k;
      }
    }
  }
}

// As a prefill of so many tokens has them: row i ends at i + 1.
TEST_F(TopKTest, RowsThatEndAtTheDiagonal) {
  std::vector<int> lengths;
  for (int i = 0; i < (run_all() ? 2050 : 300); ++i) lengths.push_back(i + 1);
  for (const int k : {1, 128, 2048}) {
    EXPECT_EQ(top_k({.k = k, .lengths = lengths, .with_begins = false}), "") << k;
  }
}

TEST_F(TopKTest, TokensOfSequences) {
  for (const int next_n : {1, 2, 8}) {
    EXPECT_EQ(top_k({.k = 64, .lengths = {0, 1, 3, 63, 64, 65, 1027, 9}, .next_n = next_n}), "")
        << next_n;
    EXPECT_EQ(top_k({.kind = LogitKind::kLowBits,
                     .k = 512,
                     .lengths = {4000, 511, 2800},
                     .next_n = next_n}),
              "")
        << next_n;
  }
}

// Whatever lies at the border of what is taken.
TEST_F(TopKTest, EachKindAtEachLength) {
  for (const LogitKind kind : kKinds) {
    for (const int k : {1, 2, 63, 700}) {
      for (const int alignment : {4, 8, 16}) {
        EXPECT_EQ(top_k({.spec = {.row_alignment = alignment, .debug = k == 2},
                         .kind = kind,
                         .k = k,
                         .lengths = {0, 1, 2, 3, 63, 64, 65, 699, 700, 701, 1027, 2052},
                         .last_begin = 9,
                         .seed = static_cast<uint64_t>(k)}),
                  "")
            << static_cast<int>(kind) << ", k " << k << ", alignment " << alignment;
      }
    }
  }
}

TEST_F(TopKTest, LongRows) {
  for (const LogitKind kind : kKinds) {
    EXPECT_EQ(top_k({.kind = kind, .k = 2048, .lengths = {163840}}), "") << static_cast<int>(kind);
  }
  if (!run_all()) return;
  for (const int next_n : {1, 8}) {
    EXPECT_EQ(top_k({.k = 2048, .lengths = {163840, 131072, 1000000}, .next_n = next_n}), "");
  }
}

// Several CTAs do a row: the same, however many, and whichever comes last.
TEST_F(TopKTest, PartsOfRows) {
  const auto check = [&] {
    for (const LogitKind kind : kKinds) {
      for (const int num_splits : {2, 3, 16}) {
        EXPECT_EQ(top_k({.kind = kind,
                         .k = 60,
                         .lengths = {0, 60, 61, 119, 120, 239, 240, 241, 1500, 4003},
                         .last_begin = 9,
                         .num_splits = num_splits}),
                  "")
            << static_cast<int>(kind) << ", " << num_splits << " splits";
      }
    }
  };
  if (device().emulator == nullptr) {
    check();
  } else {
    device().emulator->for_each_schedule(check);
  }
}

TEST_F(TopKTest, AnyNumberOfParts) {
  for (const int num_splits : {4, 7, 128}) {
    EXPECT_EQ(top_k({.k = 1, .lengths = {300, 255, 256, 1}, .num_splits = num_splits}), "");
    EXPECT_EQ(top_k({.k = 512, .lengths = {5000, 40000}, .next_n = 2, .num_splits = num_splits}),
              "");
  }
  for (const LogitKind kind : kKinds) {
    EXPECT_EQ(top_k({.kind = kind, .k = 2048, .lengths = {163840}, .num_splits = 0}), "");
  }
}

TEST_F(TopKTest, SplitsAreChosenByTheCounts) {
  const auto splits = [](int num_rows, int num_columns, int k) {
    TopKArgs args;
    args.num_rows = num_rows;
    args.num_columns = num_columns;
    args.k = k;
    return TopKKernel::choose_num_splits(args);
  };
  EXPECT_EQ(splits(1, 163840, 2048), 8);
  EXPECT_EQ(splits(1, 163840, 512), 17);
  EXPECT_EQ(splits(32, 163840, 2048), 4);
  EXPECT_EQ(splits(129, 163840, 2048), 1);
  EXPECT_EQ(splits(1, 4096, 2048), 1);
  EXPECT_EQ(splits(1, 2147418112, 1), 128);
  EXPECT_EQ(splits(1, 2147418112, 16777215), 11);
  EXPECT_EQ(splits(1, 2147418112, 16777216), 1) << "which launch() would refuse";
  EXPECT_EQ(splits(0, 0, 0), 1);
  TopKArgs args;
  args.num_rows = 1;
  args.num_columns = 163840;
  args.k = 2048;
  EXPECT_EQ(TopKKernel::workspace_bytes(args), 512u + 8 * 2048 * 8);
  args.num_splits = 1;
  EXPECT_EQ(TopKKernel::workspace_bytes(args), 0u);
}

TEST_F(TopKTest, AllRowsMayBeShort) {
  EXPECT_EQ(top_k({.k = 2048, .lengths = {0, 0, 0}}), "");
  EXPECT_EQ(top_k({.k = 2048, .lengths = {2048, 2047, 1}, .next_n = 4}), "");
}

TEST_F(TopKTest, DebugKernelsReportTheLowestRowWithABadRange) {
  const TopKKernel kernel = prepare_family(TopKSpec{.debug = true});
  const DeviceBuffer logits = upload(std::vector<float>(3 * 8, 1.0f));
  const DeviceBuffer indices = upload(std::vector<int32_t>(3 * 2));
  const DeviceBuffer report = upload(std::vector<uint8_t>(kDebugReportBytes));
  TopKArgs args;
  args.logits = logits.data<float>();
  args.logits_stride = 8;
  args.num_rows = 3;
  args.num_columns = 7;
  args.k = 2;
  args.indices = indices.data<int32_t>();
  args.indices_stride = 2;
  args.debug_report = report.data();
  const auto message = [&](const std::vector<int32_t>& begins, const std::vector<int32_t>& ends) {
    const DeviceBuffer begin_buffer = upload(begins);
    const DeviceBuffer end_buffer = upload(ends);
    args.ranges.row_begins = begin_buffer.data<int32_t>();
    args.ranges.row_ends = end_buffer.data<int32_t>();
    EXPECT_TRUE(run(kernel, args));
    return kernel.read_debug_report(report.data(), nullptr).message();
  };
  EXPECT_EQ(message({0, 7, 5}, {7, 7, 4}), "");
  EXPECT_EQ(message({0, 0, 0}, {7, 9, 8}),
            "row 1 ends at 9: must be at most the number of columns");
  EXPECT_EQ(message({0, -3, -2}, {7, 9, 7}), "row 1 begins at -3: must not be negative");
  EXPECT_EQ(download_all<int32_t>(indices), (std::vector<int32_t>{0, 1, 0, 1, 0, 1}))
      << "ranges are cut off";
}

TEST_F(TopKTest, ArgumentsAreChecked) {
  const TopKKernel kernel = prepare_family(TopKSpec{});
  const DeviceBuffer memory = upload(std::vector<float>(64));
  const auto refusal = [&](auto change) {
    TopKArgs args;
    args.logits = memory.data<float>();
    args.logits_stride = 8;
    args.ranges.row_ends = memory.data<int32_t>();
    args.num_rows = 2;
    args.num_columns = 8;
    args.k = 4;
    args.indices = memory.data<int32_t>();
    args.indices_stride = 4;
    change(args);
    return kernel.launch(args, nullptr).message();
  };
  EXPECT_EQ(refusal([](auto& a) { a.k = 0; }), "k 0: must be in [1, 2147483647]");
  EXPECT_EQ(refusal([](auto& a) { a.num_rows = -1; }), "num_rows -1: must be in [0, 2147483647]");
  EXPECT_EQ(refusal([](auto& a) { a.num_columns = -1; }),
            "num_columns -1: must be in [0, 2147418112]");
  EXPECT_EQ(refusal([](auto& a) { a.logits_stride = 10; }),
            "logits_stride 10: must be a multiple of 4 elements");
  EXPECT_EQ(refusal([](auto& a) { a.logits = nullptr; }),
            "logits is null: must be a device pointer");
  EXPECT_EQ(refusal([](auto& a) { a.indices = nullptr; }),
            "indices is null: must be a device pointer");
  EXPECT_EQ(refusal([](auto& a) { a.ranges.row_ends = nullptr; }),
            "row_ends is null: must be a device pointer where seq_lens is null");
  EXPECT_EQ(refusal([](auto& a) { a.ranges.seq_lens = a.ranges.row_ends; }),
            "row_ends is not null: must be where there are seq_lens");
  EXPECT_EQ(refusal([](auto& a) {
              a.ranges.seq_lens = a.ranges.row_ends;
              a.ranges.row_ends = nullptr;
              a.ranges.next_n = 3;
            }),
            "next_n 3: must be at least 1 and divide num_rows (2)");
  EXPECT_EQ(refusal([](auto& a) { a.num_splits = 129; }), "num_splits 129: must be in [0, 128]");
  EXPECT_EQ(refusal([](auto& a) { a.num_rows = 129, a.num_splits = 2; }),
            "num_splits 2: must be 0 or 1 for more than 128 rows (129)");
  EXPECT_THAT(refusal([&](auto& a) {
                a.num_splits = 2, a.workspace = memory.data(), a.workspace_bytes = 639;
              }),
              testing::HasSubstr(" of 639 bytes: must be 640 bytes, aligned to 16"));
  EXPECT_THAT(refusal([&](auto& a) { a.num_splits = 2, a.workspace_bytes = 640; }),
              testing::HasSubstr("must be 640 bytes, aligned to 16"));
  EXPECT_EQ(kernel.workspace_init(memory.data(), 256, nullptr).code(), StatusCode::kWorkspace);
  EXPECT_EQ(refusal([](auto& a) { a.num_rows = 0, a.k = 0; }), "");
}

}  // namespace
}  // namespace pagejit
