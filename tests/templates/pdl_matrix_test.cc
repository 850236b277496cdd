// Kernels for programmatic dependent launch: NVRTC compiles them without spills, and the machine
// code has the two instructions, once each, that other kernels do not have. Needs NVRTC, no GPU.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "generator/families.h"
#include "generator/renderer.h"
#include "tests/templates/compile_checks.h"

namespace pagejit {
namespace {

struct Counts {
  int waits = 0;
  int launches = 0;
  int instructions = 0;
};

// The lowest 12 bits of an instruction of 128 bits, as nvdisasm -hex shows them for sm_90 to
// sm_120: ACQBULK, which griddepcontrol.wait becomes, and PREEXIT,
// griddepcontrol.launch_dependents.
constexpr uint64_t kOpcodeMask = 0xfff;
constexpr uint64_t kAcqBulk = 0x82e;
constexpr uint64_t kPreExit = 0x82d;

template <class T>
T read_at(std::string_view bytes, size_t offset) {
  T value = {};
  if (offset + sizeof value <= bytes.size()) {
    std::memcpy(&value, bytes.data() + offset, sizeof value);
  } else {
    ADD_FAILURE() << "the cubin ends at " << bytes.size();
  }
  return value;
}

Counts count_instructions(std::string_view cubin) {
  Counts counts;
  const auto header = read_at<Elf64_Ehdr>(cubin, 0);
  const auto section_at = [&](size_t i) {
    return read_at<Elf64_Shdr>(cubin, header.e_shoff + i * header.e_shentsize);
  };
  const Elf64_Shdr names = section_at(header.e_shstrndx);
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr section = section_at(i);
    if (!cubin.substr(names.sh_offset + section.sh_name).starts_with(".text.")) continue;
    for (size_t at = 0; at < section.sh_size; at += 16) {
      const uint64_t opcode = read_at<uint64_t>(cubin, section.sh_offset + at) & kOpcodeMask;
      ++counts.instructions;
      counts.waits += opcode == kAcqBulk;
      counts.launches += opcode == kPreExit;
    }
  }
  return counts;
}

class PdlMatrixTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { require_target(target()); }

  static Target target() { return *parse_target(GetParam()); }

  static Counts compile(const AnySpec& spec) {
    const auto config = plan_any(spec, target());
    EXPECT_TRUE(config) << config.status().to_string();
    const CompiledImage compiled = compile_clean(render(*config));
    return compiled.image.empty() ? Counts{} : count_instructions(compiled.image);
  }

  template <class Spec>
  static void expect_instructions_where_asked(Spec spec) {
    for (const bool pdl : {false, true}) {
      spec.pdl = pdl;
      SCOPED_TRACE(text_of(spec));
      const Counts counts = compile(spec);
      EXPECT_GT(counts.instructions, 50);
      EXPECT_EQ(counts.waits, pdl ? 1 : 0);
      EXPECT_EQ(counts.launches, pdl ? 1 : 0);
    }
  }
};

TEST_P(PdlMatrixTest, TheInstructionsAreThereWhereTheyAreAskedFor) {
  KernelSpec attention{.head_size = 128, .group_size = 4};
  expect_instructions_where_asked(attention);
  attention.queries = QueryLengths::kMany;
  attention.causality = Causality::kCausal;
  attention.debug = true;
  expect_instructions_where_asked(attention);
  expect_instructions_where_asked(MergeStatesSpec{});
  expect_instructions_where_asked(CacheWriteSpec{});
  expect_instructions_where_asked(MlaCacheWriteSpec{});
}

INSTANTIATE_TEST_SUITE_P(Targets, PdlMatrixTest, ::testing::Values("sm_90a", "sm_100a", "sm_120a"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace pagejit
