// An engine whose system calls on the cache directory fail, or whose file system is full, read-only
// or out of descriptors: prepare() returns the kernel all the same, and nothing leaks.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cache/own_mounts.h"
#include "tests/faults/syscall_shim.h"
#include "tests/runtime/engine_fixture.h"

namespace pagejit {
namespace {

namespace fs = std::filesystem;
using pagejit_faults::Action;
using pagejit_faults::Call;
using pagejit_faults::kCallNames;
using pagejit_faults::Plan;

constexpr KernelSpec kSpec{.group_size = 4};
constexpr int kErrors[] = {ENOSPC, EDQUOT, EIO, EMFILE, EROFS, ESTALE};
constexpr Call kCalls[] = {Call::kAny,           Call::kOpen,  Call::kRead,   Call::kWrite,
                           Call::kSync,          Call::kClose, Call::kRename, Call::kUnlink,
                           Call::kMakeDirectory, Call::kStat,  Call::kControl};

size_t num_open_files() {
  size_t number = 0;
  for ([[maybe_unused]] const auto& item : fs::directory_iterator("/proc/self/fd")) ++number;
  return number;
}

size_t num_files(const std::string& folder) {
  std::error_code error;
  size_t number = 0;
  for (auto item = fs::directory_iterator(folder, error); item != fs::directory_iterator();
       item.increment(error)) {
    ++number;
  }
  return number;
}

class EngineFaultsTest : public EngineTest {
 protected:
  EngineFaultsTest() {
    // The first open keeps descriptors (the stub driver's library, localised messages).
    prepare(*make_engine(), kSpec);
    fs::remove_all(options().cache_dir);
  }
  ~EngineFaultsTest() override { pagejit_faults_set(nullptr); }

  Plan plan(Call call, int error) {
    Plan result;
    result.call = call;
    result.action = Action::kFail;
    result.error = error;
    std::snprintf(result.folder, sizeof result.folder, "%s", options().cache_dir.c_str());
    return result;
  }

  // A fresh engine gets its kernel under these faults and another one without; returns how many
  // calls there were.
  uint64_t expect_kernel(const Plan& faults, bool may_leave_temporaries) {
    const std::string what = std::string(kCallNames[static_cast<int>(faults.call)]) +
                             " fails with " + std::to_string(faults.error) + " from call " +
                             std::to_string(faults.first) + " to " + std::to_string(faults.last);
    const size_t num_before = num_open_files();
    pagejit_faults_set(&faults);
    {
      auto engine = make_engine();
      const Result<Kernel> kernel = engine->prepare(kSpec, 0);
      EXPECT_TRUE(kernel) << what << ": " << kernel.status().to_string();
    }
    const uint64_t num_calls = pagejit_faults_count();
    pagejit_faults_set(nullptr);
    EXPECT_EQ(num_open_files(), num_before) << what;
    if (!may_leave_temporaries) {
      EXPECT_EQ(num_files(options().cache_dir + "/v1/tmp"), 0u) << what;
    }

    auto engine = make_engine();
    const Result<Kernel> kernel = engine->prepare(kSpec, 0);
    EXPECT_TRUE(kernel) << what << ": " << kernel.status().to_string();
    EXPECT_EQ(engine->stats().corrupt_entries, 0u) << what;
    return num_calls;
  }
};

TEST_F(EngineFaultsTest, WhereEveryCallOfAKindFailsTheKernelIsReturned) {
  for (const bool is_stored : {false, true}) {
    for (const Call call : kCalls) {
      for (const int error : kErrors) {
        fs::remove_all(options().cache_dir);
        if (is_stored) prepare(*make_engine(), kSpec);
        expect_kernel(plan(call, error), call == Call::kUnlink);
      }
    }
  }
}

TEST_F(EngineFaultsTest, WhereAnySingleCallFailsTheKernelIsReturned) {
  for (const bool is_stored : {false, true}) {
    for (const int error : kErrors) {
      uint64_t num_calls = 1;
      uint64_t call = 1;
      for (; call <= num_calls; ++call) {
        fs::remove_all(options().cache_dir);
        if (is_stored) prepare(*make_engine(), kSpec);
        Plan faults = plan(Call::kAny, error);
        faults.first = faults.last = call;
        num_calls = expect_kernel(faults, /*may_leave_temporaries=*/false);
      }
      EXPECT_GT(call, is_stored ? 10u : 40u);
    }
  }
}

TEST_F(EngineFaultsTest, WhereCallsFailAtRandomTheKernelIsReturned) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    if (seed % 10 == 0) fs::remove_all(options().cache_dir);
    Plan faults = plan(Call::kAny, 0);
    faults.one_in = 2 + seed % 9;
    faults.seed = seed;
    expect_kernel(faults, /*may_leave_temporaries=*/true);
  }
}

