// Images of HostBuild::kAddressSanitizer, in a program that is itself built with AddressSanitizer
// (only then is this compiled).
#include <gmock/gmock.h>

#include "tests/runtime/emulator/emulator_fixture.h"

namespace pagejit_emulator {
namespace {

using pagejit::HostBuild;

struct Params {
  uint32_t* data;
  int index;
};

constexpr const char* kText = R"(
struct Params { uint32_t* data; int index; };
PAGEJIT_KERNEL(64, 1) local(const __grid_constant__ Params params) {
  uint32_t r[4] = {1, 2, 3, 4};
  volatile uint32_t* p = r;
  params.data[dev::thread_idx()] = p[params.index];
}
PAGEJIT_ENTRY(local, Params)
PAGEJIT_KERNEL(64, 1) shared(const __grid_constant__ Params params) {
  auto* s = reinterpret_cast<volatile uint32_t*>(dev::dynamic_shared());
  s[params.index] = 1;
  dev::sync_cta();
  params.data[dev::thread_idx()] = s[params.index];
}
PAGEJIT_ENTRY(shared, Params)
PAGEJIT_KERNEL(64, 1) global(const __grid_constant__ Params params) {
  params.data[params.index] = 1;
}
PAGEJIT_ENTRY(global, Params)
)";

class AsanTest : public EmulatorTest {
 protected:
  CUresult run(const char* name, int index) {
    return launch(kernel(kText, name, HostBuild::kAddressSanitizer),
                  {.num_threads = 64, .shared_bytes = 256},
                  Params{upload(std::vector<uint32_t>(64)), index});
  }
};

TEST_F(AsanTest, CorrectKernelsRun) {
  EXPECT_EQ(run("local", 3), CUDA_SUCCESS);
  EXPECT_EQ(run("shared", 63), CUDA_SUCCESS);
  EXPECT_EQ(run("global", 63), CUDA_SUCCESS);
}

TEST_F(AsanTest, FindsOverrunsOfEveryKindOfMemory) {
  EXPECT_DEATH(run("local", 4), "AddressSanitizer: stack-buffer-overflow");
  EXPECT_DEATH(run("shared", 64), "AddressSanitizer: use-after-poison");
  EXPECT_DEATH(run("global", 64), "AddressSanitizer");
}

}  // namespace
}  // namespace pagejit_emulator
