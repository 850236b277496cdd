#include "runtime/engine/stored_kernel.h"

#include "tests/runtime/jit_policy_fixture.h"

namespace pagejit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class StoredKernelTest : public JitPolicyTest {
 protected:
  const Target target = *parse_target("sm_90a");
};

TEST_F(StoredKernelTest, WhatIsNotThereIsNotCompiled) {
  auto engine = engine_with(JitPolicy::kOn);
  const Result<StoredKernel> stored = find_stored(*engine, kSpec, target);
  EXPECT_EQ(stored.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(stored.status().message(),
              AllOf(HasSubstr(canonical_text(kSpec)), HasSubstr("sm_90a"), HasSubstr("key ")));
  EXPECT_EQ(nvrtc->openings, 0);
  EXPECT_EQ(engine->stats().compiles, 0u);
  EXPECT_TRUE(take_events().empty());
}

TEST_F(StoredKernelTest, WhatWasPrecompiledIsFoundWithItsBytes) {
  const KernelInfo made = precompiled();
  for (const bool has_compiler : {true, false}) {
    nvrtc->available = has_compiler;
    const Result<StoredKernel> stored = find_stored(*make_engine(), kSpec, target);
    ASSERT_TRUE(stored) << stored.status().to_string();
    EXPECT_EQ(stored->info.key, made.key);
    EXPECT_EQ(stored->info.origin, ImageOrigin::kDisk);
    EXPECT_EQ(stored->entry->key.name(), made.key);
    EXPECT_EQ(stored->entry->image, "good image of fake_kernel");
  }
  EXPECT_EQ(nvrtc->openings, 0);
  EXPECT_FALSE(find_stored(*make_engine(), kSpec, *parse_target("sm_90")))
      << "another target's image is another kernel";
}

TEST_F(StoredKernelTest, MemoryIsLookedAtToo) {
  EngineOptions memory_only = options();
  memory_only.disk_cache = false;
  auto engine = make_engine(memory_only);
  ASSERT_TRUE(precompile_any(*engine, kSpec, target));
  EXPECT_EQ(find_stored(*engine, kSpec, target)->info.origin, ImageOrigin::kMemory);
  EXPECT_FALSE(find_stored(*make_engine(memory_only), kSpec, target));
}

TEST_F(StoredKernelTest, AnIllegalSpecIsNoMissingKernel) {
  const Result<StoredKernel> stored =
      find_stored(*make_engine(), KernelSpec{.group_size = 0}, target);
  EXPECT_EQ(stored.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pagejit
