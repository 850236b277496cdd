#include "generator/spec_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "generator/families.h"
#include "pagejit/cascade.h"
#include "pagejit/sparse_attention.h"
#include "tests/generator/random_specs.h"

namespace pagejit {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string error_of(std::string_view text) {
  const Result<AnySpec> spec = parse_any_spec(text);
  EXPECT_FALSE(spec) << text;
  return spec.status().message();
}

TEST(SpecParserTest, EveryLegalSpecOfEveryFamilySurvivesItsText) {
  SplitMix64 rng(7);
  ASSERT_EQ(family_names().size(), 11u);
  for (const std::string_view family : family_names()) {
    const Result<AnySpec> first = default_spec(family);
    ASSERT_TRUE(first);
    EXPECT_EQ(family_name(*first), family);
    std::set<std::string> texts;
    for (int i = 0; i < 1000; ++i) {
      const AnySpec spec = draw_legal_any(rng, *first);
      const std::string text = text_of(spec);
      const Result<AnySpec> parsed = parse_any_spec(text);
      ASSERT_TRUE(parsed) << text << ": " << parsed.status().to_string();
      ASSERT_EQ(parsed->index(), spec.index());
      ASSERT_EQ(text_of(*parsed), text);
      texts.insert(text);
    }
    // copy_blocks has 10 texts, top_k 6: the draw has met each.
    EXPECT_GE(texts.size(), family == "top_k" ? 6u : 10u) << family;
  }
}

// A field that the text leaves out where it has its default, and the table of names forgets, would
// be lost here.
TEST(SpecParserTest, EveryFieldOfASpecIsRestored) {
  SplitMix64 rng(11);
  for (const std::string_view family : family_names()) {
    for (int i = 0; i < 300; ++i) {
      AnySpec spec = draw_legal_any(rng, *default_spec(family));
      std::visit(
          [](auto& s) {
            if constexpr (requires { s.head_size_v; }) {
              if (s.head_size_v == s.head_size) s.head_size_v = 0;  // the same spec by its text
            }
            // Without a rotation its width means nothing, and no text has it.
            if constexpr (requires { s.rotary_dim; }) {
              if (s.rope == RopeStyle::kNone) s.rotary_dim = 0;
            }
          },
          spec);
      ASSERT_EQ(*parse_any_spec(text_of(spec)), spec) << text_of(spec);
    }
  }
}

TEST(SpecParserTest, DefaultsAreRestoredAndFieldsComeInAnyOrder) {
  EXPECT_EQ(text_of(*parse_any_spec("top_k")), "top_k");
  EXPECT_EQ(text_of(*parse_any_spec("  copy_blocks ")), "copy_blocks alignment=16");
  EXPECT_EQ(text_of(*parse_any_spec("merge_states listed=1 head_size=64  in=f32")),
            "merge_states in=f32 out=bf16 head_size=64 listed=1");
  EXPECT_EQ(text_of(*parse_any_spec("few")),
            "few q=bf16 kv=bf16 out=bf16 head_size=128 block_size=16 group_size=1");
}

TEST(SpecParserTest, MessagesSayWhereAndWhatIsLegal) {
  EXPECT_THAT(error_of(""), AllOf(StartsWith("byte 0: spec kind \"\": legal are decode, few"),
                                  HasSubstr("top_k and index_logits")));
  EXPECT_THAT(error_of("attention head_size=64"), HasSubstr("spec kind \"attention\""));
  EXPECT_EQ(error_of("top_k debug=2"), "byte 6: debug \"2\": must be 0 or 1");
  EXPECT_EQ(error_of("top_k rowalignment=8"),
            "byte 6: spec field \"rowalignment\": legal are row_alignment and debug");
  EXPECT_EQ(error_of("copy_blocks debug=1 debug=1"), "byte 20: spec field \"debug\": given twice");
  EXPECT_EQ(error_of("copy_blocks 8"), "byte 12: spec word \"8\": must be field=value");
  EXPECT_EQ(error_of("gather_cache scale=row"),
            "byte 13: scale \"row\": must be none, tensor, head or token_head");
  EXPECT_EQ(error_of("mla_cache_write format=fp8"),
            "byte 16: format \"fp8\": must be plain, fp8_e4m3 or fp8_ds_mla");
  EXPECT_EQ(error_of("cache_write rope=gpt"),
            "byte 12: rope \"gpt\": must be none, neox or interleaved");
  EXPECT_THAT(error_of("merge_states in=fp4"), StartsWith("byte 13: in: data type \"fp4\""));
  EXPECT_THAT(error_of("merge_states in_dtype=f16"), HasSubstr("legal are in, out, head_size"));
  EXPECT_THAT(error_of("decode queries=many"), HasSubstr("spec field \"queries\""));
  EXPECT_EQ(error_of("merge_states head_size=0"), "head_size 0: must be in [1, 4096]");
  EXPECT_THAT(error_of(std::string("top_k \0\n=1", 10)), StartsWith("byte 6: spec field \"??\""));
  EXPECT_LT(error_of("top_k " + std::string(100000, 'x')).size(), 150u);
  EXPECT_LT(error_of("decode q=" + std::string(100000, 'x')).size(), 150u);
}

TEST(SpecParserTest, AnyBytesAreAnAnswer) {
  SplitMix64 rng(3);
  int num_legal = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = text_of(
        draw_legal_any(rng, *default_spec(family_names()[rng.below(family_names().size())])));
    const int64_t changes = rng.below(4);
    for (int64_t k = 0; k <= changes; ++k) {
      const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(text.size()) + 1));
      switch (rng.below(4)) {
        case 0:
          text.resize(at);
          break;
        case 1:
          text.insert(at, 1, static_cast<char>(rng.next()));
          break;
        case 2:
          text.insert(at, text.substr(at / 2));
          break;
        default:
          if (at < text.size()) text[at] = static_cast<char>(rng.next());
      }
    }
    const Result<std::vector<AnySpec>> specs = parse_kernels(text);
    if (!specs) {
      ASSERT_FALSE(specs.status().message().empty());
      continue;
    }
    ++num_legal;
    for (const AnySpec& spec : *specs) ASSERT_TRUE(validate_any(spec)) << text;
  }
  EXPECT_GT(num_legal, 100);
}

