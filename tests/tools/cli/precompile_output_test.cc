#include "tools/cli/precompile_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/metadata.h"

namespace pagejit::cli {
namespace {

TEST(PrecompileOutputTest, EntriesOfTwoBuildsDifferInTheirTimesOnly) {
  KernelMetadata metadata;
  metadata.spec = "top_k";
  metadata.registers = 32;
  metadata.compile_us = 1500;
  metadata.log = "compiled in 1.5 ms";
  cache::Entry first;
  first.metadata = encode_metadata(metadata);
  first.image = "image";
  cache::Entry second = first;
  metadata.compile_us = 1700;
  metadata.log = "compiled in 1.7 ms";
  second.metadata = encode_metadata(metadata);
  ASSERT_NE(first, second);
  const Result<cache::Entry> stripped = without_times(first);
  ASSERT_TRUE(stripped) << stripped.status().to_string();
  EXPECT_EQ(*stripped, *without_times(second));
  EXPECT_EQ(stripped->image, "image");
  EXPECT_EQ(parse_metadata(stripped->metadata)->registers, 32u);
}

TEST(PrecompileOutputTest, ForeignMetadataIsRefused) {
  cache::Entry entry;
  entry.metadata = "something else";
  EXPECT_EQ(without_times(entry).status().code(), StatusCode::kDataCorrupt);
}

}  // namespace
}  // namespace pagejit::cli
