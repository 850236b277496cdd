// Ctrl-C in the midst of a command's work. every_command_test has it for every command, before the
// work begins.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/tools/cli/command_runner.h"

namespace pagejit::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Words = std::vector<std::string>;

class InterruptTest : public testing::Test {
 protected:
  InterruptTest() {
    fs::create_directory(path("tmp"));
    runner_.set_variable("TMPDIR", path("tmp"));
    runner_.set_variable("PAGEJIT_DRIVER", "/nonexistent/libcuda.so");
    runner_.set_variable("PAGEJIT_NVRTC", "/nonexistent");
    runner_.write_file("manifest.json", R"({"pagejit_manifest": 1, "targets": "host",
        "kernels": [{"family": "top_k"}, {"spec": "copy_blocks"}]})");
  }

  std::string path(const std::string& name) const { return runner_.folder() + "/" + name; }

  CommandRunner runner_;
};

TEST_F(InterruptTest, EndsTheWaitForAPipesWriter) {
  const std::string fifo = path("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  int writer = -1;
  const CommandResult result = runner_.run_and_interrupt({"manifest", "lint", fifo}, [&](int pid) {
    // Succeeds once the command has opened it; asleep, it waits.
    if (writer < 0) writer = open(fifo.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    return writer >= 0 && CommandRunner::is_asleep(pid);
  });
  close(writer);
  EXPECT_EQ(result.exit_code, 6) << result.err;
  EXPECT_THAT(result.err, HasSubstr(fifo + ": interrupted while waiting for its writer"));
}

TEST_F(InterruptTest, EndsABenchmarkProgramAndWhatItStarted) {
  const CommandResult result = runner_.run_and_interrupt({"bench", "store"}, [&] {
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(path("tmp"), error)) {
      if (entry.path().filename() == "objects") return true;  // its first entries are made
    }
    return false;
  });
  EXPECT_EQ(result.exit_code, 6) << result.err;
  EXPECT_THAT(result.err, HasSubstr("pagejit: interrupted"));
  EXPECT_TRUE(fs::is_empty(path("tmp")));
}

// Its first line is printed when the kernels are about to run; so many take a minute or more.
TEST_F(InterruptTest, EndsChecksInTheirMidst) {
  const CommandResult result = runner_.run_and_interrupt(
      {"check", "--driver", "emulator", "--head-size", "64", "--group-size", "2", "--batches",
       "1000", "--json", path("checks.json")},
      [&] { return CommandRunner::read_file(path("out")).find('\n') != std::string::npos; });
  EXPECT_EQ(result.exit_code, 6) << result.err;
  EXPECT_THAT(result.err, HasSubstr("pagejit: interrupted"));
  EXPECT_THAT(result.out, HasSubstr(" of 1000 checks passed, "));
  EXPECT_THAT(result.out, HasSubstr(" not started\n"));
  // What was done is kept, line by line.
  std::istringstream lines(CommandRunner::read_file(path("checks.json")));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(nlohmann::json::parse(line)["verdict"], "pass");
  }
  EXPECT_TRUE(fs::is_empty(path("tmp")));
}

TEST_F(InterruptTest, EndsTheDemonstrationInItsMidst) {
  const CommandResult result = runner_.run_and_interrupt({"demo", "--driver", "emulator"}, [&] {
    const std::string err = CommandRunner::read_file(path("err"));
    return err.find(" bf16\n") != std::string::npos;  // the first model
  });
  EXPECT_EQ(result.exit_code, 6) << result.err;
  EXPECT_THAT(result.err, HasSubstr("pagejit: interrupted"));
  EXPECT_THAT(result.err, testing::Not(HasSubstr("gpt-neox-20b f16"))) << "the last one";
  EXPECT_THAT(result.out, HasSubstr(" of 12 kernels passed"));
  EXPECT_TRUE(fs::is_empty(path("tmp"))) << "its cache directory is gone";
}

TEST_F(InterruptTest, ASecondInterruptEndsItAtOnceAndWritesNoFile) {
  // A C++ compiler that takes as long as the command lives.
  const std::string compiler = runner_.write_script("compiler", R"(
if [ "$1" = --version ]; then echo slow; exit; fi
touch ")" + path("compiling") + R"("
while kill -0 $PPID; do sleep 0.1; done
)");
  runner_.set_variable("PAGEJIT_HOST_CXX", compiler);
  const Words words = {"precompile",   "--manifest", path("manifest.json"), "-o",
                       path("output"), "--json",     path("json")};
  const CommandResult result =
      runner_.run_and_interrupt_twice(words, [&] { return fs::exists(path("compiling")); });
  EXPECT_EQ(result.exit_code, 128 + SIGINT) << result.err;
  EXPECT_FALSE(fs::exists(path("output")));
  EXPECT_FALSE(fs::exists(path("json")));
  const CommandResult verified = runner_.run({"cache", "verify"});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  runner_.set_variable("PAGEJIT_HOST_CXX", "");
  const CommandResult again = runner_.run(words);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_TRUE(fs::exists(path("output")) && fs::exists(path("json")));
}

}  // namespace
}  // namespace pagejit::cli
