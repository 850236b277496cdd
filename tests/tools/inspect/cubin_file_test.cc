#include "tools/inspect/cubin_file.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/tools/inspect/small_elf.h"
#include "tools/inspect/occupancy.h"

namespace pagejit::inspect {
namespace {

using testing::HasSubstr;

TEST(CubinFileTest, ReadsWhatPtxasHasWritten) {
  SmallElf elf;
  elf.kernels = {{"first", 118, 16, 1024 + 800, 3, {128, 2, 1}},
                 {"second", 255, 0, 0, 0, {32, 1, 1}}};
  const Result<CubinFile> cubin = read_cubin(elf.bytes());
  ASSERT_TRUE(cubin) << cubin.status().to_string();
  EXPECT_EQ(cubin->target, "sm_90a");
  EXPECT_EQ(cubin->tool, "Cuda compilation tools, release 13.0, V13.0.88");
  EXPECT_FALSE(cubin->has_lines);
  ASSERT_EQ(cubin->kernels.size(), 2u);
  const CubinKernel& first = cubin->kernels[0];
  EXPECT_EQ(first.symbol, "first");
  EXPECT_EQ(first.registers, 118);
  EXPECT_EQ(first.stack_bytes, 16);
  EXPECT_EQ(first.static_shared_bytes, 800) << "without what the system keeps";
  EXPECT_EQ(first.barriers, 3);
  EXPECT_EQ(first.max_threads, 256);
  EXPECT_EQ(first.code_bytes, 32u);
  EXPECT_EQ(cubin->kernels[1].registers, 255) << "each its own";
  EXPECT_EQ(cubin->kernels[1].max_threads, 32);
}

TEST(CubinFileTest, BeforeSm90NothingOfSharedMemoryIsReserved) {
  SmallElf elf;
  elf.has_reserved_shared = false;
  elf.kernels[0].shared_bytes = 2048;
  EXPECT_EQ(read_cubin(elf.bytes())->kernels[0].static_shared_bytes, 2048);
}

TEST(CubinFileTest, WithoutANoteTheHeaderTellsTheTarget) {
  SmallElf elf;
  elf.arch = "";
  EXPECT_EQ(read_cubin(elf.bytes())->target, "sm_90");
  elf.flags = 0x06007802;
  EXPECT_EQ(read_cubin(elf.bytes())->target, "sm_120");
  elf.abi = 7;  // before CUDA 13 in the lowest byte
  elf.flags = 0x00500550;
  EXPECT_EQ(read_cubin(elf.bytes())->target, "sm_80");
}

TEST(CubinFileTest, AbsurdNumbersStayNumbers) {
  SmallElf elf;
  elf.kernels = {
      {"k", 0xffffffff, 0xffffffff, 0xffffffff, 255, {0xffffffff, 0xffffffff, 0xffffffff}}};
  const Result<CubinFile> cubin = read_cubin(elf.bytes());
  ASSERT_TRUE(cubin);
  const CubinKernel& kernel = cubin->kernels[0];
  for (const int number :
       {kernel.registers, kernel.stack_bytes, kernel.static_shared_bytes, kernel.max_threads}) {
    EXPECT_EQ(number, 1 << 24);
  }
  const Result<Occupancy> occupancy = occupancy_of(
      {kernel.max_threads, kernel.registers, kernel.static_shared_bytes, kernel.barriers}, 90);
  ASSERT_TRUE(occupancy);
  EXPECT_EQ(occupancy->ctas, 0);
}

TEST(CubinFileTest, AnAttributeWithoutAValueChangesNothing) {
  SmallElf elf;
  elf.kernels[0].barriers = 3;
  elf.kernels[0].has_empty_attribute = true;
  const Result<CubinFile> cubin = read_cubin(elf.bytes());
  ASSERT_TRUE(cubin);
  EXPECT_EQ(cubin->kernels[0].barriers, 3);
}

TEST(CubinFileTest, WhatIsNoCubinIsRefusedWithTheReason) {
  const auto reason = [](const std::string& bytes) {
    const Result<CubinFile> cubin = read_cubin(bytes);
    EXPECT_FALSE(cubin);
    EXPECT_EQ(cubin.status().code(), StatusCode::kDataCorrupt);
    return cubin.status().message();
  };
  EXPECT_EQ(reason(""), "cubin: no ELF file");
  EXPECT_EQ(reason("#!/bin/sh\n" + std::string(100, ' ')), "cubin: no ELF file");
  SmallElf elf;
  std::string other = elf.bytes();
  other[offsetof(Elf64_Ehdr, e_machine)] = EM_X86_64;
  EXPECT_THAT(reason(other), HasSubstr("machine 62, must be 190"));
  elf.kernels.clear();
  EXPECT_EQ(reason(elf.bytes()), "cubin: it has no kernel");
}

TEST(CubinFileTest, TruncatedAnywhereItIsRefused) {
  const std::string whole = SmallElf{.kernels = {{}, {"other"}}}.bytes();
  for (size_t length = 0; length < whole.size(); ++length) {
    // A copy of that length, so that a sanitizer sees each byte read behind it.
    const std::string part = whole.substr(0, length);
    EXPECT_FALSE(read_cubin(std::string_view(part.data(), part.size()))) << length;
  }
}

// It may answer anything, but must come back, and stay within the bytes.
TEST(CubinFileTest, AnyChangedByteIsReadOrRefused) {
  const std::string whole = SmallElf{}.bytes();
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::string changed = whole;
      changed[i] = static_cast<char>(value);
      const Result<CubinFile> cubin = read_cubin(changed);
      if (!cubin) {
        EXPECT_EQ(cubin.status().code(), StatusCode::kDataCorrupt);
      }
    }
  }
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string changed = whole;
    for (int i = 0; i < 8; ++i) changed[random() % changed.size()] = static_cast<char>(random());
    (void)read_cubin(changed);
  }
}

}  // namespace
}  // namespace pagejit::inspect
