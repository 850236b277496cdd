// What an error object tells, what callbacks get, and the engine's options and counts through C.
#include <condition_variable>
#include <mutex>

#include "runtime/c_api/families.h"
#include "runtime/c_api/options.h"
#include "tests/c_api/c_api_fixture.h"

namespace pagejit {
namespace {

using ::testing::HasSubstr;

class ErrorsTest : public CApiTest {
 protected:
  pagejit_status prepare_eight(pagejit_kernel** kernel) {
    specs.kernel.group_size = 8;
    return pagejit_kernel_prepare(handles.engine, &specs.kernel, 0, nullptr, kernel, error);
  }
  const std::string text_of_eight = canonical_text(KernelSpec{.group_size = 8});
};

TEST_F(ErrorsTest, AFailedCompileTellsSpecLogOptionsAndSource) {
  nvrtc->failure = Status(StatusCode::kCompileFailed, "it does not compile", "all of it",
                          {.log = "line 7: oh no", .options = "-fake\n", .source = "int x = ;"});
  pagejit_kernel* kernel = nullptr;
  EXPECT_EQ(prepare_eight(&kernel), PAGEJIT_COMPILE_FAILED);
  EXPECT_EQ(pagejit_error_code(error), PAGEJIT_COMPILE_FAILED);
  EXPECT_EQ(message(), "it does not compile");
  EXPECT_STREQ(pagejit_error_detail(error), "all of it");
  EXPECT_EQ(pagejit_error_spec(error), text_of_eight);
  EXPECT_STREQ(pagejit_error_log(error), "line 7: oh no");
  EXPECT_STREQ(pagejit_error_options(error), "-fake\n");
  EXPECT_STREQ(pagejit_error_source(error), "int x = ;");
  EXPECT_EQ(pagejit_error_cuda_result(error), 0);
  EXPECT_EQ(kernel, nullptr);

  // A call that succeeds clears it.
  EXPECT_EQ(pagejit_kernel_spec_validate(&specs.kernel, error), PAGEJIT_OK);
  EXPECT_EQ(pagejit_error_code(error), PAGEJIT_OK);
  EXPECT_EQ(message(), "");
  EXPECT_STREQ(pagejit_error_log(error), "");
}

TEST_F(ErrorsTest, ADriversFailureTellsItsNumber) {
  script->fail("cuLibraryLoadData", CUDA_ERROR_OUT_OF_MEMORY);
  pagejit_kernel* kernel = nullptr;
  EXPECT_EQ(prepare_eight(&kernel), PAGEJIT_DRIVER_ERROR);
  EXPECT_EQ(pagejit_error_cuda_result(error), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(pagejit_error_spec(error), text_of_eight);
}

TEST_F(ErrorsTest, ADriverThatDoesNotWorkTellsItsNumber) {
  script->fail("cuInit", CUDA_ERROR_NO_DEVICE);
  pagejit_engine* engine = make_c_engine(dependencies());
  pagejit_kernel* kernel = nullptr;
  EXPECT_EQ(pagejit_kernel_prepare(engine, &specs.kernel, 0, nullptr, &kernel, error),
            PAGEJIT_DRIVER_UNAVAILABLE);
  EXPECT_EQ(pagejit_error_cuda_result(error), CUDA_ERROR_NO_DEVICE);
}

TEST_F(ErrorsTest, AFailedLaunchTellsNumberAndSpec) {
  script->fail("cuLaunchKernelEx", CUDA_ERROR_ILLEGAL_ADDRESS);
  pagejit_convert_float8_args args;
  pagejit_convert_float8_args_init(&args, sizeof args);
  args.from = reinterpret_cast<const void*>(0x1000);
  args.to = reinterpret_cast<void*>(0x2000);
  args.count = 16;
  EXPECT_EQ(pagejit_convert_float8_kernel_launch(handles.convert_float8, &args, nullptr, error),
            PAGEJIT_DRIVER_ERROR);
  EXPECT_EQ(pagejit_error_cuda_result(error), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(pagejit_error_spec(error), canonical_text(ConvertFloat8Spec{}));
}

TEST_F(ErrorsTest, ASpecThatIsNotLegalIsNamed) {
  specs.kernel.head_size = 100;
  EXPECT_EQ(pagejit_kernel_spec_validate(&specs.kernel, error), PAGEJIT_INVALID_ARGUMENT);
  EXPECT_EQ(message(), validate(KernelSpec{.head_size = 100}).message());
  EXPECT_EQ(pagejit_error_spec(error), canonical_text(KernelSpec{.head_size = 100}));
}

// ---- Callbacks ----

struct Told {
  std::mutex mutex;
  std::condition_variable changed;
  int calls = 0;
  pagejit_status status = -1;
  std::string sentence;
  pagejit_kernel* kernel = nullptr;
  pagejit_kernel* kept = nullptr;
};

void tell(void* user, pagejit_status status, void* kernel, const pagejit_error* error) {
  auto* told = static_cast<Told*>(user);
  const std::lock_guard lock(told->mutex);
  ++told->calls;
  told->status = status;
  told->sentence = error == nullptr ? "" : pagejit_error_message(error);
  told->kernel = static_cast<pagejit_kernel*>(kernel);
  if (kernel != nullptr) pagejit_kernel_copy(told->kernel, &told->kept, nullptr);
  told->changed.notify_all();
}

TEST_F(ErrorsTest, APrepareInTheBackgroundYieldsAKernelToTheCallbackAndToWait) {
  Told told;
  pagejit_prepare_options options;
  pagejit_prepare_options_init(&options, sizeof options);
  EXPECT_EQ(options.priority, PAGEJIT_PRIORITY_NORMAL);
  options.on_done = tell;
  options.done_user = &told;
  specs.kernel.group_size = 8;
  pagejit_pending* pending = nullptr;
  ASSERT_EQ(outcome(pagejit_kernel_prepare_async(handles.engine, &specs.kernel, 0, &options,
                                                 &pending, error)),
            "");
  pagejit_kernel* kernel = nullptr;
  ASSERT_EQ(outcome(pagejit_kernel_wait(pending, &kernel, error)), "");
  pagejit_kernel_spec spec;
  pagejit_kernel_spec_init(&spec, sizeof spec);
  EXPECT_EQ(outcome(pagejit_kernel_get_spec(kernel, &spec, error)), "");
  EXPECT_EQ(spec.group_size, 8);
  int32_t ready = 0;
  EXPECT_EQ(pagejit_pending_is_ready(pending, &ready, error), PAGEJIT_OK);
  EXPECT_EQ(ready, 1);
  {
    std::unique_lock lock(told.mutex);
    told.changed.wait(lock, [&] { return told.calls == 1; });
  }
  EXPECT_EQ(told.status, PAGEJIT_OK);
  EXPECT_EQ(outcome(pagejit_kernel_get_spec(told.kept, &spec, error)), "") << "a copy is kept";

  // One of another family.
  pagejit_top_k_kernel* other = nullptr;
  EXPECT_EQ(pagejit_top_k_kernel_wait(pending, &other, error), PAGEJIT_INVALID_ARGUMENT);
  EXPECT_EQ(message(),
            "pagejit_pending: it is to become a pagejit_kernel, not a "
            "pagejit_top_k_kernel");
  EXPECT_EQ(outcome(pagejit_pending_destroy(pending, error)), "");
  EXPECT_EQ(outcome(pagejit_kernel_destroy(kernel, error)), "");
  EXPECT_EQ(outcome(pagejit_kernel_destroy(told.kept, error)), "");
}

TEST_F(ErrorsTest, APrepareInTheBackgroundThatFailsTellsTheReasonToTheCallbackAndToWait) {
  nvrtc->failure = Status(StatusCode::kCompileFailed, "it does not compile");
  Told told;
  pagejit_prepare_options options;
  pagejit_prepare_options_init(&options, sizeof options);
  options.on_done = tell;
  options.done_user = &told;
  specs.kernel.group_size = 8;
  pagejit_pending* pending = nullptr;
  ASSERT_EQ(
      pagejit_kernel_prepare_async(handles.engine, &specs.kernel, 0, &options, &pending, error),
      PAGEJIT_OK);
  pagejit_kernel* kernel = nullptr;
  EXPECT_EQ(pagejit_kernel_wait(pending, &kernel, error), PAGEJIT_COMPILE_FAILED);
  EXPECT_EQ(message(), "it does not compile");
  EXPECT_EQ(pagejit_error_spec(error), text_of_eight);
  {
    std::unique_lock lock(told.mutex);
    told.changed.wait(lock, [&] { return told.calls == 1; });
  }
  EXPECT_EQ(told.status, PAGEJIT_COMPILE_FAILED);
  EXPECT_EQ(told.sentence, "it does not compile");
  EXPECT_EQ(told.kernel, nullptr);
  EXPECT_EQ(pagejit_pending_destroy(pending, error), PAGEJIT_OK);
}

struct Heard {
  std::vector<std::string> lines;
  std::vector<std::string> events;
};

TEST_F(ErrorsTest, OptionsAreThoseOfCppAndCallbacksAreCalled) {
  Heard heard;
  pagejit_engine_options options;
  ASSERT_EQ(pagejit_engine_options_init(&options, sizeof options), PAGEJIT_OK);
  const char* bundles[] = {"a", "b"};
  const pagejit_bytes bytes[] = {{"xyz", 3}};
  options.driver = "some driver";
  options.bundles = bundles;
  options.num_bundles = 2;
  options.memory_bundles = bytes;
  options.num_memory_bundles = 1;
  options.jit = PAGEJIT_JIT_ERROR;
  options.tuned = 1;
  options.log_callback = [](void* user, int32_t level, const char* line) {
    static_cast<Heard*>(user)->lines.push_back(std::to_string(level) + line);
  };
  options.log_user = &heard;
  options.on_event = [](void* user, const pagejit_jit_event* event) {
    EXPECT_EQ(event->struct_size, sizeof(pagejit_jit_event));
    EXPECT_EQ(event->target.sm, 80);
    static_cast<Heard*>(user)->events.push_back(std::string(event->spec) + event->key +
                                                event->message);
  };
  options.event_user = &heard;
  EngineOptions same;
  ASSERT_TRUE(c_api::to_cpp(&options, &same));
  EXPECT_EQ(same.driver, "some driver");
  EXPECT_EQ(same.bundles, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(same.memory_bundles, (std::vector<std::string_view>{"xyz"}));
  EXPECT_EQ(same.jit, JitPolicy::kError);
  EXPECT_EQ(same.log_level, LogLevel::kWarning);
  EXPECT_EQ(same.cache_max_bytes, EngineOptions().cache_max_bytes);
  EXPECT_EQ(same.remote_layout, EngineOptions().remote_layout);
  EXPECT_TRUE(same.disk_cache);
  EXPECT_TRUE(same.tuned);
  same.log_callback(LogLevel::kError, "a line");
  JitEvent event;
  event.spec = "spec ";
  event.key = "key ";
  event.target = {.sm = 80};
  event.status = Status(StatusCode::kDenied, "no");
  same.on_event(event);
  EXPECT_EQ(heard.lines, std::vector<std::string>{"3a line"});
  EXPECT_EQ(heard.events, std::vector<std::string>{"spec key no"});

  bundles[1] = nullptr;
  const Status status = c_api::to_cpp(&options, &same);
  EXPECT_EQ(status.message(), "pagejit_engine_options.bundles[1]: null");
  options.num_bundles = 0;
  options.tuned = 2;
  EXPECT_EQ(c_api::to_cpp(&options, &same).message(),
            "pagejit_engine_options.tuned 2: must be 0 or 1");
  options.tuned = 0;
  options.reserved5 = 1;
  EXPECT_EQ(c_api::to_cpp(&options, &same).code(), StatusCode::kUnsupported);
  options.reserved5 = 0;
  options.compile_threads = -1;
  pagejit_engine* engine = nullptr;
  EXPECT_EQ(pagejit_engine_create(&options, &engine, error), PAGEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(message(), HasSubstr("compile_threads -1"));
}

TEST_F(ErrorsTest, OptionsOfTheEnvironmentBelongToAHandle) {
  ::setenv("PAGEJIT_BUNDLES", "one:two", 1);
  ::setenv("PAGEJIT_CACHE_DIR", "/somewhere", 1);
  ::setenv("PAGEJIT_TUNED", "on", 1);
  pagejit_engine_options options;
  pagejit_engine_options_init(&options, sizeof options);
  pagejit_environment* environment = nullptr;
  ASSERT_EQ(outcome(pagejit_engine_options_from_environment(&options, &environment, error)), "");
  ::unsetenv("PAGEJIT_BUNDLES");
  ::unsetenv("PAGEJIT_CACHE_DIR");
  ::unsetenv("PAGEJIT_TUNED");
  ASSERT_EQ(options.num_bundles, 2u);
  EXPECT_STREQ(options.bundles[1], "two");
  EXPECT_STREQ(options.cache_dir, "/somewhere");
  EXPECT_EQ(options.tuned, 1);
  EXPECT_EQ(outcome(pagejit_environment_destroy(environment, error)), "");

  ::setenv("PAGEJIT_JIT", "maybe", 1);
  EXPECT_EQ(pagejit_engine_options_from_environment(&options, &environment, error),
            PAGEJIT_INVALID_ARGUMENT);
  ::unsetenv("PAGEJIT_JIT");
  EXPECT_THAT(message(), HasSubstr("PAGEJIT_JIT=maybe"));
}

TEST_F(ErrorsTest, CountsInfosAndTextsAreThoseOfCpp) {
  const c_api::Pin pin(c_api::Kind::kStats, handles.stats);
  const EngineStats& stats = *static_cast<const EngineStats*>(pin.object());
  pagejit_stats_counts counts;
  pagejit_stats_counts_init(&counts, sizeof counts);
  ASSERT_EQ(pagejit_stats_get_counts(handles.stats, &counts, error), PAGEJIT_OK);
  EXPECT_GT(counts.compiles, 10u);
  EXPECT_EQ(counts.compiles, stats.compiles);
  EXPECT_EQ(counts.modules_loaded, stats.modules_loaded);
  ASSERT_EQ(counts.num_corrupt_kinds, stats.corrupt_by_kind.size());
  const char* name = nullptr;
  uint64_t count = 7;
  ASSERT_EQ(pagejit_stats_corrupt_kind(handles.stats, 0, &name, &count, error), PAGEJIT_OK);
  EXPECT_EQ(name, stats.corrupt_by_kind[0].name);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(pagejit_stats_publish_errno(handles.stats, 0, nullptr, &count, error),
            PAGEJIT_INVALID_ARGUMENT);
  pagejit_histogram histogram;
  pagejit_histogram_init(&histogram, sizeof histogram);
  ASSERT_EQ(
      pagejit_stats_get_histogram(handles.stats, PAGEJIT_HISTOGRAM_LOAD_MS, &histogram, error),
      PAGEJIT_OK);
  EXPECT_EQ(histogram.count, stats.load_ms.count);
  EXPECT_EQ(histogram.num_bounds, stats.load_ms.bounds.size());
  EXPECT_EQ(pagejit_stats_get_histogram(handles.stats, 4, &histogram, error),
            PAGEJIT_INVALID_ARGUMENT);
  std::string text(1 << 16, '\0');
  size_t length = 0;
  ASSERT_EQ(pagejit_stats_to_json(handles.stats, text.data(), text.size(), &length, error),
            PAGEJIT_OK);
  EXPECT_EQ(text.substr(0, length), to_json(stats));
  ASSERT_EQ(pagejit_stats_to_prometheus(handles.stats, text.data(), text.size(), &length, error),
            PAGEJIT_OK);
  EXPECT_EQ(text.substr(0, length), to_prometheus(stats));

  pagejit_kernel_info info;
  pagejit_kernel_info_init(&info, sizeof info);
  ASSERT_EQ(pagejit_kernel_get_info(handles.kernel, &info, error), PAGEJIT_OK);
  EXPECT_STREQ(info.kernel_name, "fake_kernel");
  EXPECT_EQ(std::string(info.key).size(), 73u) << "64 digits, a dot, 8 digits";
  EXPECT_EQ(info.registers, 96);
  EXPECT_EQ(info.origin, PAGEJIT_ORIGIN_COMPILED);
  EXPECT_EQ(info.target.sm, 90);
  EXPECT_EQ(info.target.struct_size, sizeof(pagejit_target));
  EXPECT_EQ(info.tuned, 0);
  KernelInfo tuned;
  tuned.tuned = true;
  EXPECT_EQ(c_api::to_c(tuned).tuned, 1);
}

TEST_F(ErrorsTest, CompositionsAreMadeOfTheSamePartsAsInCpp) {
  pagejit_kernel_spec prefix, suffix, attention;
  pagejit_merge_states_spec merge;
  pagejit_kernel_spec_init(&prefix, sizeof prefix);
  pagejit_kernel_spec_init(&suffix, sizeof suffix);
  pagejit_kernel_spec_init(&attention, sizeof attention);
  pagejit_merge_states_spec_init(&merge, sizeof merge);
  ASSERT_EQ(outcome(pagejit_cascade_spec_parts(&specs.cascade, &prefix, &suffix, &merge, error)),
            "");
  const CascadeParts parts = cascade_parts(CascadeSpec{});
  KernelSpec of_c;
  ASSERT_TRUE(c_api::AttentionFamily::to_cpp(&prefix, &of_c));
  EXPECT_EQ(of_c, parts.prefix);
  ASSERT_TRUE(c_api::AttentionFamily::to_cpp(&suffix, &of_c));
  EXPECT_EQ(of_c, parts.suffix);
  MergeStatesSpec merge_of_c;
  ASSERT_TRUE(c_api::MergeStatesFamily::to_cpp(&merge, &merge_of_c));
  EXPECT_EQ(merge_of_c, parts.merge);

  pagejit_sparse_attention_spec sparse;
  pagejit_sparse_attention_spec_init(&sparse, sizeof sparse);
  ASSERT_EQ(outcome(pagejit_sparse_attention_kernel_get_spec(handles.sparse_attention, &sparse,
                                                             &attention, error)),
            "");
  EXPECT_EQ(sparse.attention, &attention);
  EXPECT_EQ(attention.head_size_v, 512);
  EXPECT_EQ(sparse.index_num_heads, 64);
}

}  // namespace
}  // namespace pagejit
