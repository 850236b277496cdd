// DriverTest: a kernel that adds, streams and captures, for the tests of the driver API.
// Thread-safety: none.
#pragma once

#include "tests/runtime/emulator/emulator_fixture.h"

namespace pagejit_emulator {

class DriverTest : public EmulatorTest {
 protected:
  struct Params {
    uint32_t* data;
    uint32_t add;
  };

  static constexpr const char* kText = R"(
struct Params { uint32_t* data; uint32_t add; };
PAGEJIT_KERNEL(64, 2) add(const __grid_constant__ Params params) {
  const int t = dev::thread_idx();
  dev::store_global(params.data + t, dev::load_global(params.data + t) + params.add);
}
PAGEJIT_ENTRY(add, Params)
PAGEJIT_KERNEL(128, 1) other(const __grid_constant__ Params params) {
  dev::store_global(params.data + 1024, 1u);
}
PAGEJIT_ENTRY(other, Params)
)";

  CUstream make_stream() {
    CUstream stream = nullptr;
    EXPECT_EQ(symbol<decltype(cuStreamCreate)>("cuStreamCreate")(&stream, 1), CUDA_SUCCESS);
    return stream;
  }
  void destroy(CUstream stream) {
    EXPECT_EQ(symbol<decltype(cuStreamDestroy_v2)>("cuStreamDestroy_v2")(stream), CUDA_SUCCESS);
  }
  CUresult begin_capture(CUstream stream,
                         CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    return symbol<decltype(cuStreamBeginCapture_v2)>("cuStreamBeginCapture_v2")(stream, mode);
  }
  CUresult end_capture(CUstream stream, CUgraph* graph) {
    return symbol<decltype(cuStreamEndCapture)>("cuStreamEndCapture")(stream, graph);
  }
  int attribute(int which) {
    int value = -1;
    EXPECT_EQ(symbol<decltype(cuDeviceGetAttribute)>("cuDeviceGetAttribute")(&value, which, 0),
              CUDA_SUCCESS);
    return value;
  }
};

}  // namespace pagejit_emulator
