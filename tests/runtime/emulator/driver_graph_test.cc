// The driver API as a stand-in for libcuda: captures and the graphs that they make.
#include <gmock/gmock.h>

#include <vector>

#include "tests/runtime/emulator/driver_fixture.h"

namespace pagejit_emulator {
namespace {

using ::testing::StartsWith;

TEST_F(DriverTest, GraphReplaysLaunchesFillsAndCopiesInOrderWithTheParametersOfTheCapture) {
  const CUfunction add = kernel(kText, "add");
  auto* data = upload(std::vector<uint32_t>(64, 1000));
  auto* copy = upload(std::vector<uint32_t>(64, 1000));
  CUstream stream = make_stream();
  ASSERT_EQ(begin_capture(stream), CUDA_SUCCESS);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  EXPECT_EQ(symbol<decltype(cuStreamIsCapturing)>("cuStreamIsCapturing")(stream, &status),
            CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(symbol<decltype(cuMemsetD32Async)>("cuMemsetD32Async")(address(data), 5, 64, stream),
            CUDA_SUCCESS);
  Params params = {data, 10};
  void* pointers[] = {&params};
  const LaunchShape shape = {.num_threads = 64, .stream = stream};
  EXPECT_EQ(launch_raw(add, shape, pointers), CUDA_SUCCESS);
  params.add = 100;  // the capture has its own copy
  EXPECT_EQ(symbol<decltype(cuMemcpyDtoDAsync_v2)>("cuMemcpyDtoDAsync_v2")(
                address(copy), address(data), 256, stream),
            CUDA_SUCCESS);
  params.add = 1;
  EXPECT_EQ(launch_raw(add, shape, pointers), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  ASSERT_EQ(end_capture(stream, &graph), CUDA_SUCCESS);
  EXPECT_EQ(counters().launches, 0u);

  size_t nodes = 0;
  EXPECT_EQ(symbol<decltype(cuGraphGetNodes)>("cuGraphGetNodes")(graph, nullptr, &nodes),
            CUDA_SUCCESS);
  EXPECT_EQ(nodes, 4u);
  CUgraphExec exec = nullptr;
  ASSERT_EQ(
      symbol<decltype(cuGraphInstantiateWithFlags)>("cuGraphInstantiateWithFlags")(&exec, graph, 0),
      CUDA_SUCCESS);
  EXPECT_EQ(symbol<decltype(cuGraphDestroy)>("cuGraphDestroy")(graph), CUDA_SUCCESS);
  EXPECT_EQ(download(data, 1)[0], 1000u) << "nothing ran yet";
  const auto replay = symbol<decltype(cuGraphLaunch)>("cuGraphLaunch");
  for (int i = 1; i <= 3; ++i) {
    ASSERT_EQ(replay(exec, stream), CUDA_SUCCESS) << report();
    EXPECT_EQ(download(data, 64), std::vector<uint32_t>(64, 16));
    EXPECT_EQ(download(copy, 64), std::vector<uint32_t>(64, 15));
    EXPECT_EQ(counters().launches, 2u * static_cast<unsigned>(i));
  }
  EXPECT_EQ(symbol<decltype(cuGraphExecDestroy)>("cuGraphExecDestroy")(exec), CUDA_SUCCESS);
  EXPECT_EQ(replay(exec, stream), CUDA_ERROR_INVALID_HANDLE);
  destroy(stream);
}

TEST_F(DriverTest, FailedLaunchInAGraphFailsTheReplay) {
  const CUfunction other = kernel(kText, "other");
  CUstream stream = make_stream();
  ASSERT_EQ(begin_capture(stream), CUDA_SUCCESS);
  const Params params = {nullptr, 0};
  EXPECT_EQ(launch(other, {.num_threads = 128, .stream = stream}, params), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  ASSERT_EQ(end_capture(stream, &graph), CUDA_SUCCESS);
  CUgraphExec exec = nullptr;
  ASSERT_EQ(
      symbol<decltype(cuGraphInstantiateWithFlags)>("cuGraphInstantiateWithFlags")(&exec, graph, 0),
      CUDA_SUCCESS);
  EXPECT_EQ(symbol<decltype(cuGraphLaunch)>("cuGraphLaunch")(exec, stream),
            CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(report(), StartsWith("other, CTA (0,0,0), thread 0: store_global"));
  destroy(stream);
}

TEST_F(DriverTest, AllocationAndWaitsSpoilACapture) {
  CUgraph graph = nullptr;
  CUdeviceptr p = 0;
  const auto alloc = symbol<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2");
  for (int which = 0; which < 3; ++which) {
    CUstream stream = make_stream();
    ASSERT_EQ(begin_capture(stream), CUDA_SUCCESS);
    const CUresult result =
        which == 0   ? alloc(&p, 16)
        : which == 1 ? symbol<decltype(cuStreamSynchronize)>("cuStreamSynchronize")(stream)
                     : symbol<decltype(cuCtxSynchronize)>("cuCtxSynchronize")();
    EXPECT_EQ(result, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) << which;
    EXPECT_EQ(end_capture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(end_capture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    destroy(stream);
  }
}

TEST_F(DriverTest, RelaxedCaptureAllowsAllocation) {
  CUgraph graph = nullptr;
  CUdeviceptr p = 0;
  CUstream stream = make_stream();
  ASSERT_EQ(begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_EQ(symbol<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2")(&p, 16), CUDA_SUCCESS);
  EXPECT_EQ(symbol<decltype(cuMemFree_v2)>("cuMemFree_v2")(p), CUDA_SUCCESS);
  EXPECT_EQ(end_capture(stream, &graph), CUDA_SUCCESS);
  // Relaxed by the thread instead of by the capture.
  ASSERT_EQ(begin_capture(stream), CUDA_SUCCESS);
  const auto exchange =
      symbol<decltype(cuThreadExchangeStreamCaptureMode)>("cuThreadExchangeStreamCaptureMode");
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  EXPECT_EQ(exchange(&mode), CUDA_SUCCESS);
  EXPECT_EQ(symbol<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2")(&p, 16), CUDA_SUCCESS);
  EXPECT_EQ(exchange(&mode), CUDA_SUCCESS);
  EXPECT_EQ(symbol<decltype(cuMemFree_v2)>("cuMemFree_v2")(p),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(end_capture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(symbol<decltype(cuMemFree_v2)>("cuMemFree_v2")(p), CUDA_SUCCESS);
  destroy(stream);
}

}  // namespace
}  // namespace pagejit_emulator
