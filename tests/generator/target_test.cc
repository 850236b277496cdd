#include "pagejit/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/arch.h"
#include "pagejit/spec.h"

namespace pagejit {
namespace {

using ::testing::HasSubstr;

TEST(TargetTest, NamesComeBackAsTheSameTarget) {
  for (const char* name :
       {"sm_80", "sm_90a", "sm_100f", "sm_120a", "compute_80", "compute_120", "host", "host_80"}) {
    const Result<Target> target = parse_target(name);
    ASSERT_TRUE(target) << name;
    EXPECT_EQ(target->to_string(), name);
  }
}

TEST(TargetTest, OtherSpellings) {
  EXPECT_EQ(parse_target("90a")->to_string(), "sm_90a");
  EXPECT_EQ(parse_target("9.0")->to_string(), "sm_90");
  EXPECT_EQ(parse_target("12.0a")->to_string(), "sm_120a");
  EXPECT_EQ(parse_target("host_90")->to_string(), "host");
}

TEST(TargetTest, NonsenseIsRefusedWithWhatIsLegal) {
  for (const char* name : {"", "sm_", "sm_9", "gpu", "90b", "sm_1000", "9.00", ".90", "-80",
                           "host_", "host_x", "sm_08", "compute_", "compute_90a"}) {
    const Result<Target> target = parse_target(name);
    ASSERT_FALSE(target) << name;
    EXPECT_EQ(target.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(target.status().message(), HasSubstr("legal are sm_80"));
  }
}

TEST(ArchTest, ProductsOfBf16AreRefusedBeforeSm80) {
  for (const char* target : {"sm_75", "host_75"}) {
    KernelSpec spec;
    for (const DataType q : {DataType::kBFloat16, DataType::kFloat32}) {
      spec.q_dtype = q;
      const Status status = supports(spec, *parse_target(target));
      EXPECT_EQ(status.code(), StatusCode::kUnsupported);
      EXPECT_EQ(status.message(), "kv_dtype bf16: must be f16 or have 8 bits for " +
                                      std::string(target) + ", which has no products of bf16");
    }
    KernelSpec wide = spec;
    wide.kv_dtype = DataType::kFloat32;  // computed in terms of bf16
    EXPECT_EQ(supports(wide, *parse_target(target)).message(),
              "kv_dtype f32: must be f16 or have 8 bits for " + std::string(target) +
                  ", which has no products of bf16");
    // q and the result are only converted.
    spec.q_dtype = spec.out_dtype = DataType::kBFloat16;
    spec.kv_dtype = DataType::kFloat8E4m3;
    EXPECT_TRUE(supports(spec, *parse_target(target)));
    spec.q_dtype = DataType::kFloat32;
    spec.kv_dtype = DataType::kFloat16;
    EXPECT_TRUE(supports(spec, *parse_target(target)));
  }
}

TEST(ArchTest, UnknownArchitecturesAndVariantsAreRefused) {
  for (const char* name :
       {"sm_99", "sm_80a", "sm_90f", "sm_60", "sm_70", "sm_72", "sm_75a", "host_77"}) {
    const Status status = supports(KernelSpec{}, *parse_target(name));
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << name;
    EXPECT_THAT(status.message(), HasSubstr("sm_90")) << name;
  }
}

TEST(ArchTest, EveryKnownArchIsServed) {
  for (const Arch& arch : known_archs()) {
    Target target{TargetKind::kCuda, arch.sm, TargetVariant::kPlain};
    constexpr DataType kF16 = DataType::kFloat16;
    const KernelSpec spec{.q_dtype = kF16, .kv_dtype = kF16, .out_dtype = kF16};
    EXPECT_TRUE(supports(spec, target)) << target.to_string();
    target.variant = TargetVariant::kExact;
    EXPECT_EQ(supports(spec, target).is_ok(), arch.has_exact_variant) << target.to_string();
    target.variant = TargetVariant::kFamily;
    EXPECT_EQ(supports(spec, target).is_ok(), arch.has_family_variant) << target.to_string();
  }
}

}  // namespace
}  // namespace pagejit
