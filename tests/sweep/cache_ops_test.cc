// Copies of blocks, gathering and conversion, against plain loops.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sweep/cache_ops_batch.h"
#include "tests/sweep/family_test.h"
#include "tools/reference/random.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kF32 = DataType::kFloat32;
constexpr DataType kE4m3 = DataType::kFloat8E4m3;
constexpr DataType kE5m2 = DataType::kFloat8E5m2;
constexpr DataType kInt8 = DataType::kInt8;
constexpr DataType kInt4 = DataType::kInt4;

class CacheOpsTest : public FamilyTest {
 protected:
  std::string copy(const CopyOptions& options) {
    return with_report(check_copy_blocks(engine(), session(), options));
  }
  std::string gather(const GatherOptions& options) {
    return with_report(check_gather_cache(engine(), session(), options));
  }
};

// The blocks of vLLM's table of copies (8 heads of 64, 80 and 256, blocks of 8, 16 and 32, bf16,
// f32 and 8 bits), each as many bytes.
TEST_F(CacheOpsTest, BlocksAreCopied) {
  for (const int head_size : {64, 80, 256}) {
    for (const int block_size : {8, 16, 32}) {
      for (const int element_bytes : {1, 2, 4}) {
        for (const int64_t gap : {0, 48}) {
          EXPECT_EQ(copy({.block_bytes = int64_t{8} * head_size * block_size * element_bytes,
                          .gap_bytes = gap}),
                    "")
              << head_size << " x " << block_size << " x " << element_bytes;
        }
      }
    }
  }
}

// Blocks of latent caches: rows of 656 bytes, of 576 codes or 16-bit elements.
TEST_F(CacheOpsTest, BlocksOfLatentRowsAreCopied) {
  for (const int64_t row_bytes : {656, 576, 1152}) {
    for (const int block_size : {1, 7, 16, 64}) {
      for (const int64_t gap : {0, 16}) {
        EXPECT_EQ(copy({.block_bytes = row_bytes * block_size, .gap_bytes = gap}), "")
            << row_bytes << " x " << block_size;
      }
    }
  }
}

TEST_F(CacheOpsTest, BlocksOfAnyAlignmentAreCopied) {
  for (const int alignment : {1, 2, 4, 8, 16}) {
    for (const bool debug : {false, true}) {
      EXPECT_EQ(copy({.spec = {alignment, debug},
                      .num_caches = 70,
                      .block_bytes = int64_t{alignment} * 37,
                      .gap_bytes = alignment * 3,
                      .num_pairs = 20}),
                "")
          << alignment;
    }
  }
}

TEST_F(CacheOpsTest, DebugKernelsRefuseBadAndOverlappingCopies) {
  const CopyBlocksKernel kernel = prepare_family(CopyBlocksSpec{16, true});
  const DeviceBuffer cache = upload(std::vector<uint8_t>(10 * 64, 1));
  const DeviceBuffer caches = upload(std::vector<void*>{cache.data()});
  const DeviceBuffer report = upload(std::vector<uint8_t>(kDebugReportBytes, 0xee));
  ASSERT_TRUE(kernel.init_debug_report(report.data(), nullptr));
  CopyBlocksArgs args;
  args.caches = caches.data<void*>();
  args.num_caches = 1;
  args.block_bytes = args.block_stride_bytes = 64;
  args.num_blocks = 10;
  args.debug_report = report.data();
  const auto message = [&](const std::vector<int64_t>& pairs) {
    const DeviceBuffer buffer = upload(pairs);
    args.pairs = buffer.data<int64_t>();
    args.num_pairs = static_cast<int32_t>(pairs.size() / 2);
    EXPECT_TRUE(run(kernel, args));
    return kernel.read_debug_report(report.data(), nullptr).message();
  };
  EXPECT_EQ(message({0, 1, 0, 2}), "");
  EXPECT_EQ(message({0, 1, 10, 2, -3, 4}), "pairs[1][0] is 10: must be in [0, num_blocks)");
  EXPECT_EQ(message({0, 1, 3, 2, 3, -1}), "pairs[2][1] is -1: must be in [0, num_blocks)");
  const std::string overlap =
      "another pair's target or a pair's source; the copies run in any order";
  EXPECT_EQ(message({0, 1, 2, 3, 3, 4}), "pairs[1]: its target, block 3, is " + overlap);
  EXPECT_EQ(message({0, 1, 2, 5, 4, 5}), "pairs[1]: its target, block 5, is " + overlap);
  EXPECT_EQ(message({0, 1, 6, 6}), "pairs[1]: its target, block 6, is " + overlap);
  EXPECT_EQ(message({0, 1}), "") << "the report was not cleared";
}

