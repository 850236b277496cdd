// EngineOptions::dump_dir: what lies in a kernel's folder, and that a dump never fails a call. The
// script is run with the host's compiler here; with NVRTC by kernel_dump_nvrtc_test.
#include "runtime/engine/kernel_dump.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <set>

#include "tests/runtime/engine_fixture.h"

namespace pagejit {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

constexpr KernelSpec kSpec{.group_size = 4};

std::string text_of_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    names.insert(entry.path().filename());
  }
  return names;
}

unsigned mode_of(const fs::path& path) {
  struct stat info {};
  EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

class KernelDumpTest : public EngineTest {
 protected:
  EngineOptions options() {
    EngineOptions result = EngineTest::options();
    result.dump_dir = dump.string();
    return result;
  }
  std::shared_ptr<Engine> make_engine() { return EngineTest::make_engine(options()); }
  static Result<KernelInfo> precompile(Engine& engine, const char* target = "sm_90a") {
    return engine.precompile(kSpec, *parse_target(target));
  }
  int num_warnings() {
    std::lock_guard lock(log_mutex);
    return static_cast<int>(std::count_if(log.begin(), log.end(), [](const auto& line) {
      return line.first == LogLevel::kWarning &&
             line.second.find("compiles are not dumped") != std::string::npos;
    }));
  }

  const fs::path dump = directory.path() + "/deep/dump";
};

TEST_F(KernelDumpTest, FolderHoldsEverythingAboutTheCompile) {
  const Result<KernelInfo> info = precompile(*make_engine());
  ASSERT_TRUE(info);
  const std::string name = "fake_kernel-" + info->key.substr(0, 12);
  EXPECT_THAT(names_in(dump), ElementsAre(name));
  const fs::path folder = dump / name;
  // The fake compiler makes no PTX.
  EXPECT_THAT(names_in(folder), ElementsAre("kernel.cubin", "log.txt", "options.txt", "repro.sh",
                                            "source.cu", "spec.txt"));
  EXPECT_THAT(text_of_file(folder / "source.cu"), HasSubstr("group_size=4"));
  EXPECT_EQ(text_of_file(folder / "options.txt"), "-fake\n");
  EXPECT_EQ(text_of_file(folder / "log.txt"),
            "fake log\nkernel.ptx is missing: this compiler makes no PTX\n");
  EXPECT_EQ(text_of_file(folder / "kernel.cubin"), "good image of fake_kernel");
  EXPECT_THAT(text_of_file(folder / "spec.txt"),
              AllOf(HasSubstr("key: " + info->key + "\n"), HasSubstr("target: sm_90a\n"),
                    HasSubstr("compiler: fake 1.0\n"), HasSubstr("group_size=4"),
                    HasSubstr("image: 25 bytes\n")));
}

TEST_F(KernelDumpTest, NobodyElseCanRead) {
  const mode_t before = umask(0);
  EXPECT_TRUE(precompile(*make_engine()));
  umask(before);
  EXPECT_EQ(mode_of(dump), 0700u);
  for (const auto& entry : fs::recursive_directory_iterator(dump)) {
    const bool runs = entry.is_directory() || entry.path().extension() == ".sh";
    EXPECT_EQ(mode_of(entry.path()), runs ? 0700u : 0600u) << entry.path();
  }
}

TEST_F(KernelDumpTest, FailedCompileIsDumpedWithItsReason) {
  nvrtc->failure = Status(StatusCode::kCompileFailed, "it does not compile", "line 7: oh no");
  EXPECT_FALSE(precompile(*make_engine()));
  ASSERT_EQ(names_in(dump).size(), 1u);
  const fs::path folder = dump / *names_in(dump).begin();
  EXPECT_THAT(names_in(folder),
              ElementsAre("log.txt", "options.txt", "repro.sh", "source.cu", "spec.txt"));
  EXPECT_THAT(text_of_file(folder / "log.txt"),
              AllOf(HasSubstr("it does not compile"), HasSubstr("line 7: oh no")));
  EXPECT_THAT(text_of_file(folder / "spec.txt"), HasSubstr("image: none, the compile failed\n"));
}

TEST_F(KernelDumpTest, HitIsNotDumped) {
  ASSERT_TRUE(precompile(*EngineTest::make_engine(EngineTest::options())));
  ASSERT_TRUE(precompile(*make_engine()));
  EXPECT_FALSE(fs::exists(dump));
}

TEST_F(KernelDumpTest, LaterCompileReplacesAnEarlierOne) {
  EngineOptions with = options();
  with.disk_cache = false;
  ASSERT_TRUE(precompile(*EngineTest::make_engine(with)));
  nvrtc->image_prefix = "another";
  ASSERT_TRUE(precompile(*EngineTest::make_engine(with)));
  ASSERT_EQ(names_in(dump).size(), 1u) << "nothing is left beside it";
  EXPECT_EQ(text_of_file(dump / *names_in(dump).begin() / "kernel.cubin"),
            "another image of fake_kernel");
  EXPECT_EQ(num_warnings(), 0);
}

TEST_F(KernelDumpTest, FolderThatCannotBeMadeCostsOneWarningAndNothingElse) {
  fs::create_directories(dump.parent_path());
  std::ofstream(dump) << "a file";
  auto engine = make_engine();
  EXPECT_TRUE(precompile(*engine, "sm_90a"));
  EXPECT_TRUE(precompile(*engine, "sm_80"));
  EXPECT_EQ(num_warnings(), 1);
  EXPECT_EQ(text_of_file(dump), "a file");
}

TEST_F(KernelDumpTest, NothingIsWrittenThroughALinkInTheFoldersPlace) {
  const Result<KernelInfo> info = precompile(*EngineTest::make_engine(EngineTest::options()));
  ASSERT_TRUE(info);
  fs::create_directories(dump);
  const fs::path other = directory.path() + "/other";
  fs::create_directory(other);
  fs::create_directory_symlink(other, dump / ("fake_kernel-" + info->key.substr(0, 12)));
  EngineOptions with = options();
  with.disk_cache = false;
  ASSERT_TRUE(precompile(*EngineTest::make_engine(with)));
  EXPECT_THAT(names_in(other), IsEmpty());
  EXPECT_EQ(names_in(dump / *names_in(dump).begin()).count("source.cu"), 1u);
}

// ---- The script, with the host's compiler ----

class HostDumpTest : public KernelDumpTest {
 protected:
  // Compiles `text` for the host and returns the dump's only folder.
  fs::path dump_of(const std::string& text) {
    EngineDependencies parts = dependencies();
    parts.host = make_host_compiler("", HostBuild::kPlain, 1);
    parts.render = [text](const AnyConfig& config) -> Result<KernelSource> {
      Result<KernelSource> source = fake_render(config);
      source->text = text;
      return source;
    };
    Result<std::shared_ptr<Engine>> engine = create_engine(options(), parts);
    static_cast<void>((*engine)->precompile(kSpec, Target::host(90)));
    return names_in(dump).size() == 1 ? dump / *names_in(dump).begin() : fs::path();
  }
  // The exit code; the output lies in out below `directory`.
  int run(const fs::path& file, const std::string& environment = "") {
    const std::string command =
        environment + " '" + file.string() + "' >'" + directory.path() + "/out' 2>&1 </dev/null";
    return WEXITSTATUS(std::system(command.c_str()));
  }
  std::string output() { return text_of_file(directory.path() + "/out"); }
};

TEST_F(HostDumpTest, ScriptMakesTheSameBytes) {
  const fs::path folder = dump_of("extern \"C\" int kernel(int x) { return x + 1; }\n");
  ASSERT_FALSE(folder.empty());
  EXPECT_EQ(names_in(folder).count("kernel.so"), 1u);
  EXPECT_EQ(names_in(folder).count("kernel.ptx"), 0u);
  EXPECT_EQ(run(folder / "repro.sh"), 0) << output();
  EXPECT_THAT(output(), HasSubstr("equal: repro.so has the bytes of kernel.so"));
}

TEST_F(HostDumpTest, ScriptSeesADifference) {
  const fs::path folder = dump_of("extern \"C\" int kernel(int x) { return x + 1; }\n");
  ASSERT_FALSE(folder.empty());
  std::ofstream(folder / "source.cu") << "extern \"C\" int kernel(int x) { return x + 2; }\n";
  EXPECT_EQ(run(folder / "repro.sh"), 1);
  EXPECT_THAT(output(), HasSubstr("different: "));
}

TEST_F(HostDumpTest, ScriptFailsAsTheCompileDid) {
  const fs::path folder = dump_of("no program\n");
  ASSERT_FALSE(folder.empty());
  EXPECT_EQ(names_in(folder).count("kernel.so"), 0u);
  EXPECT_EQ(run(folder / "repro.sh"), 2);
  EXPECT_EQ(run(folder / "repro.sh", "CXX=/nonexistent/c++"), 3);
}

}  // namespace
}  // namespace pagejit
