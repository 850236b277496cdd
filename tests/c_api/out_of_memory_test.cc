// Wherever memory runs out, a C function returns a number other than 0 and, where it has an error
// object, says so in it.
#include "tests/c_api/launch_fixture.h"
#include "tests/runtime/allocation_counter.h"

namespace pagejit {
namespace {

class CApiOutOfMemoryTest : public CApiLaunchTest {
 protected:
  // `call` is made once per allocation within it, which then fails, as do all that follow it.
  template <class Call>
  void expect_told(const char* what, Call&& call) {
    SCOPED_TRACE(what);
    const int failures = fail_each_allocation([&](int n) {
      start_failing(Failing::kAllAfter, n);
      const pagejit_status status = call();
      const bool has_failed = stop_failing();
      if (has_failed) {
        EXPECT_EQ(status, PAGEJIT_INTERNAL) << "allocation " << n;
        EXPECT_EQ(message(), "out of memory") << "allocation " << n;
      }
      return has_failed;
    });
    EXPECT_GT(failures, 0);
  }
};

TEST_F(CApiOutOfMemoryTest, FailuresAreSaid) {
  pagejit_kernel_spec spec = specs.kernel;
  spec.head_size = 100;
  expect_told("a spec that is refused", [&] { return pagejit_kernel_spec_validate(&spec, error); });
  pagejit_attention_args args = legal_c_args();
  args.num_seqs = -1;
  expect_told("a launch that is refused",
              [&] { return pagejit_kernel_launch(handles.kernel, &args, nullptr, error); });
  expect_told("a handle that is none", [&] {
    return pagejit_kernel_launch(as_handle<pagejit_kernel>(12345), &args, nullptr, error);
  });
}

TEST_F(CApiOutOfMemoryTest, HandlesAreMadeOrNot) {
  pagejit_stats* stats = nullptr;
  expect_told("counts", [&] {
    const pagejit_status status = pagejit_engine_stats(handles.engine, &stats, error);
    if (status == PAGEJIT_OK) pagejit_stats_destroy(stats, nullptr);
    return status;
  });
  pagejit_kernel* copy = nullptr;
  expect_told("a copy of a kernel", [&] {
    const pagejit_status status = pagejit_kernel_copy(handles.kernel, &copy, error);
    if (status == PAGEJIT_OK) pagejit_kernel_destroy(copy, nullptr);
    return status;
  });
  // Without an error object there is still the number.
  pagejit_error* other = nullptr;
  start_failing(Failing::kAllAfter, 0);
  const pagejit_status status = pagejit_error_create(&other);
  EXPECT_TRUE(stop_failing());
  EXPECT_EQ(status, PAGEJIT_INTERNAL);
  EXPECT_EQ(other, nullptr);
}

}  // namespace
}  // namespace pagejit
