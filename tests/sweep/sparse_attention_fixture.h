// What the tests of sparse attention share: cases, calls with all that they read, and the check of
// their choice against logits in double precision. Thread-safety: the main thread of a test
// program.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "pagejit/sparse_attention.h"
#include "tests/sweep/family_test.h"
#include "tools/reference/random.h"

namespace pagejit {

inline constexpr int kBlockSize = 64;
inline constexpr int kIndexHeads = 32;
inline constexpr int kIndexHeadSize = 128;

// What a call gets of rows and keys.
enum class SparseUse {
  kSeqLens,     // pages; the sequences' lengths
  kRowEnds,     // pages; an end for each row
  kContiguous,  // keys of all sequences in a row; a range for each row
};

struct SparseCase {
  std::vector<int> seq_lens;
  std::vector<int> query_lens;  // pages: the same of each sequence
  SparseUse use = SparseUse::kSeqLens;
  int top_k = 64;
  bool debug = false;
  bool ds_mla = false;  // rows of 656 bytes
};

inline SparseCase decode_case(int next_n) {
  SparseCase c;
  c.seq_lens = {300, 64, 20, 1, 130};
  c.query_lens.assign(c.seq_lens.size(), next_n);
  return c;
}
inline SparseCase prefill_case() {
  return {.seq_lens = {90, 150, 7, 40}, .query_lens = {20, 6, 9, 1}, .use = SparseUse::kContiguous};
}
inline SparseCase ends_case() {
  return {.seq_lens = {200, 70}, .query_lens = {12, 12}, .use = SparseUse::kRowEnds};
}

inline KernelSpec attention_of(const SparseCase& c) {
  KernelSpec spec = make_spec(DataType::kBFloat16, 576, kBlockSize, 16, c.debug);
  spec.head_size_v = 512;
  spec.latent = true;
  spec.kv_table = KvTable::kPositions;
  if (c.ds_mla) {
    spec.kv_dtype = DataType::kFloat8E4m3;
    spec.kv_layout = KvLayout::kDsMla;
  }
  return spec;
}

// Of the same rows, over all tokens of their sequences.
inline KernelSpec dense_of(const SparseCase& c) {
  KernelSpec spec = attention_of(c);
  spec.kv_table = KvTable::kBlocks;
  spec.queries = QueryLengths::kFew;
  return spec;
}

inline SparseAttentionSpec spec_of(const SparseCase& c) {
  return {.attention = attention_of(c),
          .index_num_heads = kIndexHeads,
          .index_head_size = kIndexHeadSize,
          .contiguous_index_keys = c.use == SparseUse::kContiguous};
}

inline std::vector<float> draw(SplitMix64& rng, size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = rng.uniform();
  return values;
}

// The bits of all results.
struct SparseResults {
  AttentionResults attention;
  std::vector<int32_t> indices;

  bool operator==(const SparseResults& other) const {
    const auto bits = [](const std::vector<float>& values) {
      std::vector<uint32_t> all;
      all.reserve(values.size());
      for (const float value : values) all.push_back(std::bit_cast<uint32_t>(value));
      return all;
    };
    return indices == other.indices && attention.out == other.attention.out &&
           bits(attention.lse) == bits(other.attention.lse);
  }
};

class SparseAttentionTest : public FamilyTest {
 protected:
  // All that a call reads, and what it should choose from.
  struct Call {
    SparseCase c;
    AttentionBatch batch;  // its custom mask becomes what was chosen
    std::optional<DeviceBatch> device;
    SparseAttentionArgs args;
    int num_rows = 0;
    std::vector<int32_t> positions;  // of each row: it sees one more token
    std::vector<int> seqs;           // of each row
    std::vector<uint8_t> q;
    std::vector<float> weights;
    std::vector<uint8_t> pages_on_host;
    DeviceBuffer pages, keys, key_scales, index_q, index_weights, seq_lens, row_begins, row_ends,
        query_seqs, indices, workspace;
  };

  static int64_t page_bytes() {
    return index_page_bytes(kBlockSize, kIndexHeadSize, kIndexHeadSize);
  }

  SparseAttentionKernel prepare_sparse(const SparseCase& c) { return prepare_on(engine(), c); }
  static SparseAttentionKernel prepare_on(Engine& on, const SparseCase& c) {
    Result<SparseAttentionKernel> kernel = on.prepare(spec_of(c));
    EXPECT_TRUE(kernel.is_ok()) << kernel.status().to_string() << kernel.status().detail();
    return kernel ? *kernel : SparseAttentionKernel();
  }

