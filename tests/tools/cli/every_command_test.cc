// What holds for every subcommand, taken from the application itself: help with examples that can
// be parsed, words that are wrong, files that cannot be read, output that is lost, interrupts.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "tests/tools/cli/application.h"
#include "tests/tools/cli/command_runner.h"
#include "tests/tools/cli/lost_output.h"

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
constexpr char kEntry[] = "ENTRY";  // the key of a stored kernel
constexpr char kCache[] = "CACHE";  // a directory that outlives the command

// What a file gives that is named and cannot be read, whatever reads it.
constexpr int kIo = 4;

struct Row {
  int without_arguments;  // its exit code; kMeasures: it would run for long
  Words with_file;        // empty: it reads no file that is named
  Words work;             // what is interrupted
  // What prints something in short time; empty: the same as `work`.
  Words output = {};
  int output_code = 0;  // of `output`
};
constexpr int kMeasures = -1;

// One row for each subcommand that has none itself: a new one must be added.
const std::map<std::string, Row>& rows() {
  const Words spec = {"--head-size", "64", "--group-size", "3", "--arch", "host"};
  // Without a GPU a suite prints nothing, and a program what it measured at its end.
  const Row suite = {3, {}, {}, {"--help"}};
  const Row program = {kMeasures, {}, {}, {"--help"}};
  const Words small = {"--driver", "emulator", "--head-size", "64", "--group-size", "2"};
  static const std::map<std::string, Row> kRows = {
      {"precompile", {1, {"--arch", "host", "--model", "FILE"}, {"--manifest", kManifest}}},
      {"manifest expand", {1, {"FILE"}, {kManifest}}},
      {"manifest lint", {1, {"FILE"}, {kManifest}}},
      {"manifest diff", {1, {kManifest, "FILE"}, {kManifest, kOtherManifest}}},
      {"bundle create", {1, {"--from", "FILE", "-o", kOutput}, {"--from", kBundle, "-o", kOutput}}},
      {"bundle ls", {1, {"FILE"}, {kBundle}}},
      {"bundle merge", {1, {"FILE", "-o", kOutput}, {kBundle, "-o", kOutput}}},
      {"bundle verify", {1, {"FILE"}, {kBundle}}},
      {"bundle sign",
       {1, {"FILE", "--key-file", kKey}, {kBundle, "--key-file", kKey, "-o", kOutput}}},
      {"bundle keygen", {1, {}, {"-o", kOutput}}},
      // Nobody listens there, which gives 4.
      {"bundle push",
       {1,
        {"FILE", "--remote", "http://127.0.0.1:1/"},
        {kBundle, "--remote", "http://127.0.0.1:1/"},
        {},
        4}},
      {"render", {1, {}, spec}},
      {"explain", {1, {}, spec}},
      // Prints nothing without NVRTC; inspect_command_test has one.
      {"inspect", {1, {"FILE"}, {"--spec", "merge_states", "--arch", "sm_80"}, {"--help"}}},
      {"check", {3, {"--driver", "emulator", "--model", "FILE"}, small}},
      // Without NVRTC it runs its kernels on the emulator, and gives 3.
      {"demo",
       {3, {}, {"--driver", "emulator"}, {"--driver", "emulator", "--cache-dir", kCache}, 3}},
      {"bench decode", suite},
      {"bench v1v2", suite},
      {"bench paging", suite},
      {"bench fp8", suite},
      {"bench mla", suite},
      {"bench prefill", suite},
      {"bench mixed", suite},
      {"bench cascade", suite},
      // The emulator is refused; tuned_commands_test has a driver.
      {"tune", {1, {"--model", "FILE"}, small, {"--help"}}},
      {"bench host", program},
      {"bench store", program},
      {"cache stats", {0, {}, {}}},
      {"cache ls", {0, {}, {}}},
      {"cache verify", {0, {}, {}}},
      {"cache gc", {0, {}, {}}},
      {"cache clear", {0, {}, {}, {"--cache-dir", kCache}}},
      {"cache extract", {1, {}, {"0", "-o", kOutput}, {kEntry, "-o", "-"}}},
      {"key", {1, {}, spec}},
      // Without NVRTC it gives 3.
      {"doctor", {3, {}, {}, {}, 3}},
      {"version", {0, {}, {}}},
      {"help", {0, {}, {}}},
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
    const CommandResult listing = runner_.run({"cache", "ls", "--json"});
    entry_ = nlohmann::json::parse(listing.out).at(0).at("key");
  }

  std::string path(const std::string& name) const { return runner_.folder() + "/" + name; }

  Words call(const std::string& command, const Words& words, const std::string& file = "") const {
    const std::map<std::string, std::string> meaning = {{kManifest, path("manifest.json")},
                                                        {kOtherManifest, path("other.json")},
                                                        {kBundle, path("good.pjb")},
                                                        {kKey, path("good.key")},
                                                        {kOutput, path("output")},
                                                        {"FILE", file},
                                                        {kEntry, entry_},
                                                        {kCache, path("kept")}};
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

  // Every call that reads a file: those of the table, and flags beside them.
  std::vector<std::pair<std::string, Words>> calls_with_file() const {
    std::vector<std::pair<std::string, Words>> calls = {
        {"precompile", {"--manifest", "FILE"}},
        {"precompile", {"--trace", "FILE"}},
        {"manifest diff", {"FILE", kOtherManifest}},
        {"bundle sign", {kBundle, "--key-file", "FILE"}},
        {"bundle push", {kBundle, "--remote", "http://127.0.0.1:1/", "--key-file", "FILE"}},
        {"bench", {"--compare", "FILE", "FILE"}}};
    for (const auto& [name, row] : rows()) {
      if (!row.with_file.empty()) calls.emplace_back(name, row.with_file);
    }
    return calls;
  }

  void expect_unreadable(
      const std::vector<std::string>& files, const std::function<void()>& prepare = [] {}) const {
    for (const auto& [name, words] : calls_with_file()) {
      for (const std::string& file : files) {
        SCOPED_TRACE(name + " " + testing::PrintToString(words) + " " + file);
        const CommandResult result = runner_.run(call(name, words, file), prepare);
        EXPECT_THAT(result.err, HasSubstr(file));
        EXPECT_EQ(result.exit_code, kIo) << result.err;
        EXPECT_FALSE(fs::exists(path("output"))) << "half-written";
      }
    }
  }

  CommandRunner runner_;
  Application application_;
  std::string entry_;
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
  const CommandResult bench = runner_.run({"bench"});
  EXPECT_EQ(bench.exit_code, 3) << "all suites, which need a GPU: " << bench.err;
  EXPECT_THAT(bench.err, HasSubstr("pagejit: /nonexistent/libcuda.so cannot be opened"));
  const CommandResult generate = runner_.run({"generate"});  // hidden
  EXPECT_EQ(generate.exit_code, 1);
  EXPECT_THAT(generate.err, HasSubstr("pagejit generate: what is required"));
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
  expect_unreadable({path("missing"), path("dangling"), path("folder"), path("good.key/below")});
}

// What the program's user may not read. Root may read everything, until it drops those capabilities
// for itself and what it executes.
void drop_the_right_to_read() {
  if (geteuid() != 0) return;
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  syscall(SYS_capget, &header, data);
  for (const unsigned capability : {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH}) {
    prctl(PR_CAPBSET_DROP, capability);  // else exec() would bring it back
    data[0].effective &= ~(1U << capability);
    data[0].permitted &= ~(1U << capability);
    data[0].inheritable &= ~(1U << capability);
  }
  syscall(SYS_capset, &header, data);
}

TEST_F(EveryCommandTest, FilesThatAreNotPermittedAreNamed) {
  make_good_files();
  const std::string secret = runner_.write_file("secret", "{}");
  fs::create_directory(path("locked"));
  const std::string below = runner_.write_file("locked/below", "{}");
  fs::permissions(secret, fs::perms::none);
  fs::permissions(path("locked"), fs::perms::none);
  constexpr int kDenied = 77;
  const CommandResult tried = runner_.run({"version"}, [&] {
    drop_the_right_to_read();
    const bool is_denied = open(secret.c_str(), O_RDONLY) < 0 && errno == EACCES;
    const bool stays_so = geteuid() != 0 || prctl(PR_CAPBSET_READ, CAP_DAC_OVERRIDE) == 0;
    if (is_denied && stays_so) _exit(kDenied);
  });
  if (tried.exit_code == kDenied) expect_unreadable({secret, below}, drop_the_right_to_read);
  fs::permissions(path("locked"), fs::perms::owner_all);
  if (tried.exit_code != kDenied) GTEST_SKIP() << "root keeps its capabilities here";
}

// A FIFO without a writer would block whoever opens it in the ordinary way.
TEST_F(EveryCommandTest, WhatMustBeAFileIsNotWaitedFor) {
  make_good_files();
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  for (const auto& [name, row] : rows()) {
    if (row.with_file.empty() || name.starts_with("manifest ")) continue;
    for (const std::string& file : {path("fifo"), std::string("/dev/zero")}) {
      SCOPED_TRACE(name + " " + file);
      const CommandResult result = runner_.run(call(name, row.with_file, file));
      EXPECT_EQ(result.exit_code, kIo) << result.err;
      EXPECT_THAT(result.err, HasSubstr(file));
      EXPECT_THAT(result.err, HasSubstr("a regular file"));
    }
  }
}

// As a shell's <(...) and `... | pagejit manifest lint /dev/stdin` give them.
TEST_F(EveryCommandTest, ListsAreReadFromPipes) {
  const std::string fifo = path("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const auto run = [&](const Words& words, const std::string& text) {
    // Opening waits for the reader; what is longer than a pipe holds comes in several parts.
    std::thread writer([&] { std::ofstream(fifo) << text << std::string(100'000, '\n'); });
    const CommandResult result = runner_.run(words);
    writer.join();
    return result;
  };
  const CommandResult lint = run({"manifest", "lint", fifo}, kList);
  EXPECT_EQ(lint.exit_code, 0) << lint.err;
  EXPECT_EQ(lint.out, fifo + ": 2 kernels\n");
  const CommandResult diff = run({"manifest", "diff", path("manifest.json"), fifo}, kList);
  EXPECT_EQ(diff.exit_code, 0) << diff.err;
  const CommandResult expanded =
      runner_.run({"manifest", "expand", path("manifest.json"), "--json"});
  const CommandResult traced = run({"precompile", "--trace", fifo, "--verify"}, expanded.out);
  EXPECT_EQ(traced.exit_code, 5) << "nothing is made yet: " << traced.err;
  EXPECT_THAT(traced.out, HasSubstr("2 kernels: 0 compiled, 0 cached, 2 missing"));
  const CommandResult malformed = run({"manifest", "lint", fifo}, "{");
  EXPECT_EQ(malformed.exit_code, 1);
  EXPECT_THAT(malformed.err, HasSubstr(fifo + ": not valid JSON"));

  const CommandResult endless = runner_.run({"manifest", "lint", "/dev/zero"});
  EXPECT_EQ(endless.exit_code, 1);
  EXPECT_THAT(endless.err, HasSubstr("/dev/zero: has more than 67108864 bytes: at most"));
}

TEST_F(EveryCommandTest, OutputThatIsLostIsTold) {
  make_good_files();
  for (const auto& [name, row] : rows()) {
    SCOPED_TRACE(name);
    const Words words = call(name, row.output.empty() ? row.work : row.output);
    expect_lost_output_is_told(
        [&](const std::function<void()>& prepare) {
          fs::remove(path("output"));
          return runner_.run(words, prepare);
        },
        row.output_code);
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

}  // namespace
}  // namespace pagejit::cli
