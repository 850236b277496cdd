#include "pagejit/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace pagejit {
namespace {

using ::testing::HasSubstr;

KernelSpec with(auto change) {
  KernelSpec spec;
  change(spec);
  return spec;
}

void make_ds_mla(KernelSpec& spec) {
  spec.latent = true;
  spec.kv_layout = KvLayout::kDsMla;
  spec.kv_dtype = DataType::kFloat8E4m3;
  spec.head_size = 576;
  spec.head_size_v = 512;
}

struct BadSpec {
  const char* name;
  KernelSpec spec;
  StatusCode code;
  const char* field_and_value;
  const char* legal;
};

class ValidateTest : public ::testing::TestWithParam<BadSpec> {};

TEST_P(ValidateTest, NamesFieldValueAndWhatIsLegal) {
  const Status status = validate(GetParam().spec);
  EXPECT_EQ(status.code(), GetParam().code);
  EXPECT_THAT(status.message(), HasSubstr(GetParam().field_and_value));
  EXPECT_THAT(status.message(), HasSubstr(GetParam().legal));
}

constexpr StatusCode kInvalid = StatusCode::kInvalidArgument;

INSTANTIATE_TEST_SUITE_P(
    Rules, ValidateTest,
    ::testing::Values(
        BadSpec{"HeadSizeNotMultipleOf8", with([](auto& s) { s.head_size = 100; }), kInvalid,
                "head_size 100", "multiple of 8 in [8, 256], or 512"},
        BadSpec{"HeadSizeTooSmall", with([](auto& s) { s.head_size = 0; }), kInvalid, "head_size 0",
                "[8, 256], or 512"},
        BadSpec{"HeadSizeTooLarge", with([](auto& s) { s.head_size = 264; }), kInvalid,
                "head_size 264", "[8, 256], or 512"},
        BadSpec{"HeadSizeNegative", with([](auto& s) { s.head_size = -64; }), kInvalid,
                "head_size -64", "[8, 256], or 512"},
        BadSpec{"BlockSizeZero", with([](auto& s) { s.block_size = 0; }), kInvalid, "block_size 0",
                "[1, 65536]"},
        BadSpec{"BlockSizeTooLarge", with([](auto& s) { s.block_size = 65537; }), kInvalid,
                "block_size 65537", "[1, 65536]"},
        BadSpec{"GroupSizeZero", with([](auto& s) { s.group_size = 0; }), kInvalid, "group_size 0",
                "[1, 128]"},
        BadSpec{"GroupSizeTooLarge", with([](auto& s) { s.group_size = 129; }), kInvalid,
                "group_size 129", "[1, 128]"},
        BadSpec{"QueryTypeDiffers", with([](auto& s) { s.q_dtype = DataType::kFloat16; }),
                StatusCode::kUnsupported, "q_dtype f16", "bf16 or f32 where kv_dtype is bf16"},
        BadSpec{"QueryTypeDiffersFromF16", with([](auto& s) { s.kv_dtype = DataType::kFloat16; }),
                StatusCode::kUnsupported, "q_dtype bf16", "f16 or f32 where kv_dtype is f16"},
        BadSpec{"QueryOf8BitsAlone", with([](auto& s) { s.q_dtype = DataType::kFloat8E4m3; }),
                StatusCode::kUnsupported, "q_dtype fp8_e4m3", "bf16 or f32"},
        BadSpec{"QueryIsE5m2",
                with([](auto& s) { s.q_dtype = s.kv_dtype = DataType::kFloat8E5m2; }),
                StatusCode::kUnsupported, "q_dtype fp8_e5m2", "f16, bf16, f32 or fp8_e4m3"},
        BadSpec{"QueryTypeDiffersFromF32", with([](auto& s) { s.kv_dtype = DataType::kFloat32; }),
                StatusCode::kUnsupported, "q_dtype bf16", "f32 where kv_dtype is f32"},
        BadSpec{"KvOfF32WithTokenScales", with([](auto& s) {
                  s.q_dtype = s.kv_dtype = DataType::kFloat32;
                  s.token_scales = true;
                }),
                kInvalid, "token_scales 1", "0 where kv_dtype is f32, which has no scales"},
        BadSpec{"KvOfF32WithLargeHeads", with([](auto& s) {
                  s.q_dtype = s.kv_dtype = DataType::kFloat32;
                  s.head_size = 512;
                }),
                kInvalid, "head_size 512", "at most 256 where kv_dtype is f32"},
        BadSpec{"OutIsE5m2", with([](auto& s) { s.out_dtype = DataType::kFloat8E5m2; }),
                StatusCode::kUnsupported, "out_dtype fp8_e5m2", "f16, bf16, f32 or fp8_e4m3"},
        BadSpec{"OutIsInt8", with([](auto& s) { s.out_dtype = DataType::kInt8; }),
                StatusCode::kUnsupported, "out_dtype int8", "f16, bf16, f32 or fp8_e4m3"},
        BadSpec{"UnknownType", with([](auto& s) { s.q_dtype = static_cast<DataType>(9); }),
                kInvalid, "data type 9", "fp8_e5m2 (4), int8 (5) and int4 (6)"},
        BadSpec{"Int8WithoutTokenScales", with([](auto& s) { s.kv_dtype = DataType::kInt8; }),
                kInvalid, "token_scales 0", "must be 1 where kv_dtype is int8"},
        BadSpec{"Int4WithoutTokenScales", with([](auto& s) { s.kv_dtype = DataType::kInt4; }),
                kInvalid, "token_scales 0", "must be 1 where kv_dtype is int4"},
        BadSpec{"QueryIsInt4", with([](auto& s) {
                  s.q_dtype = s.kv_dtype = DataType::kInt4;
                  s.token_scales = true;
                }),
                StatusCode::kUnsupported, "q_dtype int4", "f16, bf16, f32 or fp8_e4m3"},
        BadSpec{"OutIsInt4", with([](auto& s) { s.out_dtype = DataType::kInt4; }),
                StatusCode::kUnsupported, "out_dtype int4", "f16, bf16, f32 or fp8_e4m3"},
        BadSpec{"Int4InVllmsLayout", with([](auto& s) {
                  s.kv_dtype = DataType::kInt4;
                  s.token_scales = true;
                  s.kv_layout = KvLayout::kVllm;
                }),
                StatusCode::kUnsupported, "kv_dtype int4", "fp8_e5m2 where kv_layout is vLLM's"},
        BadSpec{"TokenScalesOf16Bits", with([](auto& s) { s.token_scales = true; }), kInvalid,
                "token_scales 1", "must be 0 where kv_dtype is bf16"},
        BadSpec{"TokenScalesInVllmsLayout", with([](auto& s) {
                  s.kv_dtype = DataType::kFloat8E4m3;
                  s.token_scales = true;
                  s.kv_layout = KvLayout::kVllm;
                }),
                kInvalid, "token_scales 1", "must be 0 where kv_layout is vLLM's"},
        BadSpec{"KvAlignment", with([](auto& s) { s.kv_alignment = 2; }), kInvalid,
                "kv_alignment 2", "must be 16, 8 or 4 bytes"},
        BadSpec{"KvAlignmentInVllmsLayout", with([](auto& s) {
                  s.kv_alignment = 8;
                  s.kv_layout = KvLayout::kVllm;
                }),
                kInvalid, "kv_alignment 8", "must be 16 where kv_layout is vLLM's"},
        BadSpec{"ValueHeadSize", with([](auto& s) { s.head_size_v = 64; }), kInvalid,
                "head_size_v 64 with head_size 128", "128 with 192, or 512 with 576"},
        BadSpec{"HeadSize576Alone", with([](auto& s) { s.head_size = 576; }), kInvalid,
                "head_size 576", "576 with head_size_v 512"},
        BadSpec{"LatentHeadSize", with([](auto& s) {
                  s.latent = true;
                  s.head_size = 72;
                }),
                kInvalid, "head_size 72", "a multiple of 16 in [16, 576] where latent is 1"},
        BadSpec{"LatentIsTooWide", with([](auto& s) {
                  s.latent = true;
                  s.head_size = 592;
                }),
                kInvalid, "head_size 592", "[16, 576]"},
        BadSpec{"LatentValuesAreWider", with([](auto& s) {
                  s.latent = true;
                  s.head_size_v = 144;
                }),
                kInvalid, "head_size_v 144", "[16, 128] where latent is 1 and head_size is 128"},
        BadSpec{"LatentValuesAreTooWide", with([](auto& s) {
                  s.latent = true;
                  s.head_size = 576;
                }),
                kInvalid, "head_size_v 576", "[16, 512]"},
        BadSpec{"LatentOfF32", with([](auto& s) {
                  s.latent = true;
                  s.q_dtype = s.kv_dtype = DataType::kFloat32;
                }),
                StatusCode::kUnsupported, "kv_dtype f32", "fp8_e5m2 where latent is 1"},
        BadSpec{"LatentInVllmsLayout", with([](auto& s) {
                  s.latent = true;
                  s.kv_layout = KvLayout::kVllm;
                }),
                kInvalid, "kv_layout 1", "must be rows (0) or DS-MLA's (2) where latent is 1"},
        BadSpec{"DsMlaOfPlainRows", with([](auto& s) { s.kv_layout = KvLayout::kDsMla; }), kInvalid,
                "kv_layout 2", "must be rows (0) or vLLM's (1) where latent is 0"},
        BadSpec{"DsMlaOfOtherRanks", with([](auto& s) {
                  make_ds_mla(s);
                  s.head_size = 320;
                  s.head_size_v = 256;
                }),
                kInvalid, "head_size 320", "must be 576 where kv_layout is DS-MLA's (2)"},
        BadSpec{"DsMlaOfOtherValues", with([](auto& s) {
                  make_ds_mla(s);
                  s.head_size_v = 256;
                }),
                kInvalid, "head_size_v 256", "must be 512 where kv_layout is DS-MLA's (2)"},
        BadSpec{"DsMlaOfBf16", with([](auto& s) {
                  make_ds_mla(s);
                  s.kv_dtype = DataType::kBFloat16;
                }),
                StatusCode::kUnsupported, "kv_dtype bf16", "must be fp8_e4m3 where kv_layout is"},
        BadSpec{"DsMlaForF16Queries", with([](auto& s) {
                  make_ds_mla(s);
                  s.q_dtype = DataType::kFloat16;
                }),
                StatusCode::kUnsupported, "q_dtype f16", "must be bf16 where kv_layout is"},
        BadSpec{"UnknownLayout", with([](auto& s) { s.kv_layout = static_cast<KvLayout>(3); }),
                kInvalid, "kv_layout 3", "rows (0), vLLM's (1) and DS-MLA's (2)"},
        BadSpec{"LatentWithTokenScales", with([](auto& s) {
                  s.latent = s.token_scales = true;
                  s.kv_dtype = DataType::kFloat8E4m3;
                }),
                StatusCode::kUnsupported, "token_scales 1", "must be 0 where latent is 1"},
        BadSpec{"LatentWithMask", with([](auto& s) { s.latent = s.custom_mask = true; }),
                StatusCode::kUnsupported, "custom_mask 1", "must be 0 where latent is 1"},
        BadSpec{"LatentBlockSparse", with([](auto& s) { s.latent = s.block_sparse = true; }),
                StatusCode::kUnsupported, "block_sparse 1", "must be 0 where latent is 1"},
        BadSpec{"UnknownQueries", with([](auto& s) { s.queries = static_cast<QueryLengths>(4); }),
                kInvalid, "queries 4", "one (0), few (1), many (2) and shared (3)"},
        BadSpec{"UnknownCausality", with([](auto& s) {
                  s.queries = QueryLengths::kMany;
                  s.causality = static_cast<Causality>(3);
                }),
                kInvalid, "causality 3", "none (0), causal (1) and per sequence (2)"},
        BadSpec{"UnknownTable", with([](auto& s) { s.kv_table = static_cast<KvTable>(5); }),
                kInvalid, "kv_table 5", "contiguous (2), slots (3) and positions (4)"},
        BadSpec{"ListsOfPlainRows", with([](auto& s) { s.kv_table = KvTable::kSlots; }), kInvalid,
                "kv_table 3", "contiguous (2) unless latent is 1 and queries is one (0)"},
        BadSpec{"ListsOfSeveralQueries", with([](auto& s) {
                  s.latent = true;
                  s.kv_table = KvTable::kPositions;
                  s.queries = QueryLengths::kFew;
                }),
                kInvalid, "kv_table 4", "unless latent is 1 and queries is one (0)"},
        BadSpec{"ListsWithWindow", with([](auto& s) {
                  s.latent = s.window = true;
                  s.kv_table = KvTable::kSlots;
                }),
                kInvalid, "window 1", "must be 0 where kv_table is slots (3) or positions (4)"},
        BadSpec{"BlocksOfContiguousKv", with([](auto& s) { s.kv_table = KvTable::kContiguous; }),
                kInvalid, "block_size 16", "must be 1 where kv_table is contiguous (2)"},
        BadSpec{"WindowAndChunks", with([](auto& s) { s.window = s.chunked = true; }), kInvalid,
                "window 1", "must be 0 where chunked is 1"},
        BadSpec{"RangesOfBlockSparse",
                with([](auto& s) { s.bidirectional_ranges = s.block_sparse = true; }),
                StatusCode::kUnsupported, "bidirectional_ranges 1",
                "must be 0 where block_sparse is 1"},
        BadSpec{"BatchInvariantDecode", with([](auto& s) { s.batch_invariant = true; }), kInvalid,
                "batch_invariant 1", "must be 0 where queries is one (0)"},
        BadSpec{"CausalDecode", with([](auto& s) { s.causality = Causality::kCausal; }), kInvalid,
                "causality 1", "must be none (0) where queries is one (0)"}),
    [](const auto& test) { return test.param.name; });

TEST(SpecTest, EveryLegalHeadSizeIsAccepted) {
  for (int head_size = 16; head_size <= 256; head_size += 8) {
    EXPECT_TRUE(validate(with([&](auto& s) { s.head_size = head_size; }))) << head_size;
  }
}

TEST(SpecTest, ValueHeadSizeOfTheSameSizeIsTheSameSpec) {
  const KernelSpec plain;
  const KernelSpec named = with([](auto& s) { s.head_size_v = 128; });
  EXPECT_TRUE(validate(named));
  EXPECT_EQ(canonical_text(named), canonical_text(plain));
}

TEST(SpecTest, Nvfp4IsRefusedByName) {
  const Result<DataType> type = parse_data_type("nvfp4");
  EXPECT_EQ(type.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(type.status().message(), HasSubstr("nvfp4 is not served yet"));
}

TEST(SpecTest, Int4IsReadAndRefusedWhereAsynchronousCopiesAreMissing) {
  const Result<KernelSpec> spec =
      parse_spec("decode q=bf16 kv=int4 out=bf16 head_size=128 token_scales=1");
  ASSERT_TRUE(spec) << spec.status().to_string();
  EXPECT_EQ(spec->kv_dtype, DataType::kInt4);
  EXPECT_TRUE(supports(*spec, *parse_target("sm_80")));
  EXPECT_EQ(supports(*spec, *parse_target("sm_75")).message(),
            "kv_dtype int4: must be f16 or have 8 bits for sm_75");
}

TEST(SpecTest, CanonicalTextIsPinned) {
  EXPECT_EQ(canonical_text(with([](auto& s) {
              s.kv_dtype = DataType::kInt8;
              s.out_dtype = DataType::kFloat8E4m3;
              s.head_size = 192;
              s.head_size_v = 128;
              s.token_scales = true;
              s.kv_alignment = 4;
            })),
            "decode q=bf16 kv=int8 out=fp8_e4m3 head_size=192 head_size_v=128 block_size=16 "
            "group_size=1 kv_alignment=4 token_scales=1");
  EXPECT_EQ(canonical_text(KernelSpec{}),
            "decode q=bf16 kv=bf16 out=bf16 head_size=128 block_size=16 group_size=1");
  EXPECT_EQ(canonical_text(with([](auto& s) {
              s.q_dtype = s.kv_dtype = s.out_dtype = DataType::kFloat16;
              s.head_size = 64;
              s.block_size = 5;
              s.group_size = 71;
              s.debug = true;
            })),
            "decode q=f16 kv=f16 out=f16 head_size=64 block_size=5 group_size=71 debug=1");
}

TEST(SpecTest, ProgrammaticDependentLaunchNeedsSm90) {
  const KernelSpec spec = with([](auto& s) { s.pdl = true; });
  EXPECT_EQ(canonical_text(spec),
            "decode q=bf16 kv=bf16 out=bf16 head_size=128 block_size=16 group_size=1 pdl=1");
  for (const char* target : {"sm_90", "sm_90a", "sm_100f", "sm_110", "sm_120a", "host"}) {
    EXPECT_TRUE(supports(spec, *parse_target(target))) << target;
  }
  for (const char* target : {"sm_80", "sm_86", "sm_89", "host_80"}) {
    const Status status = supports(spec, *parse_target(target));
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << target;
    EXPECT_EQ(status.message(), "pdl 1: must be 0 for " + std::string(target) +
                                    "; programmatic dependent launch is there from sm_90 on");
  }
}

TEST(SpecTest, CanonicalTextComesBackAsTheSameSpec) {
  for (const bool debug : {false, true}) {
    for (const DataType type : {DataType::kFloat16, DataType::kBFloat16}) {
      KernelSpec spec{.q_dtype = type,
                      .kv_dtype = type,
                      .out_dtype = type,
                      .head_size = 72,
                      .block_size = 528,
                      .group_size = 7,
                      .debug = debug};
      const Result<KernelSpec> parsed = parse_spec(canonical_text(spec));
      ASSERT_TRUE(parsed) << parsed.status().to_string();
      EXPECT_EQ(*parsed, spec);
    }
  }
}

TEST(SpecTest, ParseTakesFieldsInAnyOrderAndKeepsDefaults) {
  const Result<KernelSpec> parsed = parse_spec("decode group_size=4  head_size=96");
  ASSERT_TRUE(parsed) << parsed.status().to_string();
  EXPECT_EQ(parsed->head_size, 96);
  EXPECT_EQ(parsed->group_size, 4);
  EXPECT_EQ(parsed->block_size, 16);
}

TEST(SpecTest, ParseRefusesWhatItDoesNotKnow) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "must begin with its kind"},
      {"prefill head_size=64", "spec kind \"prefill\""},
      {"decode head_size=64 head_size=64", "given twice"},
      {"decode head_dim=64", "spec field \"head_dim\""},
      {"decode head_size", "must be field=value"},
      {"decode head_size=64x", "must be a whole number"},
      {"decode head_size=99999999999999", "must be a whole number"},
      {"decode q=fp4", "data type \"fp4\""},
      {"decode debug=yes", "must be 0 or 1"},
      {"decode table=rows", "table \"rows\": must be blocks, csr, contiguous, slots or positions"},
      {"decode window=2", "window \"2\": must be 0 or 1"},
      {"many causal=yes", "causal \"yes\": must be 0, 1 or sequence"},
      {"decode causal=1", "causality 1"},
      {"prefill head_size=64", "legal are decode, few, many and shared"},
      {"decode head_size=100", "head_size 100"},
  };
  for (const auto& [text, sentence] : cases) {
    const Result<KernelSpec> parsed = parse_spec(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.status().message(), HasSubstr(sentence)) << text;
  }
}

