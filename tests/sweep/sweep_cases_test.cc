// The lists of cases: complete, unique, and valid specs all. That the covering array covers every
// pair is asserted by the script that writes it, which another test runs again.
#include "tests/sweep/sweep_cases.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

namespace pagejit {
namespace {

TEST(SweepCasesTest, EveryPairOfSpecFieldsOccurs) {
  std::set<std::pair<int, int>> head_block;
  std::set<std::pair<int, int>> head_group;
  std::set<std::pair<int, int>> block_group;
  std::set<std::pair<int, DataType>> head_type;
  std::set<std::pair<int, CacheLayout>> head_layout;
  std::set<std::pair<int, int>> block_splits;
  for (const SweepCase& c : pairwise_cases()) {
    head_block.insert({c.head_size, c.block_size});
    head_group.insert({c.head_size, c.group_size});
    block_group.insert({c.block_size, c.group_size});
    head_type.insert({c.head_size, c.type});
    head_layout.insert({c.head_size, c.layout});
    block_splits.insert({c.block_size, c.num_splits});
  }
  EXPECT_EQ(head_block.size(), 12u * 8);
  EXPECT_EQ(head_group.size(), 12u * 9);
  EXPECT_EQ(block_group.size(), 8u * 9);
  EXPECT_EQ(head_type.size(), 12u * 2);
  EXPECT_EQ(head_layout.size(), 12u * 5);
  EXPECT_EQ(block_splits.size(), 8u * 4);
}

TEST(SweepCasesTest, TheFullProductHasEverySpecOnce) {
  std::set<std::string> specs;
  std::set<std::string> names;
  for (const SweepCase& c : all_cases()) {
    EXPECT_TRUE(validate(c.spec()).is_ok());
    specs.insert(canonical_text(c.spec()));
    names.insert(c.name());
  }
  EXPECT_EQ(specs.size(), 12u * 8 * 9 * 2);
  EXPECT_EQ(names.size(), specs.size());
}

TEST(SweepCasesTest, NamesAndLengthsAreThoseOfTheCase) {
  std::set<std::string> names;
  for (const SweepCase& c : pairwise_cases()) {
    EXPECT_TRUE(names.insert(c.name()).second) << c.name();
    EXPECT_FALSE(c.seq_lens().empty());
  }
  SweepCase c = pairwise_cases()[0];
  c.block_size = 24;
  c.lengths = Lengths::kBlockBorders;
  EXPECT_EQ(c.seq_lens(), (std::vector<int>{23, 24, 25}));
  EXPECT_EQ(c.check_options().batch.seq_lens, c.seq_lens());
}

}  // namespace
}  // namespace pagejit
