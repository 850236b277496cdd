#include "runtime/jit/host_compiler.h"

#include <dlfcn.h>
#include <unistd.h>

#include <stop_token>
#include <thread>

#include "runtime/jit/file_io.h"
#include "tests/runtime/jit/test_support.h"

namespace pagejit::jit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kGood[] =
    "extern \"C\" __attribute__((visibility(\"default\"))) int answer() { return 42; }\n";

class HostCompilerTest : public ::testing::Test {
 protected:
  HostCompilerTest() {
    options_.environment = [this](const std::string& name) -> std::optional<std::string> {
      if (name == "TMPDIR") return scratch_.path();
      return process_environment()(name);
    };
    options_.threads = 2;
  }
  void TearDown() override { EXPECT_THAT(scratch_.list(), IsEmpty()) << "left behind"; }

  bool has_compiler() { return HostCompiler(options_).identity().is_ok(); }
  Result<CompiledImage> compile(const std::string& text) {
    return HostCompiler(options_).compile(source_of(text, Target::host()));
  }
  // A script that answers --version and else does `script`.
  void use_script(const std::string& script) {
    options_.command = programs_.write_program(
        "cxx" + std::to_string(++num_scripts_),
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo \"fake 1.0\"; exit; fi\n" + script + "\n");
  }

  TempFolder scratch_;
  TempFolder programs_;
  HostCompilerOptions options_;
  int num_scripts_ = 0;
};

#define PAGEJIT_NEEDS_CXX() PAGEJIT_NEEDS(has_compiler(), "C++ compiler")

TEST_F(HostCompilerTest, MakesALoadableImage) {
  PAGEJIT_NEEDS_CXX();
  Result<CompiledImage> image = compile(kGood);
  ASSERT_TRUE(image) << image.status().to_string() << image.status().detail();
  TempFolder folder;
  void* handle = dlopen(folder.write("image.so", image->image).c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  const auto answer = reinterpret_cast<int (*)()>(dlsym(handle, "answer"));
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer(), 42);
  dlclose(handle);
  EXPECT_GT(image->compile_ms, 0);
  EXPECT_EQ(image->report.registers, 0);
  EXPECT_EQ(image->compiler_identity, *HostCompiler(options_).identity());
}