  // Random index keys in the pages of all tokens; the rest is NaN.
  void write_pages(Call& call) {
    const AttentionBatch& batch = call.batch;
    SplitMix64 rng(7);
    std::vector<int64_t> slots;
    for (int seq = 0; seq < batch.num_seqs; ++seq) {
      const int32_t* row = batch.block_table.data() + seq * batch.block_table_stride;
      for (int token = 0; token < batch.seq_lens[static_cast<size_t>(seq)]; ++token) {
        slots.push_back(int64_t{row[token / kBlockSize]} * kBlockSize + token % kBlockSize);
      }
    }
    const DeviceBuffer keys = upload(draw(rng, slots.size() * kIndexHeadSize));
    const DeviceBuffer device_slots = upload(slots);
    call.pages =
        upload(std::vector<uint8_t>(static_cast<size_t>(page_bytes() * batch.num_blocks), 0x7f));
    IndexKeyWriteArgs write;
    write.k = keys.data();
    write.k_stride_token = kIndexHeadSize;
    write.cache = call.pages.data();
    write.block_stride_bytes = page_bytes();
    write.slot_mapping = device_slots.data<int64_t>();
    write.num_tokens = static_cast<int32_t>(slots.size());
    EXPECT_TRUE(run(prepare_family(IndexKeyWriteSpec{.dtype = DataType::kFloat32}), write));
    call.pages_on_host = download_all<uint8_t>(call.pages);
  }

  // The keys of all sequences one behind the other.
  void gather_keys(Call& call) {
    const AttentionBatch& batch = call.batch;
    const std::vector<int32_t>& starts = batch.kv_start_loc;
    const DeviceBuffer cu_seq_lens = upload(starts);
    const auto count = static_cast<size_t>(starts.back());
    call.keys = upload(std::vector<uint8_t>(count * kIndexHeadSize));
    call.key_scales = upload(std::vector<float>(count));
    IndexKeyGatherArgs gather;
    gather.cache = call.pages.data();
    gather.block_stride_bytes = page_bytes();
    gather.block_table = call.args.block_table;
    gather.block_table_stride = call.args.block_table_stride;
    gather.cu_seq_lens = cu_seq_lens.data<int32_t>();
    gather.num_seqs = batch.num_seqs;
    gather.num_tokens = starts.back();
    gather.k_out = call.keys.data();
    gather.k_out_stride_token = kIndexHeadSize;
    gather.scale_out = call.key_scales.data<float>();
    gather.scale_out_stride_token = 1;
    EXPECT_TRUE(run(prepare_family(IndexKeyGatherSpec{}), gather));
    call.args.index_k = call.keys.data();
    call.args.index_k_stride = kIndexHeadSize;
    call.args.index_k_scale = call.key_scales.data<float>();
    call.args.num_index_keys = starts.back();
  }

  void set_rows(Call& call) {
    const AttentionBatch& batch = call.batch;
    std::vector<int32_t> begins, ends, seqs;
    for (int row = 0; row < call.num_rows; ++row) {
      const auto seq = static_cast<size_t>(batch.seq_of(row));
      const int position = batch.seq_lens[seq] - (batch.query_start_loc[seq + 1] - row);
      const bool is_contiguous = call.c.use == SparseUse::kContiguous;
      begins.push_back(is_contiguous ? batch.kv_start_loc[seq] : 0);
      ends.push_back(begins.back() + position + 1);
      seqs.push_back(static_cast<int32_t>(seq));
      call.positions.push_back(position);
      call.seqs.push_back(static_cast<int>(seq));
    }
    call.seq_lens = upload(batch.seq_lens);
    call.row_begins = upload(begins);
    call.row_ends = upload(ends);
    call.query_seqs = upload(seqs);
    IndexRowRanges& ranges = call.args.ranges;
    ranges.next_n = call.c.query_lens[0];
    if (call.c.use == SparseUse::kSeqLens) {
      ranges.seq_lens = call.seq_lens.data<int32_t>();
    } else {
      ranges.row_ends = call.row_ends.data<int32_t>();
    }
    if (call.c.use == SparseUse::kContiguous) ranges.row_begins = call.row_begins.data<int32_t>();
    call.args.query_seqs = call.query_seqs.data<int32_t>();
  }

