// Kernels compiled here, by what ptxas, the cubin and nvdisasm say of them.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "generator/families.h"
#include "generator/renderer.h"
#include "generator/spec_parser.h"
#include "tests/runtime/jit/test_support.h"
#include "tools/inspect/disassembler.h"
#include "tools/inspect/inspection.h"
#include "tools/inspect/inspection_page.h"
#include "tools/inspect/inspection_text.h"
#include "tools/inspect/line_info_compiler.h"
#include "tools/inspect/source_map.h"

namespace pagejit::inspect {
namespace {

using testing::HasSubstr;

constexpr const char* kDecode = "decode head_size=128 block_size=16 group_size=4";

KernelSource source_of(const char* spec, const char* target) {
  const Result<AnySpec> parsed = parse_any_spec(spec);
  EXPECT_TRUE(parsed) << parsed.status().to_string();
  const Result<AnyConfig> config = plan_any(*parsed, *parse_target(target));
  EXPECT_TRUE(config) << config.status().to_string();
  return *render(*config);
}

template <class NvrtcCompiler>
CompiledImage compile(const KernelSource& source) {
  jit::NvrtcSearch search;
  search.library_folder = jit::folder_of_this_library();
  NvrtcCompiler compiler(std::move(search), 1);
  Result<CompiledImage> image = compiler.compile(source);
  EXPECT_TRUE(image) << image.status().to_string();
  return image ? *image : CompiledImage{};
}

// Which one a machine has is nobody's matter here.
std::string disassembler() {
  const Result<std::string> found = find_disassembler("", process_environment());
  if (found) return *found;
  const Result<std::string> fetched = find_disassembler(PAGEJIT_NVDISASM, process_environment());
  return fetched ? *fetched : "";
}

Inspection inspect_spec(const char* spec, const char* target) {
  Subject subject;
  subject.source = source_of(spec, target);
  const CompiledImage image = compile<LineInfoCompiler>(*subject.source);
  subject.image = image.image;
  subject.report = image.report;
  const Result<Inspection> inspection =
      inspect(subject, {.nvdisasm = disassembler(), .environment = process_environment()});
  EXPECT_TRUE(inspection) << inspection.status().to_string();
  return inspection ? *inspection : Inspection{};
}

class InspectNvrtcTest : public testing::Test {
 protected:
  void SetUp() override {
    PAGEJIT_NEEDS(make_nvrtc_compiler("")->identity().is_ok(), "NVRTC");
    PAGEJIT_NEEDS(!disassembler().empty(), "nvdisasm");
  }
};

TEST_F(InspectNvrtcTest, CubinsSayWhatPtxasSays) {
  struct Case {
    const char* spec;
    const char* target;
  };
  for (const Case& c :
       {Case{kDecode, "sm_80"}, Case{kDecode, "sm_90a"}, Case{kDecode, "sm_120a"},
        Case{"decode q=f16 kv=f16 out=f16 head_size=64 block_size=16 group_size=4", "sm_75"},
        Case{"merge_states", "sm_90a"}, Case{"top_k", "sm_90a"}}) {
    const Result<AnySpec> parsed = parse_any_spec(c.spec);
    ASSERT_TRUE(parsed) << c.spec << ": " << parsed.status().to_string();
    const Inspection i = inspect_spec(c.spec, c.target);
    EXPECT_THAT(i.contradictions, testing::IsEmpty()) << c.spec;
    EXPECT_EQ(i.registers.source, "compile log and cubin");
    EXPECT_GT(i.registers.value, 16) << c.spec;
    EXPECT_EQ(i.target.to_string(), c.target);
    EXPECT_GE(i.barriers.value, 0);
    ASSERT_TRUE(i.sass) << i.no_sass;
    EXPECT_EQ(i.sass->target, c.target);
    EXPECT_EQ(i.sass->instructions.size() * 16, i.code_bytes) << c.spec;
    ASSERT_FALSE(i.occupancy.empty());
    EXPECT_GE(i.occupancy.front().occupancy.ctas, 1) << c.spec;
  }
}

TEST_F(InspectNvrtcTest, StaticSharedMemoryAndStackAreThoseOfTheLog) {
  for (const char* target : {"sm_80", "sm_90a", "sm_120a"}) {
    KernelSource source;
    source.kernel_name = "tiny";
    source.target = *parse_target(target);
    source.text =
        "extern \"C\" __global__ void tiny(int* p) {\n"
        "  __shared__ int shared[200];\n"
        "  volatile int stack[600];\n"
        "  for (int i = 0; i < 600; ++i) stack[i] = p[i];\n"
        "  shared[threadIdx.x] = stack[p[700]];\n"
        "  __syncthreads();\n"
        "  p[threadIdx.x] = shared[p[5]];\n"
        "}\n";
    const CompiledImage image = compile<jit::NvrtcCompiler>(source);
    const Result<CubinFile> cubin = read_cubin(image.image);
    ASSERT_TRUE(cubin) << cubin.status().to_string();
    const CubinKernel& kernel = cubin->kernels.front();
    EXPECT_EQ(kernel.registers, image.report.registers);
    EXPECT_EQ(kernel.static_shared_bytes, 800);
    EXPECT_EQ(kernel.static_shared_bytes, image.report.static_shared_bytes);
    EXPECT_EQ(kernel.stack_bytes, image.report.stack_bytes);
    EXPECT_GE(kernel.stack_bytes, 2400);
    EXPECT_EQ(kernel.barriers, 1);
  }
}

// Of the schedule, so they hold for every compiler: templates/README.md, "Counts per tile".
TEST_F(InspectNvrtcTest, TheMainLoopHasTheCountsOfTheSchedule) {
  for (const char* target : {"sm_80", "sm_90a"}) {
    const Inspection i = inspect_spec(kDecode, target);
    ASSERT_TRUE(i.sass) << i.no_sass;
    const SassLoop* loop = main_loop(*i.sass);
    ASSERT_NE(loop, nullptr);
    const SassMix mix = count_mix(*i.sass, *loop);
    EXPECT_EQ(mix.of(SassClass::kMatrixProduct), 16) << target;
    EXPECT_EQ(mix.of(SassClass::kMatrixLoad), 16) << target;
    EXPECT_EQ(mix.by_width.at({SassClass::kMatrixLoad, 128}), 16) << target;
    EXPECT_EQ(mix.of(SassClass::kAsyncCopy), 16) << target;
    EXPECT_EQ(mix.by_width.at({SassClass::kAsyncCopy, 128}), 16) << target;
    EXPECT_GE(mix.of(SassClass::kSpecial), 4) << target;
    EXPECT_EQ(mix.of(SassClass::kLocal), 0) << target;
    EXPECT_EQ(count_mix(*i.sass).of(SassClass::kOther), 0) << "an opcode without a class";
    EXPECT_GT(mix.total, 200) << target;
    EXPECT_LT(mix.total, 400) << target;
  }
}

TEST_F(InspectNvrtcTest, EveryOpcodeHasAClass) {
  for (const auto& [spec, target] :
       {std::pair("decode kv=fp8_e4m3 head_size=64 block_size=16 group_size=4", "sm_100f"),
        std::pair("few head_size=64 block_size=16 group_size=4 causal=1 alibi=1 soft_cap=1",
                  "sm_120a")}) {
    const Inspection i = inspect_spec(spec, target);
    ASSERT_TRUE(i.sass) << i.no_sass;
    for (const SassInstruction& instruction : i.sass->instructions) {
      if (instruction.opcode.starts_with("NOP")) continue;
      EXPECT_NE(class_of(instruction.opcode), SassClass::kOther) << instruction.text;
    }
  }
}

std::string code_of(const std::string& image, const std::string& symbol) {
  Elf64_Ehdr header;
  std::memcpy(&header, image.data(), sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), image.data() + header.e_shoff, sections.size() * sizeof sections[0]);
  const char* names = image.data() + sections[header.e_shstrndx].sh_offset;
  for (const Elf64_Shdr& section : sections) {
    if (names + section.sh_name == ".text." + symbol) {
      return image.substr(section.sh_offset, section.sh_size);
    }
  }
  return "";
}

TEST_F(InspectNvrtcTest, LineInformationChangesNoInstruction) {
  const KernelSource source = source_of(kDecode, "sm_90a");
  const std::string plain = code_of(compile<jit::NvrtcCompiler>(source).image, source.kernel_name);
  const std::string lines = code_of(compile<LineInfoCompiler>(source).image, source.kernel_name);
  EXPECT_GT(plain.size(), 1000u);
  EXPECT_TRUE(plain == lines);
}

TEST_F(InspectNvrtcTest, EveryInstructionIsOfALineOfTheSource) {
  const Inspection i = inspect_spec(kDecode, "sm_90a");
  ASSERT_TRUE(i.sass) << i.no_sass;
  const SourceMap map(i.source);
  size_t found = 0;
  for (const SassInstruction& instruction : i.sass->instructions) {
    if (instruction.file < 0) continue;
    found += map.find(i.sass->files[static_cast<size_t>(instruction.file)], instruction.line) >= 0;
  }
  EXPECT_GE(found, i.sass->instructions.size() * 95 / 100);
  // A product comes from the line that asks for one.
  const auto product =
      std::find_if(i.sass->instructions.begin(), i.sass->instructions.end(),
                   [](const auto& instruction) { return instruction.opcode.starts_with("HMMA"); });
  ASSERT_NE(product, i.sass->instructions.end());
  const int line = map.find(i.sass->files[static_cast<size_t>(product->file)], product->line);
  ASSERT_GE(line, 0);
  EXPECT_THAT(i.sass->files[static_cast<size_t>(product->file)], HasSubstr("device/ptx/products"));
  const std::string html = to_html(i);
  EXPECT_THAT(html, HasSubstr("<div id=\"l" + std::to_string(line + 1) + "\" data-s=\"" +
                              std::to_string(line + 1) + "\">"));
  EXPECT_THAT(html, HasSubstr("<svg class=\"pj-chart\""));
}

TEST_F(InspectNvrtcTest, DamagedCubinsAreReadOrRefused) {
  const CompiledImage image = compile<jit::NvrtcCompiler>(source_of(kDecode, "sm_90a"));
  for (size_t length = 0; length < image.image.size(); length += 61) {
    const std::string part = image.image.substr(0, length);
    EXPECT_FALSE(read_cubin(part)) << length;
  }
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string changed = image.image;
    for (int i = 0; i < 30; ++i) changed[random() % changed.size()] = static_cast<char>(random());
    (void)read_cubin(changed);
  }
}

TEST_F(InspectNvrtcTest, ADisassemblerThatFailsIsSaid) {
  const Result<std::string> listing = disassemble(disassembler(), "no cubin");
  ASSERT_FALSE(listing);
  EXPECT_EQ(listing.status().code(), StatusCode::kCompilerUnavailable);
  EXPECT_THAT(listing.status().message(), HasSubstr("failed with exit code"));
}

}  // namespace
}  // namespace pagejit::inspect
