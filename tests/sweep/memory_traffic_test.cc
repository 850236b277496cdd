// What only the emulator can count: bytes read from global memory, bank conflicts of shared memory.
#include <gtest/gtest.h>

#include <vector>

#include "tests/sweep/attention_on_emulator.h"

namespace pagejit {
namespace {

constexpr int kHeadSizes[] = {16, 40, 64, 72, 80, 96, 112, 120, 128, 160, 192, 256};
constexpr int kGroups[] = {1, 8, 16, 71};

// Bytes of block ids that a stage reads, of 16 tokens: in each warp that copies its rows a lane
// reads its own token's id or, where one block has them all, every lane the same one.
uint64_t id_bytes_of_stage(const AttentionConfig& c) {
  const int lanes = pagejit_shared::has_even_rows(c) ? 32 : c.group_tokens;
  return 4u * static_cast<uint64_t>(c.row_warps * lanes);
}
// And those of one token more in a stage that there is.
uint64_t id_bytes_of_token(const AttentionConfig& c) {
  return pagejit_shared::has_even_rows(c) ? 0 : 4u * static_cast<uint64_t>(c.row_warps);
}

// From one whole number of tiles to twice as many, a token more costs its K and V row once,
// whatever the group, and its block's id.
TEST_F(AttentionOnEmulatorTest, EachKeyAndValueIsReadOnceWhateverTheGroup) {
  for (int head_size : kHeadSizes) {
    for (int group_size : kGroups) {
      const int block_size = group_size == 8 ? 24 : 16;  // stages in two blocks, and in one
      const KernelSpec spec = make_spec(kBF16, head_size, block_size, group_size);
      const KernelConfig config = config_of(spec);
      // The block ids of the first stages may be read once per warp instead of by each lane.
      const int tokens = config.tile_tokens() * config.attention.num_stages;
      const uint64_t once = count(engine(), spec, {tokens}).global_bytes_read;
      const uint64_t twice = count(engine(), spec, {2 * tokens}).global_bytes_read;
      const uint64_t kv_bytes = uint64_t{2} * static_cast<uint64_t>(head_size) * 2;
      const uint64_t id_bytes = id_bytes_of_stage(config.attention) /
                                static_cast<uint64_t>(config.attention.group_tokens);
      ASSERT_LT(id_bytes, kv_bytes) << "then a second reading could hide";
      EXPECT_EQ(twice - once, (kv_bytes + id_bytes) * static_cast<uint64_t>(tokens))
          << canonical_text(spec);
      // What does not grow with the tokens: each thread's seq_len, and q once per token group at
      // most; lanes whose row does not exist count the first one once more.
      const int rows = pagejit_shared::tile_rows(config.attention);
      const auto fixed = static_cast<uint64_t>(
          config.threads_per_cta() * 4 + config.attention.token_groups * rows * head_size * 2);
      EXPECT_LE(once, (kv_bytes + id_bytes) * static_cast<uint64_t>(tokens) + fixed)
          << canonical_text(spec);
    }
  }
}

TEST_F(AttentionOnEmulatorTest, BytesBeyondTheLastTokenAreNotRead) {
  const KernelSpec spec = make_spec(kF16, 128, 16, 4);
  const uint64_t one = count(engine(), spec, {17}).global_bytes_read;
  const uint64_t two = count(engine(), spec, {18}).global_bytes_read;
  EXPECT_EQ(two - one, 2u * 128 * 2 + id_bytes_of_token(config_of(spec).attention));
}

TEST_F(AttentionOnEmulatorTest, SharedMemoryIsReadWithoutBankConflicts) {
  for (int head_size : kHeadSizes) {
    for (int group_size : kGroups) {
      const KernelSpec spec = make_spec(kF16, head_size, 16, group_size);
      const PagejitEmulatorCounters counters = count(engine(), spec, {100, 33});
      EXPECT_GT(counters.ldmatrix_phases, 0u) << canonical_text(spec);
      EXPECT_EQ(counters.ldmatrix_extra_cycles, 0u) << canonical_text(spec);
    }
  }
}

TEST_F(AttentionOnEmulatorTest, EverySupportedHeadSizeIsFreeOfBankConflicts) {
  for (int head_size = 16; head_size <= 256; head_size += 8) {
    const KernelSpec spec = make_spec(kBF16, head_size, 16, 4);
    EXPECT_EQ(count(engine(), spec, {40}).ldmatrix_extra_cycles, 0u) << canonical_text(spec);
  }
}

// Head sizes of which rows are copied in parts, elements of 8 bits, and V with its tokens in a row.
TEST_F(AttentionOnEmulatorTest, OtherElementsAndLayoutsAreFreeOfBankConflicts) {
  std::vector<KernelSpec> specs = other_kernels();
  for (const int head_size : {8, 16, 24, 48, 96, 112, 128, 192, 256}) {
    specs.push_back(make_fp8(head_size, 16, KvLayout::kRows));
    if (head_size % 16 == 0) specs.push_back(make_fp8(head_size, 32, KvLayout::kVllm));
    specs.push_back(make_vllm(head_size, 16));
  }
  for (const KernelSpec& spec : specs) {
    const PagejitEmulatorCounters counters = count(engine(), spec, {40});
    EXPECT_GT(counters.ldmatrix_phases, 0u) << canonical_text(spec);
    EXPECT_EQ(counters.ldmatrix_extra_cycles, 0u) << canonical_text(spec);
  }
}

// Two more tokens of 8 bits are half of the bytes of f16's, scales and all.
TEST_F(AttentionOnEmulatorTest, ElementsOf8BitsAreReadAsSuch) {
  const KernelSpec spec = make_fp8(128, 16, KvLayout::kRows);
  const uint64_t one = count(engine(), spec, {17}).global_bytes_read;
  const uint64_t two = count(engine(), spec, {18}).global_bytes_read;
  EXPECT_EQ(two - one, 2u * 128 + id_bytes_of_token(config_of(spec).attention));
}

// And with a scale for each token and head 8 bytes more; V's own head size counts.
TEST_F(AttentionOnEmulatorTest, ScalesOfTokensAndSmallerValuesAreReadAsSuch) {
  const auto bytes_of_token = [&](const KernelSpec& spec) {
    const uint64_t one = count(engine(), spec, {17}).global_bytes_read;
    const uint64_t two = count(engine(), spec, {18}).global_bytes_read;
    return two - one - id_bytes_of_token(config_of(spec).attention);
  };
  for (const int alignment : {16, 8, 4}) {
    EXPECT_EQ(bytes_of_token(make_int8(128, alignment)), 2u * 128 + 8) << alignment;
  }
  EXPECT_EQ(bytes_of_token(make_values(192, 128)), (192u + 128) * 2);
}

// A row that holds K and V is read once for both, by all query heads of a tile of rows; 128 are two
// tiles.
TEST_F(AttentionOnEmulatorTest, LatentRowsAreReadOncePerTileOfRows) {
  std::vector<KernelSpec> specs;
  for (const int num_heads : {1, 16, 64, 128}) {
    specs.push_back(make_latent(kBF16, 576, 512, num_heads));
    specs.push_back(make_ds_mla(num_heads));
  }
  for (KernelSpec spec : specs) {
    const int num_heads = spec.group_size;
    std::vector<int> query_lens;
    if (num_heads > 64) {
      spec.queries = QueryLengths::kFew;
      query_lens = {1};
    }
    const AttentionConfig c = config_of(spec).attention;
    const int tiles = (num_heads + pagejit_shared::tile_rows(c) - 1) / pagejit_shared::tile_rows(c);
    EXPECT_LE(tiles, 2) << num_heads;
    const int tokens = 2 * c.num_stages * c.token_groups * c.group_tokens;
    const uint64_t once = count(engine(), spec, {tokens}, 1, query_lens).global_bytes_read;
    const uint64_t twice = count(engine(), spec, {2 * tokens}, 1, query_lens).global_bytes_read;
    const uint64_t id_bytes = id_bytes_of_stage(c) / static_cast<uint64_t>(c.group_tokens);
    const auto row_bytes = static_cast<uint64_t>(kv_token_bytes(spec));
    EXPECT_EQ(row_bytes, spec.kv_layout == KvLayout::kDsMla ? 656u : 1152u);
    EXPECT_EQ(twice - once, static_cast<uint64_t>(tiles * tokens) * (row_bytes + id_bytes))
        << canonical_text(spec);
  }
}

// Speculative decoding: the keys are read once for all query tokens of a sequence.
TEST_F(AttentionOnEmulatorTest, FourQueryTokensReadHardlyMoreThanOne) {
  for (int group_size : {1, 4, 8, 32}) {
    const KernelSpec spec = make_ragged(QueryLengths::kFew, kBF16, 128, group_size);
    for (int num_splits : {1, 4}) {
      // A split that pays is longer than the partials that it costs, which are read once more.
      const int tokens = num_splits * num_splits * 1000;
      const uint64_t one = count(engine(), spec, {tokens}, num_splits, {1}).global_bytes_read;
      const uint64_t four = count(engine(), spec, {tokens}, num_splits, {4}).global_bytes_read;
      EXPECT_LE(static_cast<double>(four), 1.05 * static_cast<double>(one))
          << canonical_text(spec) << ", " << num_splits << " splits";
    }
  }
}

// What the window hides is not read: the bytes do not grow with the length.
TEST_F(AttentionOnEmulatorTest, WhatAWindowHidesIsNotRead) {
  for (QueryLengths queries : {QueryLengths::kOne, QueryLengths::kFew}) {
    KernelSpec spec = make_ragged(queries, kBF16, 128, 4);
    spec.window = true;
    std::vector<int> query_lens;
    if (queries == QueryLengths::kOne) {
      spec.causality = Causality::kNone;
    } else {
      query_lens = {2};
    }
    const uint64_t near = count(engine(), spec, {200}, 1, query_lens).global_bytes_read;
    EXPECT_EQ(count(engine(), spec, {2000}, 1, query_lens).global_bytes_read, near);
    spec.window = false;
    EXPECT_GT(count(engine(), spec, {2000}, 1, query_lens).global_bytes_read, 10 * near);
  }
}

// The launch's order of CTAs: a tile that sees more keys comes first, whatever its sequence. Where
// there are more than 128 sequences, this holds within each sequence.
TEST_F(AttentionOnEmulatorTest, TilesAreHandedOutHeaviestFirst) {
  constexpr int kHeadSize = 64;
  constexpr uint64_t kTokenBytes = 2 * 2 * kHeadSize;  // K and V of one token
  constexpr uint64_t kOtherBytes = 4096;               // lengths, block ids
  const std::vector<int> query_lens = {1, 70, 0, 200, 33, 64, 120, 5};
  const std::vector<int> seq_lens = {900, 70, 50, 260, 1000, 64, 500, 3};
  for (Causality causality : {Causality::kCausal, Causality::kNone}) {
    for (int further_seqs : {0, 31, 112, 200}) {
      KernelSpec spec = make_ragged(QueryLengths::kMany, kBF16, kHeadSize, 4);
      spec.causality = causality;
      std::vector<int> queries = query_lens;
      std::vector<int> lens = seq_lens;
      for (int i = 0; i < further_seqs; ++i) {
        queries.push_back(i % 3);
        lens.push_back(i * 37 % 300);
      }
      count(engine(), spec, lens, 1, queries);
      const std::vector<uint64_t> bytes = emulator().cta_bytes_read();
      // Weights count keys in units of a tile's query tokens, rounded down, and take a sequence's
      // last tile to be full: tiles may be out of order by two units. The rows of q are not
      // counted: a tile may have one or all.
      const auto& config = config_of(spec).attention;
      const int tile_rows = pagejit_shared::tile_rows(config);
      const uint64_t slack = kTokenBytes * static_cast<uint64_t>(2 * tile_rows / spec.group_size) +
                             2 * kHeadSize * static_cast<uint64_t>(tile_rows) + kOtherBytes;
      size_t first_heavier = 0;  // than the tile before it
      for (size_t i = 1; i < bytes.size() && first_heavier == 0; ++i) {
        if (bytes[i] > bytes[i - 1] + slack) first_heavier = i;
      }
      EXPECT_EQ(first_heavier == 0, lens.size() <= 128)
          << lens.size() << " sequences, CTA " << first_heavier << ": " << bytes[first_heavier]
          << " bytes after " << bytes[first_heavier == 0 ? 0 : first_heavier - 1];
    }
  }
}

TEST_F(AttentionOnEmulatorTest, SharedMemoryOfRaggedKernelsIsFreeOfBankConflicts) {
  for (QueryLengths queries : {QueryLengths::kFew, QueryLengths::kMany}) {
    for (int head_size : {40, 64, 72, 128, 256}) {
      const KernelSpec spec = make_ragged(queries, kF16, head_size, 4);
      const PagejitEmulatorCounters counters = count(engine(), spec, {70}, 1, {50});
      EXPECT_GT(counters.ldmatrix_phases, 0u) << canonical_text(spec);
      EXPECT_EQ(counters.ldmatrix_extra_cycles, 0u) << canonical_text(spec);
    }
  }
}

}  // namespace
}  // namespace pagejit
