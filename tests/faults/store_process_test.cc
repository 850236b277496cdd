// A process that is killed at any of its system calls leaves a directory that everyone can read and
// in which nothing but temporaries is left over, which garbage collection removes.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cache/cache_test_util.h"
#include "tests/faults/garbage_collection.h"
#include "tests/faults/stored_entries.h"

namespace pagejit::cache {
namespace {

constexpr int kNumber = 7;
constexpr size_t kImageBytes = 50'000;  // as a cubin's

// Runs the program with these faults; its exit code, or 128 + the signal that ended it.
int run_store_process(const std::string& directory, const std::string& faults) {
  const std::string number = std::to_string(kNumber);
  const std::string bytes = std::to_string(kImageBytes);
  std::vector<std::string> environment = {
      "LD_PRELOAD=" PAGEJIT_SYSCALL_SHIM,
      "PAGEJIT_FAULTS=" + faults + " folder=" + directory,
  };
  char* variables[] = {environment[0].data(), environment[1].data(), nullptr};
  const char* arguments[] = {PAGEJIT_STORE_PROCESS, directory.c_str(), number.c_str(),
                             bytes.c_str(), nullptr};
  pid_t child = 0;
  EXPECT_EQ(::posix_spawn(&child, PAGEJIT_STORE_PROCESS, nullptr, nullptr,
                          const_cast<char**>(arguments), variables),
            0);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

enum class Before { kNothing, kFolders, kOldEntry };

// Every file below the directory that is neither the entry, the lock nor the tag, with or without
// temporaries.
std::vector<std::string> strange_files(const std::string& directory, const Key& key,
                                       bool with_temporaries) {
  std::vector<std::string> names;
  if (!fs::exists(directory)) return names;
  for (const auto& item : fs::recursive_directory_iterator(directory)) {
    const std::string name = item.path().filename();
    const std::string folder = item.path().parent_path().filename();
    const bool known = item.is_directory() || name == key.file_name() || name == "lock" ||
                       name == "CACHEDIR.TAG" ||
                       (!with_temporaries && folder == "tmp" && name.ends_with(".tmp"));
    if (!known) names.push_back(item.path());
  }
  return names;
}

TEST(StoreProcessTest, WithoutAFaultItStoresItsEntry) {
  TestDirectory directory;
  EXPECT_EQ(run_store_process(directory.cache(), "call=any"), 0);
  EXPECT_EQ(run_store_process(directory.cache(), "call=any"), 0);
}

TEST(StoreProcessTest, KilledAtAnySystemCallItNeverLeavesABadEntry) {
  const Entry entry = stored_entry(kNumber, kImageBytes);
  int num_rounds = 0;
  int num_bad_reads = 0;
  size_t num_left_over = 0;
  size_t num_leaked = 0;
  for (const Before before : {Before::kNothing, Before::kFolders, Before::kOldEntry}) {
    for (const char* action : {"kill_before", "kill_after"}) {
      TestDirectory directory;
      size_t num_temporaries = 0;
      for (int call = 1;; ++call, ++num_rounds) {
        const auto begin = [&] {
          if (before == Before::kNothing) return fs::remove_all(directory.cache());
          if (before == Before::kFolders) {
            return fs::remove_all(directory.cache() + "/v1/objects");
          }
          EXPECT_TRUE(open_cache(directory.cache())
                          ->publish(stored_entry(kNumber, kImageBytes, /*version=*/1))
                          .is_ok());
          return uintmax_t{0};
        };
        begin();
        const int result = run_store_process(
            directory.cache(), "action=" + std::string(action) + " first=" + std::to_string(call));
        if (result == 0) break;  // it got through: no more calls to be killed at
        ASSERT_EQ(result, 128 + SIGKILL) << action << " call " << call;

        const auto reader = open_cache(directory.cache());
        const LookupResult found = reader->lookup(entry.key);
        num_bad_reads += is_bad(found) ? 1 : 0;
        EXPECT_FALSE(is_bad(found)) << action << " call " << call;
        if (before == Before::kOldEntry) {
          ASSERT_EQ(found.outcome, LookupOutcome::kHit) << action << " call " << call;
        }
        EXPECT_EQ(strange_files(directory.cache(), entry.key, /*with_temporaries=*/false),
                  std::vector<std::string>());
        // Nobody is held up by what it left.
        ASSERT_EQ(run_store_process(directory.cache(), "call=any"), 0);

        num_temporaries += list(directory.cache() + "/v1/tmp").size();
        EXPECT_TRUE(collect_garbage_of_hours_ago(directory.cache()));
        const auto leaked = strange_files(directory.cache(), entry.key, /*with_temporaries=*/true);
        EXPECT_EQ(leaked, std::vector<std::string>()) << action << " call " << call;
        num_leaked += leaked.size();
        // And the entry, which is no garbage, is there.
        ASSERT_EQ(open_cache(directory.cache())->lookup(entry.key).outcome, LookupOutcome::kHit);
      }
      num_left_over += num_temporaries;
      // Kills between the creation and the rename leave one, so that there is something to collect.
      EXPECT_GT(num_temporaries, 0u);
    }
  }
  EXPECT_GE(num_rounds, 200);
  RecordProperty("rounds", num_rounds);
  RecordProperty("temporaries", static_cast<int>(num_left_over));
  // pagejit's benchmarks show this line.
  std::printf("%d kills at system calls of publishing: %d bad reads, %zu files leaked after gc\n",
              num_rounds, num_bad_reads, num_leaked);
}

TEST(StoreProcessTest, WhateverFailsItNeverReadsABadEntry) {
  for (const char* call :
       {"open", "read", "write", "sync", "close", "rename", "unlink", "mkdir", "stat", "control"}) {
    for (const int error : {ENOSPC, EDQUOT, EIO, EMFILE, EROFS, ESTALE}) {
      TestDirectory directory;
      const std::string faults =
          "action=fail call=" + std::string(call) + " error=" + std::to_string(error);
      for (const char* which : {"", " first=2", " first=3 last=3"}) {
        const int result = run_store_process(directory.cache(), faults + which);
        EXPECT_TRUE(result == 0 || result == 3 || result == 4) << result << ": " << faults << which;
      }
      EXPECT_EQ(run_store_process(directory.cache(), "call=any"), 0) << faults;
      // What could not be unlinked stays until garbage is collected.
      if (std::string_view(call) == "unlink") {
        EXPECT_TRUE(collect_garbage_of_hours_ago(directory.cache()));
      }
      EXPECT_TRUE(list(directory.cache() + "/v1/tmp").empty()) << faults;
    }
  }
}

}  // namespace
}  // namespace pagejit::cache
