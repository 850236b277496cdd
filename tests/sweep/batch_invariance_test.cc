// Batch-invariant kernels: a query token's result is the same to the bit alone, in a chunk and in a
// full batch, with any number of splits and wherever its blocks lie. On the emulator this shows
// that the order of tiles, splits and merges is the same; the bits themselves count on a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "templates/shared/attention_params.h"
#include "tests/sweep/error_summary.h"
#include "tests/sweep/test_device.h"

namespace pagejit {
namespace {

constexpr int kSplit = pagejit_shared::kFixedSplitTokens;

// What a launch left of one sequence's query tokens, a row for each.
struct TokenResult {
  std::vector<uint32_t> out;  // codes
  std::vector<uint32_t> lse;  // bits

  bool operator==(const TokenResult&) const = default;
};

// Query tokens [begin, end) of a sequence, as one sequence of a launch.
struct Piece {
  int seq = 0;
  int begin = 0;
  int end = 0;
};

struct InvarianceCase {
  std::string name;
  KernelSpec spec;
};

class BatchInvarianceTest : public DeviceTest, public testing::WithParamInterface<InvarianceCase> {
 protected:
  // One of many splits with and without a rest, one of less than a tile, one that is all queries.
  static BatchOptions make_options(const KernelSpec& spec) {
    BatchOptions options;
    options.spec = spec;
    options.num_kv_heads = 2;
    options.seq_lens = {2 * kSplit + 461, 3, kSplit, 37};
    options.query_lens = {41, 1, 2, 37};
    options.window_left = kSplit + 100;
    options.chunk_size = kSplit + 77;
    options.per_head_scales = true;
    return options;
  }

  void load(AttentionBatch batch) {
    batch_ = std::move(batch);
    Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch_, /*with_lse=*/true);
    ASSERT_TRUE(device_batch.is_ok()) << device_batch.status().to_string();
    device_batch_.emplace(std::move(device_batch).value());
  }

  int query_begin(int seq) const { return batch_.query_start_loc[static_cast<size_t>(seq)]; }

  // One launch of these pieces, each a sequence whose KV ends with its last query token. The
  // results of their tokens, in order.
  std::vector<TokenResult> run(const Kernel& kernel, const std::vector<Piece>& pieces,
                               int num_splits) {
    const AttentionArgs& all = device_batch_->args();
    // The pieces follow each other in q, and so in the batch.
    const int first_query = query_begin(pieces.front().seq) + pieces.front().begin;
    std::vector<int32_t> query_start_loc = {0};
    std::vector<int32_t> seq_lens;
    std::vector<int32_t> table;
    for (const Piece& piece : pieces) {
      const auto seq = static_cast<size_t>(piece.seq);
      const int num_queries = query_begin(piece.seq + 1) - query_begin(piece.seq);
      seq_lens.push_back(batch_.seq_lens[seq] - (num_queries - piece.end));
      query_start_loc.push_back(query_begin(piece.seq) + piece.end - first_query);
      const int32_t* row = batch_.block_table.data() + piece.seq * batch_.block_table_stride;
      table.insert(table.end(), row, row + batch_.block_table_stride);
    }
    const auto upload = [&](const std::vector<int32_t>& host) {
      Result<DeviceBuffer> buffer =
          DeviceBuffer::copy_of(session(), host.data(), host.size() * sizeof(int32_t));
      EXPECT_TRUE(buffer.is_ok()) << buffer.status().to_string();
      return std::move(buffer).value();
    };
    const DeviceBuffer device_starts = upload(query_start_loc);
    const DeviceBuffer device_lens = upload(seq_lens);
    const DeviceBuffer device_table = upload(table);

    AttentionArgs args = all;
    const auto advance = [](auto* pointer, int64_t bytes) {
      return reinterpret_cast<decltype(pointer)>(reinterpret_cast<uintptr_t>(pointer) +
                                                 static_cast<uintptr_t>(bytes));
    };
    args.q = advance(all.q, batch_.q.offset_bytes(first_query * all.q_stride_token));
    args.out = advance(all.out, batch_.out.offset_bytes(first_query * all.out_stride_token));
    args.lse = all.lse + int64_t{first_query} * batch_.num_heads;
    args.num_seqs = static_cast<int32_t>(pieces.size());
    args.query_start_loc = device_starts.data<int32_t>();
    args.num_query_tokens = query_start_loc.back();
    args.seq_lens = device_lens.data<int32_t>();
    args.block_table = device_table.data<int32_t>();
    args.num_splits = num_splits;
    const int64_t capacity = int64_t{args.max_blocks_per_seq} * batch_.options.spec.block_size;
    Result<Workspace> workspace = Workspace::create(
        session(), kernel,
        kernel.workspace_bytes(args.num_seqs, args.num_kv_heads, capacity, num_splits));
    EXPECT_TRUE(workspace.is_ok()) << workspace.status().to_string();
    workspace->put_into(args);
    Status status = device_batch_->reset_results();
    if (status) status = kernel.launch(args, nullptr);
    if (status) status = session().synchronize();
    EXPECT_TRUE(status) << status.to_string() << report();
    const Result<AttentionResults> results = device_batch_->download();
    EXPECT_TRUE(results.is_ok()) << results.status().to_string();
    std::vector<TokenResult> tokens;
    for (const Piece& piece : pieces) {
      for (int token = piece.begin; token < piece.end; ++token) {
        tokens.push_back(result_of(*results, query_begin(piece.seq) + token));
      }
    }
    return tokens;
  }

