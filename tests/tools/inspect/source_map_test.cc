#include "tools/inspect/source_map.h"

#include <gtest/gtest.h>

namespace pagejit::inspect {
namespace {

constexpr const char* kSource =
    "before\n"                         // 0
    "#line 1 \"device/memory.cuh\"\n"  // 1
    "memory one\n"                     // 2
    "#line 40 \"memory.cuh\"\n"        // 3
    "other forty\n"                    // 4
    "other forty-one\n"                // 5
    "#line 3 \"device/memory.cuh\"\n"  // 6
    "memory three";                    // 7

TEST(SourceMapTest, LinesOfFilesAreFoundBelowAnyFolder) {
  const SourceMap map(kSource);
  EXPECT_EQ(map.lines().size(), 8u);
  EXPECT_EQ(map.find("/home/tree/device/memory.cuh", 1), 2);
  EXPECT_EQ(map.find("device/memory.cuh", 3), 7);
  EXPECT_EQ(map.find("/home/tree/memory.cuh", 41), 5);
  EXPECT_EQ(map.find("", 1), 0) << "before the first directive";
}

TEST(SourceMapTest, WhatIsNotThereIsNotFound) {
  const SourceMap map(kSource);
  EXPECT_EQ(map.find("/home/device/memory.cuh", 2), -1);
  EXPECT_EQ(map.find("/home/other.cuh", 1), -1);
  EXPECT_EQ(map.find("mydevice/memory.cuh", 3), -1) << "memory.cuh has no line 3";
  EXPECT_EQ(SourceMap("").find("a", 1), -1);
  EXPECT_EQ(SourceMap("#line\n#line x\n#line 3 \"\n").lines().size(), 3u);
}

}  // namespace
}  // namespace pagejit::inspect