  void set_indexer(Call& call) {
    SplitMix64 rng(9);
    const auto rows = static_cast<size_t>(call.num_rows);
    call.q.resize(rows * kIndexHeads * kIndexHeadSize);
    for (uint8_t& code : call.q)
      code = static_cast<uint8_t>(encode_float(DataType::kFloat8E4m3, rng.uniform()));
    call.weights = draw(rng, rows * kIndexHeads);
    call.index_q = upload(call.q);
    call.index_weights = upload(call.weights);
    call.indices = upload(std::vector<int32_t>(rows * static_cast<size_t>(call.c.top_k), -7));
    SparseAttentionArgs& args = call.args;
    args.index_q = call.index_q.data();
    args.index_q_stride_head = kIndexHeadSize;
    args.index_q_stride_row = kIndexHeads * kIndexHeadSize;
    args.index_weights = call.index_weights.data<float>();
    args.index_weights_stride = kIndexHeads;
    args.index_k = call.pages.data();
    args.index_k_stride = page_bytes();
    args.indices = call.indices.data<int32_t>();
    args.indices_stride = call.c.top_k;
  }

  Call make_call(const SparseCase& c) {
    Call call;
    call.c = c;
    BatchOptions options;
    options.spec = dense_of(c);
    options.seq_lens = c.seq_lens;
    options.query_lens = c.query_lens;
    call.batch = make_batch(options);
    call.num_rows = call.batch.num_queries;
    Result<DeviceBatch> device = DeviceBatch::upload(session(), call.batch, true);
    EXPECT_TRUE(device.is_ok()) << device.status().to_string();
    if (!device) return call;
    call.device = std::move(device).value();
    const AttentionArgs& from = call.device->args();
    SparseAttentionArgs& args = call.args;
    args.num_rows = call.num_rows;
    args.top_k = c.top_k;
    args.q = from.q;
    args.q_stride_token = from.q_stride_token;
    args.q_stride_head = from.q_stride_head;
    args.k_cache = from.k_cache;
    args.k_strides = from.k_strides;
    args.num_blocks = from.num_blocks;
    args.block_table = from.block_table;
    args.block_table_stride = from.block_table_stride;
    args.max_blocks_per_seq = from.max_blocks_per_seq;
    args.out = from.out;
    args.out_stride_token = from.out_stride_token;
    args.out_stride_head = from.out_stride_head;
    args.lse = from.lse;
    args.scale = from.scale;
    write_pages(call);
    set_rows(call);
    set_indexer(call);
    if (c.use == SparseUse::kContiguous) gather_keys(call);
    return call;
  }

  // A workspace of just the bytes that are needed, garbage but for what its initialisation clears.
  void make_workspace(Call& call, const SparseAttentionKernel& kernel) {
    const size_t bytes = kernel.workspace_bytes(call.args);
    EXPECT_GT(bytes, 0u);
    call.workspace = upload(std::vector<uint8_t>(bytes, 0xff));
    call.args.workspace = call.workspace.data();
    call.args.workspace_bytes = bytes;
    EXPECT_TRUE(kernel.workspace_init(call.args.workspace, bytes, nullptr).is_ok());
  }

  SparseResults download(const Call& call) {
    Result<AttentionResults> attention = call.device->download();
    EXPECT_TRUE(attention.is_ok()) << attention.status().to_string();
    if (!attention) return {};
    return {std::move(attention).value(), download_all<int32_t>(call.indices)};
  }

  SparseResults launch(Call& call, const SparseAttentionKernel& kernel) {
    make_workspace(call, kernel);
    EXPECT_TRUE(call.device->reset_results().is_ok());
    EXPECT_TRUE(run(kernel, call.args));
    return download(call);
  }

