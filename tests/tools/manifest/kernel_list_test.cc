#include "tools/manifest/kernel_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace pagejit::manifest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<ListedKernel> make_list(int count) {
  std::vector<ListedKernel> kernels;
  for (int i = 1; i <= count; ++i) {
    kernels.emplace_back(MergeStatesSpec{.head_size = i}, *parse_target("sm_90a"));
  }
  sort_unique(&kernels);
  return kernels;
}

TEST(KernelListTest, SortedByTextThenTargetEachOnce) {
  std::vector<ListedKernel> kernels;
  for (const char* target : {"host", "sm_120a", "sm_90a", "sm_80", "sm_90", "sm_90a"}) {
    kernels.emplace_back(TopKSpec{}, *parse_target(target));
  }
  kernels.emplace_back(CopyBlocksSpec{}, *parse_target("sm_120a"));
  sort_unique(&kernels);
  std::vector<std::string> lines;
  for (const ListedKernel& kernel : kernels) lines.push_back(line_of(kernel));
  EXPECT_THAT(lines, ElementsAre("sm_120a copy_blocks alignment=16", "sm_80 top_k", "sm_90 top_k",
                                 "sm_90a top_k", "sm_120a top_k", "host top_k"));
  EXPECT_EQ(json_of(kernels[1]), R"({"spec":"top_k","target":"sm_80"})");
}

TEST(KernelListTest, ShardsAreDisjointCompleteAndEven) {
  const std::vector<ListedKernel> all = make_list(100);
  for (const int count : {1, 2, 3, 7, 100, 150}) {
    std::vector<ListedKernel> together;
    for (int index = 1; index <= count; ++index) {
      const std::vector<ListedKernel> part = shard_of(all, {index, count});
      EXPECT_GE(part.size(), static_cast<size_t>(100 / count));
      EXPECT_LE(part.size(), static_cast<size_t>(100 / count + 1));
      EXPECT_EQ(part, shard_of(all, {index, count}));
      together.insert(together.end(), part.begin(), part.end());
    }
    ASSERT_EQ(together.size(), all.size()) << "none is in two";
    sort_unique(&together);
    EXPECT_EQ(together, all) << count;
  }
}

TEST(KernelListTest, ShardsByTheirText) {
  EXPECT_EQ(parse_shard("2/8")->index, 2);
  EXPECT_EQ(parse_shard("2/8")->count, 8);
  for (const char* text : {"", "/", "1", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "a/b", "1/ 2",
                           "1/99999999999", "1/100001"}) {
    EXPECT_THAT(parse_shard(text).status().message(), HasSubstr("must be I/N")) << text;
  }
}

TEST(KernelListTest, DifferenceOfLists) {
  std::vector<ListedKernel> first = make_list(3), second = make_list(4);
  first.erase(first.begin());
  const ListDifference apart = difference(first, second);
  EXPECT_TRUE(apart.only_first.empty());
  ASSERT_EQ(apart.only_second.size(), 2u);
  EXPECT_EQ(difference(second, first).only_first, apart.only_second);
  EXPECT_TRUE(difference(second, second).only_first.empty());
}

}  // namespace
}  // namespace pagejit::manifest
