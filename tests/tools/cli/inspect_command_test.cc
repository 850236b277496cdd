// `pagejit inspect` as a person runs it. Compiles with NVRTC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/tools/cli/command_runner.h"
#include "tests/tools/cli/lost_output.h"
#include "tests/tools/cli/pseudo_terminal.h"

namespace pagejit::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kSpec = {"inspect", "--head-size", "128",   "--group-size",
                                        "4",       "--arch",      "sm_90a"};

std::vector<std::string> spec_with(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = kSpec;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(InspectCommandTest, ASpecGivesEverySection) {
  const CommandRunner runner;
  const CommandResult result = runner.run(kSpec);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* heading : {"\nResources\n====", "\nOccupancy\n====", "\nPipeline\n====",
                              "\nRoofline on H200", "\nInstructions (SASS)\n===="}) {
    EXPECT_THAT(result.out, HasSubstr(heading));
  }
  EXPECT_THAT(result.out, HasSubstr("compile log and cubin"));
  EXPECT_THAT(result.out, HasSubstr("matrix products "));
  EXPECT_EQ(result.err, "");
  EXPECT_FALSE(std::filesystem::exists(runner.folder() + "/cache")) << "nothing is stored";
}

TEST(InspectCommandTest, TheProblemAndTheGpuAreThoseOfTheFlags) {
  const CommandResult result = CommandRunner().run(spec_with(
      {"--gpu", "H100", "--batch", "3", "--seq-len", "1000", "--num-kv-heads", "2", "--json"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["roofline"]["gpu"]["id"], "h100");
  EXPECT_EQ(json["roofline"]["kv_bytes"], 3 * 1000 * 2 * 512);
  EXPECT_EQ(json["roofline"]["flops"], 3.0 * 2 * 1000 * 2 * 4 * 256);
  EXPECT_EQ(json["sass"]["main_loop"]["classes"]["matrix products"]["count"], 16);
  EXPECT_EQ(json["pipeline"]["stages"], 3);
}

TEST(InspectCommandTest, AWindowIsThatOfTheFlagForASpecAndAnEntry) {
  const CommandRunner runner;
  const auto keys_of = [&](const std::vector<std::string>& arguments) {
    const CommandResult result = runner.run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const auto json = nlohmann::json::parse(result.out, nullptr, false);
    return json.is_object() ? json["roofline"]["keys"].get<int>() : -1;
  };
  EXPECT_EQ(keys_of(spec_with({"--window", "512", "--seq-len", "32768", "--json"})), 512);
  const std::string text = "decode head_size=128 block_size=16 group_size=4 window=1";
  const std::vector<std::string> by_text = {"inspect", "--spec",    text,    "--arch",
                                            "sm_90a",  "--seq-len", "32768", "--json"};
  EXPECT_EQ(keys_of(by_text), 32768) << "its size is not known";
  std::vector<std::string> with_window = by_text;
  with_window.insert(with_window.end(), {"--window", "512"});
  EXPECT_EQ(keys_of(with_window), 512);
  const CommandResult none =
      runner.run({"inspect", "--spec", "decode", "--arch", "sm_90a", "--window", "512"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("--window 512: the kernel has no window"));
}

TEST(InspectCommandTest, OtherFamiliesByTheirText) {
  const CommandResult result =
      CommandRunner().run({"inspect", "--spec", "merge_states", "--arch", "sm_80"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("no ring of stages"));
  EXPECT_THAT(result.out, HasSubstr("2 x (128 x 2 B + 4 B) = 520 B"));
  EXPECT_THAT(result.out, HasSubstr("no products of matrices"));
  EXPECT_THAT(result.out, HasSubstr("A100 SXM 80 GB"));
  EXPECT_EQ(CommandRunner().run({"inspect", "merge_states", "--arch", "sm_80"}).out, result.out);
}

TEST(InspectCommandTest, OnATerminalEveryLineFits) {
  std::string text = run_on_terminal(80, kSpec);
  EXPECT_THAT(text, HasSubstr("\r\ntile 0  C"));
  text.erase(std::remove(text.begin(), text.end(), '\r'), text.end());
  std::istringstream lines(std::regex_replace(text, std::regex("\x1b\\[[0-9;]*m"), ""));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(InspectCommandTest, AnEntryAndItsCubinSayTheSame) {
  const CommandRunner runner;
  ASSERT_EQ(
      runner.run({"precompile", "--head-size", "128", "--group-size", "4", "--arch", "sm_90a"})
          .exit_code,
      0);
  const auto list = nlohmann::json::parse(runner.run({"cache", "ls", "--json"}).out);
  ASSERT_EQ(list.size(), 1u);
  const std::string key = list[0]["key"];
  const CommandResult of_entry = runner.run({"inspect", key.substr(0, 10), "--json"});
  ASSERT_EQ(of_entry.exit_code, 0) << of_entry.err;
  const auto entry = nlohmann::json::parse(of_entry.out);
  EXPECT_EQ(entry["origin"], "entry " + key);
  EXPECT_EQ(entry["resources"]["dynamic_shared_bytes"]["from"], "configuration");
  EXPECT_TRUE(entry["roofline"].is_object());
  EXPECT_EQ(runner.run({"inspect", key, "--json"}).out, of_entry.out) << "the whole key, " << key;

  const std::string file = runner.folder() + "/kernel.cubin";
  ASSERT_EQ(runner.run({"cache", "extract", key, "-o", file}).exit_code, 0);
  const CommandResult of_file =
      runner.run({"inspect", file, "--json", "--dynamic-shared",
                  std::to_string(entry["resources"]["dynamic_shared_bytes"]["value"].get<int>())});
  ASSERT_EQ(of_file.exit_code, 0) << of_file.err;
  const auto cubin = nlohmann::json::parse(of_file.out);
  EXPECT_EQ(cubin["spec"], nullptr);
  EXPECT_EQ(cubin["resources"]["registers"]["value"], entry["resources"]["registers"]["value"]);
  EXPECT_EQ(cubin["resources"]["threads_per_cta"]["value"],
            entry["resources"]["threads_per_cta"]["value"]);
  EXPECT_EQ(cubin["occupancy"], entry["occupancy"]);
  EXPECT_EQ(cubin["sass"], entry["sass"]);
  const auto of_spec = nlohmann::json::parse(runner.run(spec_with({"--json"})).out);
  EXPECT_EQ(of_spec["sass"], entry["sass"]) << "line information changes no instruction";

  const CommandResult none = runner.run({"inspect", "0123456789"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("0 entries of"));
}

TEST(InspectCommandTest, ThePageIsOneFileBesideTheText) {
  const CommandRunner runner;
  const std::string file = runner.folder() + "/kernel.html";
  const CommandResult result = runner.run(spec_with({"--html", file}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Occupancy"));
  const std::string page = content_of(file);
  EXPECT_THAT(page, testing::StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(page, testing::EndsWith("</html>\n"));
  EXPECT_THAT(page, HasSubstr("HMMA.16816.F32.BF16"));
  EXPECT_THAT(page, HasSubstr("PAGEJIT_DEVICE void attend("));
  EXPECT_THAT(page, Not(HasSubstr("http://")));
  EXPECT_THAT(page, Not(HasSubstr("https://")));
  const CommandResult refused = runner.run(spec_with({"--html", runner.folder() + "/no/k.html"}));
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_THAT(refused.err, HasSubstr("No such file or directory"));
}

TEST(InspectCommandTest, WithoutADisassemblerTheRestIsThereAndASentence) {
  const CommandResult result = CommandRunner().run(spec_with({"--nvdisasm", "/does/not/exist"}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("registers per thread"));
  EXPECT_THAT(result.out, HasSubstr("nvdisasm: /does/not/exist is no program"));
}

// The disassembler asks whoever called it to stop, while it is at work.
TEST(InspectCommandTest, AnInterruptInItsMidstIsTold) {
  const CommandRunner runner;
  const std::string program = runner.write_script("nvdisasm", "kill -INT $PPID\necho nothing\n");
  const std::string page = runner.folder() + "/page.html";
  const CommandResult result = runner.run({"inspect", "--spec", "merge_states", "--arch", "sm_80",
                                           "--nvdisasm", program, "--html", page});
  EXPECT_EQ(result.exit_code, 6) << result.err;
  EXPECT_THAT(result.err, HasSubstr("pagejit: interrupted"));
  if (std::filesystem::exists(page)) {
    EXPECT_THAT(content_of(page), testing::EndsWith("</html>\n")) << "half-written";
  }
  EXPECT_FALSE(std::filesystem::exists(runner.folder() + "/cache")) << "nothing is stored";
}

TEST(InspectCommandTest, OutputThatIsLostIsTold) {
  const CommandRunner runner;
  expect_lost_output_is_told([&](const std::function<void()>& prepare) {
    return runner.run({"inspect", "--spec", "merge_states", "--arch", "sm_80"}, prepare);
  });
}

TEST(InspectCommandTest, FilesThatAreNoCubinsAreRefused) {
  const CommandRunner runner;
  const auto error_of = [&](const std::string& what, int exit_code) {
    const CommandResult result = runner.run({"inspect", what});
    EXPECT_EQ(result.exit_code, exit_code) << what;
    EXPECT_EQ(result.out, "");
    return result.err;
  };
  EXPECT_THAT(error_of(runner.write_file("text", "not a cubin"), 1),
              HasSubstr("/text: cubin: no ELF file"));
  EXPECT_THAT(error_of(runner.write_file("empty", ""), 1), HasSubstr("no ELF file"));
  EXPECT_THAT(error_of("/bin/sh", 1), HasSubstr("not one of code for a GPU"));
  EXPECT_THAT(error_of(runner.folder() + "/none.cubin", 4), HasSubstr("none.cubin"));
  EXPECT_THAT(error_of(runner.folder(), 4), HasSubstr(runner.folder()));
}

TEST(InspectCommandTest, WrongFlagsAreRefusedWithWhatIsLegal) {
  const CommandRunner runner;
  const auto error_of = [&](const std::vector<std::string>& arguments) {
    const CommandResult result = runner.run(arguments);
    EXPECT_EQ(result.exit_code, 1) << result.err;
    return result.err;
  };
  EXPECT_THAT(error_of({"inspect"}), HasSubstr("--head-size is missing"));
  EXPECT_THAT(error_of({"inspect", "--head-size", "128", "--group-size", "4"}),
              HasSubstr("--arch is missing"));
  EXPECT_THAT(error_of({"inspect", "--spec", "merge_states", "--arch", "host"}),
              HasSubstr("must be one that gives a cubin"));
  EXPECT_THAT(error_of({"inspect", runner.write_file("x.cubin", ""), "--arch", "sm_90a"}),
              HasSubstr("excludes --arch"));
  EXPECT_THAT(error_of({"inspect", "merge_state", "--arch", "sm_90a"}),
              HasSubstr("merge_state: no such file or directory, nor the key of an entry, nor a "
                        "spec, which begins with decode, few, "));
  EXPECT_THAT(error_of({"inspect", "merge_state"}), HasSubstr("did you mean merge_states?"));
  EXPECT_THAT(error_of({"inspect", "merge_states no=1", "--arch", "sm_90a"}),
              HasSubstr("spec field"));
  EXPECT_THAT(error_of({"inspect", "merge_states"}), HasSubstr("--arch is missing"));
  EXPECT_THAT(error_of({"inspect", "--spec", "decod", "--arch", "sm_80"}),
              HasSubstr("did you mean decode?"));
  EXPECT_THAT(error_of(spec_with({"--gpu", "H20"})), HasSubstr("did you mean h200?"));
  EXPECT_THAT(error_of(spec_with({"--gpu", "rtx490"})), HasSubstr("did you mean rtx4090?"));
  EXPECT_THAT(error_of(spec_with({"--html", "-", "--json"})),
              HasSubstr("both take the standard output"));
  EXPECT_THAT(error_of({"inspect", "--spec", "merge_states", "--head-size", "64"}),
              HasSubstr("--spec excludes"));
  EXPECT_THAT(error_of(spec_with({"--gpu", "a100-80"})), HasSubstr("does not run on it"));
  EXPECT_THAT(error_of(spec_with({"--gpu", "gtx"})), HasSubstr("known are t4"));
  EXPECT_THAT(error_of(spec_with({"--batch", "0"})), HasSubstr("--batch 0: must be 1 to"));
  EXPECT_THAT(error_of(spec_with({"--query-len", "0"})),
              HasSubstr("--query-len 0: must be at least 1"));
  const std::vector<std::string> by_text = {"inspect", "decode head_size=64 group_size=4 window=1",
                                            "--arch", "sm_80"};
  for (const std::string flag : {"--num-kv-heads", "--window"}) {
    std::vector<std::string> arguments = by_text;
    arguments.insert(arguments.end(), {flag, "0"});
    EXPECT_THAT(error_of(arguments), HasSubstr(flag + " 0: must be at least 1"));
  }
  EXPECT_THAT(error_of({"inspect", "--head-size", "128", "--group-size", "4", "--arch", "sm_9a"}),
              HasSubstr("did you mean sm_90a?"));
  EXPECT_THAT(error_of({"inspect", "x.cubin", "--threads", "0"}), HasSubstr("--threads"));
}

TEST(InspectCommandTest, FlagsThatWouldChangeNothingAreRefused) {
  const CommandRunner runner;
  const auto error_of = [&](std::vector<std::string> arguments,
                            const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = runner.run(arguments);
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_EQ(result.out, "");
    return result.err;
  };
  const std::vector<std::string> other_family = {"inspect", "merge_states", "--arch", "sm_80"};
  for (const char* flag : {"--batch", "--seq-len", "--query-len", "--num-kv-heads", "--window"}) {
    EXPECT_THAT(error_of(other_family, {flag, "2"}), HasSubstr(flag + std::string(": is for "
                                                                                  "attention")));
  }
  for (const char* flag : {"--kernel", "--threads", "--dynamic-shared"}) {
    EXPECT_THAT(error_of(kSpec, {flag, "2"}), HasSubstr(flag + std::string(": is for a cubin")));
  }
  const std::string file = runner.folder() + "/kernel.cubin";
  ASSERT_EQ(
      runner.run({"precompile", "--head-size", "128", "--group-size", "4", "--arch", "sm_90a"})
          .exit_code,
      0);
  const auto list = nlohmann::json::parse(runner.run({"cache", "ls", "--json"}).out);
  const std::string key = list.at(0)["key"];
  ASSERT_EQ(runner.run({"cache", "extract", key, "-o", file}).exit_code, 0);
  EXPECT_THAT(error_of({"inspect", file}, {"--batch", "2"}),
              HasSubstr("--batch: is for the roofline of a spec"));
  EXPECT_THAT(error_of({"inspect", file}, {"--gpu", "h200"}),
              HasSubstr("--gpu: is for the roofline of a spec"));
  EXPECT_THAT(error_of({"inspect", key}, {"--threads", "128"}),
              HasSubstr("--threads: is for a cubin"));
}

}  // namespace
}  // namespace pagejit::cli
