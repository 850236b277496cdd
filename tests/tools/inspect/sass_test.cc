#include "tools/inspect/sass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace pagejit::inspect {
namespace {

using testing::ElementsAre;
using testing::Pair;

// Two kernels; the first has a loop of products, a longer one without, and a loop around both.
constexpr const char* kListing = R"(	.target	sm_90a

//--------------------- .text.kernel --------------------------
	.section	.text.kernel,"ax",@progbits
	.sectioninfo	@"SHI_REGISTERS=117"
	.align	128
kernel:
.text.kernel:
	//## File "/a/b/attention/attend.cuh", line 12 inlined at "/a/b/attention/attention.cuh", line 69
	//## File "/a/b/attention/attention.cuh", line 69
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_0:
	//## File "/a/b/device/ptx/memory.cuh", line 7
        /*0010*/                   LDG.E.128.CONSTANT R4, desc[UR10][R4.64] ;
.L_x_1:
        /*0020*/                   LDSM.16.M88.4 R8, [R2] ;
        /*0030*/              @!P0 LDGSTS.E.BYPASS.LTC128B.128 [R3], desc[UR4][R6.64] ;
        /*0040*/                   HMMA.16816.F32.BF16 R4, R8, R12, R4 ;
        /*0050*/                   NOP ;
        /*0060*/               @P1 BRA `(.L_x_1) ;
.L_x_2:
        /*0070*/                   LDS.U16 R5, [R2] ;
        /*0080*/                   LDS R5, [R2] ;
        /*0090*/                   LDS R5, [R2+0x4] ;
        /*00a0*/                   LDS.64 R6, [R2+0x8] ;
        /*00b0*/                   IADD3 R0, R0, 0x1, RZ ;
        /*00c0*/               @P2 BRA `(.L_x_2) ;
        /*00d0*/               @P3 BRA `(.L_x_0) ;
        /*00e0*/                   EXIT ;
.L_x_3:
        /*00f0*/                   BRA `(.L_x_3);
	.section	.text.kernel_2,"ax",@progbits
.L_x_4:
        /*0000*/                   MUFU.EX2 R4, R5 ;
        /*0010*/                   BRA `(.L_x_4) ;
)";

TEST(SassTest, InstructionsOfTheKernelWithTheirSourceLines) {
  const SassListing sass = parse_sass(kListing, "kernel");
  EXPECT_EQ(sass.target, "sm_90a");
  ASSERT_EQ(sass.instructions.size(), 16u);
  EXPECT_EQ(sass.instructions[0].opcode, "LDC");
  EXPECT_EQ(sass.instructions[3].address, 0x30u);
  EXPECT_EQ(sass.instructions[3].opcode, "LDGSTS.E.BYPASS.LTC128B.128");
  EXPECT_EQ(sass.instructions[3].text, "@!P0 LDGSTS.E.BYPASS.LTC128B.128 [R3], desc[UR4][R6.64]");
  EXPECT_THAT(sass.files, ElementsAre("/a/b/attention/attend.cuh", "/a/b/device/ptx/memory.cuh"));
  EXPECT_EQ(sass.instructions[0].file, 0);
  EXPECT_EQ(sass.instructions[0].line, 12) << "the innermost call";
  EXPECT_EQ(sass.instructions[15].file, 1);
  EXPECT_EQ(sass.instructions[15].line, 7) << "holds until another is named";
  EXPECT_EQ(parse_sass(kListing, "kernel_2").instructions.size(), 2u);
  EXPECT_TRUE(parse_sass(kListing, "kern").instructions.empty());
}

TEST(SassTest, TheMainLoopIsTheInnermostWithTheMostProducts) {
  const SassListing sass = parse_sass(kListing, "kernel");
  ASSERT_EQ(sass.loops.size(), 3u) << "padding is no loop";
  const SassLoop* loop = main_loop(sass);
  ASSERT_NE(loop, nullptr);
  EXPECT_EQ(loop->begin, 2u);
  EXPECT_EQ(loop->end, 7u);
  std::string without = kListing;
  without.replace(without.find("HMMA"), 4, "FFMA");
  const SassListing plain = parse_sass(without, "kernel");
  // The outer loop has the most loads.
  EXPECT_EQ(main_loop(plain)->begin, 1u);
  EXPECT_EQ(main_loop(plain)->end, 14u);
  EXPECT_EQ(main_loop(parse_sass(kListing, "kernel_2"))->size(), 2u);
  EXPECT_EQ(main_loop(SassListing{}), nullptr);
}

TEST(SassTest, MixIsCountedByClassAndWidth) {
  const SassListing sass = parse_sass(kListing, "kernel");
  const SassMix loop = count_mix(sass, *main_loop(sass));
  EXPECT_EQ(loop.total, 4);
  EXPECT_EQ(loop.no_operations, 1);
  EXPECT_EQ(loop.of(SassClass::kMatrixProduct), 1);
  EXPECT_EQ(loop.of(SassClass::kAsyncCopy), 1);
  EXPECT_EQ(loop.of(SassClass::kControl), 1);
  EXPECT_THAT(loop.by_width, ElementsAre(Pair(Pair(SassClass::kAsyncCopy, 128), 1),
                                         Pair(Pair(SassClass::kMatrixLoad, 128), 1)));
  const SassMix all = count_mix(sass);
  EXPECT_EQ(all.total, 15);
  EXPECT_EQ(all.of(SassClass::kSharedLoad), 4);
  EXPECT_EQ(all.by_width.at({SassClass::kSharedLoad, 16}), 1);
  EXPECT_EQ(all.by_width.at({SassClass::kSharedLoad, 32}), 2);
  EXPECT_EQ(all.by_width.at({SassClass::kSharedLoad, 64}), 1);
  EXPECT_EQ(all.by_operation.at("BRA"), 4);
}

TEST(SassClassTest, OpcodesOfEachClass) {
  EXPECT_EQ(class_of("HGMMA.64x128x16.F32.BF16"), SassClass::kMatrixProduct);
  EXPECT_EQ(class_of("FMNMX3"), SassClass::kFloat32);
  EXPECT_EQ(class_of("HFMA2.BF16_V2"), SassClass::kFloat16);
  EXPECT_EQ(class_of("MUFU.EX2"), SassClass::kSpecial);
  EXPECT_EQ(class_of("F2FP.BF16.F32.PACK_AB"), SassClass::kConversion);
  EXPECT_EQ(class_of("IMAD.WIDE.U32"), SassClass::kInteger);
  EXPECT_EQ(class_of("UIADD3"), SassClass::kUniform);
  EXPECT_EQ(class_of("UFLO"), SassClass::kUniform);
  EXPECT_EQ(class_of("SHFL.BFLY"), SassClass::kExchange);
  EXPECT_EQ(class_of("ULDC.64"), SassClass::kConstantLoad);
  EXPECT_EQ(class_of("STL.128"), SassClass::kLocal);
  EXPECT_EQ(class_of("BAR.SYNC.DEFER_BLOCKING"), SassClass::kSynchronisation);
  EXPECT_EQ(class_of("UTMALDG.4D"), SassClass::kAsyncCopy);
  EXPECT_EQ(class_of("NEVERSEEN.X"), SassClass::kOther);
  EXPECT_EQ(class_of("U"), SassClass::kOther);
  EXPECT_EQ(width_of("LDSM.16.MT88.2"), 64);
  EXPECT_EQ(width_of("LDSM.16.M88"), 32) << "a register for one matrix";
  EXPECT_EQ(width_of("STSM.16.M88"), 32);
  EXPECT_EQ(width_of("LDSM.16.M88.4"), 128);
  EXPECT_EQ(width_of("LDS.U16"), 16);
  EXPECT_EQ(width_of("LDG.E.U8"), 8);
  EXPECT_EQ(width_of("STG.E"), 32);
  EXPECT_EQ(width_of("UTMALDG.4D"), 0);
  EXPECT_EQ(width_of("IADD3"), 0);
}

TEST(SassTest, AnyTextIsRead) {
  const std::string whole = kListing;
  for (size_t length = 0; length < whole.size(); ++length) {
    const std::string part = whole.substr(0, length);
    const SassListing sass = parse_sass(part, "kernel");
    EXPECT_LE(sass.instructions.size(), 16u);
    (void)count_mix(sass);
    (void)main_loop(sass);
  }
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string changed = whole;
    for (int i = 0; i < 20; ++i) changed[random() % changed.size()] = static_cast<char>(random());
    (void)count_mix(parse_sass(changed, "kernel"));
  }
}

}  // namespace
}  // namespace pagejit::inspect