TEST(SpecTest, EveryCombinationOfRaggedFieldsSurvivesItsText) {
  int num_legal = 0;
  std::set<std::string> texts;
  for (int bits = 0; bits < 36 * 64; ++bits) {
    KernelSpec spec;
    spec.block_size = 1;
    spec.queries = static_cast<QueryLengths>(bits % 4);
    spec.causality = static_cast<Causality>(bits / 4 % 3);
    spec.kv_table = static_cast<KvTable>(bits / 12 % 3);
    const int switches = bits / 36;
    spec.window = (switches & 1) != 0;
    spec.soft_cap = (switches & 2) != 0;
    spec.alibi = (switches & 4) != 0;
    spec.sinks = (switches & 8) != 0;
    spec.debug = (switches & 16) != 0;
    spec.chunked = (switches & 32) != 0;
    if (!validate(spec)) continue;
    ++num_legal;
    EXPECT_TRUE(texts.insert(canonical_text(spec)).second) << canonical_text(spec);
    const Result<KernelSpec> again = parse_spec(canonical_text(spec));
    ASSERT_TRUE(again) << again.status().to_string();
    EXPECT_EQ(*again, spec) << canonical_text(spec);
    EXPECT_TRUE(supports(spec, *parse_target("sm_90a"))) << canonical_text(spec);
    for (const auto field :
         {&KernelSpec::custom_mask, &KernelSpec::qq_bias, &KernelSpec::bidirectional_ranges,
          &KernelSpec::block_sparse, &KernelSpec::pdl}) {
      if (field == &KernelSpec::block_sparse) spec.bidirectional_ranges = false;
      spec.*field = true;
      EXPECT_TRUE(texts.insert(canonical_text(spec)).second) << canonical_text(spec);
      EXPECT_EQ(*parse_spec(canonical_text(spec)), spec) << canonical_text(spec);
    }
  }
  // Query lengths and causality, tables, switches without a window and chunks at once.
  EXPECT_EQ(num_legal, (1 + 3 + 3 + 3) * 3 * 48);
}

}  // namespace
}  // namespace pagejit
