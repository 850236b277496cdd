// What sparse attention passes to the driver, chunk by chunk, what it refuses, and what its
// workspace takes, on the stub driver.
#include <cmath>
#include <functional>
#include <string>

#include "templates/shared/attention_params.h"
#include "tests/runtime/sparse_attention_launch_fixture.h"

namespace pagejit {
namespace {

using ::testing::HasSubstr;

// ---- Specs ----

TEST_F(SparseAttentionLaunchTest, PreparingMakesEachPartOnce) {
  EXPECT_EQ(kernel.spec(), make_sparse());
  EXPECT_TRUE(kernel);
  EXPECT_EQ(kernel.info().logits.origin, ImageOrigin::kCompiled);
  const SparseAttentionKernel other = prepare_sparse(make_contiguous());
  EXPECT_EQ(other.info().logits.origin, ImageOrigin::kCompiled);
  EXPECT_EQ(other.info().top_k.origin, ImageOrigin::kMemory);
  EXPECT_EQ(other.info().attention.origin, ImageOrigin::kMemory);
  const Result<SparseAttentionInfo> stored =
      engine->precompile(make_sparse(), *parse_target("sm_90a"));
  ASSERT_TRUE(stored) << stored.status().to_string();
  EXPECT_EQ(stored->logits.key, kernel.info().logits.key);
  EXPECT_EQ(stored->top_k.key, kernel.info().top_k.key);
  EXPECT_EQ(stored->attention.key, kernel.info().attention.key);
  EXPECT_NE(stored->logits.key, other.info().logits.key);
}

TEST_F(SparseAttentionLaunchTest, ABadSpecIsRefusedByAll) {
  SparseAttentionSpec spec = make_sparse();
  spec.attention.kv_table = KvTable::kBlocks;
  const std::string sentence = validate(spec).message();
  EXPECT_THAT(sentence, HasSubstr("kv_table 0: must be positions (4)"));
  EXPECT_EQ(engine->prepare(spec, 0).status().message(), sentence);
  EXPECT_EQ(engine->precompile(spec, *parse_target("sm_90a")).status().message(), sentence);
}

// ---- Launches ----

TEST_F(SparseAttentionLaunchTest, IsTwoLaunchesPerChunkAndTheAttentionOfAllRows) {
  SparseAttentionArgs args = legal_pages();
  for (const int pairs : {1, 2, 3, 4}) {
    args.logits_bytes = 2 * pairs * kRowBytes;
    const int chunks = (4 + pairs - 1) / pairs;
    EXPECT_EQ(kernel.num_chunks(args), chunks);
    const uint64_t all_before = script->total_calls();
    EXPECT_EQ(launches_of(args), 2u * static_cast<uint64_t>(chunks) + 1);
    // Of the other calls each launch has the same few, none of them a copy or an allocation.
    EXPECT_LE(script->total_calls() - all_before, 4u * (2 * static_cast<uint64_t>(chunks) + 1));
    EXPECT_EQ(script->last_launch().config.gridDimZ, static_cast<unsigned>(kRows));
  }
  // What one row takes more does not help whole sequences.
  args.logits_bytes = 3 * kRowBytes;
  EXPECT_EQ(kernel.num_chunks(args), 4);
  // But where rows have their ends.
  args.ranges = {.row_ends = args.ranges.seq_lens, .next_n = 8};
  EXPECT_EQ(kernel.num_chunks(args), 3);
  EXPECT_EQ(launches_of(args), 7u);
  args.ranges.next_n = 4;
  EXPECT_EQ(kernel.num_chunks(args), 4) << "3 rows and 1 of each sequence";
  args.logits_bytes = 5 * kRowBytes;
  EXPECT_EQ(kernel.num_chunks(args), 2) << "a sequence each";
  kernel = prepare_sparse(make_contiguous());
  args = legal_contiguous();
  args.logits_bytes = 3 * 3000 * 4;
  EXPECT_EQ(kernel.num_chunks(args), 3);
  EXPECT_EQ(launches_of(args), 7u);
}

TEST_F(SparseAttentionLaunchTest, NothingToChooseFromIsNoLogits) {
  SparseAttentionArgs args = legal_pages();
  args.num_rows = 0;
  EXPECT_EQ(launches_of(args), 0u);
  EXPECT_EQ(kernel.workspace_bytes(args), 0u);
  args = legal_pages();
  args.max_blocks_per_seq = 0;
  EXPECT_EQ(launches_of(args), 2u) << "lists without a token, and attention over them";
  kernel = prepare_sparse(make_contiguous());
  args = legal_contiguous();
  args.num_index_keys = 0;
  EXPECT_EQ(launches_of(args), 2u);
}

TEST_F(SparseAttentionLaunchTest, TheLengthThatIsGivenIsWhatLogitsTake) {
  SparseAttentionArgs args = legal_pages();
  args.logits_bytes = 2 * kRowBytes;
  EXPECT_EQ(kernel.num_chunks(args), 4);
  args.max_seq_len = 1024;
  EXPECT_EQ(kernel.num_chunks(args), 1);
  args.max_seq_len = INT32_MAX;
  EXPECT_EQ(kernel.num_chunks(args), 4) << "cut down to what the table holds";
}

// ---- The workspace ----

TEST_F(SparseAttentionLaunchTest, TheWorkspaceHoldsWhatItSays) {
  constexpr auto kAttention =
      static_cast<size_t>(pagejit_shared::kPartialsOffset + 255) / 256 * 256;
  constexpr size_t kIndices = kRows * kTopK * 4;
  SparseAttentionArgs args = legal_pages();
  args.num_splits = 1;
  // 8 rows of 4,096 tokens: 8 splits of k candidates.
  const size_t candidates = size_t{kRows} * 8 * kTopK * 8;
  EXPECT_EQ(kernel.workspace_bytes(args),
            kAttention + candidates + kIndices + size_t{kRows} * kRowBytes);
  args.logits_bytes = 2 * kRowBytes;
  EXPECT_EQ(kernel.workspace_bytes(args),
            kAttention + candidates / 4 + kIndices + 2 * size_t{kRowBytes});
  args.indices = reinterpret_cast<int32_t*>(0x18000);
  args.indices_stride = kTopK;
  EXPECT_EQ(kernel.workspace_bytes(args), kAttention + candidates / 4 + 2 * size_t{kRowBytes});
  args.max_seq_len = 128;
  EXPECT_EQ(kernel.workspace_bytes(args), kAttention + kRows * 128 * 4) << "no splits";
  args.num_splits = 2;
  EXPECT_GT(kernel.workspace_bytes(args), kAttention + kRows * 128 * 4 + 2 * kRows * 16 * 512 * 4);
  // No pointer is followed.
  SparseAttentionArgs counts;
  counts.num_rows = kRows;
  counts.top_k = kTopK;
  counts.max_blocks_per_seq = 64;
  EXPECT_EQ(kernel.workspace_bytes(counts), kernel.workspace_bytes(legal_pages()));
  EXPECT_EQ(kernel.workspace_bytes({}), 0u);
  counts.top_k = 0;
  EXPECT_EQ(kernel.workspace_bytes(counts), 0u);
  EXPECT_EQ(kernel.num_chunks(counts), 0);
}

TEST_F(SparseAttentionLaunchTest, TheWorkspaceIsBoundedWhateverTheLength) {
  SparseAttentionArgs args = legal_pages();
  args.top_k = 2048;
  for (const int64_t logits_bytes : {int64_t{4} << 20, kDefaultLogitsBytes}) {
    args.logits_bytes = logits_bytes;
    size_t greatest = 0;
    for (const int rows : {1, 2, 7, 64, 130, 1000}) {
      args.num_rows = rows;
      args.ranges.next_n = rows % 2 == 0 ? 2 : 1;
      const size_t most = kernel.max_workspace_bytes(rows, args.top_k, logits_bytes);
      for (const int blocks : {1, 63, 64, 1000, 5000, 8191}) {
        args.max_blocks_per_seq = blocks;
        const size_t bytes = kernel.workspace_bytes(args);
        EXPECT_GT(bytes, 0u);
        EXPECT_LE(bytes, most) << rows << ", " << blocks;
        greatest = std::max(greatest, bytes);
      }
    }
    EXPECT_GT(greatest, static_cast<size_t>(logits_bytes)) << "the budget is used";
  }
  EXPECT_EQ(kernel.max_workspace_bytes(0, 64), 0u);
  EXPECT_EQ(kernel.max_workspace_bytes(1, 0), 0u);
}

// ---- Refusals ----

TEST_F(SparseAttentionLaunchTest, EachBadArgumentIsNamed) {
  expect_invalid([](auto& a) { a.num_rows = -1; }, "num_rows -1: must be in [0, 65535]");
  expect_invalid([](auto& a) { a.num_rows = 65536; }, "num_rows 65536: must be in [0, 65535]");
  expect_invalid([](auto& a) { a.top_k = 0; }, "top_k 0: must be in [1, 16777215]");
  expect_invalid([](auto& a) { a.top_k = 16777216; }, "top_k 16777216: must be in [1, 16777215]");
  expect_invalid([](auto& a) { a.num_kv_heads = 0; }, "num_kv_heads 0: must be in [1, 65535]");
  expect_invalid([](auto& a) { a.num_splits = 513; }, "num_splits 513: must be in [0, 512]");
  expect_invalid([](auto& a) { a.max_blocks_per_seq = -1; },
                 "max_blocks_per_seq -1: must be in [0, 2147483647]");
  expect_invalid([](auto& a) { a.max_seq_len = -1; }, "max_seq_len -1: must be in [0, 2147483647]");
  expect_invalid([](auto& a) { a.max_blocks_per_seq = 1 << 20; },
                 "max_blocks_per_seq * block_size 67108864: must be in [0, 33553920]");
  expect_invalid([](auto& a) { a.max_blocks_per_seq = 1 << 20, a.max_seq_len = 33553921; },
                 "max_seq_len 33553921: must be in [0, 33553920]");
  expect_invalid([](auto& a) { a.ranges.next_n = 0; },
                 "next_n 0: must be at least 1 and divide num_rows (8)");
  expect_invalid([](auto& a) { a.ranges.next_n = 3; },
                 "next_n 3: must be at least 1 and divide num_rows (8)");
  // Where the rows lie.
  expect_invalid([](auto& a) { a.ranges.seq_lens = nullptr; },
                 "row_ends is null: must be a device pointer where seq_lens is null");
  expect_invalid([](auto& a) { a.ranges.row_ends = a.ranges.seq_lens; },
                 "row_ends is not null: must be where there are seq_lens");
  expect_invalid([](auto& a) { a.ranges.row_begins = a.ranges.seq_lens; },
                 "row_begins is not null: must be where index keys lie in blocks, whose rows begin "
                 "with token 0");
  expect_invalid([](auto& a) { a.query_seqs = nullptr; },
                 "query_seqs is null: must be a device pointer where next_n is 2");
  // The indexer's.
  expect_invalid([](auto& a) { a.index_q = nullptr; }, "index_q is null: must be a device pointer");
  expect_invalid([](auto& a) { a.index_q_stride_row = 3; },
                 "index_q_stride_row 3: must be a multiple of 4");
  expect_invalid([](auto& a) { a.index_q_stride_head = 2; },
                 "index_q_stride_head 2: must be a multiple of 4");
  expect_invalid([](auto& a) { a.index_weights = nullptr; },
                 "index_weights is null: must be a device pointer");
  expect_invalid([](auto& a) { a.index_k = reinterpret_cast<const void*>(0x13008); },
                 "index_k is 0x13008: must be aligned to 16 bytes");
  expect_invalid([](auto& a) { a.index_k_stride = 8; },
                 "index_k_stride 8: must be a multiple of 16");
  expect_invalid([](auto& a) { a.indices = reinterpret_cast<int32_t*>(0x18002); },
                 "indices is 0x18002: must be aligned to 4 bytes");
  expect_invalid(
      [](auto& a) { a.indices = reinterpret_cast<int32_t*>(0x18000), a.indices_stride = 63; },
      "indices_stride 63: must be at least top_k (64)");
  // Attention's.
  expect_invalid([](auto& a) { a.q = nullptr; }, "q is null: must be a device pointer");
  expect_invalid([](auto& a) { a.k_cache = nullptr; }, "k_cache is null: must be a device pointer");
  expect_invalid([](auto& a) { a.k_strides.token = 4; },
                 "k_strides.token 4: must be a multiple of 8 elements");
  expect_invalid([](auto& a) { a.block_table = nullptr; },
                 "block_table is null: must be a device pointer");
  expect_invalid([](auto& a) { a.block_table_stride = 63; },
                 "block_table_stride 63: must be at least max_blocks_per_seq (64)");
  expect_invalid([](auto& a) { a.out = nullptr; }, "out is null: must be a device pointer");
  expect_invalid([](auto& a) { a.lse = reinterpret_cast<float*>(0x7002); },
                 "lse is 0x7002: must be aligned to 4 bytes");
  expect_invalid([](auto& a) { a.num_blocks = -1; },
                 "num_blocks -1: must be 0 (not checked) or positive");
  expect_invalid([](auto& a) { a.scale = INFINITY; }, "scale inf: must be finite");
}

TEST_F(SparseAttentionLaunchTest, ABudgetThatIsTooSmallSaysWhatIsEnough) {
  expect_invalid([](auto& a) { a.logits_bytes = 2 * kRowBytes - 1; },
                 "logits_bytes 32767: must be at least 32768, for the logits of the 2 rows of a "
                 "sequence of 4096 columns");
  expect_invalid([](auto& a) { a.logits_bytes = -1; },
                 "logits_bytes -1: must be at least 32768, for the logits of the 2 rows of a "
                 "sequence of 4096 columns");
  expect_invalid(
      [](auto& a) {
        a.ranges = {.row_ends = a.ranges.seq_lens, .next_n = 2};
        a.logits_bytes = kRowBytes - 1;
      },
      "logits_bytes 16383: must be at least 16384, for the logits of a row of 4096 columns");
  SparseAttentionArgs args = legal_pages();
  args.logits_bytes = 2 * kRowBytes - 1;
  EXPECT_EQ(kernel.workspace_bytes(args), 0u);
}

TEST_F(SparseAttentionLaunchTest, ContiguousKeysHaveArgumentsOfTheirOwn) {
  kernel = prepare_sparse(make_contiguous());
  EXPECT_EQ(launches_of(legal_contiguous()), 3u);
  expect_invalid([](auto& a) { a.num_index_keys = -1; },
                 "num_index_keys -1: must be in [0, 33553920]");
  expect_invalid([](auto& a) { a.index_k_scale = nullptr; },
                 "index_k_scale is null: must be a device pointer");
  expect_invalid([](auto& a) { a.ranges.row_ends = nullptr; },
                 "row_ends is null: must be a device pointer where seq_lens is null");
  expect_invalid([](auto& a) { a.ranges.row_begins = reinterpret_cast<const int32_t*>(0x16001); },
                 "row_begins is 0x16001: must be aligned to 4 bytes");
  expect_invalid([](auto& a) { a.ranges = {.seq_lens = a.ranges.row_ends}; },
                 "seq_lens is not null: must be where index keys are contiguous, whose rows have "
                 "begins and ends");
  expect_invalid([](auto& a) { a.logits_bytes = 11999; },
                 "logits_bytes 11999: must be at least 12000, for the logits of a row of 3000 "
                 "columns");
  // What only pages have is not looked at.
  SparseAttentionArgs args = legal_contiguous();
  args.ranges.next_n = 0;
  args.query_seqs = nullptr;
  EXPECT_EQ(launches_of(args), 3u);
}

TEST_F(SparseAttentionLaunchTest, AWorkspaceThatIsTooSmallIsRefused) {
  SparseAttentionArgs args = legal_pages();
  const size_t needed = kernel.workspace_bytes(args);
  const std::string needs = "; this launch (8 rows, top_k 64, logits_bytes 67108864) needs " +
                            std::to_string(needed) + " bytes";
  args.workspace = nullptr;
  expect_refused(StatusCode::kWorkspace, args, "workspace is null" + needs);
  args.workspace = reinterpret_cast<void*>(0x100080);
  expect_refused(StatusCode::kWorkspace, args,
                 "workspace is 0x100080: must be aligned to 256 bytes" + needs);
  args = legal_pages();
  args.workspace_bytes = needed - 1;
  expect_refused(StatusCode::kWorkspace, args,
                 "workspace_bytes " + std::to_string(needed - 1) + ": too small" + needs);
  args.workspace_bytes = needed;
  EXPECT_EQ(launches_of(args), 3u);
}

TEST_F(SparseAttentionLaunchTest, AFailedLaunchSaysWhich) {
  script->fail("cuLaunchKernelEx", CUDA_ERROR_LAUNCH_FAILED);
  const Status status = kernel.launch(legal_pages(), nullptr);
  EXPECT_EQ(status.code(), StatusCode::kDriverError);
  EXPECT_THAT(status.message(), HasSubstr("index logits: "));
  EXPECT_EQ(script->calls("cuLaunchKernelEx"), 1u);
}

TEST_F(SparseAttentionLaunchTest, AnEmptyHandleSaysSo) {
  const SparseAttentionKernel empty;
  EXPECT_FALSE(empty);
  const std::string sentence =
      "the SparseAttentionKernel is empty: launch one that Engine::prepare() returned";
  EXPECT_EQ(empty.launch(legal_pages(), nullptr).message(), sentence);
  EXPECT_EQ(empty.workspace_init(nullptr, 0, nullptr).message(), sentence);
  EXPECT_EQ(empty.read_debug_report(nullptr, nullptr).message(), sentence);
  EXPECT_EQ(empty.workspace_bytes(legal_pages()), 0u);
  EXPECT_EQ(empty.max_workspace_bytes(1, 1), 0u);
  EXPECT_EQ(empty.num_chunks(legal_pages()), 0);
  EXPECT_EQ(empty.spec(), SparseAttentionSpec{});
  EXPECT_EQ(empty.info().attention.key, "");
  EXPECT_THAT(kernel.workspace_init(reinterpret_cast<void*>(0x100), 100, nullptr).message(),
              HasSubstr("workspace_bytes 100: too small"));
}

}  // namespace
}  // namespace pagejit
