// `pagejit cache` and `pagejit key` on entries that are compiled for the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/tools/cli/command_runner.h"

namespace pagejit::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

class CacheCommandTest : public testing::Test {
 protected:
  static std::vector<std::string> with_spec(std::vector<std::string> words) {
    for (const char* word : {"--head-size", "64", "--group-size", "3", "--arch", "host"}) {
      words.emplace_back(word);
    }
    return words;
  }
  // The kernel's key, once it is stored.
  std::string precompile() {
    const CommandResult made = runner_.run(with_spec({"precompile"}));
    EXPECT_EQ(made.exit_code, 0) << made.err;
    std::string key = runner_.run(with_spec({"key"})).out;
    if (!key.empty()) key.pop_back();
    return key;
  }
  std::string path_of(const std::string& key) const {
    return runner_.folder() + "/cache/v1/objects/" + key.substr(0, 2) + "/" + key + ".pjk";
  }
  CommandResult cache(std::vector<std::string> words) const {
    words.insert(words.begin(), "cache");
    return runner_.run(words);
  }

  const CommandRunner runner_;
};

TEST_F(CacheCommandTest, KeyNamesTheEntryThatPrecompileStores) {
  const std::string key = precompile();
  ASSERT_EQ(key.size(), 64u + 1 + 8);
  EXPECT_TRUE(std::filesystem::exists(path_of(key)));
  const CommandResult explained = runner_.run(with_spec({"key", "--explain"}));
  EXPECT_EQ(explained.exit_code, 0);
  for (const std::string& part :
       {std::string("target             \"host\"\n"),
        std::string("parameter ABI      \"attention-"), std::string("compiler identity  \"c++ "),
        std::string("\"-std=c++20\""), key + ".pjk\n"}) {
    EXPECT_THAT(explained.out, HasSubstr(part));
  }
}

TEST_F(CacheCommandTest, ADirectoryThatIsNotThereIsSaidToBeNone) {
  for (const char* command : {"stats", "ls", "verify", "gc", "clear"}) {
    const CommandResult none = cache({command});
    EXPECT_EQ(none.exit_code, 0) << command << none.err;
    EXPECT_THAT(none.err, HasSubstr("there is no such directory yet")) << command;
  }
}

TEST_F(CacheCommandTest, StatsAndListForPeopleAndForPrograms) {
  const std::string key = precompile();
  const CommandResult stats = cache({"stats"});
  EXPECT_EQ(stats.exit_code, 0) << stats.err;
  EXPECT_EQ(stats.err, "");
  EXPECT_THAT(stats.out, HasSubstr("  of compiler " + key.substr(65)));
  const json counts = json::parse(cache({"stats", "--json"}).out);
  EXPECT_EQ(counts["entries"]["files"], 1);
  EXPECT_EQ(counts["by_compiler"][key.substr(65)]["files"], 1);
  EXPECT_EQ(counts["max_bytes"], 512 << 20);
  const CommandResult listed = cache({"ls"});
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr(key.substr(0, 16)));
  EXPECT_THAT(listed.out, HasSubstr("head_size=64"));
  EXPECT_THAT(listed.out, HasSubstr("1 entry, "));
  const json list = json::parse(cache({"ls", "--json"}).out);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]["key"], key);
  EXPECT_EQ(list[0]["target"], "host");
  EXPECT_EQ(list[0]["bytes"], std::filesystem::file_size(path_of(key)));
  EXPECT_LT(list[0]["age_seconds"], 3600);
  EXPECT_NE(list[0]["compiler"], "");
}

TEST_F(CacheCommandTest, VerifyFindsACorruptEntryAndSetsItAside) {
  const std::string key = precompile();
  EXPECT_EQ(cache({"verify"}).exit_code, 0);
  std::ofstream(path_of(key), std::ios::app) << "x";
  const CommandResult dry = cache({"verify", "--dry-run"});
  EXPECT_EQ(dry.exit_code, 5);
  EXPECT_THAT(dry.err, HasSubstr("bytes after its end"));
  EXPECT_TRUE(std::filesystem::exists(path_of(key)));
  const CommandResult found = cache({"verify", "--json"});
  EXPECT_EQ(found.exit_code, 5);
  EXPECT_EQ(json::parse(found.out)["corrupt"].size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(path_of(key)));
  EXPECT_EQ(cache({"verify"}).exit_code, 0);
  const CommandResult garbage = cache({"gc", "--json"});
  EXPECT_EQ(garbage.exit_code, 0) << garbage.err;
  EXPECT_EQ(json::parse(garbage.out)["bad"]["files"], 1);
}

TEST_F(CacheCommandTest, ExtractWritesTheImage) {
  const std::string key = precompile();
  const std::string file = runner_.folder() + "/image";
  EXPECT_EQ(cache({"extract", key.substr(0, 12), "-o", file}).exit_code, 0);
  std::ifstream in(file, std::ios::binary);
  const std::string image{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(image, StartsWith("\x7f"
                                "ELF"));
  EXPECT_LT(image.size(), std::filesystem::file_size(path_of(key)));
  EXPECT_EQ(cache({"extract", key, "-o", "/nonexistent/x"}).exit_code, 4);
  const CommandResult unknown = cache({"extract", "nothing", "-o", file});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("0 entries of"));
  std::ofstream(path_of(key), std::ios::app) << "x";
  EXPECT_EQ(cache({"extract", key, "-o", file}).exit_code, 5);
}

TEST_F(CacheCommandTest, GarbageCollectionAndClearMakeRoom) {
  const std::string key = precompile();
  EXPECT_EQ(json::parse(cache({"gc", "--max-mib", "1", "--json"}).out)["evicted"]["files"], 0);
  EXPECT_TRUE(std::filesystem::exists(path_of(key)));
  const CommandResult cleared = cache({"clear"});
  EXPECT_EQ(cleared.exit_code, 0) << cleared.err;
  EXPECT_THAT(cleared.out, HasSubstr("removed 1 file, "));
  EXPECT_FALSE(std::filesystem::exists(path_of(key)));
  EXPECT_EQ(cache({"stats"}).exit_code, 0);
}

}  // namespace
}  // namespace pagejit::cli