TEST_F(HostCompilerTest, SameBytesAgainElsewhereAndInParallel) {
  PAGEJIT_NEEDS_CXX();
  Result<CompiledImage> first = compile(kGood);
  ASSERT_TRUE(first);
  EXPECT_THAT(first->image, Not(HasSubstr(scratch_.path())));
  HostCompiler compiler(options_);
  std::vector<std::string> images(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < images.size(); ++i) {
    threads.emplace_back([&, i] {
      Result<CompiledImage> image = compiler.compile(source_of(kGood, Target::host(80)));
      if (image) images[i] = image->image;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& image : images) EXPECT_TRUE(image == first->image);
}

TEST_F(HostCompilerTest, FailureCarriesLogCommandAndNumberedSource) {
  PAGEJIT_NEEDS_CXX();
  Result<CompiledImage> image = compile("int f() {\n  return absent;\n}\n");
  ASSERT_FALSE(image);
  EXPECT_EQ(image.status().code(), StatusCode::kCompileFailed);
  EXPECT_THAT(image.status().message(),
              AllOf(StartsWith("tiny for host: "), HasSubstr("tiny.cc:2:"), HasSubstr("absent"),
                    Not(HasSubstr("\n"))));
  EXPECT_THAT(image.status().detail(), AllOf(HasSubstr("command: /"), HasSubstr("-std=c++20"),
                                             HasSubstr("   2 |   return absent;")));
}

TEST_F(HostCompilerTest, WarningsAreReported) {
  PAGEJIT_NEEDS_CXX();
  Result<CompiledImage> image = compile(std::string("#warning watch out\n") + kGood);
  ASSERT_TRUE(image) << image.status().to_string();
  ASSERT_EQ(image->report.warnings.size(), 1u);
  EXPECT_THAT(image->report.warnings[0], HasSubstr("watch out"));
}

TEST_F(HostCompilerTest, BuildsDifferInOptionsAndImage) {
  PAGEJIT_NEEDS_CXX();
  const std::string text =
      "extern \"C\" __attribute__((visibility(\"default\"))) int get(int* p) { return *p; }\n";
  Result<CompiledImage> plain = compile(text);
  const auto plain_options = HostCompiler(options_).options(Target::host());
  options_.build = HostBuild::kChecked;
  Result<CompiledImage> checked = compile(text);
  EXPECT_NE(HostCompiler(options_).options(Target::host()), plain_options);
  ASSERT_TRUE(plain) << plain.status().to_string();
  ASSERT_TRUE(checked) << checked.status().to_string() << checked.status().detail();
  EXPECT_THAT(plain->image, Not(HasSubstr("__tsan_read4")));
  EXPECT_THAT(checked->image, HasSubstr("__tsan_read4"));
}

TEST_F(HostCompilerTest, KeyOptionsHoldNoPath) {
  for (HostBuild build : {HostBuild::kPlain, HostBuild::kChecked, HostBuild::kAddressSanitizer}) {
    options_.build = build;
    for (const std::string& option : HostCompiler(options_).options(Target::host())) {
      EXPECT_THAT(option, Not(HasSubstr("/")));
    }
  }
}

TEST_F(HostCompilerTest, ServesHostTargetsOnly) {
  use_script("exit 1");
  HostCompiler compiler(options_);
  EXPECT_TRUE(compiler.check_target(Target::host(80)));
  EXPECT_EQ(compiler.check_target(Target{}).code(), StatusCode::kUnsupported);
  EXPECT_EQ(compiler.compile(source_of(kGood, Target{})).status().code(), StatusCode::kUnsupported);
}

TEST_F(HostCompilerTest, MissingCompilerIsNamed) {
  options_.environment = environment_of({{"PATH", programs_.path()}});
  Status status = HostCompiler(options_).identity().status();
  EXPECT_EQ(status.code(), StatusCode::kCompilerUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("c++, g++ or clang++ is not on PATH"));
  options_.command = "g++-99";
  EXPECT_THAT(HostCompiler(options_).compile(source_of(kGood, Target::host())).status().message(),
              HasSubstr("g++-99 is not on PATH"));
  options_.command = programs_.write("not-executable", "");
  EXPECT_THAT(HostCompiler(options_).identity().status().message(),
              HasSubstr("is not there or cannot be run"));
}

TEST_F(HostCompilerTest, CompilersAreSearchedInOrder) {
  TempFolder first;
  first.write_program("clang++", "#!/bin/sh\necho clang in first\n");
  TempFolder second;
  second.write_program("g++", "#!/bin/sh\necho gcc in second\n");
  const std::string path = "relative:" + first.path() + ":" + second.path();
  options_.environment = environment_of({{"PATH", path + ":/nonexistent"}});
  EXPECT_THAT(*HostCompiler(options_).identity(), StartsWith("c++ gcc in second driver script "));
  options_.command = "clang++";
  EXPECT_THAT(*HostCompiler(options_).identity(), StartsWith("c++ clang in first driver script "));
}

TEST_F(HostCompilerTest, IdentityTellsCompilersApartAndHoldsNoPath) {
  use_script("exit 1");
  const std::string one = *HostCompiler(options_).identity();
  use_script("exit 1 # other");
  const std::string two = *HostCompiler(options_).identity();
  EXPECT_NE(one, two);
  EXPECT_THAT(one, AllOf(StartsWith("c++ fake 1.0 driver script "), HasSubstr(" emulator-abi "),
                         Not(HasSubstr("/"))));
}

TEST_F(HostCompilerTest, CompilerThatCannotTellItsVersionIsUnavailable) {
  options_.command = programs_.write_program("broken", "#!/bin/sh\necho no licence\nexit 1\n");
  Status status = HostCompiler(options_).identity().status();
  EXPECT_EQ(status.code(), StatusCode::kCompilerUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("--version failed"));
  EXPECT_EQ(status.detail(), "no licence\n");
}

TEST_F(HostCompilerTest, TimeoutIsNotTheSourcesFault) {
  use_script("echo thinking; touch half.o; sleep 60");
  Status status;
  // Longer where the script did not get that far.
  for (int ms = 300; status.detail().empty() && ms < 10'000; ms *= 3) {
    options_.timeout = std::chrono::milliseconds(ms);
    status = compile(kGood).status();
    EXPECT_EQ(status.code(), StatusCode::kCompilerUnavailable);
    EXPECT_THAT(status.message(), HasSubstr("was stopped after " + std::to_string(ms) + " ms"));
  }
  EXPECT_THAT(status.detail(), HasSubstr("thinking"));
}

TEST_F(HostCompilerTest, ACancelledCompileIsKilledAndSaysSo) {
  use_script("sleep 60");
  std::stop_source stop;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request_stop();
  });
  const Status status = HostCompiler(options_)
                            .compile(source_of(kGood, Target::host()), {.stop = stop.get_token()})
                            .status();
  canceller.join();
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
}

