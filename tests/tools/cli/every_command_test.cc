// What holds for every subcommand, taken from the application itself: help with examples that can
// be parsed, words that are wrong, files that cannot be read, output that is lost, interrupts.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "tests/tools/cli/application.h"
#include "tests/tools/cli/command_runner.h"

namespace pagejit::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// In the words of a row, FILE stands for a file that cannot be read, and these for good ones.
constexpr char kManifest[] = "MANIFEST";
constexpr char kOtherManifest[] = "OTHER";
constexpr char kBundle[] = "BUNDLE";
constexpr char kKey[] = "KEYFILE";
constexpr char kOutput[] = "OUTPUT";

struct Row {
  int without_arguments;  // its exit code; kMeasures: it would run for long
  Words with_file;        // empty: it reads no file that is named
  int file_code;
  Words work;  // what is interrupted
  // What prints something in no time; empty: the same as `work`.
  Words output = {};
  int output_code = 0;
};
constexpr int kMeasures = -1;

// One row for each subcommand that has none itself: a new one must be added.
const std::map<std::string, Row>& rows() {
  const Words spec = {"--head-size", "64", "--group-size", "3", "--arch", "host"};
  const Row suite = {3, {}, 0, {}, {"--help"}};
  const Row program = {kMeasures, {}, 0, {}, {"--help"}};
  static const std::map<std::string, Row> kRows = {
      {"precompile",
       {1, {"--arch", "host", "--model", "FILE"}, 1, {"--manifest", kManifest}, {"--list-models"}}},
      {"manifest expand", {1, {"FILE"}, 1, {kManifest}}},
      {"manifest lint", {1, {"FILE"}, 1, {kManifest}}},
      {"manifest diff", {1, {kManifest, "FILE"}, 1, {kManifest, kOtherManifest}}},
      {"bundle create",
       {1, {"--from", "FILE", "-o", kOutput}, 1, {"--from", kBundle, "-o", kOutput}}},
      {"bundle ls", {1, {"FILE"}, 1, {kBundle}}},
      {"bundle merge", {1, {"FILE", "-o", kOutput}, 1, {kBundle, "-o", kOutput}}},
      {"bundle verify", {1, {"FILE"}, 1, {kBundle}}},
      {"bundle sign",
       {1, {"FILE", "--key-file", kKey}, 1, {kBundle, "--key-file", kKey, "-o", kOutput}}},
      {"bundle keygen", {1, {}, 0, {"-o", kOutput}}},
      {"bundle push",
       {1,
        {"FILE", "--remote", "http://127.0.0.1:1/"},
        1,
        {kBundle, "--remote", "http://127.0.0.1:1/"},
        {"--help"}}},
      {"render", {1, {}, 0, spec}},
      {"explain", {1, {}, 0, spec}},
      // Prints nothing without NVRTC.
      {"inspect", {1, {"FILE"}, 1, {"--spec", "merge_states", "--arch", "sm_80"}, {"--help"}}},
      {"check",
       {3, {"--driver", "emulator", "--model", "FILE"}, 1, {"--driver", "emulator"}, {"--help"}}},
      {"demo", {3, {}, 0, {"--driver", "emulator"}, {"--help"}}},
      {"bench decode", suite},
      {"bench v1v2", suite},
      {"bench paging", suite},
      {"bench fp8", suite},
      {"bench mla", suite},
      {"bench prefill", suite},
      {"bench mixed", suite},
      {"bench cascade", suite},
      {"tune",
       {1,
        {"--model", "FILE"},
        1,
        {"--driver", "emulator", "--head-size", "64", "--group-size", "2"},
        {"--help"}}},
      {"bench host", program},
      {"bench store", program},
      {"cache stats", {0, {}, 0, {}}},
      {"cache ls", {0, {}, 0, {}}},
      {"cache verify", {0, {}, 0, {}}},
      {"cache gc", {0, {}, 0, {}}},
      {"cache clear", {0, {}, 0, {}}},
      {"cache extract", {1, {}, 0, {"0", "-o", kOutput}, {"--help"}}},
      {"key", {1, {}, 0, spec}},
      {"doctor", {3, {}, 0, {}, {"--help"}}},
      {"version", {0, {}, 0, {}}},
      {"help", {0, {}, 0, {}}},
  };
  return kRows;
}

