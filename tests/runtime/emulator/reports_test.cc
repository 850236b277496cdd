// What a launch that went wrong returns and reports, in every build.
#include <gmock/gmock.h>

#include <chrono>

#include "tests/runtime/emulator/emulator_fixture.h"

namespace pagejit_emulator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Params {
  uint32_t* data;
  int which;
};

constexpr const char* kText = R"(struct Params { uint32_t* data; int which; };
PAGEJIT_KERNEL(64, 1) divergence(const __grid_constant__ Params params) {
  const int lane = dev::lane_idx();
  uint32_t r[4];
  if (lane < 16) {
    dev::ldmatrix_x4(r, dev::dynamic_shared());      // line 6
  } else {
    dev::any(true);                                  // line 8
  }
}
PAGEJIT_ENTRY(divergence, Params)
PAGEJIT_KERNEL(64, 1) same_function_on_two_lines(const __grid_constant__ Params params) {
  if (dev::lane_idx() < 4) {
    dev::sync_warp();                                // line 14
  } else {
    dev::sync_warp();                                // line 16
  }
}
PAGEJIT_ENTRY(same_function_on_two_lines, Params)
PAGEJIT_KERNEL(64, 1) exit_while_waiting(const __grid_constant__ Params params) {
  if (dev::thread_idx() == 32 + params.which) return;
  dev::sync_cta();                                   // line 22
}
PAGEJIT_ENTRY(exit_while_waiting, Params)
PAGEJIT_KERNEL(64, 1) different_barriers(const __grid_constant__ Params params) {
  if (dev::thread_idx() < 32) {
    dev::sync_cta();                                 // line 27
  } else {
    dev::sync_cta();                                 // line 29
  }
}
PAGEJIT_ENTRY(different_barriers, Params)
PAGEJIT_KERNEL(64, 1) deadlock(const __grid_constant__ Params params) {
  if (dev::thread_idx() < 32) dev::sync_named(3, 64);  // line 34
}
PAGEJIT_ENTRY(deadlock, Params)
PAGEJIT_KERNEL(64, 1) barrier_counts(const __grid_constant__ Params params) {
  dev::sync_named(1, dev::thread_idx() < 32 ? 64 : 32);  // line 38
}
PAGEJIT_ENTRY(barrier_counts, Params)
PAGEJIT_KERNEL(64, 1) barrier_number(const __grid_constant__ Params params) {
  dev::sync_named(params.which, 64);                 // line 42
}
PAGEJIT_ENTRY(barrier_number, Params)
PAGEJIT_KERNEL(64, 1) load(const __grid_constant__ Params params) {
  const auto* p = reinterpret_cast<const unsigned char*>(params.data) + params.which;
  if (dev::thread_idx() == 3) dev::load_global(reinterpret_cast<const uint32_t*>(p));  // line 47
}
PAGEJIT_ENTRY(load, Params)
PAGEJIT_KERNEL(64, 1) store(const __grid_constant__ Params params) {
  dev::store_global(params.data + params.which, 1u);  // line 51
}
PAGEJIT_ENTRY(store, Params)
PAGEJIT_KERNEL(64, 1) copy_to_shared(const __grid_constant__ Params params) {
  dev::cp_async_16(dev::dynamic_shared() + params.which, params.data, true);  // line 55
}
PAGEJIT_ENTRY(copy_to_shared, Params)
PAGEJIT_KERNEL(64, 1) copy_from_global(const __grid_constant__ Params params) {
  dev::cp_async_16(dev::dynamic_shared(), params.data + params.which, dev::thread_idx() == 1);  // line 59
}
PAGEJIT_ENTRY(copy_from_global, Params)
PAGEJIT_KERNEL(64, 1) row(const __grid_constant__ Params params) {
  uint32_t r[4];
  dev::ldmatrix_x4(r, dev::dynamic_shared() + params.which);  // line 64
}
PAGEJIT_ENTRY(row, Params)
PAGEJIT_KERNEL(64, 1) plain_store(const __grid_constant__ Params params) {
  params.data[params.which] = 1;                     // line 68
}
PAGEJIT_ENTRY(plain_store, Params)
PAGEJIT_KERNEL(64, 1) endless(const __grid_constant__ Params params) {
  const volatile uint32_t* flag = params.data;
  while (*flag == 0) {}                              // line 73
}
PAGEJIT_ENTRY(endless, Params)
PAGEJIT_KERNEL(64, 1) polling(const __grid_constant__ Params params) {
  while (dev::load_global(params.data) == 0) {}      // line 77
}
PAGEJIT_ENTRY(polling, Params)
PAGEJIT_KERNEL(32, 1) deep(const __grid_constant__ Params params) {
  volatile unsigned char frame[100000];
  for (int i = 0; i < 100000; i += 1000) frame[i] = static_cast<unsigned char>(params.which);
  params.data[0] = frame[params.which];
}
PAGEJIT_ENTRY(deep, Params)
PAGEJIT_KERNEL(32, 1) fine(const __grid_constant__ Params params) {
  dev::store_global(params.data + dev::thread_idx(), 7u);
}
PAGEJIT_ENTRY(fine, Params)
)";