TEST(SpecParserTest, CompositionsGiveTheirKernels) {
  const CascadeSpec cascade = {.attention = {.queries = QueryLengths::kFew,
                                             .group_size = 4,
                                             .causality = Causality::kCausal,
                                             .sinks = true}};
  ASSERT_TRUE(validate(cascade));
  const CascadeParts parts = cascade_parts(cascade);
  const Result<std::vector<AnySpec>> levels = parse_kernels(canonical_text(cascade));
  ASSERT_TRUE(levels) << levels.status().to_string();
  EXPECT_THAT(*levels,
              ElementsAre(AnySpec(parts.prefix), AnySpec(parts.suffix), AnySpec(parts.merge)));

  SparseAttentionSpec sparse;
  sparse.attention = *parse_spec(
      "decode head_size=576 head_size_v=512 latent=1 table=positions block_size=64 group_size=64");
  sparse.index_num_heads = 32;
  sparse.contiguous_index_keys = true;
  ASSERT_TRUE(validate(sparse)) << validate(sparse).to_string();
  const SparseAttentionParts steps = sparse_attention_parts(sparse);
  const Result<std::vector<AnySpec>> kernels = parse_kernels(canonical_text(sparse));
  ASSERT_TRUE(kernels) << kernels.status().to_string();
  EXPECT_THAT(*kernels,
              ElementsAre(AnySpec(steps.logits), AnySpec(steps.top_k), AnySpec(steps.attention)));

  EXPECT_THAT(parse_kernels("cascade decode pdl=1").status().message(), HasSubstr("cascade"));
  EXPECT_THAT(parse_kernels("cascade top_k").status().message(),
              StartsWith("byte 8: spec kind \"top_k\": legal are decode, few, many and shared"));
  EXPECT_THAT(parse_kernels("sparse_attention heads=1 decode").status().message(),
              StartsWith("byte 17: spec field \"heads\""));
  EXPECT_THAT(parse_kernels("sparse_attention index_num_heads=8").status().message(),
              HasSubstr("must begin with its kind"));
}

TEST(SpecParserTest, FieldsHaveTwoNames) {
  AnySpec spec = *default_spec("attention");
  EXPECT_TRUE(set_spec_field(spec, "queries", "one"));
  EXPECT_TRUE(set_spec_field(spec, "kv_dtype", "fp8"));
  EXPECT_TRUE(set_spec_field(spec, "table", "csr"));
  EXPECT_EQ(text_of(spec),
            "decode q=bf16 kv=fp8_e4m3 out=bf16 head_size=128 block_size=16 group_size=1 "
            "table=csr");
  EXPECT_TRUE(is_same_field(spec, "kv", "kv_dtype"));
  EXPECT_FALSE(is_same_field(spec, "kv", "q"));
  EXPECT_FALSE(is_same_field(spec, "", ""));
  EXPECT_FALSE(is_spec_field(spec, "scale"));
  EXPECT_THAT(set_spec_field(spec, "scale", "none").message(),
              AllOf(StartsWith("spec field \"scale\": must be queries, q, kv"),
                    HasSubstr("debug and pdl")));
  EXPECT_EQ(default_spec("decode").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pagejit
