// Dumps of real kernels: PTX beside the cubin, and a script that makes the same cubin again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "pagejit/engine.h"
#include "tests/runtime/jit/test_support.h"

namespace pagejit {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

std::string text_of_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class KernelDumpNvrtcTest : public ::testing::Test {
 protected:
  // The folder of a small kernel's dump.
  fs::path dump() {
    EngineOptions options;
    options.cache_dir = folder_ / "cache";
    options.dump_dir = folder_ / "dump";
    options.nvrtc_path = jit::real_nvrtc();
    Result<std::shared_ptr<Engine>> engine = Engine::create(options);
    EXPECT_TRUE(engine);
    const Result<KernelInfo> info =
        (*engine)->precompile(MergeStatesSpec{.head_size = 64}, *parse_target("sm_90a"));
    EXPECT_TRUE(info) << info.status().to_string();
    for (const auto& entry : fs::directory_iterator(options.dump_dir)) return entry.path();
    return {};
  }
  int run(const fs::path& script, const std::string& arguments = "",
          const std::string& environment = "") {
    const std::string command = environment + " '" + script.string() + "' " + arguments + " >'" +
                                (folder_ / "out") + "' 2>&1 </dev/null";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string output() { return text_of_file(folder_ / "out"); }

  jit::TempFolder folder_;
};

TEST_F(KernelDumpNvrtcTest, PtxIsOfTheVirtualArchitecture) {
  PAGEJIT_NEEDS_NVRTC();
  const fs::path folder = dump();
  EXPECT_THAT(text_of_file(folder / "kernel.ptx"), HasSubstr(".target sm_90a"));
  EXPECT_THAT(text_of_file(folder / "kernel.ptx"), HasSubstr(".visible .entry pagejit_"));
  EXPECT_THAT(text_of_file(folder / "options.txt"), HasSubstr("--gpu-architecture=sm_90a\n"));
  EXPECT_THAT(text_of_file(folder / "log.txt"), HasSubstr("registers"));
}

TEST_F(KernelDumpNvrtcTest, ScriptMakesTheSameCubin) {
  PAGEJIT_NEEDS_NVRTC();
  const fs::path folder = dump();
  ASSERT_EQ(run(folder / "repro.sh", "nvrtc"), 0) << output();
  EXPECT_THAT(output(), HasSubstr("NVRTC "));
  EXPECT_THAT(output(), HasSubstr("equal: repro.cubin has the bytes of kernel.cubin"));
  EXPECT_EQ(text_of_file(folder / "repro.cubin"), text_of_file(folder / "kernel.cubin"));
  // The same library by the variable, which finds its builtins by itself.
  EXPECT_EQ(run(folder / "repro.sh", "nvrtc", "NVRTC='" + jit::real_nvrtc() + "'"), 0) << output();
}

// By a stand-in for nvcc that notes what it is called with and "compiles" to the dumped cubin.
TEST_F(KernelDumpNvrtcTest, ScriptCallsNvccWithWhatItKnows) {
  PAGEJIT_NEEDS_NVRTC();
  const fs::path folder = dump();
  folder_.write_program("bin/nvcc",
                        "#!/bin/sh\n[ \"$1\" != --version ] || exit 0\n"
                        "echo \"$*\" >'" +
                            (folder_ / "call") +
                            "'\n"
                            "cp kernel.cubin \"$3\"\n");
  const std::string path = "PATH='" + (folder_ / "bin") + "':\"$PATH\"";
  ASSERT_EQ(run(folder / "repro.sh", "nvcc", path), 0) << output();
  EXPECT_EQ(text_of_file(folder_ / "call"),
            "-cubin -o repro.cubin --gpu-architecture=sm_90a --std=c++20 --ptxas-options=-v "
            "repro.cu\n");
  const std::string source = text_of_file(folder / "repro.cu");
  EXPECT_THAT(source, HasSubstr("using pagejit_int64_t = long long;"));
  EXPECT_THAT(source, testing::Not(HasSubstr(" int64_t")));
}

TEST_F(KernelDumpNvrtcTest, ScriptSeesADifferenceAndAFailure) {
  PAGEJIT_NEEDS_NVRTC();
  const fs::path folder = dump();
  const std::string options = text_of_file(folder / "options.txt");
  std::ofstream(folder / "options.txt", std::ios::app) << "--maxrregcount=24\n";
  EXPECT_EQ(run(folder / "repro.sh", "nvrtc"), 1) << output();
  EXPECT_THAT(output(), HasSubstr("different: "));
  std::ofstream(folder / "options.txt") << options << "--no-such-option\n";
  EXPECT_EQ(run(folder / "repro.sh", "nvrtc"), 2) << output();
  EXPECT_THAT(output(), HasSubstr("no-such-option"));
  EXPECT_EQ(run(folder / "repro.sh", "nvrtc", "NVRTC=/nonexistent/libnvrtc.so"), 3) << output();
  EXPECT_EQ(run(folder / "repro.sh", "gcc"), 3);
}

}  // namespace
}  // namespace pagejit
