// What prepare() refuses while a stream is being captured.
#include <vector>

#include "tests/runtime/jit_policy_fixture.h"

namespace pagejit {
namespace {

using ::testing::HasSubstr;

TEST_F(JitPolicyTest, DuringACaptureAColdKernelIsRefusedUnderEveryPolicy) {
  script->set_capturing_stream(static_cast<CUstream>(kStream));
  for (const bool stored : {false, true}) {
    if (stored) precompiled();
    for (const JitPolicy policy : kPolicies) {
      auto engine = engine_with(policy);
      Result<Kernel> kernel = engine->prepare(kSpec, 0, kStream);
      ASSERT_FALSE(kernel);
      EXPECT_EQ(kernel.status().code(), StatusCode::kDenied);
      EXPECT_THAT(kernel.status().message(),
                  AllOf(HasSubstr(canonical_text(kSpec)), HasSubstr("the stream is being captured"),
                        HasSubstr("before the capture begins")));
      EXPECT_EQ(engine->stats().misses_denied_in_capture, 1u);
      EXPECT_EQ(engine->stats().misses_denied_by_policy, 0u);
      const std::vector<JitEvent> told = take_events();
      ASSERT_EQ(told.size(), policy == JitPolicy::kOff ? 0u : 1u);
      if (told.empty()) continue;
      EXPECT_EQ(told[0].kind, JitEventKind::kDenied);
      EXPECT_EQ(told[0].target.to_string(), "sm_90a");
      EXPECT_EQ(told[0].key, "");
      EXPECT_TRUE(logged(LogLevel::kError, told[0].status.message()));
    }
  }
  EXPECT_EQ(nvrtc->openings, 0);
  EXPECT_EQ(script->calls("cuLibraryLoadData"), 0u);
}

TEST_F(JitPolicyTest, DuringACaptureAWarmKernelIsReturnedWithoutADriverCall) {
  auto engine = engine_with(JitPolicy::kOn);
  prepare(*engine, kSpec);
  script->set_capturing_stream(static_cast<CUstream>(kStream));
  const uint64_t loads = script->calls("cuFuncLoad");
  Result<Kernel> kernel = engine->prepare(kSpec, 0, kStream);
  ASSERT_TRUE(kernel) << kernel.status().to_string();
  EXPECT_EQ(script->calls("cuStreamIsCapturing"), 0u);
  EXPECT_EQ(script->calls("cuFuncLoad"), loads);
  EXPECT_EQ(engine->stats().misses_denied_in_capture, 0u);
}

TEST_F(JitPolicyTest, DuringACaptureAKernelThatIsWarmInAnotherContextIsRefused) {
  auto driver = *Driver::open(PAGEJIT_STUB_DRIVER);
  auto engine = engine_with(JitPolicy::kOn);
  prepare(*engine, kSpec, 0);
  driver->cuCtxPushCurrent(script->make_context(0));
  script->set_capturing_stream(static_cast<CUstream>(kStream));
  const uint64_t loads = script->calls("cuFuncLoad");
  EXPECT_EQ(engine->prepare(kSpec, -1, kStream).status().code(), StatusCode::kDenied);
  EXPECT_EQ(script->calls("cuFuncLoad"), loads);
  script->set_capturing_stream(nullptr);
  EXPECT_TRUE(engine->prepare(kSpec, -1, kStream));
  CUcontext popped = nullptr;
  driver->cuCtxPopCurrent(&popped);
}

TEST_F(JitPolicyTest, OnlyTheGivenStreamIsLookedAt) {
  script->set_capturing_stream(static_cast<CUstream>(kStream));
  auto engine = engine_with(JitPolicy::kOn);
  EXPECT_TRUE(engine->prepare({.group_size = 1}, 0, kOtherStream));
  EXPECT_EQ(script->calls("cuStreamIsCapturing"), 1u);
  EXPECT_TRUE(engine->prepare({.group_size = 2}, 0));
  EXPECT_EQ(script->calls("cuStreamIsCapturing"), 1u);
}

TEST_F(JitPolicyTest, TheLegacyStreamDuringAnotherStreamsCaptureCountsAsCaptured) {
  auto engine = engine_with(JitPolicy::kOn);
  script->fail("cuStreamIsCapturing", CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(engine->prepare(kSpec, 0, kStream).status().code(), StatusCode::kDenied);
  script->fail("cuStreamIsCapturing", CUDA_ERROR_INVALID_VALUE);
  const Status status = engine->prepare(kSpec, 0, kStream).status();
  EXPECT_EQ(status.code(), StatusCode::kDriverError);
  EXPECT_THAT(status.message(), HasSubstr("cuStreamIsCapturing"));
  EXPECT_EQ(engine->stats().misses_denied_in_capture, 1u);
}

TEST_F(JitPolicyTest, EveryPartOfAProblemKnowsTheStream) {
  EngineDependencies with = dependencies();
  with.plan = plan_any;  // the other families have no fake
  auto engine = *create_engine(options(), with);
  SparseAttentionSpec sparse;
  sparse.attention = {.head_size = 576, .block_size = 64, .group_size = 16};
  sparse.attention.head_size_v = 512;
  sparse.attention.latent = true;
  sparse.attention.kv_table = KvTable::kPositions;
  const CascadeSpec cascade = {.attention = kSpec};
  const CascadeParts levels = cascade_parts(cascade);
  const SparseAttentionParts steps = sparse_attention_parts(sparse);
  // Each part is cold once, with those before it warm.
  const auto expect_denied = [&](const auto& whole, const auto& cold_part) {
    script->set_capturing_stream(static_cast<CUstream>(kStream));
    const uint64_t loads = script->calls("cuLibraryLoadData");
    EXPECT_EQ(engine->prepare(whole, 0, kStream).status().code(), StatusCode::kDenied);
    EXPECT_EQ(script->calls("cuLibraryLoadData"), loads);
    script->set_capturing_stream(nullptr);
    EXPECT_TRUE(engine->prepare(cold_part, 0));
  };
  expect_denied(cascade, levels.prefix);
  expect_denied(cascade, levels.suffix);
  expect_denied(cascade, levels.merge);
  expect_denied(sparse, steps.logits);
  expect_denied(sparse, steps.top_k);
  expect_denied(sparse, steps.attention);
  EXPECT_EQ(engine->stats().misses_denied_in_capture, 6u);
  script->set_capturing_stream(static_cast<CUstream>(kStream));
  EXPECT_TRUE(engine->prepare(cascade, 0, kStream));
  EXPECT_TRUE(engine->prepare(sparse, 0, kStream));
}

}  // namespace
}  // namespace pagejit
