// Blocks moved between device and host, byte by byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "tests/sweep/family_test.h"
#include "tools/reference/random.h"

namespace pagejit {
namespace {

// Three directions, 256 pairs of 300 blocks, by the bytes of a block.
using SwapCase = std::tuple<SwapDirection, int64_t>;
class SwapBlocksTest : public FamilyTest, public testing::WithParamInterface<SwapCase> {};

TEST_P(SwapBlocksTest, BlocksAreWhereTheirPairsSay) {
  const auto [direction, bytes] = GetParam();
  constexpr int kBlocks = 300;
  constexpr int kPairs = 256;
  SplitMix64 rng(1);
  std::vector<uint8_t> from(static_cast<size_t>(kBlocks * bytes));
  for (uint8_t& byte : from) byte = static_cast<uint8_t>(rng.below(256));
  std::vector<uint8_t> want(static_cast<size_t>(kBlocks * (bytes + 32)), 7);
  std::vector<uint8_t> to = want;
  std::vector<int64_t> pairs;
  for (int64_t i = 0; i < kPairs; ++i) {
    pairs.push_back(rng.below(kBlocks));
    pairs.push_back(i * 7 % kBlocks);  // each once: 7 and 300 have no common factor
    std::copy_n(from.begin() + pairs[pairs.size() - 2] * bytes, bytes,
                want.begin() + pairs.back() * (bytes + 32));
  }
  const DeviceBuffer from_buffer = upload(from);
  const DeviceBuffer to_buffer = upload(to);
  SwapBlocksArgs args;
  args.direction = direction;
  args.from = direction == SwapDirection::kHostToDevice ? from.data() : from_buffer.data<uint8_t>();
  args.to = direction == SwapDirection::kDeviceToHost ? to.data() : to_buffer.data<uint8_t>();
  args.block_bytes = args.from_stride_bytes = bytes;
  args.to_stride_bytes = bytes + 32;
  args.pairs = pairs.data();
  args.num_pairs = kPairs;
  CUstream stream = nullptr;
  const Driver& driver = session().driver();
  ASSERT_EQ(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  for (CUstream used : {static_cast<CUstream>(nullptr), stream}) {
    const Status status = engine().swap_blocks(args, used);
    ASSERT_TRUE(status.is_ok()) << status.to_string();
    ASSERT_EQ(driver.cuStreamSynchronize(used), CUDA_SUCCESS);
    if (direction != SwapDirection::kDeviceToHost) to = download_all<uint8_t>(to_buffer);
    EXPECT_EQ(to, want);
  }
  EXPECT_EQ(driver.cuStreamDestroy(stream), CUDA_SUCCESS);
}

constexpr SwapDirection kDirections[] = {SwapDirection::kDeviceToHost, SwapDirection::kHostToDevice,
                                         SwapDirection::kDeviceToDevice};

// vLLM's table: 8 heads of 64, 80 and 256, blocks of 8, 16 and 32, elements of 1, 2 and 4 bytes; a
// sixteenth of each block.
std::vector<int64_t> head_blocks() {
  std::vector<int64_t> bytes;
  for (const int64_t head_size : {64, 80, 256}) {
    for (const int64_t block_size : {8, 16, 32}) {
      for (const int64_t element_bytes : {1, 2, 4}) {
        bytes.push_back(8 * head_size * block_size * element_bytes / 16);
      }
    }
  }
  return bytes;
}

INSTANTIATE_TEST_SUITE_P(Vllm, SwapBlocksTest,
                         testing::Combine(testing::ValuesIn(kDirections),
                                          testing::ValuesIn(head_blocks())));
// Blocks of latent rows: of 656 bytes, of 576 codes and 16-bit elements; of 1, 16 and 64 tokens.
INSTANTIATE_TEST_SUITE_P(Latent, SwapBlocksTest,
                         testing::Combine(testing::ValuesIn(kDirections),
                                          testing::Values(656, 656 * 16, 656 * 64, 576 * 16,
                                                          1152 * 16)));

class BadSwapTest : public FamilyTest {};

TEST_F(BadSwapTest, IsNamed) {
  const int64_t pairs[] = {0, 1, 2, -3};
  uint8_t memory[8];
  SwapBlocksArgs args;
  args.from = args.to = memory;
  args.block_bytes = 4;
  args.pairs = pairs;
  args.num_pairs = 2;
  EXPECT_EQ(engine().swap_blocks(args, nullptr).message(),
            "pairs[1][1] is -3: must not be negative");
  args.pairs = nullptr;
  EXPECT_EQ(engine().swap_blocks(args, nullptr).message(),
            "pairs is null: must point to num_pairs pairs");
  args.block_bytes = 0;
  EXPECT_EQ(engine().swap_blocks(args, nullptr).message(),
            "block_bytes 0: must be in [1, 9223372036854775807]");
}

}  // namespace
}  // namespace pagejit
