// Every command on a terminal of 80 columns: no line is wider that could have been broken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "tests/tools/cli/application.h"
#include "tests/tools/cli/command_runner.h"
#include "tests/tools/cli/pseudo_terminal.h"

namespace pagejit::cli {
namespace {

using testing::HasSubstr;

constexpr unsigned short kColumns = 80;

class WidthTest : public testing::Test {
 protected:
  WidthTest() {
    runner_.set_variable("PAGEJIT_DRIVER", "/nonexistent/libcuda.so");
    runner_.write_file("manifest.json", R"({"pagejit_manifest": 1, "targets": "host",
        "kernels": [{"family": "top_k"}, {"spec": "copy_blocks"}]})");
    runner_.write_file("other.json", R"({"pagejit_manifest": 1, "targets": "host",
        "kernels": [{"spec": "convert_float8"},
                    {"spec": "few q=f16 kv=f16 out=f16 head_size=128 block_size=16 causal=1"}]})");
  }
  std::string path(const std::string& name) const { return runner_.folder() + "/" + name; }

  // What is drawn on one line after the other ("\r") is a line each; colours take no column.
  std::string run(const Words& words) const {
    const std::string text = run_on_terminal(kColumns, words,
                                             {{"PAGEJIT_CACHE_DIR", path("cache")},
                                              {"PAGEJIT_DRIVER", "/nonexistent/libcuda.so"},
                                              {"PAGEJIT_NVRTC", nvrtc_}});
    static const std::regex kSequence("\x1b\\[[0-9;]*[mK]");
    std::string plain = std::regex_replace(text, kSequence, "");
    for (char& c : plain) {
      if (c == '\r') c = '\n';
    }
    return plain;
  }

  // One word, behind a label or an indentation, may be wider.
  static void expect_fits(const std::string& text) {
    EXPECT_FALSE(text.empty());
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (columns_of(line) <= kColumns) continue;
      const size_t last_word = line.find_last_of(' ') + 1;
      const size_t before = line.find_last_not_of(' ', last_word == 0 ? 0 : last_word - 1);
      const bool is_one_word = line.find_first_not_of(' ') == last_word;
      const bool has_label = before != std::string::npos && last_word - before > 2;
      EXPECT_TRUE(is_one_word || has_label) << columns_of(line) << ": " << line;
    }
  }

  CommandRunner runner_;
  std::string nvrtc_ = "/nonexistent";
};

TEST_F(WidthTest, Helps) {
  expect_fits(run({"--help"}));
  Application application;
  for (const CLI::App* command : application.all()) {
    Words words = split(Application::name_of(*command));
    words.emplace_back("--help");
    SCOPED_TRACE(words.front());
    const std::string text = run(words);
    EXPECT_THAT(text, HasSubstr("Usage: pagejit " + Application::name_of(*command)));
    expect_fits(text);
  }
}

TEST_F(WidthTest, BrokenExamplesAreStillCommands) {
  EXPECT_THAT(run({"render", "--help"}), HasSubstr("--dtype f16 \\\n"));
  // In a pipe they are whole.
  EXPECT_THAT(runner_.run({"render", "--help"}).out, HasSubstr("--dtype f16 --arch host\n"));
}

TEST_F(WidthTest, Results) {
  const Words spec = {"--head-size", "64", "--group-size", "3", "--arch"};
  const auto of_spec = [&](const char* command, const char* arch, const Words& more = {}) {
    Words words = {command};
    words.insert(words.end(), spec.begin(), spec.end());
    words.emplace_back(arch);
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const Words commands[] = {
      of_spec("explain", "sm_90a"),
      of_spec("explain", "sm_75"),
      of_spec("key", "host", {"--explain"}),
      {"precompile", "--manifest", path("manifest.json"), "-o", path("good.pjb")},
      {"precompile", "--list-models"},
      {"cache", "stats"},
      {"cache", "ls"},
      {"cache", "verify"},
      {"cache", "gc"},
      {"manifest", "expand", path("other.json")},
      {"manifest", "lint", path("manifest.json")},
      {"manifest", "diff", path("manifest.json"), path("other.json")},
      {"bundle", "ls", path("good.pjb")},
      {"bundle", "verify", path("good.pjb")},
      {"doctor"},
      {"version"},
      {"help"},
      // Complaints.
      {},
      {"inspect", "merge_state"},
      {"inspect", "--spec", "merge_state", "--arch", "sm_80"},
      {"explain", "--dtype", "bf61", "--head-size", "64", "--group-size", "4", "--arch", "sm_80"},
      {"tune"},
      {"demo"},
      {"manifest", "lint", path("missing.json")},
  };
  for (const Words& words : commands) {
    SCOPED_TRACE(testing::PrintToString(words));
    expect_fits(run(words));
  }
}

TEST_F(WidthTest, AFileGetsOneLineForEachFact) {
  const std::string out = runner_.run({"doctor"}).out;
  EXPECT_THAT(out, testing::ContainsRegex("\n(warning|problem)  driver: [^\n]{40,}\n {11}[^ ]"));
  const std::string explained =
      runner_.run({"explain", "--head-size", "64", "--group-size", "3", "--arch", "sm_90a"}).out;
  EXPECT_THAT(explained, testing::ContainsRegex("\n[*] [^\n]+: chosen\n"));
}

}  // namespace
}  // namespace pagejit::cli
