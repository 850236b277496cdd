// What only the emulator can count or vary: bytes read, bank conflicts, schedules, and its checked
// build.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "generator/planner.h"
#include "tests/sweep/error_summary.h"
#include "tests/sweep/test_device.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr int kHeadSizes[] = {16, 40, 64, 72, 80, 96, 112, 120, 128, 160, 192, 256};
constexpr int kGroups[] = {1, 8, 16, 71};
constexpr int kWindowLeft = 100;  // of specs that have a window

KernelSpec make_fp8(int head_size, int block_size, KvLayout layout) {
  KernelSpec spec = make_spec(DataType::kFloat8E4m3, head_size, block_size, 4);
  spec.q_dtype = spec.out_dtype = kBF16;
  spec.kv_layout = layout;
  return spec;
}

KernelSpec make_vllm(int head_size, int block_size) {
  KernelSpec spec = make_spec(kF16, head_size, block_size, 2);
  spec.kv_layout = KvLayout::kVllm;
  return spec;
}

// With a scale for each token; in line where the alignment is 4.
KernelSpec make_int8(int head_size, int alignment) {
  KernelSpec spec = make_fp8(head_size, 16, KvLayout::kRows);
  spec.kv_dtype = DataType::kInt8;
  spec.token_scales = true;
  spec.kv_alignment = alignment;
  return spec;
}

KernelSpec make_values(int head_size, int head_size_v) {
  KernelSpec spec = make_spec(kBF16, head_size, 16, 4);
  spec.head_size_v = head_size_v;
  return spec;
}

// Rows of K that hold V.
KernelSpec make_latent(DataType type, int head_size, int head_size_v, int num_heads) {
  KernelSpec spec = make_spec(type, head_size, 16, num_heads);
  spec.q_dtype = spec.out_dtype = kBF16;
  spec.head_size_v = head_size_v;
  spec.latent = true;
  return spec;
}

KernelSpec make_listed(int head_size, int head_size_v) {
  KernelSpec spec = make_latent(kBF16, head_size, head_size_v, 16);
  spec.kv_table = KvTable::kPositions;
  return spec;
}

// Elements of 8 bits, vLLM's layout, head sizes beyond 256.
std::vector<KernelSpec> other_kernels() {
  return {make_fp8(64, 16, KvLayout::kRows),
          make_fp8(72, 5, KvLayout::kRows),
          make_fp8(80, 8, KvLayout::kVllm),
          make_vllm(72, 16),
          make_spec(kBF16, 512, 16, 9),
          make_int8(72, 16),
          make_int8(72, 4),
          make_values(192, 128),
          make_values(576, 512),
          make_latent(kBF16, 576, 512, 3),
          make_latent(kBF16, 320, 256, 40),
          make_latent(DataType::kFloat8E4m3, 576, 512, 16),
          make_listed(576, 512)};
}

KernelSpec make_ragged(QueryLengths queries, DataType type, int head_size, int group_size) {
  KernelSpec spec = make_spec(type, head_size, 16, group_size);
  spec.queries = queries;
  spec.causality = Causality::kCausal;
  return spec;
}

class AttentionOnEmulatorTest : public EmulatorTest {
 protected:
  // The counters of one launch over sequences of these lengths, in one split, one KV head.
  PagejitEmulatorCounters count(Engine& engine_to_use, const KernelSpec& spec,
                                const std::vector<int>& seq_lens, int num_splits = 1,
                                const std::vector<int>& query_lens = {}) {
    CheckOptions options;
    options.batch.seq_lens = seq_lens;
    options.batch.query_lens = query_lens;
    options.batch.window_left = kWindowLeft;
    options.num_splits = num_splits;
    emulator().reset_counters();
    const Result<CheckReport> result = run_check(engine_to_use, session(), spec, options);
    EXPECT_TRUE(result.is_ok()) << result.status().to_string() << result.status().detail()
                                << report();
    if (result) {
      expect_passed(*result, canonical_text(spec));
    }
    return emulator().counters();
  }

  KernelConfig config_of(const KernelSpec& spec) {
    const Result<Target> target = engine().target_of_device(0);
    EXPECT_TRUE(target.is_ok()) << target.status().to_string();
    const Result<KernelConfig> config = plan(spec, *target);
    EXPECT_TRUE(config.is_ok()) << config.status().to_string();
    return *config;
  }

  // Bytes of block ids that a stage reads, of 16 tokens: in each warp that copies its rows a lane
  // reads its own token's id or, where one block has them all, every lane the same one.
  static uint64_t id_bytes_of_stage(const AttentionConfig& c) {
    const int lanes = pagejit_shared::has_even_rows(c) ? 32 : c.group_tokens;
    return 4u * static_cast<uint64_t>(c.row_warps * lanes);
  }
  // And those of one token more in a stage that there is.
  static uint64_t id_bytes_of_token(const AttentionConfig& c) {
    return pagejit_shared::has_even_rows(c) ? 0 : 4u * static_cast<uint64_t>(c.row_warps);
  }
};

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
  for (const int num_heads : {1, 16, 64, 128}) {
    KernelSpec spec = make_latent(kBF16, 576, 512, num_heads);
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
    EXPECT_EQ(twice - once, static_cast<uint64_t>(tiles * tokens) * (576 * 2 + id_bytes))
        << canonical_text(spec);
  }
}

