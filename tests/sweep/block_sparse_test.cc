// Block-sparse attention against the float64 reference: a covering array over its numbers and all
// that it may be combined with; that hidden blocks are not read; numbers near their limits.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "tests/sweep/error_summary.h"
#include "tests/sweep/test_device.h"

namespace pagejit {
namespace {

enum class Mask { kNone, kWindow, kChunks, kBits };

enum class Lengths {
  kMixed,    // a decode step, no queries, a prompt, a chunk, more queries than keys, no keys
  kPrompts,  // as many queries as keys
  kLong,     // a few tokens behind 2,000, and behind 500
};

// The order of the fields is that of make_covering_array.py.
struct BlockSparseCase {
  QueryLengths queries;
  int head_size;
  int group_size;
  int block_size;
  DataType kv_type;
  KvLayout kv_layout;
  KvTable kv_table;
  Causality causality;
  Mask mask;
  bool soft_cap;
  bool alibi;
  bool sinks;
  int local_blocks;
  int vert_stride;
  int sparse_block_size;
  int head_sliding_step;
  int tp_rank;
  Lengths lengths;
  int num_splits;

  // What cannot be together gives way: causality to a single query, vLLM's layout to rows without
  // blocks.
  KernelSpec spec() const {
    const bool has_blocks = kv_table != KvTable::kContiguous;
    KernelSpec spec = make_spec(kv_type, head_size, has_blocks ? block_size : 1, group_size);
    if (data_type_bytes(kv_type) == 1) spec.q_dtype = spec.out_dtype = DataType::kBFloat16;
    spec.queries = queries;
    if (queries != QueryLengths::kOne) spec.causality = causality;
    spec.kv_table = kv_table;
    if (has_blocks) spec.kv_layout = kv_layout;
    spec.window = mask == Mask::kWindow;
    spec.chunked = mask == Mask::kChunks;
    spec.custom_mask = mask == Mask::kBits;
    spec.block_sparse = true;
    spec.soft_cap = soft_cap;
    spec.alibi = alibi;
    spec.sinks = sinks;
    return spec;
  }