TEST_F(EngineFaultsTest, AFaultIsReallyMet) {
  const Plan faults = plan(Call::kWrite, ENOSPC);
  pagejit_faults_set(&faults);
  auto engine = make_engine();
  prepare(*engine, kSpec);
  EXPECT_EQ(pagejit_faults_hits(), 1u);
  EXPECT_EQ(engine->stats().publish_failures, 1u);
  EXPECT_TRUE(logged(LogLevel::kWarning, "No space left on device"));
}

TEST_F(EngineFaultsTest, WithoutAFreeDescriptorTheKernelIsReturned) {
  const std::string cache_dir = options().cache_dir;
  for (int num_free = 0; num_free <= 8; ++num_free) {
    fs::remove_all(cache_dir);
    auto engine = make_engine();
    const size_t num_before = num_open_files();
    struct rlimit before;
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    // The lowest descriptor that is free is the next: those below it are all taken.
    const int next = ::dup(0);
    ::close(next);
    const rlimit tight{static_cast<rlim_t>(next + num_free), before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
    const Result<Kernel> kernel = engine->prepare(kSpec, 0);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_TRUE(kernel) << num_free << ": " << kernel.status().to_string();
    EXPECT_EQ(num_open_files(), num_before) << num_free;
    EXPECT_EQ(num_files(cache_dir + "/v1/tmp"), 0u) << num_free;
    if (num_free == 8) {
      EXPECT_EQ(engine->stats().publish_failures, 0u);
    }
    if (num_free == 0) {
      EXPECT_EQ(engine->stats().publish_failures, 1u);
    }
  }
}

constexpr int kCannotMount = 77;

// Runs `body` in a child that may mount; its exit code is the first step that failed.
template <class Body>
void run_with_own_mounts(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(cache::get_own_mounts() ? body() : kCannotMount);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == kCannotMount) {
    GTEST_SKIP() << "this process may not mount, nor make a namespace in which it may";
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(EngineFaultsTest, OnAFullFileSystemKernelsAreReturned) {
  run_with_own_mounts([&] {
    const char* point = directory.path().c_str();
    if (::mount("none", point, "tmpfs", 0, "size=64k,mode=0700") != 0) return kCannotMount;
    uint64_t num_failures = 0;
    for (int group_size = 1; group_size <= 32; ++group_size) {
      auto engine = make_engine();
      if (!engine->prepare({.group_size = group_size}, 0)) return 1;
      num_failures += engine->stats().publish_failures;
    }
    if (num_failures == 0 || num_failures == 32) return 2;
    if (num_files(options().cache_dir + "/v1/tmp") != 0) return 3;
    // What was stored before it was full is still read.
    auto engine = make_engine();
    if (!engine->prepare({.group_size = 1}, 0) || engine->stats().disk_hits != 1) return 4;
    return 0;
  });
}

TEST_F(EngineFaultsTest, OnAReadOnlyMountKernelsAreReadOrCompiled) {
  run_with_own_mounts([&] {
    if (!make_engine()->prepare(kSpec, 0)) return 1;
    const char* point = directory.path().c_str();
    if (::mount(point, point, nullptr, MS_BIND, nullptr) != 0) return kCannotMount;
    if (::mount("none", point, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0) {
      return kCannotMount;
    }
    auto engine = make_engine();
    if (!engine->prepare(kSpec, 0) || engine->stats().disk_hits != 1) return 2;
    if (!engine->prepare({.group_size = 2}, 0) || engine->stats().compiles != 1) return 3;
    return engine->stats().publish_failures == 1 ? 0 : 4;
  });
}

}  // namespace
}  // namespace pagejit