TEST_F(CacheOpsTest, SequencesAreGathered) {
  for (const DataType kv : {kF16, kBF16, kF32, kE4m3, kE5m2, kInt8, kInt4}) {
    for (const DataType out : {kF16, kBF16, kF32}) {
      for (const KvLayout layout : {KvLayout::kRows, KvLayout::kVllm}) {
        if (kv == kInt4 && layout == KvLayout::kVllm) continue;
        const KvScale scale = data_type_bytes(kv) > 1 ? KvScale::kNone
                              : kv == kE4m3           ? KvScale::kHead
                              : kv == kE5m2           ? KvScale::kTensor
                                                      : KvScale::kTokenHead;
        const bool last = out == kF32;
        EXPECT_EQ(gather({.spec = {.kv_dtype = kv,
                                   .out_dtype = out,
                                   .scale = scale,
                                   .layout = layout,
                                   .head_size = last ? 64 : 80,
                                   .block_size = last ? 7 : 16},
                          .with_starts = out != kF16,
                          .with_values = out != kBF16,
                          .heads_first = last}),
                  "")
            << data_type_name(kv) << " to " << data_type_name(out);
      }
    }
  }
}

TEST_F(CacheOpsTest, HeadsOfAnySizeAndNumberAreGathered) {
  for (const auto& [num_heads, head_size] : {std::pair{1, 576}, {64, 128}, {5, 33}, {2, 1040}}) {
    for (const int alignment : {16, 4}) {
      EXPECT_EQ(gather({.spec = {.head_size = head_size, .row_alignment = alignment, .debug = true},
                        .seq_lens = {3, 40},
                        .num_kv_heads = num_heads,
                        .num_blocks = 9}),
                "")
          << num_heads << " heads of " << head_size;
    }
  }
}

TEST_F(CacheOpsTest, CodesOfFourBitsAreGatheredAtEachAlignment) {
  for (const DataType out : {kBF16, kF32}) {
    for (const int head_size : {2, 6, 72}) {
      for (const int alignment : {16, 8, 4}) {
        if (alignment < 2 * data_type_bytes(out)) continue;
        EXPECT_EQ(gather({.spec = {.kv_dtype = kInt4,
                                   .out_dtype = out,
                                   .scale = KvScale::kTokenHead,
                                   .head_size = head_size,
                                   .block_size = 5,
                                   .row_alignment = alignment}}),
                  "")
            << data_type_name(out) << ", head size " << head_size << ", " << alignment;
      }
    }
  }
}

TEST_F(CacheOpsTest, ValuesOfTheirOwnHeadSizeAreGathered) {
  for (const auto& [head_size, head_size_v] :
       {std::pair{192, 128}, {576, 512}, {64, 72}, {40, 1040}}) {
    for (const DataType kv : {kBF16, kE4m3, kInt4}) {
      for (const bool heads_first : {false, true}) {
        EXPECT_EQ(gather({.spec = {.kv_dtype = kv,
                                   .scale = kv == kBF16 ? KvScale::kNone : KvScale::kTokenHead,
                                   .head_size = head_size,
                                   .head_size_v = head_size_v,
                                   .block_size = 5},
                          .with_values = true,
                          .heads_first = heads_first}),
                  "")
            << data_type_name(kv) << ", " << head_size << " and " << head_size_v;
      }
    }
    EXPECT_EQ(gather({.spec = {.layout = KvLayout::kVllm,
                               .head_size = head_size,
                               .head_size_v = head_size_v}}),
              "")
        << head_size << " and " << head_size_v;
  }
}