TEST_F(AttentionOnEmulatorTest, EverySchedulePasses) {
  std::vector<KernelSpec> specs = {
      make_spec(kBF16, 64, 16, 4),      make_spec(kF16, 72, 5, 20),
      make_spec(kBF16, 256, 32, 71),    make_fp8(64, 16, KvLayout::kRows),
      make_fp8(80, 8, KvLayout::kVllm), make_latent(kBF16, 96, 80, 16)};
  for (uint64_t seed : {1u, 2u}) {
    PagejitEmulatorOptions options = emulator().options();
    options.seed = seed;
    emulator().configure(options);
    emulator().for_each_schedule([&] {
      for (const KernelSpec& spec : specs) count(engine(), spec, {0, 1, 150, 65}, 3);
    });
  }
}

// CTAs of a grid in any interleaving: the last one to arrive merges, whichever it is.
TEST_F(AttentionOnEmulatorTest, ResidentCtasMayInterleave) {
  PagejitEmulatorOptions options = emulator().options();
  options.order = kPagejitEmulatorRandom;
  for (int resident : {2, 7}) {
    for (uint64_t seed : {1u, 2u, 3u}) {
      options.resident = resident;
      options.seed = seed;
      emulator().configure(options);
      count(engine(), make_spec(kF16, 64, 16, 20), {300, 40}, 5);
    }
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

TEST_F(AttentionOnEmulatorTest, EverySchedulePassesForRaggedQueries) {
  KernelSpec changed = make_ragged(QueryLengths::kFew, kF16, 72, 3);
  changed.window = changed.soft_cap = changed.alibi = changed.sinks = true;
  emulator().for_each_schedule([&] {
    for (const KernelSpec& spec : {make_ragged(QueryLengths::kFew, kBF16, 64, 4),
                                   make_ragged(QueryLengths::kMany, kBF16, 128, 4),
                                   make_ragged(QueryLengths::kShared, kBF16, 64, 9), changed}) {
      count(engine(), spec, {0, 90, 210, 65}, 3, {1, 40, 2, 0});
    }
  });
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

// Each architecture's configuration of a kernel is right, not only the default one's.
TEST_F(AttentionOnEmulatorTest, EveryArchitecturesConfigurationPasses) {
  for (int sm : {80, 86, 89, 90, 100, 103, 110, 120, 121}) {
    PagejitEmulatorOptions options = emulator().options();
    options.sm = sm;
    emulator().configure(options);
    // An engine asks a device only once for what it is.
    Result<std::shared_ptr<Engine>> fresh = Engine::create(device().options);
    ASSERT_TRUE(fresh.is_ok());
    const Result<Target> target = (*fresh)->target_of_device(0);
    ASSERT_TRUE(target.is_ok()) << target.status().to_string();
    EXPECT_EQ(target->sm, sm);
    count(**fresh, make_spec(kBF16, 128, 16, 8), {200, 17}, 2);
    count(**fresh, make_spec(kF16, 256, 16, 71), {100, 0}, 2);
    count(**fresh, make_ragged(QueryLengths::kFew, kBF16, 128, 8), {200, 17}, 2, {3, 17});
    count(**fresh, make_ragged(QueryLengths::kMany, kBF16, 128, 8), {200, 17}, 2, {30, 1});
    count(**fresh, make_ragged(QueryLengths::kShared, kBF16, 128, 8), {200, 17}, 2, {30, 1});
  }
}

// Races, uninitialised shared memory and accesses out of bounds, by instrumentation of the kernel.
TEST_F(AttentionOnEmulatorTest, TheCheckedBuildFindsNothingAndDidLook) {
  std::vector<KernelSpec> specs = {
      make_spec(kBF16, 64, 16, 4),   make_spec(kF16, 40, 5, 1),
      make_spec(kF16, 72, 1, 20),    make_spec(kBF16, 128, 16, 71),
      make_spec(kBF16, 256, 528, 3), make_spec(kF16, 128, 32, 8, true)};
  for (const KernelSpec& spec : other_kernels()) specs.push_back(spec);
  for (const KernelSpec& spec : specs) {
    for (PagejitEmulatorOrder order : {kPagejitEmulatorFifo, kPagejitEmulatorLifo}) {
      emulator().set_schedule(order, kPagejitEmulatorLate, 1);
      const PagejitEmulatorCounters counters =
          count(checked_engine(), spec, {0, 1, 150, spec.block_size + 1}, 3);
      EXPECT_GT(counters.checked_shared_accesses, 0u) << canonical_text(spec);
      EXPECT_GT(counters.checked_global_accesses, 0u) << canonical_text(spec);
    }
  }
}

TEST_F(AttentionOnEmulatorTest, TheCheckedBuildFindsNothingInRaggedKernels) {
  KernelSpec changed = make_ragged(QueryLengths::kFew, kF16, 72, 3);
  changed.causality = Causality::kPerSequence;
  changed.window = changed.soft_cap = changed.alibi = changed.sinks = true;
  for (const KernelSpec& spec : {make_ragged(QueryLengths::kFew, kBF16, 64, 4),
                                 make_ragged(QueryLengths::kMany, kF16, 128, 7),
                                 make_ragged(QueryLengths::kShared, kF16, 64, 7), changed}) {
    for (PagejitEmulatorOrder order : {kPagejitEmulatorFifo, kPagejitEmulatorLifo}) {
      emulator().set_schedule(order, kPagejitEmulatorLate, 1);
      const PagejitEmulatorCounters counters =
          count(checked_engine(), spec, {0, 90, 210, 65}, 3, {1, 40, 2, 0});
      EXPECT_GT(counters.checked_shared_accesses, 0u) << canonical_text(spec);
      EXPECT_GT(counters.checked_global_accesses, 0u) << canonical_text(spec);
    }
  }
}

}  // namespace
}  // namespace pagejit
