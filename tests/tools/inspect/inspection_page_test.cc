#include "tools/inspect/inspection_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/families.h"
#include "generator/planner.h"
#include "tests/tools/inspect/small_elf.h"
#include "tools/inspect/inspection_json.h"
#include "tools/inspect/inspection_text.h"

namespace pagejit::inspect {
namespace {

using testing::HasSubstr;
using testing::Not;

// By two parsers of Python's, XML and HTML, which must both see every element closed.
bool is_well_formed(const std::string& html) {
  FILE* python = popen(R"(python3 -c '
import sys, xml.dom.minidom, html.parser
text = sys.stdin.buffer.read()
xml.dom.minidom.parseString(text)
class Parser(html.parser.HTMLParser):
    depth = 0
    def handle_starttag(self, tag, attributes): self.depth += tag not in ("meta",)
    def handle_endtag(self, tag): self.depth -= 1
    def handle_startendtag(self, tag, attributes): pass
parser = Parser()
parser.feed(text.decode())
parser.close()
sys.exit(parser.depth != 0)')",
                       "w");
  if (python == nullptr) return false;
  const bool is_written = fwrite(html.data(), 1, html.size(), python) == html.size();
  return pclose(python) == 0 && is_written;
}

Inspection hostile() {
  SmallElf elf;
  elf.kernels[0].symbol = "<b>&\"kernel'</script>";
  Subject subject;
  subject.image = elf.bytes();
  subject.origin = "</style><script>alert(1)</script>";
  InspectOptions options;
  options.nvdisasm = "/does/not/exist";
  options.environment = [](const std::string&) { return std::nullopt; };
  const Result<Inspection> inspection = inspect(subject, options);
  EXPECT_TRUE(inspection) << inspection.status().to_string();
  Inspection result = *inspection;
  result.source = "#line 1 \"a<b.cuh\"\nif (a < b && c > d) { \"</script>\" }\n";
  result.sass = parse_sass(
      "\t.section\t.text.k,\"ax\"\n\t//## File \"/x/a<b.cuh\", line 1\n"
      "        /*0000*/   BRA `(.L_x_0) & <evil> ;\n",
      "k");
  return result;
}

TEST(InspectionPageTest, AllTextIsEscaped) {
  const std::string html = to_html(hostile());
  EXPECT_TRUE(is_well_formed(html));
  EXPECT_THAT(html, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(html, Not(HasSubstr("<evil>")));
  EXPECT_THAT(html, HasSubstr("&lt;evil&gt;"));
  EXPECT_THAT(html, HasSubstr("a &lt; b &amp;&amp; c &gt; d"));
}

TEST(InspectionPageTest, AnInstructionAndItsLineHaveTheSameMark) {
  const std::string html = to_html(hostile());
  EXPECT_THAT(html, HasSubstr("<div id=\"l2\" data-s=\"2\"><b>2</b><i>1</i>if"));
  EXPECT_THAT(html, HasSubstr("<div data-s=\"2\"><b>0000</b><a href=\"#l2\">BRA"));
}

TEST(InspectionPageTest, RefersToNothingOutside) {
  const std::string html = to_html(hostile());
  for (const char* reference : {"http://", "https://", "src=", "url(", "@import", "<link"}) {
    EXPECT_THAT(html, Not(HasSubstr(reference)));
  }
}

// ---- Of a cubin alone ----

Result<Inspection> inspect_small(const SmallElf& elf, InspectOptions options = {}) {
  if (options.nvdisasm.empty()) options.nvdisasm = "/does/not/exist";
  options.environment = [](const std::string&) { return std::nullopt; };
  Subject subject;
  subject.image = elf.bytes();
  subject.origin = "small.cubin";
  return inspect(subject, options);
}

TEST(InspectionTest, WithoutADisassemblerTheRestIsThere) {
  const Result<Inspection> inspection = inspect_small({});
  ASSERT_TRUE(inspection);
  const std::string text = to_text(*inspection);
  EXPECT_THAT(text, HasSubstr("registers per thread             40  cubin\n"));
  EXPECT_THAT(text, HasSubstr("threads per CTA                 128  cubin: its launch bound\n"));
  EXPECT_THAT(text, HasSubstr("spill stores, bytes               -  not known\n"));
  EXPECT_THAT(text, HasSubstr("H200 SXM 141 GB"));
  EXPECT_THAT(text, HasSubstr("nvdisasm: /does/not/exist is no program that can be run\n"));
  const nlohmann::json json = to_json(*inspection);
  EXPECT_EQ(json["resources"]["registers"]["value"], 40);
  EXPECT_EQ(json["resources"]["spill_store_bytes"], nullptr);
  EXPECT_EQ(json["occupancy"].size(), 4u);
  EXPECT_EQ(json["roofline"], nullptr);
  EXPECT_THAT(json["sass"]["missing"].get<std::string>(), HasSubstr("/does/not/exist"));
  EXPECT_TRUE(is_well_formed(to_html(*inspection)));
}

TEST(InspectionTest, TextPageAndJsonSayWhatTheRooflineLeavesOut) {
  Result<Inspection> made = inspect_small({});
  ASSERT_TRUE(made);
  Inspection& inspection = *made;
  EXPECT_TRUE(inspection.caveats().empty());
  const KernelSpec spec =
      *parse_spec("decode head_size=128 block_size=16 group_size=4 window=1 custom_mask=1");
  const KernelConfig config = *plan(spec, *parse_target("sm_90a"));
  inspection.config = config;
  inspection.gpu = *find_gpu("h200");
  inspection.roofline = roofline_of(config, {.seq_len = 32768, .window = 512}, *inspection.gpu);
  const std::string text = to_text(inspection);
  const std::string page = to_html(inspection);
  ASSERT_EQ(inspection.caveats().size(), 3u);
  for (const std::string& sentence : inspection.caveats()) {
    EXPECT_THAT(text, HasSubstr("\n" + sentence + "\n"));
    EXPECT_THAT(page, HasSubstr("<p>" + sentence + "</p>"));
  }
  EXPECT_THAT(page, HasSubstr("every key within the window of 512 once, and operations of every "
                              "pair, whatever the custom mask may hide"));
  EXPECT_THAT(page, HasSubstr("these kernels use mma.sync"));
  EXPECT_TRUE(is_well_formed(page));
  const nlohmann::json json = to_json(inspection)["roofline"];
  EXPECT_EQ(json["caveats"], nlohmann::json(inspection.caveats()));
  EXPECT_EQ(json["window"], 512);
  EXPECT_EQ(json["keys"], 512);
}

TEST(InspectionTest, WithoutALaunchBoundThereIsNoOccupancy) {
  const SmallElf elf = {.kernels = {{.threads = {0, 0, 0}}}};
  const Result<Inspection> inspection = inspect_small(elf);
  ASSERT_TRUE(inspection);
  EXPECT_TRUE(inspection->occupancy.empty());
  const std::string note =
      "not known: the cubin has no launch bound, and its threads per CTA are not known (--threads)";
  EXPECT_THAT(to_text(*inspection), HasSubstr("\n" + note + "\n"));
  EXPECT_THAT(to_text(*inspection), Not(HasSubstr("no GPU that runs")));
  EXPECT_THAT(to_html(*inspection), HasSubstr("<p>" + note + "</p>"));
  EXPECT_EQ(to_json(*inspection)["occupancy"].size(), 0u);
  EXPECT_EQ(to_json(*inspection)["occupancy_notes"], nlohmann::json::array({note}));

  Subject subject;
  subject.image = elf.bytes();
  subject.threads = 128;
  const Result<Inspection> given =
      inspect(subject, {.nvdisasm = "/does/not/exist",
                        .environment = [](const std::string&) { return std::nullopt; }});
  ASSERT_TRUE(given);
  EXPECT_EQ(given->occupancy.size(), 4u);
}

TEST(InspectionTest, TextPageAndJsonSayThatDynamicSharedMemoryIsNotCounted) {
  const Result<Inspection> inspection = inspect_small({});
  ASSERT_TRUE(inspection);
  const std::string note =
      "without dynamic shared memory, which a cubin does not tell (--dynamic-shared)";
  EXPECT_THAT(to_text(*inspection), HasSubstr("\n" + note + "\n"));
  EXPECT_THAT(to_html(*inspection), HasSubstr("<p>" + note + "</p>"));
  EXPECT_EQ(to_json(*inspection)["occupancy_notes"], nlohmann::json::array({note}));
  Inspection known = *inspection;
  known.dynamic_shared_bytes = {0, "as given"};
  EXPECT_TRUE(known.occupancy_notes().empty());
}

TEST(InspectionTest, TheRoofOfF32IsThatOfItsProducts) {
  Result<Inspection> inspection = inspect_small({});
  ASSERT_TRUE(inspection);
  const KernelConfig config =
      *plan(*parse_spec("decode q=f32 kv=f32 out=f32 head_size=64 block_size=16 group_size=8"),
            *parse_target("sm_90a"));
  inspection->config = config;
  inspection->gpu = *find_gpu("h200");
  inspection->roofline = roofline_of(config, {}, *inspection->gpu);
  // 989.5 TFLOP/s of bf16, six of them for one, at 4,800 GB/s.
  EXPECT_THAT(roofline_svg(*inspection), HasSubstr("164.9 TFLOP/s from 34.36 FLOP/B on"));
  EXPECT_EQ(to_json(*inspection)["roofline"]["products_each"], 6);
}

TEST(InspectionTest, NoEscapeSequenceOfACubinReachesTheTerminal) {
  const std::string name = "k\x1b[2J" + std::string(100, 'a');
  const SmallElf elf = {.kernels = {{name}, {"two"}}};
  Result<Inspection> inspection = inspect_small(elf, {.symbol = name});
  ASSERT_TRUE(inspection);
  inspection->origin = "o\x1b]0;.cubin";
  inspection->tool = "t\x1b[31m";
  const std::string text = to_text(*inspection);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("kernel   k\\x1b[2J" + std::string(100, 'a') + "\n")) << "all of it";
  EXPECT_THAT(text, HasSubstr("origin   o\\x1b]0;.cubin\nmade by  t\\x1b[31m\n"));
  for (const char* symbol : {"", "three\x1b[2J"}) {
    const std::string message = inspect_small(elf, {.symbol = symbol}).status().message();
    EXPECT_THAT(message, Not(HasSubstr("\x1b")));
    EXPECT_THAT(message, HasSubstr("k\\x1b[2Jaaa"));
  }
}

TEST(InspectionTest, OfSeveralKernelsOneIsNamed) {
  const SmallElf elf = {.kernels = {{"one"}, {"two", 80}}};
  EXPECT_THAT(inspect_small(elf).status().message(), HasSubstr("--kernel chooses one: one, two"));
  EXPECT_EQ(inspect_small(elf, {.symbol = "two"})->registers.value, 80);
  EXPECT_EQ(inspect_small(elf, {.symbol = "three"}).status().code(), StatusCode::kNotFound);
}

TEST(InspectionTest, AGpuThatTheCubinDoesNotRunOnIsRefused) {
  EXPECT_STREQ(inspect_small({}, {.gpu = "H100"})->gpu->id, "h100");
  const auto wrong = inspect_small({}, {.gpu = "a100-80"});
  EXPECT_EQ(wrong.status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(wrong.status().message(),
            "--gpu a100-80: a cubin for sm_90a does not run on it; of those known it runs on h200, "
            "h100, h100-pcie, gh200-96");
  EXPECT_EQ(inspect_small({}, {.gpu = "none"}).status().code(), StatusCode::kNotFound);
}

TEST(InspectionTest, WhereLogAndCubinDisagreeItIsSaid) {
  Subject subject;
  subject.image = SmallElf{}.bytes();
  subject.report = CompileReport();
  subject.report->registers = 41;
  const Result<Inspection> inspection =
      inspect(subject, {.nvdisasm = "/does/not/exist",
                        .environment = [](const std::string&) { return std::nullopt; }});
  ASSERT_TRUE(inspection);
  EXPECT_THAT(inspection->contradictions,
              testing::ElementsAre("registers: 41 by the compile log, 40 by the cubin"));
  EXPECT_THAT(to_text(*inspection), HasSubstr("registers: 41 by the compile log"));
  EXPECT_EQ(inspection->stack_bytes.source, "compile log and cubin");
}

}  // namespace
}  // namespace pagejit::inspect