// Lines of a help that show a call: "  pagejit cache ls --json | jq ." without what is behind "|".
std::vector<std::string> examples_of(const CLI::App& command) {
  std::vector<std::string> examples;
  std::istringstream lines(command.get_footer());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  pagejit ")) examples.push_back(line.substr(2, line.find('|') - 2));
  }
  return examples;
}

class EveryCommandTest : public testing::Test {
 protected:
  static constexpr char kList[] = R"({"pagejit_manifest": 1, "targets": "host",
      "kernels": [{"family": "top_k"}, {"spec": "copy_blocks"}]})";

  EveryCommandTest() {
    fs::create_directory(runner_.folder() + "/tmp");
    runner_.set_variable("TMPDIR", runner_.folder() + "/tmp");
    runner_.set_variable("PAGEJIT_DRIVER", "/nonexistent/libcuda.so");
    runner_.set_variable("PAGEJIT_NVRTC", "/nonexistent");
    runner_.write_file("manifest.json", kList);
    runner_.write_file("other.json", R"({"pagejit_manifest": 1, "targets": "host",
        "kernels": [{"spec": "convert_float8"}]})");
  }

  // A bundle and a signing key, for tests whose commands come so far.
  void make_good_files() {
    const CommandResult bundle =
        runner_.run({"precompile", "--manifest", path("manifest.json"), "-o", path("good.pjb")});
    ASSERT_EQ(bundle.exit_code, 0) << bundle.err;
    const CommandResult key = runner_.run({"bundle", "keygen", "-o", path("good.key")});
    ASSERT_EQ(key.exit_code, 0) << key.err;
  }

  std::string path(const std::string& name) const { return runner_.folder() + "/" + name; }

  Words call(const std::string& command, const Words& words, const std::string& file = "") const {
    const std::map<std::string, std::string> meaning = {
        {kManifest, path("manifest.json")}, {kOtherManifest, path("other.json")},
        {kBundle, path("good.pjb")},        {kKey, path("good.key")},
        {kOutput, path("output")},          {"FILE", file}};
    Words all = split(command);
    for (const std::string& word : words) {
      const auto found = meaning.find(word);
      all.push_back(found == meaning.end() ? word : found->second);
    }
    return all;
  }

  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(runner_.folder())) {
      names.insert(entry.path().lexically_relative(runner_.folder()));
    }
    return names;
  }

  CommandRunner runner_;
  Application application_;
};

TEST_F(EveryCommandTest, HasARowInTheTable) {
  std::set<std::string> expected, listed;
  for (const CLI::App* command : application_.leaves()) {
    expected.insert(Application::name_of(*command));
  }
  for (const auto& [name, row] : rows()) listed.insert(name);
  EXPECT_EQ(listed, expected);
}

TEST_F(EveryCommandTest, HelpHasExamplesOfTheCommandItself) {
  for (const CLI::App* command : application_.all()) {
    const std::string name = Application::name_of(*command);
    SCOPED_TRACE(name);
    Words words = split(name);
    words.emplace_back("--help");
    const CommandResult result = runner_.run(words);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.err, "");
    EXPECT_THAT(result.out, HasSubstr("Usage: pagejit " + name));
    EXPECT_THAT(result.out, HasSubstr("Examples:\n  pagejit " + name));
    EXPECT_FALSE(examples_of(*command).empty());
  }
}

TEST_F(EveryCommandTest, ExamplesCanBeParsed) {
  for (const CLI::App* command : application_.all()) {
    for (const std::string& example : examples_of(*command)) {
      Application fresh;
      try {
        fresh.app().parse(example, /*program_name_included=*/true);
        ADD_FAILURE() << example << ": would have run";
      } catch (const CLI::Success&) {
      } catch (const CLI::ParseError& error) {
        ADD_FAILURE() << example << ": " << error.what();
      }
    }
  }
}

TEST_F(EveryCommandTest, WithoutArgumentsItWorksOrSaysWhatIsMissing) {
  for (const auto& [name, row] : rows()) {
    if (row.without_arguments == kMeasures) continue;
    SCOPED_TRACE(name);
    const CommandResult result = runner_.run(split(name));
    EXPECT_EQ(result.exit_code, row.without_arguments) << result.err;
    EXPECT_EQ(result.out.empty() && result.err.empty(), false);
    if (row.without_arguments == 1) {
      EXPECT_THAT(result.err, HasSubstr("pagejit"));
    }
  }
  for (const char* name : {"", "manifest", "bundle", "cache"}) {
    const CommandResult result = runner_.run(split(name));
    EXPECT_EQ(result.exit_code, 1) << name;
    EXPECT_THAT(result.err, HasSubstr("ubcommand is required")) << name;
  }
}