TEST_F(HostCompilerTest, KilledCompilerIsNotTheSourcesFault) {
  use_script("kill -KILL $$");
  Status status = compile(kGood).status();
  EXPECT_EQ(status.code(), StatusCode::kCompilerUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("was killed by signal 9"));
  use_script("echo 'g++: fatal error: Killed signal terminated program cc1plus' >&2; exit 1");
  status = compile(kGood).status();
  EXPECT_EQ(status.code(), StatusCode::kCompilerUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("lost its compiling process: g++: fatal error"));
}

TEST_F(HostCompilerTest, FullDiskIsNotTheSourcesFault) {
  use_script("echo '/tmp/cc.s: fatal error: No space left on device' >&2; exit 1");
  const Status status = compile(kGood).status();
  EXPECT_EQ(status.code(), StatusCode::kCompilerUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("set TMPDIR"));
}

TEST_F(HostCompilerTest, CompilerThatWritesNothingIsAnError) {
  use_script("exit 0");
  const Status status = compile(kGood).status();
  EXPECT_EQ(status.code(), StatusCode::kCompilerUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("ended without writing an image"));
}

TEST_F(HostCompilerTest, SilentFailureGivesTheExitCode) {
  use_script("exit 7");
  const Status status = compile(kGood).status();
  EXPECT_EQ(status.code(), StatusCode::kCompileFailed);
  EXPECT_THAT(status.message(), HasSubstr("failed: exit code 7"));
}

TEST_F(HostCompilerTest, ChildSeesNothingThatChangesTheImage) {
  setenv("CPATH", "/nonexistent", 1);
  use_script("env > \"$TMPDIR/../env\"; exit 1");
  compile(kGood).is_ok();
  unsetenv("CPATH");
  const std::string environment = read_all(scratch_ / "env");
  ASSERT_EQ(unlink((scratch_ / "env").c_str()), 0);
  EXPECT_THAT(environment,
              AllOf(HasSubstr("LC_ALL=C"), HasSubstr("PATH="), Not(HasSubstr("CPATH="))));
}

TEST_F(HostCompilerTest, LeaksNoDescriptor) {
  use_script("exit 1");
  HostCompiler compiler(options_);
  (void)compiler.compile(source_of(kGood, Target::host())).is_ok();
  const int before = num_open_fds();
  for (int i = 0; i < 5; ++i) {
    (void)compiler.compile(source_of(kGood, Target::host())).is_ok();
  }
  EXPECT_EQ(num_open_fds(), before);
}

}  // namespace
}  // namespace pagejit::jit
