// The C API from several threads at once, and in a forked child.
#include <atomic>
#include <thread>

#include "tests/c_api/bad_arguments.h"
#include "tests/c_api/launch_fixture.h"
#include "tests/cache/child_process.h"

namespace pagejit {
namespace {

using cache::ChildProcess;
using ::testing::HasSubstr;

// Calls a function with legal arguments. Its answer is OK or has a sentence.
template <class... P>
void call_legally(const char* name, pagejit_status (*function)(P...), Values& values) {
  values.reset();
  const pagejit_status status = std::apply(function, std::tuple<P...>{values.get<P>()...});
  EXPECT_EQ(pagejit_error_code(values.error), status) << name;
  EXPECT_EQ(*pagejit_error_message(values.error) == '\0', status == PAGEJIT_OK) << name;
}

void call_each_function(Values& values) {
#define PAGEJIT_CALL(function) call_legally(#function, function, values);
  PAGEJIT_C_STATUS_FUNCTIONS(PAGEJIT_CALL)
#undef PAGEJIT_CALL
}

class CApiThreadsTest : public CApiLaunchTest {};

TEST_F(CApiThreadsTest, EveryFunctionMayBeCalledFromSeveralThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([this] {
      Values values(handles);
      call_each_function(values);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Each thread is told what is wrong with its own arguments, while others are told the same.
TEST_F(CApiThreadsTest, EveryBadArgumentIsRefusedInSeveralThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([this] { BadArguments(handles).check_all(); });
  }
  for (std::thread& thread : threads) thread.join();
}

template <class T>
void destroy_in_threads(const char* name, T* live, pagejit_status (*destroy)(T*, pagejit_error*)) {
  std::atomic<int> destroyed{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      const pagejit_status status = destroy(live, nullptr);
      if (status == PAGEJIT_OK) ++destroyed;
      if (status == PAGEJIT_INVALID_ARGUMENT) ++refused;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(destroyed, 1) << name;
  EXPECT_EQ(refused, 2) << name;
}

template <class T>
T* handle_of(const Handles& handles, pagejit_status (*)(T*, pagejit_error*)) {
  return handles.of<T>();
}

TEST_F(CApiThreadsTest, EachHandleIsDestroyedByOneOfSeveralThreads) {
#define PAGEJIT_CHECK(function) \
  destroy_in_threads(#function, handle_of(handles, function), function);
  PAGEJIT_C_DESTROY_FUNCTIONS(PAGEJIT_CHECK)
#undef PAGEJIT_CHECK
}

TEST_F(CApiThreadsTest, AKernelThatIsDestroyedDuringLaunchesIsRefusedFromThenOn) {
  const pagejit_attention_args args = legal_c_args();
  pagejit_kernel* kernel = nullptr;
  ASSERT_EQ(outcome(pagejit_kernel_copy(handles.kernel, &kernel, error)), "");
  std::atomic<int> launches{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      pagejit_error* own = nullptr;
      pagejit_error_create(&own);
      pagejit_status status = PAGEJIT_OK;
      while ((status = pagejit_kernel_launch(kernel, &args, nullptr, own)) == PAGEJIT_OK) {
        ++launches;
      }
      EXPECT_EQ(status, PAGEJIT_INVALID_ARGUMENT);
      EXPECT_THAT(pagejit_error_message(own), HasSubstr("it was destroyed"));
      ++refused;
      pagejit_error_destroy(own);
    });
  }
  while (launches < 100) std::this_thread::yield();
  EXPECT_EQ(outcome(pagejit_kernel_destroy(kernel, error)), "");
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, 3);
}

TEST_F(CApiThreadsTest, HandlesAreMadeAndDestroyedByManyThreadsWithoutEverBeingMixedUp) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      std::vector<pagejit_kernel*> own;
      for (int round = 0; round < 500; ++round) {
        pagejit_kernel* kernel = nullptr;
        EXPECT_EQ(pagejit_kernel_copy(handles.kernel, &kernel, nullptr), PAGEJIT_OK);
        own.push_back(kernel);
        if (round % 3 != 0) continue;
        EXPECT_EQ(pagejit_kernel_destroy(own.front(), nullptr), PAGEJIT_OK);
        EXPECT_EQ(pagejit_kernel_destroy(own.front(), nullptr), PAGEJIT_INVALID_ARGUMENT);
        own.erase(own.begin());
      }
      for (pagejit_kernel* kernel : own) {
        EXPECT_EQ(pagejit_kernel_destroy(kernel, nullptr), PAGEJIT_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CApiThreadsTest, ASlotThatIsUsedAgainHasANewHandle) {
  pagejit_error* first = nullptr;
  ASSERT_EQ(pagejit_error_create(&first), PAGEJIT_OK);
  ASSERT_EQ(pagejit_error_destroy(first), PAGEJIT_OK);
  pagejit_error* second = nullptr;
  ASSERT_EQ(pagejit_error_create(&second), PAGEJIT_OK);
  EXPECT_EQ(static_cast<uint32_t>(c_api::value_of(first)),
            static_cast<uint32_t>(c_api::value_of(second)))
      << "the same slot, or this test shows nothing";
  EXPECT_NE(first, second);
  EXPECT_EQ(pagejit_error_code(first), PAGEJIT_INVALID_ARGUMENT);
  EXPECT_EQ(pagejit_error_code(second), PAGEJIT_OK);
  EXPECT_EQ(pagejit_error_destroy(second), PAGEJIT_OK);
}

TEST_F(CApiThreadsTest, AWrongHandleThatPinsASlotForAMomentDoesNoHarm) {
  const uint64_t live = c_api::value_of(handles.kernel);
  const uint64_t older = live - (uint64_t{1} << 32);
  {
    const c_api::Pin pin(c_api::Kind::kKernel, as_handle<void>(older));
    EXPECT_EQ(pin.object(), nullptr);
    pagejit_kernel* copy = nullptr;
    EXPECT_EQ(outcome(pagejit_kernel_copy(handles.kernel, &copy, error)), "");
    EXPECT_EQ(outcome(pagejit_kernel_destroy(handles.kernel, error)), "");
    handles.kernel = copy;
  }  // here the object is freed
  EXPECT_EQ(pagejit_kernel_destroy(as_handle<pagejit_kernel>(live), error),
            PAGEJIT_INVALID_ARGUMENT);
  EXPECT_EQ(outcome(pagejit_kernel_destroy(handles.kernel, error)), "");
}

// ---- The end of an engine ----

class CApiEngineEndTest : public CApiThreadsTest {
 protected:
  CApiEngineEndTest() {
    nvrtc->on_compile_job = [this](const KernelSource&, const jit::JobOptions& job) {
      is_compiling = true;
      while (!may_end) {
        if (job.stop.stop_requested()) return Status(StatusCode::kCancelled, "stopped");
        std::this_thread::yield();
      }
      return Status();
    };
  }

  // A prepare in the background that has reached the compiler and stays there.
  pagejit_pending* begin_prepare() {
    specs.kernel.group_size = 2;
    pagejit_pending* pending = nullptr;
    EXPECT_EQ(outcome(pagejit_kernel_prepare_async(handles.engine, &specs.kernel, 0, nullptr,
                                                   &pending, error)),
              "");
    EXPECT_TRUE(cache::wait_for([&] { return is_compiling.load(); }));
    return pending;
  }
  pagejit_status end_prepare(pagejit_pending* pending) {
    pagejit_kernel* kernel = nullptr;
    const pagejit_status status = pagejit_kernel_wait(pending, &kernel, error);
    pagejit_kernel_destroy(kernel, nullptr);
    EXPECT_EQ(outcome(pagejit_pending_destroy(pending, nullptr)), "");
    return status;
  }

  std::atomic<bool> is_compiling{false};
  std::atomic<bool> may_end{false};
};

TEST_F(CApiEngineEndTest, DestroyingTheLastHandleCancelsAndWaits) {
  ASSERT_EQ(outcome(pagejit_paged_attention_destroy(handles.paged_attention, error)), "");
  pagejit_pending* pending = begin_prepare();
  EXPECT_EQ(outcome(pagejit_engine_destroy(handles.engine, error)), "");
  const size_t lines = log.size();  // nothing writes it any more, kernels that are left or not
  EXPECT_EQ(end_prepare(pending), PAGEJIT_CANCELLED);
  EXPECT_EQ(log.size(), lines);
}

TEST_F(CApiEngineEndTest, APagedAttentionKeepsItAliveAndEndsIt) {
  pagejit_pending* pending = begin_prepare();
  EXPECT_EQ(outcome(pagejit_engine_destroy(handles.engine, error)), "");
  may_end = true;
  EXPECT_EQ(end_prepare(pending), PAGEJIT_OK) << "nothing was cancelled";
  pagejit_paged_attention_args args;
  pagejit_paged_attention_args_init(&args, sizeof args);
  args.num_heads = args.num_kv_heads = args.num_seqs = 1;
  args.head_size = 128;
  args.block_size = 16;
  const int compiles = nvrtc->compiles;
  EXPECT_EQ(outcome(pagejit_paged_attention_prepare(handles.paged_attention, &args, error)), "");
  EXPECT_EQ(nvrtc->compiles, compiles + 1) << "it prepares as before";
  EXPECT_EQ(outcome(pagejit_paged_attention_destroy(handles.paged_attention, error)), "");
}

// ---- fork ----

TEST_F(CApiThreadsTest, EveryFunctionEndsInAForkedChildWithASentenceWhereItFails) {
  ChildProcess child([&] {
    ::alarm(60);  // instead of ChildProcess's
    Values values(handles);
    call_each_function(values);
    return HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(CApiThreadsTest, EveryBadArgumentIsRefusedInAForkedChild) {
  ChildProcess child([&] {
    ::alarm(60);
    BadArguments(handles).check_all();
    return HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(CApiThreadsTest, EachHandleIsDestroyedOnceInAForkedChildAndLivesInTheParent) {
  ChildProcess child([&] {
    ::alarm(60);
#define PAGEJIT_CHECK(function)                                                        \
  EXPECT_EQ(function(handle_of(handles, function), nullptr), PAGEJIT_OK) << #function; \
  EXPECT_EQ(function(handle_of(handles, function), nullptr), PAGEJIT_INVALID_ARGUMENT) << #function;
    PAGEJIT_C_DESTROY_FUNCTIONS(PAGEJIT_CHECK)
#undef PAGEJIT_CHECK
    return HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(child.wait(), 0);
#define PAGEJIT_CHECK(function) \
  EXPECT_EQ(function(handle_of(handles, function), nullptr), PAGEJIT_OK) << #function;
  PAGEJIT_C_DESTROY_FUNCTIONS(PAGEJIT_CHECK)
#undef PAGEJIT_CHECK
}

TEST_F(CApiThreadsTest, HandlesOfTheParentAreRefusedInTheChildAsByTheCppEngine) {
  const std::string parent = std::to_string(::getpid());
  ChildProcess child([&] {
    ::alarm(60);
    pagejit_kernel* kernel = nullptr;
    EXPECT_EQ(pagejit_kernel_prepare(handles.engine, &specs.kernel, 0, nullptr, &kernel, error),
              PAGEJIT_DRIVER_UNAVAILABLE);
    EXPECT_THAT(message(), HasSubstr("in process " + parent));
    EXPECT_THAT(message(), HasSubstr("does not survive a fork"));
    const uint64_t calls = script->total_calls();
    EXPECT_EQ(outcome(pagejit_kernel_destroy(handles.kernel, error)), "");
    EXPECT_EQ(outcome(pagejit_engine_destroy(handles.engine, error)), "");
    EXPECT_EQ(script->total_calls(), calls) << "nothing is unloaded";
    return HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(child.wait(), 0);
  const pagejit_attention_args args = legal_c_args();
  EXPECT_EQ(outcome(pagejit_kernel_launch(handles.kernel, &args, nullptr, error)), "")
      << "the parent goes on";
}

#if !defined(__SANITIZE_ADDRESS__)  // its own locks may be held: tests/asan_fork.cc
TEST_F(CApiThreadsTest, HandlesAreMadeInAChildThatWasForkedWhileThreadsMadeSome) {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      pagejit_error* own = nullptr;
      pagejit_error_create(&own);
      pagejit_error_destroy(own);
    }
  });
  for (int i = 0; i < 20; ++i) {
    ChildProcess child([&] {
      ::alarm(20);
      pagejit_error* own = nullptr;
      return pagejit_error_create(&own) == PAGEJIT_OK && pagejit_error_destroy(own) == PAGEJIT_OK
                 ? 0
                 : 1;
    });
    EXPECT_EQ(child.wait(), 0);
  }
  stop = true;
  busy.join();
}
#endif

}  // namespace
}  // namespace pagejit