TEST_F(EveryCommandTest, WrongWordsGetTheOnesThatWereMeant) {
  for (const CLI::App* command : application_.all()) {
    const std::string name = Application::name_of(*command);
    SCOPED_TRACE(name);
    Words words = split(name);
    words.emplace_back("--hepl");
    const CommandResult option = runner_.run(words);
    EXPECT_EQ(option.exit_code, 1);
    EXPECT_EQ(option.out, "");
    EXPECT_THAT(option.err, HasSubstr("unknown option --hepl; did you mean --help? See pagejit"));
    // The name itself with a slip: its last letter twice.
    words = split(name);
    words.back() += words.back().back();
    const CommandResult word = runner_.run(words);
    EXPECT_EQ(word.exit_code, 1);
    EXPECT_THAT(word.err, HasSubstr("unknown subcommand " + words.back() + "; did you mean " +
                                    split(name).back() + "?"));
  }
}

TEST_F(EveryCommandTest, FilesThatCannotBeReadAreNamed) {
  make_good_files();
  fs::create_symlink("/nonexistent/target", path("dangling"));
  fs::create_directory(path("folder"));
  for (const auto& [name, row] : rows()) {
    if (row.with_file.empty()) continue;
    for (const std::string& file : {path("missing"), path("dangling"), path("folder")}) {
      SCOPED_TRACE(name + " " + file);
      const CommandResult result = runner_.run(call(name, row.with_file, file));
      EXPECT_THAT(result.err, HasSubstr(file));
      EXPECT_THAT(result.exit_code, testing::AnyOf(row.file_code, 4)) << result.err;
      EXPECT_FALSE(fs::exists(path("output"))) << "half-written";
    }
  }
}

TEST_F(EveryCommandTest, OutputThatIsLostIsTold) {
  make_good_files();
  for (const auto& [name, row] : rows()) {
    SCOPED_TRACE(name);
    const Words words = call(name, row.output.empty() ? row.work : row.output);
    const auto run = [&](const std::function<void()>& prepare) {
      fs::remove(path("output"));
      return runner_.run(words, prepare);
    };
    const CommandResult full = run([] { dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO); });
    // A kernel's key for the host needs a compiler only.
    EXPECT_EQ(full.exit_code, 4) << full.err;
    EXPECT_THAT(full.err, HasSubstr("the standard output cannot be written: No space left"));
    const CommandResult closed = run([] { close(STDOUT_FILENO); });
    EXPECT_EQ(closed.exit_code, 4) << closed.err;
    EXPECT_THAT(closed.err, HasSubstr("the standard output cannot be written: Bad file"));
    const CommandResult unread = run([] {
      int ends[2];
      if (pipe(ends) != 0) _exit(126);
      close(ends[0]);
      dup2(ends[1], STDOUT_FILENO);
    });
    EXPECT_EQ(unread.exit_code, 128 + SIGPIPE) << "as other programs end";
    EXPECT_EQ(unread.err.find("standard output"), std::string::npos) << unread.err;
  }
  EXPECT_TRUE(fs::is_empty(path("tmp")));
}

TEST_F(EveryCommandTest, AnInterruptIsToldAndLeavesNothingHalfWritten) {
  make_good_files();
  for (const auto& [name, row] : rows()) {
    SCOPED_TRACE(name);
    fs::remove(path("output"));
    const std::set<std::string> before = files();
    // It waits for the command to be ready for it.
    const CommandResult result = runner_.run(call(name, row.work), [] {
      sigset_t set;
      sigemptyset(&set);
      sigaddset(&set, SIGINT);
      sigprocmask(SIG_BLOCK, &set, nullptr);
      std::raise(SIGINT);
    });
    EXPECT_EQ(result.exit_code, 6) << result.err;
    EXPECT_THAT(result.err, HasSubstr("interrupted"));
    EXPECT_TRUE(fs::is_empty(path("tmp")));
    for (const std::string& file : files()) {
      const bool is_known = before.contains(file) || file == "out" || file == "err" ||
                            file == "output" || file.starts_with("cache");
      EXPECT_TRUE(is_known) << file;
      EXPECT_FALSE(file.starts_with("cache/v1/tmp/")) << file;
    }
  }
}

TEST_F(EveryCommandTest, AnInterruptEndsABenchmarkProgramAndWhatItStarted) {
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

}  // namespace
}  // namespace pagejit::cli
