// Which of the driver's copies swap_blocks uses, on the stub driver.
#include "runtime/engine/swap_blocks.h"

#include "tests/runtime/engine_fixture.h"

namespace pagejit {
namespace {

class SwapBlocksTest : public EngineTest {
 protected:
  // A driver of that version, opened anew: what it can do is asked when it is opened.
  std::shared_ptr<const Driver> open(int version) {
    script->set_driver_version(version);
    Result<std::shared_ptr<const Driver>> driver = Driver::open(PAGEJIT_STUB_DRIVER);
    EXPECT_TRUE(driver.is_ok()) << driver.status().to_string();
    return driver ? *driver : nullptr;
  }

  SwapBlocksArgs args(SwapDirection direction) {
    target = {0, 0, 0, 0, 0, 0};
    return {.direction = direction,
            .from = source,
            .to = target.data(),
            .block_bytes = 2,
            .from_stride_bytes = 2,
            .to_stride_bytes = 3,
            .pairs = pairs,
            .num_pairs = 2};
  }

  CUstream stream = reinterpret_cast<CUstream>(0x1000);
  const uint8_t source[6] = {1, 2, 3, 4, 5, 6};
  std::vector<uint8_t> target;
  const int64_t pairs[4] = {2, 0, 0, 1};
  const std::vector<uint8_t> want = {5, 6, 0, 1, 2, 0};
};

constexpr SwapDirection kDirections[] = {SwapDirection::kDeviceToHost, SwapDirection::kHostToDevice,
                                         SwapDirection::kDeviceToDevice};
constexpr const char* kCopies[] = {"cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync", "cuMemcpyDtoDAsync"};

TEST_F(SwapBlocksTest, ADriverThatKnowsBatchesGetsOneCall) {
  const std::shared_ptr<const Driver> driver = open(12080);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(swap_blocks(*driver, args(kDirections[i]), stream).is_ok());
    EXPECT_EQ(target, want);
    EXPECT_EQ(script->calls("cuMemcpyBatchAsync"), static_cast<uint64_t>(i + 1));
    EXPECT_EQ(script->calls(kCopies[i]), 0u);
  }
}

TEST_F(SwapBlocksTest, ADefaultStreamAndAnOlderDriverGetACallPerPair) {
  const std::shared_ptr<const Driver> newer = open(12080);
  const std::shared_ptr<const Driver> older = open(12070);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(swap_blocks(*newer, args(kDirections[i]), nullptr).is_ok());
    EXPECT_EQ(target, want);
    EXPECT_TRUE(swap_blocks(*newer, args(kDirections[i]), CU_STREAM_PER_THREAD).is_ok());
    EXPECT_EQ(target, want);
    EXPECT_TRUE(swap_blocks(*older, args(kDirections[i]), stream).is_ok());
    EXPECT_EQ(target, want);
    EXPECT_EQ(script->calls(kCopies[i]), 6u);
  }
  EXPECT_EQ(script->calls("cuMemcpyBatchAsync"), 0u);
}

TEST_F(SwapBlocksTest, AFailureNamesThePair) {
  const std::shared_ptr<const Driver> driver = open(12080);
  script->fail("cuMemcpyBatchAsync", CUDA_ERROR_INVALID_VALUE);
  Status status = swap_blocks(*driver, args(SwapDirection::kDeviceToHost), stream);
  EXPECT_EQ(status.code(), StatusCode::kDriverError);
  EXPECT_THAT(status.message(), testing::HasSubstr("cuMemcpyBatchAsync (pairs[1]) failed"));
  script->fail("cuMemcpyHtoDAsync", CUDA_ERROR_INVALID_VALUE);
  status = swap_blocks(*driver, args(SwapDirection::kHostToDevice), nullptr);
  EXPECT_THAT(status.message(), testing::HasSubstr("the copy of pairs[0] failed"));
}

}  // namespace
}  // namespace pagejit