// vLLM's latent caches: 8 sequences of up to 512 tokens in blocks of 16, with and without starts,
// then few long among many short ones; 1,024 blocks there, 128 here. Both of its row sizes.
TEST_F(CacheOpsTest, LatentRowsAreGathered) {
  GatherOptions options;
  options.num_kv_heads = 1;
  options.num_blocks = 128;
  options.with_values = false;
  SplitMix64 rng(4);
  std::vector<int> at_random, uneven(13, 1);
  for (int i = 0; i < 8; ++i) at_random.push_back(static_cast<int>(1 + rng.below(512)));
  uneven[4] = 1400;
  uneven[11] = 0;
  for (const DataType wide : {kF32, kBF16, kF16}) {
    for (const DataType kv : {wide, kE4m3}) {
      for (const int row : {576, 320}) {
        options.spec = {.kv_dtype = kv,
                        .out_dtype = wide,
                        .scale = kv == kE4m3 ? KvScale::kTensor : KvScale::kNone,
                        .head_size = row};
        for (const bool with_starts : {false, true}) {
          options.with_starts = with_starts;
          options.seq_lens = at_random;
          EXPECT_EQ(gather(options), "") << canonical_text(options.spec);
          options.seq_lens = uneven;
          EXPECT_EQ(gather(options), "") << canonical_text(options.spec);
        }
      }
    }
  }
}

// vLLM's table of cp_gather_and_upconvert_fp8_kv_cache, its sequences of 8k and 128k tokens among
// it; other types, blocks and alignments.
TEST_F(CacheOpsTest, RowsOf656BytesAreGathered) {
  const auto widen = [&](const std::vector<int>& seq_lens, const GatherCacheSpec& spec,
                         bool with_starts) {
    return gather({.spec = spec,
                   .seq_lens = seq_lens,
                   .with_starts = with_starts,
                   .with_values = false,
                   .num_kv_heads = 1,
                   .num_blocks = 20});
  };
  GatherCacheSpec spec{
      .kv_dtype = kE4m3, .layout = KvLayout::kDsMla, .head_size = 576, .block_size = 64};
  const std::vector<std::vector<int>> tables = {{1},
                                                {64},
                                                {128},
                                                {512},
                                                {256, 128, 384},
                                                std::vector<int>(4, 128),
                                                std::vector<int>(16, 64),
                                                {8192},
                                                {131072}};
  for (const std::vector<int>& seq_lens : tables) {
    for (const bool with_starts : {false, true}) {
      EXPECT_EQ(widen(seq_lens, spec, with_starts), "") << seq_lens.size() << " sequences";
    }
  }
  for (const DataType out : {kF16, kBF16, kF32}) {
    for (const int alignment : {16, 8, 4}) {
      for (const bool debug : {false, true}) {
        spec.out_dtype = out;
        spec.row_alignment = alignment;
        spec.debug = debug;
        spec.block_size = debug ? 1 : 7;
        EXPECT_EQ(widen({5, 0, 37, 1}, spec, true), "") << canonical_text(spec);
      }
    }
  }
}

TEST_F(CacheOpsTest, ManySequencesAreGathered) {
  GatherOptions options{.spec = {.head_size = 16, .block_size = 4}, .seq_lens = {}};
  SplitMix64 rng(1);
  for (int i = 0; i < 300; ++i) options.seq_lens.push_back(static_cast<int>(rng.below(9)));
  EXPECT_EQ(gather(options), "");
}

TEST_F(CacheOpsTest, DebugKernelsReportTheLowestTokenWithABadBlock) {
  const GatherCacheKernel kernel =
      prepare_family(GatherCacheSpec{.head_size = 8, .block_size = 1, .debug = true});
  const DeviceBuffer memory = upload(std::vector<uint8_t>(4096));
  const DeviceBuffer report = upload(std::vector<uint8_t>(kDebugReportBytes));
  const DeviceBuffer table = upload(std::vector<int32_t>{0, 1, 2, 9, 3, 10, -1, 11});
  const DeviceBuffer lens = upload(std::vector<int32_t>{0, 8});
  GatherCacheArgs args;
  args.k_cache = args.k_out = memory.data();
  args.k_strides = {8, 8, 8};
  args.block_table = table.data<int32_t>();
  args.cu_seq_lens = lens.data<int32_t>();
  args.num_seqs = args.num_kv_heads = 1;
  args.num_tokens = 8;
  args.num_blocks = 10;
  args.debug_report = report.data();
  ASSERT_TRUE(run(kernel, args));
  EXPECT_EQ(kernel.read_debug_report(report.data(), nullptr).message(),
            "token 5: its block is 10, must be in [0, num_blocks)");
}

