#include "tools/manifest/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/manifest/manifest.h"

namespace pagejit::manifest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr char kTopK[] = R"({"spec":"top_k","target":"sm_90a"})";
constexpr char kCopy[] = R"({"spec":"copy_blocks alignment=8","target":"host_80"})";

std::vector<std::string> lines_of(const Result<Trace>& trace) {
  std::vector<std::string> lines;
  EXPECT_TRUE(trace) << trace.status().to_string();
  if (trace) {
    for (const ListedKernel& kernel : trace->kernels) lines.push_back(line_of(kernel));
  }
  return lines;
}

TEST(TraceTest, EachKernelOnceInOrder) {
  const std::string text = std::string(kTopK) + "\n" + kCopy + "\r\n\n" + kTopK +
                           "\n{\"target\":\"sm_90a\", \"spec\":\" top_k\", \"count\": 3}\n";
  const Result<Trace> trace = parse_trace(text);
  EXPECT_THAT(lines_of(trace), ElementsAre("host_80 copy_blocks alignment=8", "sm_90a top_k"));
  EXPECT_THAT(trace->damaged, IsEmpty());
  EXPECT_THAT(lines_of(parse_trace("")), IsEmpty());
}

TEST(TraceTest, DamagedLinesAreToldAndLeftOut) {
  const std::string text = std::string("{\"spec\":\"top_\n") + kTopK +
                           "\n[]\n{\"spec\":1,\"target\":\"sm_80\"}\n{\"spec\":\"top_k\"}\n"
                           "{\"spec\":\"top_k debug=7\",\"target\":\"sm_80\"}\n"
                           "{\"spec\":\"top_k\",\"target\":\"gpu\"}\n" +
                           kCopy + "\n";
  const Result<Trace> trace = parse_trace(text);
  EXPECT_THAT(lines_of(trace), SizeIs(2));
  EXPECT_THAT(
      trace->damaged,
      ElementsAre(StartsWith("line 1: not valid JSON"), StartsWith("line 3: must be an object"),
                  StartsWith("line 4: spec: 1: must be a text"),
                  StartsWith("line 5: target: missing"), StartsWith("line 6: spec: byte 6: debug"),
                  StartsWith("line 7: target \"gpu\"")));
}

TEST(TraceTest, HalfALineAtTheEndIsNoError) {
  const std::string text = std::string(kTopK) + "\n" + kCopy;
  for (size_t size = sizeof(kTopK); size <= text.size(); ++size) {
    const Result<Trace> trace = parse_trace(std::string_view(text).substr(0, size));
    EXPECT_THAT(lines_of(trace), SizeIs(size == text.size() ? 2 : 1));
    EXPECT_THAT(trace->damaged, IsEmpty());
  }
}

TEST(TraceTest, MoreKernelsThanAListHasAreRefused) {
  std::string text;
  for (size_t i = 1; i <= kMaxKernels; ++i) {
    text += R"({"spec":"merge_states head_size=)" + std::to_string(i % 4096 + 1) +
            R"(","target":"host_)" + std::to_string(10 + i / 4096) + "\"}\n";
  }
  EXPECT_THAT(lines_of(parse_trace(text)), SizeIs(kMaxKernels));
  text += std::string(kTopK) + "\n";
  EXPECT_THAT(parse_trace(text).status().message(), StartsWith("more than 100000"));
}

TEST(TraceTest, AFileThatIsNotThere) {
  const Result<Trace> trace = load_trace("/nonexistent/trace");
  EXPECT_EQ(trace.status().code(), StatusCode::kCacheError);
  EXPECT_THAT(trace.status().message(), HasSubstr("/nonexistent/trace: no such file"));
}

}  // namespace
}  // namespace pagejit::manifest