  // Those of all tokens of a sequence, launched in pieces of at most so many tokens, alone.
  std::vector<TokenResult> run_alone(const Kernel& kernel, int seq, int piece_tokens,
                                     int num_splits) {
    const int num_queries = query_begin(seq + 1) - query_begin(seq);
    std::vector<TokenResult> tokens;
    for (int begin = 0; begin < num_queries; begin += piece_tokens) {
      const int end = std::min(begin + piece_tokens, num_queries);
      for (TokenResult& result : run(kernel, {{seq, begin, end}}, num_splits)) {
        tokens.push_back(std::move(result));
      }
    }
    return tokens;
  }

  std::vector<TokenResult> run_all(const Kernel& kernel, int num_splits) {
    std::vector<Piece> pieces;
    for (int seq = 0; seq < batch_.num_seqs; ++seq) {
      pieces.push_back({seq, 0, query_begin(seq + 1) - query_begin(seq)});
    }
    return run(kernel, pieces, num_splits);
  }

  // How many tokens of `got`, which begin at a sequence's first, differ from those of the full
  // batch.
  int count_different(const std::vector<TokenResult>& all, int seq,
                      const std::vector<TokenResult>& got) const {
    int count = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      if (!(got[i] == all[static_cast<size_t>(query_begin(seq)) + i])) ++count;
    }
    return count;
  }

  AttentionBatch batch_;
  std::optional<DeviceBatch> device_batch_;

 private:
  TokenResult result_of(const AttentionResults& results, int query) const {
    TokenResult token;
    for (int head = 0; head < batch_.num_heads; ++head) {
      const int64_t row = batch_.out_index(query, head);
      for (int i = 0; i < batch_.head_size_v(); ++i) token.out.push_back(results.out.code(row + i));
      const auto lse = static_cast<size_t>(int64_t{query} * batch_.num_heads + head);
      token.lse.push_back(std::bit_cast<uint32_t>(results.lse[AttentionBatch::kLseGuard + lse]));
    }
    return token;
  }
};

// The same batch with its cache blocks in other places.
AttentionBatch with_moved_blocks(const AttentionBatch& batch) {
  AttentionBatch moved = batch;
  const auto place_of = [&](int64_t block) { return (block + 7) % batch.num_blocks; };
  for (size_t i = 0; i < batch.allocations.size(); ++i) {
    const KvAllocation& from = batch.allocations[i];
    for (int64_t block = 0; block < batch.num_blocks; ++block) {
      for (int64_t e = 0; e < from.block_extent; ++e) {
        moved.allocations[i].data.set_code(place_of(block) * from.block_extent + e,
                                           from.data.code(block * from.block_extent + e));
      }
    }
  }
  const auto move_scales = [&](const std::vector<float>& from, std::vector<float>& to,
                               int64_t stride) {
    for (int64_t block = 0; block < batch.num_blocks; ++block) {
      std::copy_n(from.data() + block * stride, stride, to.data() + place_of(block) * stride);
    }
  };
  if (batch.options.spec.token_scales) {
    move_scales(batch.k_scale, moved.k_scale, batch.k_scale_strides.block);
    move_scales(batch.v_scale, moved.v_scale, batch.v_scale_strides.block);
  }
  for (int seq = 0; seq < batch.num_seqs; ++seq) {
    const int64_t blocks =
        (batch.seq_lens[static_cast<size_t>(seq)] + batch.options.spec.block_size - 1) /
        batch.options.spec.block_size;
    for (int64_t i = 0; i < blocks; ++i) {
      int32_t& id = moved.block_table[static_cast<size_t>(seq * batch.block_table_stride + i)];
      id = static_cast<int32_t>(place_of(id));
    }
  }
  return moved;
}