TEST_F(CacheOpsTest, EightBitFloatsAreConverted) {
  for (const DataType wide : {kF16, kBF16, kF32}) {
    for (const DataType small : {kE4m3, kE5m2}) {
      for (const float scale : {1.0f, 0.37f, -2.0f}) {
        EXPECT_EQ(check_convert_float8(engine(), session(), {wide, small}, scale), "")
            << data_type_name(wide) << " to " << data_type_name(small);
        EXPECT_EQ(check_convert_float8(engine(), session(), {small, wide}, scale), "")
            << data_type_name(small) << " to " << data_type_name(wide);
      }
    }
  }
}

TEST_F(CacheOpsTest, BadArgumentsAreNamed) {
  const DeviceBuffer memory = upload(std::vector<uint8_t>(4096));
  CopyBlocksArgs copies;
  copies.num_caches = copies.num_pairs = 1;
  copies.block_bytes = 24;
  const CopyBlocksKernel copy_kernel = prepare_family(CopyBlocksSpec{});
  EXPECT_EQ(copy_kernel.launch(copies, nullptr).message(),
            "block_bytes 24: must be a multiple of 16");
  copies.block_bytes = 0;
  EXPECT_EQ(copy_kernel.launch(copies, nullptr).message(),
            "block_bytes 0: must be in [1, 1073725440]");
  GatherCacheArgs rows;
  rows.k_cache = rows.k_out = memory.data();
  rows.num_seqs = rows.num_tokens = rows.num_kv_heads = 1;
  rows.k_strides.head = 4;
  EXPECT_EQ(prepare_family(GatherCacheSpec{}).launch(rows, nullptr).message(),
            "strides of k_cache: head 4: must be a multiple of 8 elements");
  rows.k_strides.head = 0;
  for (const DataType kv : {kE4m3, kE5m2, kInt8, kInt4}) {
    for (const KvScale scale : {KvScale::kTensor, KvScale::kHead, KvScale::kTokenHead}) {
      const GatherCacheSpec spec{.kv_dtype = kv, .scale = scale};
      if (!validate(spec)) continue;
      const GatherCacheKernel kernel = prepare_family(spec);
      GatherCacheArgs args = rows;
      EXPECT_EQ(kernel.launch(args, nullptr).message(),
                "k_scale is null: must be a device pointer");
      args.k_scale = memory.data<float>();
      args.v_cache = args.v_out = memory.data();
      EXPECT_EQ(kernel.launch(args, nullptr).message(),
                "v_scale is null: must be a device pointer");
    }
  }
  GatherCacheArgs two_sizes = rows;
  two_sizes.block_table = two_sizes.cu_seq_lens = memory.data<int32_t>();
  two_sizes.v_out_stride_head = 4;
  EXPECT_EQ(prepare_family(GatherCacheSpec{.head_size = 192, .head_size_v = 128})
                .launch(two_sizes, nullptr)
                .message(),
            "v_out_stride_head 4: must be a multiple of 8 elements");
  const GatherCacheKernel ds_mla = prepare_family(GatherCacheSpec{
      .kv_dtype = kE4m3, .layout = KvLayout::kDsMla, .head_size = 576, .row_alignment = 4});
  GatherCacheArgs latent = rows;
  latent.block_table = latent.cu_seq_lens = memory.data<int32_t>();
  latent.k_strides = {656 * 16 + 2, 0, 656};
  EXPECT_EQ(ds_mla.launch(latent, nullptr).message(),
            "strides of k_cache: block 10498: must be a multiple of 4 elements");
  latent.k_strides.block = 656 * 16;
  EXPECT_EQ(ds_mla.launch(latent, nullptr).message(), "");
  latent.v_cache = memory.data();
  EXPECT_EQ(ds_mla.launch(latent, nullptr).message(),
            "v_cache: must be null where layout is ds_mla");
  latent.num_kv_heads = 2;
  EXPECT_EQ(ds_mla.launch(latent, nullptr).message(), "num_kv_heads 2: must be in [1, 1]");
  ConvertFloat8Args values{.from = memory.data(), .to = memory.data(), .count = 12};
  const ConvertFloat8Kernel convert = prepare_family(ConvertFloat8Spec{});
  EXPECT_EQ(convert.launch(values, nullptr).message(), "count 12: must be a multiple of 8");
  values.count = 16;
  values.scale = 0;
  EXPECT_EQ(convert.launch(values, nullptr).message(), "scale 0: must be finite and not 0");
}

}  // namespace
}  // namespace pagejit
