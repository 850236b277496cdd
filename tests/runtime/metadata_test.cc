#include "runtime/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace pagejit {
namespace {

using ::testing::HasSubstr;

KernelMetadata sample() {
  KernelMetadata metadata;
  metadata.spec = "decode q=bf16 kv=bf16 out=bf16 head_size=128 block_size=16 group_size=4";
  metadata.target = "sm_90a";
  metadata.symbol = "pagejit_decode_bf16_d128_b16_g4";
  metadata.abi = parameter_abi(KernelConfig{});
  metadata.compiler = "NVRTC 13.0";
  metadata.threads_per_cta = 128;
  metadata.dynamic_shared_bytes = 98304;
  metadata.pdl = 1;
  metadata.static_shared_bytes = 16;
  metadata.registers = 128;
  metadata.spill_store_bytes = 1;
  metadata.spill_load_bytes = 2;
  metadata.stack_bytes = 3;
  metadata.compile_us = 12345678901;
  metadata.log = "ptxas info : Used 128 registers\nend\nlog=3\n";
  return metadata;
}

TEST(MetadataTest, ReadsBackWhatWasWritten) {
  Result<KernelMetadata> read = parse_metadata(encode_metadata(sample()));
  ASSERT_TRUE(read) << read.status().to_string();
  EXPECT_EQ(*read, sample());
}

TEST(MetadataTest, TruncationAtEveryByteIsCorrupt) {
  const std::string blob = encode_metadata(sample());
  for (size_t size = 0; size < blob.size(); ++size) {
    Result<KernelMetadata> read = parse_metadata(std::string_view(blob).substr(0, size));
    ASSERT_FALSE(read) << "the first " << size << " bytes";
    EXPECT_EQ(read.status().code(), StatusCode::kDataCorrupt);
  }
}

TEST(MetadataTest, TwoCompilesHaveTheSameReproducibleMetadata) {
  KernelMetadata other = sample();
  other.compile_us = 7;
  other.log = "ptxas info : Compile time = 201.896 ms\n";
  const Result<std::string> blob = reproducible_metadata(encode_metadata(sample()));
  ASSERT_TRUE(blob) << blob.status().to_string();
  EXPECT_EQ(blob.value(), reproducible_metadata(encode_metadata(other)).value());
  EXPECT_EQ(blob.value(), reproducible_metadata(*blob).value());

  KernelMetadata expected = sample();
  expected.compile_us = 0;
  expected.log.clear();
  EXPECT_EQ(*parse_metadata(*blob), expected);
  // What the kernel is stays.
  other.registers = 1;
  EXPECT_NE(*blob, reproducible_metadata(encode_metadata(other)).value());
  EXPECT_EQ(reproducible_metadata("no metadata").status().code(), StatusCode::kDataCorrupt);
}

TEST(MetadataTest, TrailingBytesAreCorrupt) {
  EXPECT_FALSE(parse_metadata(encode_metadata(sample()) + "\n"));
}

TEST(MetadataTest, FaultIsNamedWithItsPlace) {
  std::string blob = encode_metadata(sample());
  blob.replace(blob.find("registers=128"), 13, "registers=12x");
  Result<KernelMetadata> read = parse_metadata(blob);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.status().message(), HasSubstr("behind \"registers=\""));
}

TEST(MetadataTest, NumbersHaveOneSpelling) {
  for (const char* bad : {"registers=0128", "registers=+128", "registers= 128",
                          "registers=", "registers=99999999999", "registers=-1"}) {
    std::string blob = encode_metadata(sample());
    blob.replace(blob.find("registers=128"), 13, bad);
    EXPECT_FALSE(parse_metadata(blob)) << bad;
  }
}

TEST(MetadataTest, HugeLogLengthIsCorrupt) {
  std::string blob = encode_metadata(sample());
  const size_t at = blob.find("\nlog=") + 5;
  blob.replace(at, blob.find('\n', at) - at, "18446744073709551615");
  EXPECT_FALSE(parse_metadata(blob));
}

TEST(MetadataTest, CompilersAreOrderedByTheNumbersInTheirVersions) {
  const char* const ascending[] = {"",           "NVRTC 9.2",    "NVRTC 12.4",
                                   "NVRTC 12.9", "NVRTC 12.10",  "NVRTC 13",
                                   "NVRTC 13.0", "NVRTC 13.0.1", "NVRTC 99999999999999999999.1",
                                   "g++ 12.2.0", "g++ 12.10.0"};
  for (size_t a = 0; a < std::size(ascending); ++a) {
    for (size_t b = 0; b < std::size(ascending); ++b) {
      EXPECT_EQ(is_newer_compiler(ascending[a], ascending[b]), a > b)
          << ascending[a] << " and " << ascending[b];
    }
  }
  EXPECT_FALSE(is_newer_compiler("g++ 012", "g++ 12"));
  EXPECT_FALSE(is_newer_compiler("g++ 12", "g++ 012"));
}

TEST(MetadataTest, OtherVersionIsCorrupt) {
  std::string blob = encode_metadata(sample());
  blob.replace(blob.find(" 3\n"), 3, " 2\n");
  EXPECT_FALSE(parse_metadata(blob));
}

// Must neither crash nor read outside (the sanitizer builds see that); what still parses must be
// re-encodable.
TEST(MetadataTest, SurvivesFlippedBytesAndGarbage) {
  std::mt19937 random(1);
  const std::string good = encode_metadata(sample());
  for (int i = 0; i < 20000; ++i) {
    std::string blob = good;
    for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips) {
      blob[random() % blob.size()] = static_cast<char>(random());
    }
    if (i % 4 == 0) blob = blob.substr(random() % blob.size());
    Result<KernelMetadata> read = parse_metadata(blob);
    if (read) {
      EXPECT_EQ(encode_metadata(*read), blob);
    }
  }
}

TEST(MetadataTest, LineBreaksInFieldsCannotForgeALine) {
  KernelMetadata metadata = sample();
  metadata.symbol = "a\nabi=forged";
  Result<KernelMetadata> read = parse_metadata(encode_metadata(metadata));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->symbol, "a abi=forged");
  EXPECT_EQ(read->abi, parameter_abi(KernelConfig{}));
}

TEST(MetadataTest, LongLogIsShortened) {
  KernelMetadata metadata = sample();
  metadata.log.assign(100000, 'x');
  Result<KernelMetadata> read = parse_metadata(encode_metadata(metadata));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->log.size(), kMaxMetadataLog);
}

}  // namespace
}  // namespace pagejit