TEST_P(BatchInvarianceTest, ResultsDoNotDependOnTheRestOfTheBatchOrOnChunks) {
  const KernelSpec& spec = GetParam().spec;
  load(make_batch(make_options(spec)));
  const Kernel kernel = prepare(spec);
  const std::vector<TokenResult> all = run_all(kernel, 1);
  // Splits by CTAs of their own, as many as the longest sequence has and more; and too few, so that
  // one CTA does all.
  for (const int num_splits : {0, 2, 3, 5}) {
    EXPECT_EQ(count_different(all, 0, run_all(kernel, num_splits)), 0) << num_splits << " splits";
  }
  for (int seq = 0; seq < batch_.num_seqs; ++seq) {
    EXPECT_EQ(count_different(all, seq, run_alone(kernel, seq, 1000, 3)), 0) << "sequence " << seq;
  }
  EXPECT_EQ(count_different(all, 0, run_alone(kernel, 0, 7, 3)), 0) << "chunks of 7 tokens";
  EXPECT_EQ(count_different(all, 0, run_alone(kernel, 0, 7, 1)), 0) << "chunks of 7 tokens";
  EXPECT_EQ(count_different(all, 3, run_alone(kernel, 3, 1, 0)), 0) << "token by token";
  load(with_moved_blocks(batch_));
  EXPECT_EQ(count_different(all, 0, run_all(kernel, 3)), 0) << "other blocks";
}

TEST_P(BatchInvarianceTest, ResultsAreAsCloseToFloat64AsTheNaiveComputation) {
  CheckOptions options;
  options.batch = make_options(GetParam().spec);
  for (const int num_splits : {1, 3}) {
    options.num_splits = num_splits;
    const Result<CheckReport> result = run_check(engine(), session(), GetParam().spec, options);
    ASSERT_TRUE(result.is_ok()) << result.status().to_string() << report();
    expect_passed(*result);
  }
}

std::vector<InvarianceCase> make_cases() {
  const auto make = [](QueryLengths queries, DataType kv) {
    KernelSpec spec = make_spec(kv, 64, 16, 4);
    spec.queries = queries;
    spec.causality = Causality::kCausal;
    spec.batch_invariant = true;
    if (data_type_bytes(kv) == 1) spec.q_dtype = spec.out_dtype = DataType::kBFloat16;
    return spec;
  };
  std::vector<InvarianceCase> cases;
  cases.push_back({"few_bf16", make(QueryLengths::kFew, DataType::kBFloat16)});
  cases.push_back({"many_f16", make(QueryLengths::kMany, DataType::kFloat16)});
  InvarianceCase window{"many_window", make(QueryLengths::kMany, DataType::kBFloat16)};
  window.spec.window = window.spec.soft_cap = window.spec.sinks = window.spec.alibi = true;
  cases.push_back(window);
  InvarianceCase chunked{"few_chunked_int8", make(QueryLengths::kFew, DataType::kInt8)};
  chunked.spec.token_scales = chunked.spec.chunked = true;
  chunked.spec.block_size = 5;
  cases.push_back(chunked);
  cases.push_back({"many_f32", make(QueryLengths::kMany, DataType::kFloat32)});
  InvarianceCase vllm{"few_vllm_fp8", make(QueryLengths::kFew, DataType::kFloat8E4m3)};
  vllm.spec.kv_layout = KvLayout::kVllm;
  vllm.spec.window = true;
  cases.push_back(vllm);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Kernels, BatchInvarianceTest, testing::ValuesIn(make_cases()),
                         [](const auto& test) { return test.param.name; });

// What the tests above would find: kernels that are not batch-invariant fail them.
class OrdinaryKernelTest : public BatchInvarianceTest {};

TEST_P(OrdinaryKernelTest, ResultsDependOnTheSplits) {
  KernelSpec spec = GetParam().spec;
  spec.batch_invariant = false;
  load(make_batch(make_options(spec)));
  const Kernel kernel = prepare(spec);
  const std::vector<TokenResult> all = run_all(kernel, 1);
  EXPECT_GT(count_different(all, 0, run_alone(kernel, 0, 3, 3)), 0);
}

INSTANTIATE_TEST_SUITE_P(Kernels, OrdinaryKernelTest, testing::Values(make_cases().front()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace pagejit
