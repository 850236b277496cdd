#include "runtime/jit/compile_log.h"

#include <climits>

#include "tests/runtime/jit/test_support.h"

namespace pagejit::jit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// As NVRTC 13.0 wrote it.
constexpr char kLog13[] =
    R"(k.cu(1): warning #177-D: variable "unused" was declared but never referenced
  int unused;
      ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k2' for 'sm_90a'
ptxas info    : Function properties for k2
ptxas         .     256 bytes stack frame, 8 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers, 320 bytes cumulative stack size
ptxas info    : Compile time = 12.697 ms
ptxas info    : Function properties for _Z3fooPfi
ptxas         .     0 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Compiling entry function 'k1' for 'sm_90a'
ptxas info    : Function properties for k1
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 512 bytes smem
ptxas info    : Compile time = 2.942 ms
)";

// As ptxas 12.x writes it on the command line.
constexpr char kLog12[] = R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for k
    0 bytes stack frame, 24 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 255 registers, 1024 bytes smem, 384 bytes cmem[0], 16 bytes cmem[2]
)";

TEST(CompileLogTest, ReadsALogOfCuda13) {
  const CompileReport report = parse_ptxas_log(kLog13);
  EXPECT_EQ(report.registers, 168);
  EXPECT_EQ(report.stack_bytes, 320);
  EXPECT_EQ(report.spill_store_bytes, 12);
  EXPECT_EQ(report.spill_load_bytes, 20);
  EXPECT_EQ(report.static_shared_bytes, 512);
  EXPECT_THAT(report.warnings, ElementsAre(StartsWith("k.cu(1): warning #177-D: variable")));
}

TEST(CompileLogTest, ReadsALogOfCuda12) {
  const CompileReport report = parse_ptxas_log(kLog12);
  EXPECT_EQ(report.registers, 255);
  EXPECT_EQ(report.stack_bytes, 0);
  EXPECT_EQ(report.spill_store_bytes, 24);
  EXPECT_EQ(report.spill_load_bytes, 20);
  EXPECT_EQ(report.static_shared_bytes, 1024);
  EXPECT_THAT(report.warnings, IsEmpty());
}

TEST(CompileLogTest, KeepsPtxasWarningsAndPerformanceRemarks) {
  const CompileReport report = parse_ptxas_log(
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized due to insufficient register resources in function 'k'\n"
      "ptxas warning : (C7508) Potential Performance Loss: 'setmaxnreg' ignored\r\n"
      "ptxas info    : (C1234) not about performance\n"
      "ptxas warning : Value of threads per SM is out of range\n"
      "ptxas info    : (C75");
  EXPECT_THAT(report.warnings,
              ElementsAre(HasSubstr("(C7510)"), ::testing::EndsWith("'setmaxnreg' ignored"),
                          HasSubstr("out of range")));
}

TEST(CompileLogTest, OddLogsGiveZeros) {
  for (const char* log : {"", "\n\n", "registers", " registers", "x registers", "Used  registers",
                          "9 bytes smemory", "bytes spill stores", "12bytes smem"}) {
    const CompileReport report = parse_ptxas_log(log);
    EXPECT_EQ(report.registers, 0) << log;
    EXPECT_EQ(report.static_shared_bytes, 0) << log;
    EXPECT_EQ(report.spill_store_bytes, 0) << log;
  }
}

TEST(CompileLogTest, HugeNumbersSaturate) {
  const CompileReport report =
      parse_ptxas_log("99999999999999999999 bytes spill stores\n5 bytes spill stores\n");
  EXPECT_EQ(report.spill_store_bytes, INT_MAX);
}

TEST(CompileLogTest, EveryPrefixOfALogIsRead) {
  const std::string log = kLog13;
  for (size_t size = 0; size <= log.size(); ++size) {
    EXPECT_LE(parse_ptxas_log(log.substr(0, size)).registers, 168);
  }
}

TEST(CompileLogTest, FirstErrorLineOfEachTool) {
  EXPECT_EQ(first_error_line("k.cu(3): warning #1-D: w\n  k.cu(4): error: no foo\n  error: later"),
            "k.cu(4): error: no foo");
  EXPECT_EQ(first_error_line("ptxas application ptx input, line 21; error   : Not a name\n"
                             "ptxas fatal   : Ptx assembly aborted"),
            "ptxas application ptx input, line 21; error   : Not a name");
  EXPECT_EQ(first_error_line("ptxas fatal   : Value 'sm_91' is not defined"),
            "ptxas fatal   : Value 'sm_91' is not defined");
  EXPECT_EQ(first_error_line("k.cc: In function 'f':\nk.cc:1:5: fatal error: no x.h\n"),
            "k.cc:1:5: fatal error: no x.h");
  EXPECT_EQ(first_error_line("ld: a.o: in function `f':\na.cc: undefined reference to `g'\n"),
            "a.cc: undefined reference to `g'");
  EXPECT_EQ(first_error_line("\n  something else\nmore"), "something else");
  EXPECT_EQ(first_error_line(""), "");
}

TEST(CompileLogTest, NumbersSourceLines) {
  EXPECT_EQ(numbered_source("a\n\nb"), "   1 | a\n   2 | \n   3 | b\n");
  EXPECT_EQ(numbered_source("a\n"), "   1 | a\n");
  EXPECT_EQ(numbered_source(""), "");
  std::string many(12345, '\n');
  EXPECT_THAT(numbered_source(many), StartsWith("    1 | \n"));
}

TEST(CompileLogTest, FailureDetailHoldsEverything) {
  EXPECT_EQ(failure_detail("boom", "options", {"-a", "-b"}, "x\ny\n"),
            "log:\nboom\noptions: -a -b\nsource:\n   1 | x\n   2 | y\n");
}

}  // namespace
}  // namespace pagejit::jit
