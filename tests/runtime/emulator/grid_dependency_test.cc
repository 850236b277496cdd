// Launches with programmatic stream serialization: the emulator ends those that touch global memory
// before they have waited for the grid ahead of them, which a GPU would let pass now and then.
#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/runtime/emulator/emulator_fixture.h"

namespace pagejit_emulator {
namespace {

using pagejit::HostBuild;
using ::testing::HasSubstr;

struct Params {
  uint32_t* out;
};

// Kernel "k" of 64 threads.
std::string text_of(const std::string& body) {
  return R"(
struct Params { uint32_t* out; };
PAGEJIT_KERNEL(64, 1) k(const __grid_constant__ Params params) {
  [[maybe_unused]] const int t = dev::thread_idx();
  [[maybe_unused]] auto* shared = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
)" + body +
         R"(
}
PAGEJIT_ENTRY(k, Params)
)";
}

struct Case {
  const char* name;
  const char* body;
  const char* finding;  // "" where all is right
  HostBuild build = HostBuild::kPlain;
};

constexpr Case kCases[] = {
    {"WaitsFirst", R"(
  shared[t] = 5;
  dev::grid_dependency_wait();
  dev::grid_dependency_launch();
  dev::store_global(params.out + t, shared[t]);
)",
     ""},
    {"WaitsFirstChecked", R"(
  dev::grid_dependency_wait();
  params.out[t] = 5;
)",
     "", HostBuild::kChecked},
    {"Load", "shared[t] = dev::load_global(params.out); dev::grid_dependency_wait();",
     "load_global before grid_dependency_wait()"},
    {"Store", "dev::store_global(params.out + t, 1u); dev::grid_dependency_wait();",
     "store_global before grid_dependency_wait()"},
    {"AtomicInc", "dev::atomic_inc_acq_rel(params.out, 99); dev::grid_dependency_wait();",
     "atomic_inc_acq_rel before grid_dependency_wait()"},
    {"AtomicCas",
     "dev::atomic_cas(reinterpret_cast<int*>(params.out), 0, 1); dev::grid_dependency_wait();",
     "atomic_cas before grid_dependency_wait()"},
    {"Copy", R"(
  dev::cp_async_16(shared + t * 4, params.out + t * 4, true);
  dev::cp_async_commit();
  dev::grid_dependency_wait();
  dev::cp_async_wait<0>();
)",
     "cp.async from global memory before grid_dependency_wait()"},
    {"CopyOfNothing", R"(
  dev::cp_async_16(shared + t * 4, params.out + t * 4, false);
  dev::cp_async_commit();
  dev::grid_dependency_wait();
  dev::cp_async_wait<0>();
)",
     ""},
    {"PlainRead", "shared[t] = params.out[t]; dev::grid_dependency_wait();",
     "read before grid_dependency_wait()", HostBuild::kChecked},
    {"PlainWrite", "params.out[t] = 1; dev::grid_dependency_wait();",
     "write before grid_dependency_wait()", HostBuild::kChecked},
    // Each thread waits for itself.
    {"OneThreadWaitsForAll", R"(
  if (t == 0) dev::grid_dependency_wait();
  dev::sync_cta();
  dev::store_global(params.out + t, 1u);
)",
     "store_global before grid_dependency_wait()"},
    {"NeverWaits", "shared[t] = 1;", "exits without grid_dependency_wait()"},
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

class GridDependencyTest : public EmulatorTest, public ::testing::WithParamInterface<Case> {
 protected:
  static constexpr LaunchShape kEarly = {
      .grid_x = 2, .num_threads = 64, .shared_bytes = 1024, .pdl = true};
};

TEST_P(GridDependencyTest, IsFoundInLaunchesWithTheAttributeAlone) {
  const Case& test = GetParam();
  const CUfunction function = kernel(text_of(test.body), "k", test.build);
  ASSERT_NE(function, nullptr);
  const Params params = {upload(std::vector<uint32_t>(256))};
  LaunchShape late = kEarly;
  late.pdl = false;
  late.grid_x = 1;  // two CTAs would write the same place
  EXPECT_EQ(launch(function, late, params), CUDA_SUCCESS) << report();
  LaunchShape early = late;
  early.pdl = true;
  if (*test.finding == '\0') {
    EXPECT_EQ(launch(function, early, params), CUDA_SUCCESS) << report();
    return;
  }
  EXPECT_EQ(launch(function, early, params), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(report(), HasSubstr(test.finding));
  EXPECT_THAT(report(), HasSubstr("programmatic stream serialization"));
}

INSTANTIATE_TEST_SUITE_P(All, GridDependencyTest, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(GridDependencyTest, CtasThatFollowOthersInTheirSlotWaitAnew) {
  const CUfunction function =
      kernel(text_of("if (dev::block_idx_x() == 0) dev::grid_dependency_wait();"), "k");
  const Params params = {upload(std::vector<uint32_t>(256))};
  EXPECT_EQ(launch(function, kEarly, params), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(report(), HasSubstr("CTA (1,0,0), thread 0: exits without"));
}

TEST_F(GridDependencyTest, CapturedLaunchesKeepTheAttribute) {
  const CUfunction function = kernel(text_of("dev::store_global(params.out + t, 7u);"), "k");
  const Params params = {upload(std::vector<uint32_t>(256))};
  CUstream stream = nullptr;
  ASSERT_EQ(symbol<decltype(cuStreamCreate)>("cuStreamCreate")(&stream, 1), CUDA_SUCCESS);
  ASSERT_EQ(symbol<decltype(cuStreamBeginCapture_v2)>("cuStreamBeginCapture_v2")(
                stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_SUCCESS);
  LaunchShape shape = kEarly;
  shape.grid_x = 1;
  shape.stream = stream;
  EXPECT_EQ(launch(function, shape, params), CUDA_SUCCESS) << "only recorded";
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  ASSERT_EQ(symbol<decltype(cuStreamEndCapture)>("cuStreamEndCapture")(stream, &graph),
            CUDA_SUCCESS);
  ASSERT_EQ(symbol<decltype(cuGraphInstantiateWithFlags)>("cuGraphInstantiateWithFlags")(
                &executable, graph, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(symbol<decltype(cuGraphLaunch)>("cuGraphLaunch")(executable, stream),
            CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(report(), HasSubstr("store_global before grid_dependency_wait()"));
  symbol<decltype(cuGraphExecDestroy)>("cuGraphExecDestroy")(executable);
  symbol<decltype(cuGraphDestroy)>("cuGraphDestroy")(graph);
  symbol<decltype(cuStreamDestroy_v2)>("cuStreamDestroy_v2")(stream);
}

TEST_F(GridDependencyTest, OtherAttributesAreRefused) {
  const CUfunction function = kernel(text_of(""), "k");
  Params params = {upload(std::vector<uint32_t>(256))};
  void* pointers[] = {&params};
  CUlaunchAttribute attribute = {};
  attribute.id = static_cast<CUlaunchAttributeID>(4);  // cluster dimensions
  const CUlaunchConfig config = {1, 1, 1, 64, 1, 1, 1024, nullptr, &attribute, 1};
  EXPECT_EQ(
      symbol<decltype(cuLaunchKernelEx)>("cuLaunchKernelEx")(&config, function, pointers, nullptr),
      CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(report(), HasSubstr("launch attribute 4"));
}

}  // namespace
}  // namespace pagejit_emulator
