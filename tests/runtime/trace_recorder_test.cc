#include "runtime/engine/trace_recorder.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "generator/spec_parser.h"
#include "tests/runtime/jit_policy_fixture.h"

namespace pagejit {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::string line_of(const AnySpec& spec, const std::string& target = "sm_90a") {
  return R"({"spec":")" + text_of(spec) + R"(","target":")" + target + "\"}";
}

class TraceRecorderTest : public JitPolicyTest {
 protected:
  EngineOptions recording(JitPolicy policy = JitPolicy::kOn) {
    EngineOptions result = options_with(policy);
    result.record_path = path;
    return result;
  }
  size_t warnings() { return log_lines(LogLevel::kWarning) - log_lines(LogLevel::kError); }
  const std::string path = directory.path() + "/trace";
};

TEST_F(TraceRecorderTest, EachKernelIsRecordedOnceHoweverItIsFound) {
  auto engine = make_engine(recording());
  for (int i = 0; i < 3; ++i) prepare(*engine, kSpec);
  prepare(*engine, {.group_size = 8});
  const std::vector<std::string> once = {line_of(kSpec), line_of(KernelSpec{.group_size = 8})};
  EXPECT_EQ(lines_of(path), once);
  // Found on disk; once more, by another engine.
  prepare(*make_engine(recording()), kSpec);
  EXPECT_THAT(lines_of(path), ElementsAre(once[0], once[1], once[0]));
  ASSERT_TRUE(engine->precompile({.group_size = 2}, *parse_target("sm_80")));
  EXPECT_THAT(lines_of(path), SizeIs(3)) << "nobody asked to launch it";
}

TEST_F(TraceRecorderTest, WhatWasRefusedIsRecordedToo) {
  for (const JitPolicy policy : {JitPolicy::kError, JitPolicy::kOff}) {
    EXPECT_FALSE(make_engine(recording(policy))->prepare(kSpec, 0));
  }
  EXPECT_THAT(lines_of(path), ElementsAre(line_of(kSpec), line_of(kSpec)));
}

TEST_F(TraceRecorderTest, NothingIsWrittenWithoutAPath) {
  EngineOptions off = options_with(JitPolicy::kOn);
  ASSERT_EQ(off.record_path, "");
  prepare(*make_engine(off), kSpec);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(TraceRecorderTest, WhatWasRecordedAndPrecompiledIsNeverCompiledAgain) {
  EngineOptions elsewhere = recording();
  elsewhere.disk_cache = false;
  auto program = make_engine(elsewhere);
  for (int group_size = 1; group_size <= 5; ++group_size) {
    prepare(*program, {.group_size = group_size});
  }
  auto builder = make_engine();
  const std::string before = R"({"spec":")", between = R"(","target":")", after = "\"}";
  for (std::string line : lines_of(path)) {
    const size_t middle = line.find(between);
    const Result<AnySpec> spec = parse_any_spec(line.substr(before.size(), middle - before.size()));
    const size_t target = middle + between.size();
    ASSERT_TRUE(spec);
    ASSERT_TRUE(builder->precompile(
        std::get<KernelSpec>(*spec),
        *parse_target(line.substr(target, line.size() - after.size() - target))));
  }
  take_events();
  nvrtc->openings = 0;
  auto production = engine_with(JitPolicy::kError);
  for (int group_size = 1; group_size <= 5; ++group_size) {
    prepare(*production, {.group_size = group_size});
  }
  EXPECT_THAT(take_kinds(), ::testing::AllOf(SizeIs(5), Each(JitEventKind::kHit)));
  EXPECT_EQ(nvrtc->openings, 0);
  EXPECT_EQ(production->stats().compiles, 0u);
}

TEST_F(TraceRecorderTest, ThreadsAndProcessesWriteWholeLines) {
  constexpr int kProcesses = 3, kThreads = 4, kSpecs = 100;
  const auto logger = std::make_shared<Logger>(LogLevel::kOff, nullptr);
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      TraceRecorder recorder(path, logger);
      std::vector<std::thread> threads;
      for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&] {
          for (int i = 1; i <= kSpecs; ++i) {
            recorder.record(MergeStatesSpec{.head_size = i}, Target::host());
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::vector<std::string> lines = lines_of(path);
  // Who opens the file while another's line crosses a page may see half of it, and ends it: with an
  // empty line, which readers skip.
  std::erase(lines, "");
  ASSERT_EQ(lines.size(), static_cast<size_t>(kProcesses * kSpecs));
  for (int i = 1; i <= kSpecs; ++i) {
    const std::string line = line_of(MergeStatesSpec{.head_size = i}, "host");
    EXPECT_EQ(std::count(lines.begin(), lines.end(), line), kProcesses);
  }
}

TEST_F(TraceRecorderTest, AFileForEachProcess) {
  const auto logger = std::make_shared<Logger>(LogLevel::kOff, nullptr);
  TraceRecorder recorder(path + ".%p.%p", logger);
  recorder.record(kSpec, Target::host());
  const auto name = [&](pid_t pid) {
    return path + "." + std::to_string(pid) + "." + std::to_string(pid);
  };
  EXPECT_THAT(lines_of(name(getpid())), SizeIs(1));
  const pid_t child = fork();
  if (child == 0) {
    recorder.record(kSpec, Target::host());
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_THAT(lines_of(name(child)), ElementsAre(line_of(kSpec, "host")));
  EXPECT_THAT(lines_of(name(getpid())), SizeIs(1));
}

TEST_F(TraceRecorderTest, HalfALineOfAKilledProgramStaysAlone) {
  std::ofstream(path) << line_of(kSpec) << "\n{\"spec\":\"dec";
  prepare(*make_engine(recording()), {.group_size = 8});
  EXPECT_THAT(lines_of(path),
              ElementsAre(line_of(kSpec), "{\"spec\":\"dec", line_of(KernelSpec{.group_size = 8})));
}

TEST_F(TraceRecorderTest, AFailureIsOneWarningAndNoMore) {
  EngineOptions full = recording();
  full.record_path = "/dev/full";
  EngineOptions nowhere = recording();
  nowhere.record_path = directory.path() + "/absent/trace";
  for (const EngineOptions& failing : {full, nowhere}) {
    auto engine = make_engine(failing);
    const size_t before = warnings();
    for (int group_size = 1; group_size <= 3; ++group_size) {
      prepare(*engine, {.group_size = group_size});
    }
    EXPECT_EQ(warnings() - before, 1u) << failing.record_path;
    EXPECT_TRUE(logged(LogLevel::kWarning, failing.record_path + " (PAGEJIT_RECORD) cannot be "));
  }
  EXPECT_TRUE(logged(LogLevel::kWarning, "No space left on device"));
}

TEST_F(TraceRecorderTest, AFifoWithoutAReaderDoesNotStopTheProgram) {
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  // Opened for reading too, it is nobody's: what is written stays in its buffer.
  prepare(*make_engine(recording()), kSpec);
}

}  // namespace
}  // namespace pagejit
