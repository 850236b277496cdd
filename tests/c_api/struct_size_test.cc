// Structs of callers that were compiled against an older or a newer library. None of the real ones
// has grown yet, so an invented one stands for those that will have.
#include <gmock/gmock.h>

#include <cstring>
#include <string>

#include "pagejit/pagejit.h"
#include "runtime/c_api/families.h"
#include "runtime/c_api/structs.h"

namespace pagejit::c_api {
namespace {

using ::testing::HasSubstr;

struct Grown {
  size_t struct_size;
  int64_t first;
  int64_t since_version_2;
};

}  // namespace

template <>
inline constexpr size_t kFirstSize<Grown> = offsetof(Grown, since_version_2);

namespace {

constexpr size_t kOldSize = kFirstSize<Grown>;

TEST(StructSizeTest, AnOlderStructIsReadWithZerosInWhatItLacks) {
  Grown given{kOldSize, 7, 99};
  Grown copy{0, 1, 2};
  Status refusal;
  const Grown* known = open_struct("grown", &given, &copy, &refusal);
  ASSERT_EQ(known, &copy);
  EXPECT_TRUE(refusal);
  EXPECT_EQ(known->first, 7);
  EXPECT_EQ(known->since_version_2, 0) << "not what lies behind the caller's struct";
}

TEST(StructSizeTest, ASizeBetweenTwoVersionsIsReadAsFarAsItReaches) {
  Grown given{kOldSize + 4, 7, -1};
  Grown copy{};
  Status refusal;
  const Grown* known = open_struct("grown", &given, &copy, &refusal);
  ASSERT_EQ(known, &copy);
  EXPECT_EQ(known->since_version_2, int64_t{0xffffffff});
}

TEST(StructSizeTest, OneSmallerThanTheFirstVersionIsRefused) {
  Grown given{kOldSize - 1, 7, 99};
  Grown copy{};
  Status refusal;
  EXPECT_EQ(open_struct("grown", &given, &copy, &refusal), nullptr);
  EXPECT_EQ(refusal.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refusal.message(), HasSubstr("struct_size 15"));
  EXPECT_EQ(check_output("grown", &given).code(), StatusCode::kInvalidArgument);
}

TEST(StructSizeTest, AnOlderStructIsFilledAsFarAsItReaches) {
  Grown out{kOldSize, 0, 99};
  EXPECT_TRUE(check_output("grown", &out));
  fill(&out, Grown{sizeof(Grown), 7, 8});
  EXPECT_EQ(out.struct_size, kOldSize);
  EXPECT_EQ(out.first, 7);
  EXPECT_EQ(out.since_version_2, 99) << "written behind the caller's struct";
  Grown initialised{0, 0, 99};
  EXPECT_EQ(init_struct(&initialised, kOldSize, Grown{0, 7, 8}), PAGEJIT_OK);
  EXPECT_EQ(initialised.struct_size, kOldSize);
  EXPECT_EQ(initialised.first, 7);
  EXPECT_EQ(initialised.since_version_2, 99);
}

// The levels of a cascade as a newer program lays them out.
struct NewerLevel {
  pagejit_cascade_level known;
  int64_t since;
};

class NewerLevelsTest : public ::testing::Test {
 protected:
  NewerLevelsTest() {
    for (int i = 0; i < 2; ++i) {
      pagejit_cascade_level_init(&levels[i].known, sizeof(NewerLevel));
      levels[i].known.num_seqs = 10 + i;
      levels[i].since = 0;
    }
    args.num_levels = 2;
    args.levels = &levels[0].known;
  }

  NewerLevel levels[2];
  pagejit_cascade_args args = CascadeFamily::default_args();
  CascadeArgsWithRoom converted;
};

TEST_F(NewerLevelsTest, EachIsReadFromItsPlace) {
  const Status status = CascadeFamily::to_cpp(&args, &converted);
  ASSERT_TRUE(status) << status.to_string();
  EXPECT_EQ(converted.levels[0].num_seqs, 10);
  EXPECT_EQ(converted.levels[1].num_seqs, 11);
}

TEST_F(NewerLevelsTest, WhatThisVersionDoesNotKnowMustBeZero) {
  levels[1].since = 1;
  const Status status = CascadeFamily::to_cpp(&args, &converted);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.to_string(), HasSubstr("levels[1]"));
}

TEST_F(NewerLevelsTest, AllHaveOneSize) {
  levels[1].known.struct_size = sizeof(pagejit_cascade_level);
  const Status status = CascadeFamily::to_cpp(&args, &converted);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("must be that of levels[0]"));
}

// The spec of attention that other specs point to is a struct like all others.
template <class Family>
void expect_attention_checked(const char* name) {
  SCOPED_TRACE(name);
  typename Family::CSpec spec = Family::to_c({});
  typename Family::Spec converted;
  EXPECT_EQ(Family::to_cpp(&spec, &converted).code(), StatusCode::kInvalidArgument);
  pagejit_kernel_spec attention = AttentionFamily::to_c({});
  spec.attention = &attention;
  EXPECT_TRUE(Family::to_cpp(&spec, &converted));
  attention.struct_size = 4;
  const Status status = Family::to_cpp(&spec, &converted);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("struct_size 4"));
}

TEST(StructSizeTest, TheSpecOfAttentionInAnotherIsChecked) {
  expect_attention_checked<CascadeFamily>("cascade");
  expect_attention_checked<SparseAttentionFamily>("sparse attention");
}

}  // namespace
}  // namespace pagejit::c_api
