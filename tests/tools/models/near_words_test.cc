#include "tools/models/near_words.h"

#include <gtest/gtest.h>

namespace pagejit::models {
namespace {

const std::vector<std::string> kWords = {"precompile", "bundle", "cache", "check", "ls", "sm_90a"};

TEST(NearWordsTest, DistanceCountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("ls", ""), 2u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("cahce", "cache"), 1u) << "a swap";
  EXPECT_EQ(edit_distance("abcd", "badc"), 2u);
  EXPECT_EQ(edit_distance("abc", "bca"), 2u);
}

TEST(NearWordsTest, SlipsAreFound) {
  EXPECT_EQ(nearest_word("preconpile", kWords), "precompile");
  EXPECT_EQ(nearest_word("bundel", kWords), "bundle");
  EXPECT_EQ(nearest_word("lss", kWords), "ls");
  EXPECT_EQ(nearest_word("bf61", {"f16", "bf16", "fp8"}), "bf16");
  EXPECT_EQ(nearest_word("sm_90b", kWords), "sm_90a");
  EXPECT_EQ(nearest_word("pre", kWords), "precompile") << "a beginning";
}

TEST(NearWordsTest, OtherWordsAreNotSuggested) {
  for (const char* word : {"", "x", "rm", "frobnicate", "hopper", "table"}) {
    EXPECT_EQ(nearest_word(word, kWords), "") << word;
  }
}

TEST(NearWordsTest, OfEquallyNearOnesTheFirst) {
  EXPECT_EQ(nearest_word("cheche", {"checke", "checha"}), "checke");
}

TEST(NearWordsTest, Sentence) {
  EXPECT_EQ(did_you_mean("chek", kWords), "; did you mean check?");
  EXPECT_EQ(did_you_mean("frobnicate", kWords), "");
}

}  // namespace
}  // namespace pagejit::models
