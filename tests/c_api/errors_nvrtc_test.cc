// What an error object tells of a source that NVRTC itself refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "pagejit/pagejit.h"
#include "runtime/c_api/family.h"
#include "runtime/engine/dependencies.h"
#include "tests/runtime/jit/test_support.h"

namespace pagejit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ErrorsNvrtcTest : public ::testing::Test {
 protected:
  ErrorsNvrtcTest() { EXPECT_EQ(pagejit_error_create(&error), PAGEJIT_OK); }
  ~ErrorsNvrtcTest() override {
    EXPECT_EQ(pagejit_engine_destroy(engine, nullptr), PAGEJIT_OK);
    EXPECT_EQ(pagejit_error_destroy(error), PAGEJIT_OK);
  }

  // An engine whose sources all end in `line`.
  void make_engine(const std::string& line) {
    EngineOptions options;
    options.cache_dir = folder_ / "cache";
    options.nvrtc_path = jit::real_nvrtc();
    options.log_level = LogLevel::kOff;
    EngineDependencies with = default_dependencies(options);
    with.render = [line, render = with.render](const AnyConfig& config) {
      Result<KernelSource> source = render(config);
      if (source) source->text += line + "\n";
      return source;
    };
    Result<std::shared_ptr<Engine>> made = create_engine(options, with);
    ASSERT_TRUE(made) << made.status().to_string();
    ASSERT_TRUE(c_api::hand_out(c_api::Kind::kEngine, c_api::EngineObject{*made}, &engine));
  }

  pagejit_status precompile() {
    pagejit_merge_states_spec spec;
    pagejit_merge_states_spec_init(&spec, sizeof spec);
    spec.head_size = 64;
    pagejit_target target;
    pagejit_target_init(&target, sizeof target);
    EXPECT_EQ(pagejit_target_parse("sm_90a", &target, error), PAGEJIT_OK);
    return pagejit_merge_states_kernel_precompile(engine, &spec, &target, nullptr, error);
  }

  pagejit_engine* engine = nullptr;
  pagejit_error* error = nullptr;

 private:
  jit::TempFolder folder_;
};

TEST_F(ErrorsNvrtcTest, ASourceThatDoesNotCompileTellsLogOptionsSourceAndSpec) {
  PAGEJIT_NEEDS_NVRTC();
  make_engine("__device__ int planted() { return absent(); }");
  EXPECT_EQ(precompile(), PAGEJIT_COMPILE_FAILED);
  EXPECT_EQ(pagejit_error_code(error), PAGEJIT_COMPILE_FAILED);
  EXPECT_THAT(pagejit_error_message(error),
              AllOf(HasSubstr("NVRTC"), HasSubstr("identifier \"absent\" is undefined")));
  EXPECT_THAT(pagejit_error_log(error), AllOf(HasSubstr("identifier \"absent\" is undefined"),
                                              HasSubstr("1 error detected")));
  EXPECT_THAT(pagejit_error_options(error), HasSubstr("--gpu-architecture=sm_90a\n"));
  EXPECT_THAT(pagejit_error_source(error),
              AllOf(HasSubstr("__global__"), HasSubstr("planted() { return absent(); }\n")));
  EXPECT_EQ(pagejit_error_spec(error), canonical_text(MergeStatesSpec{.head_size = 64}));
  EXPECT_EQ(pagejit_error_cuda_result(error), 0);
}

// So that the test above sees its planted line, and nothing else that is wrong.
TEST_F(ErrorsNvrtcTest, TheSameSourceWithoutTheMistakeCompiles) {
  PAGEJIT_NEEDS_NVRTC();
  make_engine("__device__ int planted() { return 1; }");
  EXPECT_EQ(precompile(), PAGEJIT_OK) << pagejit_error_detail(error);
  EXPECT_STREQ(pagejit_error_log(error), "");
  EXPECT_STREQ(pagejit_error_source(error), "");
}

}  // namespace
}  // namespace pagejit
