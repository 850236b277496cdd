// The merge of partial attention results against float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "tests/sweep/family_test.h"
#include "tests/sweep/merge_batch.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kF32 = DataType::kFloat32;

class MergeStatesTest : public FamilyTest {
 protected:
  // "" where the merge is right.
  std::string merge(const MergeBatchOptions& options, bool with_lse = true) {
    return with_report(check_merge(engine(), session(), options, with_lse));
  }
};

// vLLM's tables of its merge tests: types x head sizes as parameters, heads, tokens and the tokens
// with a prefix in each case. Tokens are a sixteenth of vLLM's.
using TableCase = std::tuple<DataType, int>;
class MergeTableTest : public MergeStatesTest, public testing::WithParamInterface<TableCase> {};

TEST_P(MergeTableTest, TwoStatesAreMerged) {
  const auto [type, head_size] = GetParam();
  for (const int num_heads : {4, 8, 16, 32, 48, 64}) {
    for (const int num_tokens : {16, 32, 39, 64, 96, 256}) {
      for (const int num_merged_tokens : {-1, 8}) {
        // The largest once: they add nothing but time.
        if (num_heads * num_tokens > 4096 && num_merged_tokens != -1) continue;
        EXPECT_EQ(merge({.spec = {type, type, head_size},
                         .num_tokens = num_tokens,
                         .num_heads = num_heads,
                         .num_merged_tokens = num_merged_tokens,
                         .heads_first_lse = true}),
                  "")
            << num_heads << " heads, " << num_tokens << " tokens, " << num_merged_tokens
            << " merged";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Vllm, MergeTableTest,
                         testing::Combine(testing::Values(kF32, kF16, kBF16),
                                          testing::Values(32, 48, 64, 96, 128, 256)),
                         [](const auto& test) {
                           return std::string(data_type_name(std::get<0>(test.param))) + "_d" +
                                  std::to_string(std::get<1>(test.param));
                         });

TEST_F(MergeStatesTest, EachTypeIsMergedIntoEachType) {
  for (const DataType in : {kF16, kBF16, kF32}) {
    for (const DataType out : {kF16, kBF16, kF32}) {
      for (const bool listed : {false, true}) {
        EXPECT_EQ(merge({.spec = {in, out, 72, listed},
                         .num_states = 5,
                         .num_tokens = 21,
                         .num_heads = 3,
                         .padded = true}),
                  "")
            << data_type_name(in) << " to " << data_type_name(out) << (listed ? ", listed" : "");
      }
    }
  }
}

TEST_F(MergeStatesTest, AnyHeadSizeIsMerged) {
  for (const int head_size : {1, 2, 3, 7, 20, 33, 127, 513, 576, 1021, 4096}) {
    for (const DataType type : {kBF16, kF32}) {
      EXPECT_EQ(merge({.spec = {type, type, head_size}, .num_tokens = 5, .num_heads = 2}), "")
          << head_size;
    }
  }
}

TEST_F(MergeStatesTest, OneStateAndManyStatesAreMerged) {
  for (const int num_states : {1, 3, 32, 200}) {
    for (const bool listed : {false, true}) {
      if (listed && num_states > kMaxListedStates) continue;
      EXPECT_EQ(merge({.spec = {kBF16, kF32, 64, listed},
                       .num_states = num_states,
                       .num_tokens = 9,
                       .num_heads = 5,
                       .lse_range = 60}),
                "")
          << num_states;
    }
  }
}

TEST_F(MergeStatesTest, TokensBehindTheCountOnTheDeviceAreNotTouched) {
  for (const int count : {0, 1, 7, 16}) {
    EXPECT_EQ(merge({.spec = {kF32, kBF16, 64}, .counted_tokens = count}), "") << count;
  }
}

TEST_F(MergeStatesTest, LseIsWrittenOnlyWhereItIsWanted) {
  EXPECT_EQ(merge({.spec = {kBF16, kBF16, 64}}, false), "");
}

// The last state alone, bit for bit: it is not merged with itself.
TEST_F(MergeStatesTest, UnmergedTokensAreCopiedBitForBit) {
  const MergeStatesKernel kernel = prepare_family(MergeStatesSpec{kBF16, kBF16, 64});
  const MergeBatch batch = make_merge_batch({.spec = kernel.spec(), .num_merged_tokens = 0});
  const DeviceBuffer v = upload(batch.v);
  const DeviceBuffer lse = upload(batch.lse);
  const DeviceBuffer out = upload(batch.out);
  MergeStatesArgs args = batch.args;
  args.v = v.data();
  args.lse = lse.data<float>();
  args.out = out.data();
  ASSERT_TRUE(run(kernel, args));
  const std::vector<uint8_t> got = download_all<uint8_t>(out);
  for (int64_t row = 0; row < 16 * 4; ++row) {
    if (std::isinf(batch.lse[static_cast<size_t>(args.lse_stride_state + row)])) continue;
    const auto last = batch.v.begin() + (args.v_stride_state + row * 64) * 2;
    ASSERT_TRUE(std::equal(last, last + 128, got.begin() + row * 128)) << "row " << row;
  }
}

// The states and the result lie beyond 2^32 elements: rows of tokens 2^32 elements apart, touched
// only where they hold something.
TEST_F(MergeStatesTest, RowsBeyond32BitOffsetsAreMerged) {
  constexpr int64_t kStride = (int64_t{1} << 32) + 8;
  constexpr int kHeadSize = 32;
  const MergeStatesKernel kernel = prepare_family(MergeStatesSpec{kBF16, kBF16, kHeadSize});
  for (const bool far_tokens : {false, true}) {
    // Else the states are far apart.
    Result<DeviceBuffer> v = DeviceBuffer::allocate(session(), (2 * kStride + 1024) * 2);
    Result<DeviceBuffer> out = DeviceBuffer::allocate(session(), (kStride + 1024) * 2);
    if (lacks_memory(v.status()) || lacks_memory(out.status())) {
      GTEST_SKIP() << "this GPU has too little memory";
    }
    ASSERT_TRUE(v.is_ok() && out.is_ok());
    MergeStatesArgs args;
    args.num_heads = 1;
    args.v_stride_state = args.v_stride_token = kHeadSize;
    args.out_stride_token = kStride;
    (far_tokens ? args.v_stride_token : args.v_stride_state) = kStride;
    args.num_states = 2;
    args.num_tokens = far_tokens ? 2 : 1;
    args.lse_stride_state = 2;
    args.lse_stride_token = 1;
    for (int state = 0; state < 2; ++state) {
      for (int64_t token = 0; token < args.num_tokens; ++token) {
        const float value = 1.0f + static_cast<float>(state * 2 + token * 4);
        const std::vector<uint16_t> row(kHeadSize,
                                        static_cast<uint16_t>(encode_float(kBF16, value)));
        const int64_t at = state * args.v_stride_state + token * args.v_stride_token;
        ASSERT_TRUE(v->upload(static_cast<size_t>(at) * 2, row.data(), kHeadSize * 2));
      }
    }
    const DeviceBuffer lse = upload(std::vector<float>(4, 0.5f));
    args.v = v->data();
    args.lse = lse.data<float>();
    args.out = out->data();
    ASSERT_TRUE(run(kernel, args));
    for (int64_t token = 0; token < args.num_tokens; ++token) {
      std::vector<uint16_t> row(kHeadSize);
      ASSERT_TRUE(out->download(static_cast<size_t>(token * kStride) * 2, row.data(), 64));
      // The mean of 1 and 3, or of 5 and 7.
      const auto want =
          static_cast<uint16_t>(encode_float(kBF16, 2.0f + static_cast<float>(token * 4)));
      EXPECT_EQ(row, std::vector<uint16_t>(kHeadSize, want)) << "token " << token;
    }
  }
}

TEST_F(MergeStatesTest, BadArgumentsAreNamed) {
  const MergeStatesKernel kernel = prepare_family(MergeStatesSpec{kBF16, kBF16, 64});
  const DeviceBuffer memory = upload(std::vector<float>(4096));
  MergeStatesArgs good;
  good.v = good.out = memory.data();
  good.lse = memory.data<float>();
  good.num_states = 2;
  good.num_tokens = good.num_heads = 1;
  const auto message = [&](auto change) {
    MergeStatesArgs args = good;
    change(args);
    return kernel.launch(args, nullptr).message();
  };
  EXPECT_EQ(message([](auto&) {}), "");
  EXPECT_EQ(message([](auto& a) { a.num_states = 0; }), "num_states 0: must be in [1, 2147483647]");
  EXPECT_EQ(message([](auto& a) { a.num_heads = 65536; }),
            "num_heads 65536: must be in [1, 65535]");
  EXPECT_EQ(message([](auto& a) { a.num_tokens = -1; }),
            "num_tokens -1: must be in [0, 34359738352]");
  EXPECT_EQ(message([](auto& a) { a.v = nullptr; }), "v is null: must be a device pointer");
  EXPECT_EQ(message([](auto& a) { a.v_stride_token = 68; }),
            "v_stride_token 68: must be a multiple of 8 elements");
  EXPECT_EQ(message([&](auto& a) { a.token_count = memory.data<int32_t>() + 1; }), "");
  EXPECT_EQ(
      message([](auto& a) { a.token_count = reinterpret_cast<const int32_t*>(uintptr_t{0x1002}); }),
      "token_count is 0x1002: must be aligned to 4 bytes");
  EXPECT_EQ(message([](auto& a) { a.out_stride_head = 4; }),
            "out_stride_head 4: must be a multiple of 8 elements");
  EXPECT_EQ(MergeStatesKernel().launch(good, nullptr).message(),
            "the Kernel is empty: launch one that Engine::prepare() returned");
  const MergeStatesKernel listed = prepare_family(MergeStatesSpec{kBF16, kBF16, 64, true});
  EXPECT_EQ(listed.launch(good, nullptr).message(),
            "states is null: must point to num_states states");
  const MergeState states[] = {{memory.data(), memory.data<float>()}, {memory.data(), nullptr}};
  good.states = states;
  EXPECT_EQ(listed.launch(good, nullptr).message(),
            "states[1]: lse is null: must be a device pointer");
  EXPECT_TRUE(session().synchronize());
}

}  // namespace
}  // namespace pagejit