class ReportsTest : public EmulatorTest {
 protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    data_ = upload(std::vector<uint32_t>(64));
  }

  CUresult run(const char* name, int which = 0) {
    const unsigned threads = std::string(name) == "deep" || std::string(name) == "fine" ? 32 : 64;
    return launch(kernel(kText, name), {.num_threads = threads, .shared_bytes = 1024},
                  Params{data_, which});
  }

  uint32_t* data_ = nullptr;
};

TEST_F(ReportsTest, DivergenceNamesLanesFunctionsAndLines) {
  EXPECT_EQ(run("divergence"), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(report(),
              AllOf(StartsWith("divergence, CTA (0,0,0), thread 16:"), HasSubstr("warp 0 diverged"),
                    HasSubstr("lane 16 is in vote at kernel.cu:8"),
                    HasSubstr("lanes [0-15] wait in ldmatrix_x4 at kernel.cu:6")));
}

TEST_F(ReportsTest, OneFunctionOnTwoLinesIsDivergence) {
  EXPECT_EQ(run("same_function_on_two_lines"), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(report(), AllOf(HasSubstr("lane 4 is in sync_warp at kernel.cu:16"),
                              HasSubstr("lanes [0-3] wait in sync_warp at kernel.cu:14")));
}

TEST_F(ReportsTest, ExitWhileTheWarpWaitsIsReportedInEveryOrder) {
  EXPECT_EQ(run("exit_while_waiting", 5), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(report(), HasSubstr("lane 5 exits while other lanes of its warp wait in sync_cta at "
                                  "kernel.cu:22"));
  schedule({.order = kPagejitEmulatorRandom, .seed = 3});
  EXPECT_EQ(run("exit_while_waiting", 5), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(report(), HasSubstr("kernel.cu:22"));
}

TEST_F(ReportsTest, ArrivalAfterAnExitIsReported) {
  EXPECT_EQ(run("exit_while_waiting", 0), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(report(), HasSubstr("thread 33: sync_cta at kernel.cu:22, but lanes [0] of the warp "
                                  "have exited"));
}

TEST_F(ReportsTest, WarpsInDifferentSyncCtaAreReported) {
  EXPECT_EQ(run("different_barriers"), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(report(), AllOf(HasSubstr("different sync_cta()"), HasSubstr("kernel.cu:27"),
                              HasSubstr("kernel.cu:29")));
}

TEST_F(ReportsTest, DeadlockListsWhereEveryThreadIs) {
  EXPECT_EQ(run("deadlock"), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(report(),
            "deadlock: deadlock\n CTA (0,0,0)"
            "\n  32 threads [0-31]: sync_named 3, 1 of 2 warps there at kernel.cu:34"
            "\n  32 threads [32-63]: exited");
}

TEST_F(ReportsTest, BarrierMistakesAreReported) {
  EXPECT_EQ(run("barrier_counts"), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(report(), AllOf(HasSubstr("for 32 threads"), HasSubstr("came for 64 threads"),
                              HasSubstr("kernel.cu:38")));
  for (int number : {0, 16, -1}) {
    EXPECT_EQ(run("barrier_number", number), CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_THAT(report(), HasSubstr("must be in [1, 15]"));
  }
  EXPECT_EQ(run("barrier_number", 15), CUDA_SUCCESS) << report();
}

TEST_F(ReportsTest, LoadsOutsideOfAllocations) {
  EXPECT_EQ(run("load", 252), CUDA_SUCCESS) << report();
  EXPECT_EQ(run("load", 256), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(report(), AllOf(HasSubstr("thread 3: load_global of 4 bytes"),
                              HasSubstr("0 bytes past the end of the allocation of 256 bytes"),
                              HasSubstr("kernel.cu:47")));
  EXPECT_EQ(run("load", -4), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(report(), HasSubstr("4 bytes before the start of the allocation"));
}

TEST_F(ReportsTest, MisalignedLoad) {
  EXPECT_EQ(run("load", 2), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_THAT(report(), AllOf(HasSubstr("not 4-byte aligned"), HasSubstr("kernel.cu:47")));
}

TEST_F(ReportsTest, StoresOutsideOfAllocations) {
  EXPECT_EQ(run("store", 63), CUDA_SUCCESS) << report();
  EXPECT_EQ(run("store", 64), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(report(), HasSubstr("kernel.cu:51"));
}

TEST_F(ReportsTest, UseAfterFreeIsNamed) {
  CUdeviceptr p = 0;
  ASSERT_EQ(symbol<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2")(&p, 512), CUDA_SUCCESS);
  ASSERT_EQ(symbol<decltype(cuMemFree_v2)>("cuMemFree_v2")(p), CUDA_SUCCESS);
  data_ = reinterpret_cast<uint32_t*>(p);
  EXPECT_EQ(run("store"), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(report(), HasSubstr("allocation of 512 bytes"));
  EXPECT_THAT(report(), HasSubstr("was freed"));
}

TEST_F(ReportsTest, CopiesOutsideOfSharedMemoryOrMisaligned) {
  EXPECT_EQ(run("copy_to_shared", 1008), CUDA_SUCCESS) << report();
  EXPECT_EQ(run("copy_to_shared", 1024), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(report(), AllOf(HasSubstr("shared+1024, of 1024 bytes"), HasSubstr("kernel.cu:55")));
  EXPECT_EQ(run("copy_to_shared", 8), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(run("copy_from_global", 1), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(run("copy_from_global", 64), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(report(), AllOf(HasSubstr("thread 1"), HasSubstr("kernel.cu:59")));
}

TEST_F(ReportsTest, RowsOfLdmatrixOutsideOfSharedMemoryOrMisaligned) {
  EXPECT_EQ(run("row", 1008), CUDA_SUCCESS) << report();
  EXPECT_EQ(run("row", 1016), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(run("row", 8), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_THAT(report(), HasSubstr("kernel.cu:64"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

TEST_F(ReportsTest, PlainStoreIntoTheGuardFailsTheLaunchWithItsLine) {
  EXPECT_EQ(run("plain_store", 64), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(report(), AllOf(HasSubstr("plain_store: load or store"), HasSubstr("kernel.cu:68"),
                              HasSubstr("past the end of the allocation of 256 bytes")));
}

TEST_F(ReportsTest, StackOverflowFailsTheLaunch) {
  EXPECT_EQ(run("deep"), CUDA_ERROR_ILLEGAL_ADDRESS);
}

#endif

class WatchdogTest : public ReportsTest {
 protected:
  void SetUp() override {
    ReportsTest::SetUp();
    configure_watchdog(0.2);
  }
  void configure_watchdog(double seconds) {
    PagejitEmulatorOptions values = options();
    values.watchdog_s = seconds;
    configure(values);
  }
};

TEST_F(WatchdogTest, EndsALoopWithoutDeviceFunctions) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(run("endless"), CUDA_ERROR_LAUNCH_TIMEOUT);
  EXPECT_THAT(report(), AllOf(HasSubstr("no CTA ended for 0.2 s"), HasSubstr("kernel.cu:73"),
                              HasSubstr("64 threads [0-63]: running or ready to run")));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST_F(WatchdogTest, EndsALoopOfDeviceFunctions) {
  EXPECT_EQ(run("polling"), CUDA_ERROR_LAUNCH_TIMEOUT);
  EXPECT_THAT(report(), HasSubstr("no CTA ended for 0.2 s"));
}

TEST_F(WatchdogTest, EmulatorWorksAfterEveryKindOfFailure) {
  for (const char* name : {"divergence", "deadlock", "endless", "polling", "exit_while_waiting"}) {
    data_ = upload(std::vector<uint32_t>(64));
    configure_watchdog(0.2);
    EXPECT_NE(run(name, 5), CUDA_SUCCESS) << name;
    data_ = upload(std::vector<uint32_t>(64));
    configure_watchdog(30);
    EXPECT_EQ(run("fine"), CUDA_SUCCESS) << report();
    EXPECT_EQ(download(data_, 32), std::vector<uint32_t>(32, 7u));
  }
}

}  // namespace
}  // namespace pagejit_emulator
