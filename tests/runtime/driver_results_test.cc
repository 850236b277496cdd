// Every result that a driver may return, from each function that a prepare and a launch call: an
// error that names function and number, after which the engine works.
#include "tests/runtime/engine_fixture.h"

namespace pagejit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr KernelSpec kSpec{.group_size = 4};

// CUresult's numbers lie in these ranges (cuda.h); drivers to come may use the gaps.
std::vector<int> all_results() {
  std::vector<int> results;
  for (const auto& [first, last] : {std::pair{1, 60},
                                    {100, 105},
                                    {200, 230},
                                    {300, 310},
                                    {400, 402},
                                    {500, 501},
                                    {600, 601},
                                    {700, 730},
                                    {800, 830},
                                    {900, 920},
                                    {999, 1000}}) {
    for (int result = first; result <= last; ++result) results.push_back(result);
  }
  return results;
}

class DriverResultsTest : public EngineTest {};

TEST_F(DriverResultsTest, EveryResultOfEveryFunctionOfAPrepareIsNamedAndPasses) {
  const char* functions[] = {"cuDeviceGetCount",     "cuDeviceGet",
                             "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain",
                             "cuCtxGetId",           "cuCtxPushCurrent",
                             "cuLibraryLoadData",    "cuLibraryGetKernel",
                             "cuKernelSetAttribute", "cuKernelGetFunction",
                             "cuFuncLoad",           "cuOccupancyMaxActiveBlocksPerMultiprocessor"};
  size_t next = 0;
  for (const int result : all_results()) {
    // All results for the load, which looks at them; one after the other for the rest.
    for (const char* function : {"cuLibraryLoadData", functions[next++ % std::size(functions)]}) {
      auto engine = make_engine();
      script->fail(function, static_cast<CUresult>(result));
      const Result<Kernel> kernel = engine->prepare(kSpec, 0);
      ASSERT_FALSE(kernel) << function << " " << result;
      EXPECT_THAT(kernel.status().message(),
                  AllOf(HasSubstr(function), HasSubstr("(" + std::to_string(result) + ")")));
      script->fail(function, CUDA_SUCCESS, 0);
      EXPECT_TRUE(engine->prepare(kSpec, 0)) << function << " " << result;
    }
  }
}

TEST_F(DriverResultsTest, EveryResultOfALaunchIsNamedAndPasses) {
  auto engine = make_engine();
  const Kernel kernel = prepare(*engine, kSpec);
  for (const int result : all_results()) {
    script->fail("cuLaunchKernelEx", static_cast<CUresult>(result));
    const Status status = kernel.launch(legal_args(), nullptr);
    EXPECT_EQ(status.code(), StatusCode::kDriverError) << result;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("cuLaunchKernelEx"),
                                        HasSubstr("(" + std::to_string(result) + ")")));
    script->fail("cuLaunchKernelEx", CUDA_SUCCESS, 0);
    EXPECT_TRUE(kernel.launch(legal_args(), nullptr)) << result;
  }
}

}  // namespace
}  // namespace pagejit