  CheckOptions check_options() const {
    CheckOptions options;
    BatchOptions& batch = options.batch;
    batch.num_kv_heads = 3;
    batch.seq_lens = lengths == Lengths::kMixed     ? std::vector<int>{130, 9, 37, 301, 3, 0}
                     : lengths == Lengths::kPrompts ? std::vector<int>{1, 40, 16, 90}
                                                    : std::vector<int>{2020, 501};
    if (queries != QueryLengths::kOne) {
      batch.query_lens = lengths == Lengths::kMixed     ? std::vector<int>{1, 0, 37, 20, 5, 2}
                         : lengths == Lengths::kPrompts ? batch.seq_lens
                                                        : std::vector<int>{1, 6};
      batch.unused_queries = 1;
    }
    batch.layout = CacheLayout::kPadded;
    batch.per_head_scales = true;
    batch.window_left = 200;
    batch.window_right = 3;
    batch.chunk_size = 180;
    batch.block_sparse = {.local_blocks = local_blocks,
                          .vert_stride = vert_stride,
                          .block_size = sparse_block_size,
                          .head_sliding_step = head_sliding_step,
                          .tp_rank = tp_rank};
    options.num_splits = num_splits;
    return options;
  }
};

const BlockSparseCase kCases[] = {
#include "tests/sweep/covering_sparse.inc"
};

class BlockSparseSweepTest : public DeviceTest, public testing::WithParamInterface<size_t> {};

TEST_P(BlockSparseSweepTest, IsAsCloseToFloat64AsTheNaiveComputation) {
  const BlockSparseCase& c = kCases[GetParam()];
  const Result<CheckReport> result = run_check(engine(), session(), c.spec(), c.check_options());
  ASSERT_TRUE(result.is_ok()) << canonical_text(c.spec()) << ": " << result.status().to_string()
                              << result.status().detail() << report();
  expect_passed(*result, canonical_text(c.spec()));
}

INSTANTIATE_TEST_SUITE_P(Cases, BlockSparseSweepTest, testing::Range(size_t{0}, std::size(kCases)),
                         [](const testing::TestParamInfo<size_t>& test) {
                           const BlockSparseCase& c = kCases[test.param];
                           char text[120];
                           std::snprintf(text, sizeof text, "%03d_q%d_d%d_g%d_local%d_stride%d_b%d",
                                         static_cast<int>(test.param), static_cast<int>(c.queries),
                                         c.head_size, c.group_size, c.local_blocks, c.vert_stride,
                                         c.sparse_block_size);
                           return std::string(text);
                         });

class BlockSparseTest : public DeviceTest {
 protected:
  CheckReport check(const KernelSpec& spec, const BatchOptions& batch, int num_splits = 1) {
    CheckOptions options;
    options.batch = batch;
    options.num_splits = num_splits;
    const Result<CheckReport> result = run_check(engine(), session(), spec, options);
    EXPECT_TRUE(result.is_ok()) << result.status().to_string() << report();
    return result ? *result : CheckReport{};
  }
};

// Where no head of a group sees a sparse block, its KV blocks are not touched: their ids point
// nowhere. The heads of a group see the same blocks, or not.
TEST_F(BlockSparseTest, BlocksThatNoHeadSeesAreNotRead) {
  for (const int step : {0, 1, -1}) {
    for (const QueryLengths queries : {QueryLengths::kOne, QueryLengths::kFew}) {
      KernelSpec spec = make_spec(DataType::kBFloat16, 64, 16, 3);
      spec.queries = queries;
      if (queries != QueryLengths::kOne) spec.causality = Causality::kCausal;
      spec.block_sparse = true;
      const Kernel kernel = prepare(spec);
      ASSERT_TRUE(kernel);
      BatchOptions options;
      options.spec = spec;
      options.num_kv_heads = 1;  // all others may see what this one does not
      options.seq_lens = {1500, 700};
      if (queries != QueryLengths::kOne) options.query_lens = {2, 1};
      options.block_sparse = {
          .local_blocks = 2, .vert_stride = 8, .block_size = 64, .head_sliding_step = step};
      const AttentionBatch batch = make_batch(options);
      Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, true);
      ASSERT_TRUE(device_batch.is_ok()) << device_batch.status().to_string();

      std::vector<int32_t> table = batch.block_table;
      int num_hidden = 0;
      for (int seq = 0; seq < batch.num_seqs; ++seq) {
        const int seq_len = options.seq_lens[static_cast<size_t>(seq)];
        for (int block = 0; block * 16 < seq_len; ++block) {
          bool is_seen = false;
          for (int query = 0; query < batch.num_queries; ++query) {
            if (batch.seq_of(query) != seq) continue;
            for (int head = 0; head < batch.num_heads; ++head) {
              is_seen |=
                  batch.seen_by(query, head, {block * 16, block * 16 + 1, seq_len - 1})[0] == 1;
            }
          }
          if (is_seen) continue;
          ++num_hidden;
          table[static_cast<size_t>(seq * batch.block_table_stride + block)] = 0x7ffffff0;
        }
      }
      EXPECT_GT(num_hidden, step == 1 ? 50 : 80);
      ASSERT_TRUE(device_batch->set_block_table(table).is_ok());
      AttentionArgs args = device_batch->args();
      args.num_splits = 1;
      const CheckReport result =
          launch_and_compare(kernel, *device_batch, args, batch, compute_reference(batch));
      EXPECT_TRUE(result.passed) << "step " << step << ": " << result.sentence;
    }
  }
}

// The offsets of heads go far beyond 32 bits.
TEST_F(BlockSparseTest, GreatNumbersDoNotOverflow) {
  constexpr int kMost = std::numeric_limits<int32_t>::max();
  const BlockSparseArgs cases[] = {
      {.local_blocks = 1,
       .vert_stride = 7,
       .block_size = 5,
       .head_sliding_step = kMost,
       .tp_rank = 1 << 28},
      {.local_blocks = 1,
       .vert_stride = 7,
       .block_size = 5,
       .head_sliding_step = -kMost - 1,
       .tp_rank = 99},
      {.local_blocks = 0,
       .vert_stride = 65536,
       .block_size = 1,
       .head_sliding_step = 65535,
       .tp_rank = 3},
      {.local_blocks = kMost, .vert_stride = 65536, .block_size = 65536},
      {.local_blocks = 0, .vert_stride = 2, .block_size = 65536},
  };
  KernelSpec spec = make_spec(DataType::kFloat16, 32, 16, 2);
  spec.block_sparse = true;
  for (const BlockSparseArgs& sparse : cases) {
    BatchOptions options;
    options.num_kv_heads = 2;
    options.seq_lens = {150, 1, 31};
    options.block_sparse = sparse;
    const CheckReport result = check(spec, options);
    EXPECT_TRUE(result.passed) << sparse.vert_stride << ", " << sparse.head_sliding_step << ": "
                               << result.sentence;
  }
}

}  // namespace
}  // namespace pagejit
