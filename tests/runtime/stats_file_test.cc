// EngineOptions::stats_path: when the file is written, by whom, and that a reader never sees a
// part.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/cache/child_process.h"
#include "tests/runtime/engine_fixture.h"

namespace pagejit {
namespace {

using cache::ChildProcess;

constexpr KernelSpec kSpec{.group_size = 4};

class StatsFileTest : public EngineTest {
 protected:
  EngineOptions options(const std::string& file) {
    EngineOptions result = EngineTest::options();
    result.stats_path = directory.path() + "/" + file;
    return result;
  }
  std::string path(const std::string& file) const { return directory.path() + "/" + file; }
  nlohmann::json read(const std::string& file) const {
    std::ifstream stream(path(file));
    return nlohmann::json::parse(std::string{std::istreambuf_iterator<char>(stream), {}}, nullptr,
                                 /*allow_exceptions=*/false);
  }
  // The files whose names are "stats-<number>.json".
  std::vector<std::string> numbered_files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
      const std::string name = entry.path().filename();
      if (name.starts_with("stats-") && name.find('%') == std::string::npos) names.push_back(name);
    }
    return names;
  }
  // Exit code 0: the engine has compiled once.
  static int compile_once(Engine* engine) {
    return engine->precompile(kSpec, *parse_target("sm_90a")) ? 0 : 1;
  }
};

TEST_F(StatsFileTest, IsWrittenWhenTheEngineIsDestroyed) {
  auto engine = make_engine(options("stats.json"));
  prepare(*engine, kSpec);
  prepare(*engine, kSpec);
  EXPECT_FALSE(std::filesystem::exists(path("stats.json")));
  engine.reset();
  const nlohmann::json stats = read("stats.json");
  EXPECT_EQ(stats["compiles"], 1);
  EXPECT_EQ(stats["memory_hits"], 1);
  EXPECT_EQ(stats["modules_loaded"], 1);
  struct stat info;
  ASSERT_EQ(stat(path("stats.json").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    EXPECT_NE(entry.path().extension(), ".tmp") << "nothing is left behind";
  }
}

TEST_F(StatsFileTest, IsReplacedByOneRename) {
  std::ofstream(path("stats.json")) << "an older one";
  std::ifstream reader(path("stats.json"));
  make_engine(options("stats.json")).reset();
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(reader), {}), "an older one")
      << "who reads the older file reads all of it";
  EXPECT_EQ(read("stats.json")["compiles"], 0);
}

TEST_F(StatsFileTest, IsWrittenAtTheEndOfTheProcessWhereTheEngineIsNeverDestroyed) {
  const EngineOptions with = options("stats.json");
  ChildProcess child([&] {
    const auto* leaked = new std::shared_ptr<Engine>(make_engine(with));
    std::exit(compile_once(leaked->get()));
    return 1;
  });
  ASSERT_EQ(child.wait(), 0);
  EXPECT_EQ(read("stats.json")["compiles"], 1);
}

TEST_F(StatsFileTest, StaticEngineIsWrittenOnce) {
  const EngineOptions with = options("stats-%p.json");
  ChildProcess child([&] {
    static std::shared_ptr<Engine> engine = make_engine(with);
    std::exit(compile_once(engine.get()));
    return 1;
  });
  ASSERT_EQ(child.wait(), 0);
  ASSERT_EQ(numbered_files().size(), 1u);
  EXPECT_EQ(read(numbered_files()[0])["compiles"], 1);
}

TEST_F(StatsFileTest, EveryProcessMarkIsReplaced) {
  make_engine(options("%p-stats-%p.json")).reset();
  const std::string id = std::to_string(getpid());
  EXPECT_EQ(read(id + "-stats-" + id + ".json")["format"], 1);
}

TEST_F(StatsFileTest, ForkedChildLeavesItsParentsFileAlone) {
  auto engine = make_engine(options("stats.json"));
  ChildProcess child([&] {
    std::exit(0);
    return 1;
  });
  ASSERT_EQ(child.wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(path("stats.json")));
  engine.reset();
  EXPECT_TRUE(std::filesystem::exists(path("stats.json")));
}

TEST_F(StatsFileTest, ForkedChildWritesAFileOfItsOwnWhereThePathHasItsId) {
  auto engine = make_engine(options("stats-%p.json"));
  ChildProcess child([&] {
    std::exit(0);
    return 1;
  });
  ASSERT_EQ(child.wait(), 0);
  ASSERT_EQ(numbered_files().size(), 1u);
  EXPECT_NE(numbered_files()[0], "stats-" + std::to_string(getpid()) + ".json");
  engine.reset();
  EXPECT_EQ(numbered_files().size(), 2u);
}

TEST_F(StatsFileTest, FileThatCannotBeWrittenIsOneWarning) {
  make_engine(options("missing/stats.json")).reset();
  EXPECT_TRUE(logged(LogLevel::kWarning, "missing/stats.json cannot be written: open "));
  std::filesystem::create_directory(path("folder"));
  make_engine(options("folder")).reset();
  EXPECT_TRUE(logged(LogLevel::kWarning, "/folder cannot be written: rename "));
  make_engine(options("folder/")).reset();
  EXPECT_TRUE(logged(LogLevel::kWarning, "folder/ cannot be written: it has no file name"));
  EXPECT_TRUE(std::filesystem::is_empty(path("folder")));
}

TEST_F(StatsFileTest, PathIsTakenFromTheFolderOfTheBeginning) {
  ChildProcess child([&] {
    if (chdir(directory.path().c_str()) != 0) return 2;
    EngineOptions with = EngineTest::options();
    with.stats_path = "relative.json";
    auto engine = make_engine(with);
    if (chdir("/") != 0) return 3;
    engine.reset();
    return std::filesystem::exists(path("relative.json")) ? 0 : 4;
  });
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace pagejit