  // By the definition, of the codes.
  static std::vector<double> logits_of(const Call& call, int row) {
    const auto at = [&](int head, int i) {
      const auto index = static_cast<size_t>((row * kIndexHeads + head) * kIndexHeadSize + i);
      return double{decode_float(DataType::kFloat8E4m3, call.q[index])};
    };
    std::vector<double> q(size_t{kIndexHeads} * kIndexHeadSize);
    for (int i = 0; i < kIndexHeads * kIndexHeadSize; ++i) {
      q[static_cast<size_t>(i)] = at(i / kIndexHeadSize, i % kIndexHeadSize);
    }
    const int32_t* blocks = call.batch.block_table.data() +
                            call.seqs[static_cast<size_t>(row)] * call.batch.block_table_stride;
    std::vector<double> logits;
    for (int token = 0; token <= call.positions[static_cast<size_t>(row)]; ++token) {
      const uint8_t* page = call.pages_on_host.data() + blocks[token / kBlockSize] * page_bytes();
      const uint8_t* codes = page + token % kBlockSize * kIndexHeadSize;
      float scale = 0;
      std::memcpy(&scale, page + kBlockSize * kIndexHeadSize + token % kBlockSize * 4, 4);
      double key[kIndexHeadSize];
      for (int i = 0; i < kIndexHeadSize; ++i)
        key[i] = double{decode_float(DataType::kFloat8E4m3, codes[i])};
      double logit = 0;
      for (int head = 0; head < kIndexHeads; ++head) {
        double product = 0;
        for (int i = 0; i < kIndexHeadSize; ++i) {
          product += q[static_cast<size_t>(head * kIndexHeadSize + i)] * key[i];
        }
        logit += double{call.weights[static_cast<size_t>(row * kIndexHeads + head)]} *
                 std::max(product, 0.0);
      }
      logits.push_back(logit * scale);
    }
    return logits;
  }

  // That the row's list names its greatest tokens, as many as there are, in rising order.
  static std::vector<uint8_t> check_list(const Call& call, const SparseResults& results, int row) {
    const std::vector<double> logits = logits_of(call, row);
    std::vector<uint8_t> listed(logits.size(), 0);
    const auto k = static_cast<size_t>(call.c.top_k);
    const size_t wanted = std::min(logits.size(), k);
    int32_t last = -1;
    for (size_t i = 0; i < k; ++i) {
      const int32_t token = results.indices[static_cast<size_t>(row) * k + i];
      if (i >= wanted) {
        EXPECT_EQ(token, -1) << "row " << row << ", behind its tokens";
      } else if (token <= last || token >= static_cast<int>(logits.size())) {
        ADD_FAILURE() << "row " << row << ", entry " << i << " is " << token << " after " << last;
      } else {
        listed[static_cast<size_t>(last = token)] = 1;
      }
    }
    double least_chosen = INFINITY, greatest_left = -INFINITY, greatest = 0;
    for (size_t token = 0; token < logits.size(); ++token) {
      greatest = std::max(greatest, std::abs(logits[token]));
      if (listed[token] != 0) least_chosen = std::min(least_chosen, logits[token]);
      if (listed[token] == 0) greatest_left = std::max(greatest_left, logits[token]);
    }
    // Sums of some 4,000 products in f32.
    EXPECT_GE(least_chosen, greatest_left - 1e-5 * greatest) << "row " << row;
    return listed;
  }

  // That each row has the greatest tokens, and the attention of dense rows masked to them.
  void expect_right(Call& call, const SparseResults& results) {
    AttentionBatch& batch = call.batch;
    batch.options.spec.custom_mask = true;
    batch.custom_mask.clear();
    batch.custom_mask_indptr.clear();
    int row = 0;
    for (int seq = 0; seq < batch.num_seqs; ++seq) {
      const auto index = static_cast<size_t>(seq);
      const auto first_byte = batch.custom_mask.size();
      const auto length = static_cast<size_t>(batch.seq_lens[index]);
      batch.custom_mask_indptr.push_back(static_cast<int32_t>(first_byte));
      const auto queries = static_cast<size_t>(call.c.query_lens[index]);
      batch.custom_mask.resize(first_byte + (queries * length + 7) / 8, 0);
      for (size_t query = 0; query < queries; ++query) {
        const std::vector<uint8_t> listed = check_list(call, results, row++);
        for (size_t token = 0; token < listed.size(); ++token) {
          const size_t bit = query * length + token;
          batch.custom_mask[first_byte + bit / 8] |= static_cast<uint8_t>(listed[token] << bit % 8);
        }
      }
    }
    const CheckReport report =
        compare_results(batch, compute_reference(batch), results.attention, true, 1);
    EXPECT_TRUE(report.passed) << report.sentence;
  }
};

}  // namespace pagejit
