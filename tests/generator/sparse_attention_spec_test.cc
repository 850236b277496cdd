// The spec of sparse attention: its rules, its text, its parts.
#include <gtest/gtest.h>

#include <string>

#include "generator/families.h"
#include "pagejit/sparse_attention.h"

namespace pagejit {
namespace {

// DeepSeek-V3.2's, with 128 heads.
SparseAttentionSpec legal_spec() {
  SparseAttentionSpec spec;
  spec.attention.head_size = 576;
  spec.attention.head_size_v = 512;
  spec.attention.block_size = 64;
  spec.attention.group_size = 128;
  spec.attention.latent = true;
  spec.attention.kv_table = KvTable::kPositions;
  return spec;
}

TEST(SparseAttentionSpecTest, EachRuleNamesItsFieldAndWhatIsLegal) {
  const auto message = [](auto change) {
    SparseAttentionSpec spec = legal_spec();
    change(spec);
    const Status status = validate(spec);
    EXPECT_EQ(supports(spec, *parse_target("sm_90a")).message(), status.message());
    return status.message();
  };
  EXPECT_EQ(message([](auto&) {}), "");
  EXPECT_EQ(message([](auto& s) { s.attention.debug = s.attention.sinks = true; }), "");
  EXPECT_EQ(message([](auto& s) { s.index_num_heads = 12; }),
            "index_num_heads 12: must be a multiple of 8 in [8, 128]");
  EXPECT_EQ(message([](auto& s) { s.index_head_size = 288; }),
            "index_head_size 288: must be a multiple of 32 in [32, 256]");
  const std::string rule =
      ": must be positions (4) in sparse attention, whose lists are what the indexer chooses";
  EXPECT_EQ(message([](auto& s) { s.attention.kv_table = KvTable::kBlocks; }), "kv_table 0" + rule);
  EXPECT_EQ(message([](auto& s) { s.attention.kv_table = KvTable::kSlots; }), "kv_table 3" + rule);
  EXPECT_EQ(message([](auto& s) { s.attention.block_size = 0; }),
            "block_size 0: must be in [1, 65536]");
  EXPECT_EQ(message([](auto& s) { s.attention.queries = QueryLengths::kFew; }),
            "kv_table 4: must be blocks (0), CSR (1) or contiguous (2) unless latent is 1 and "
            "queries is one (0)");
}

TEST(SparseAttentionSpecTest, ATargetIsRefusedForThePartThatItLacks) {
  EXPECT_TRUE(supports(legal_spec(), *parse_target("sm_80")));
  const Status status = supports(legal_spec(), *parse_target("sm_75"));
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(status.message(), supports(legal_spec().attention, *parse_target("sm_75")).message());
}

TEST(SparseAttentionSpecTest, TheTextHasAllThatMakesSpecsDiffer) {
  SparseAttentionSpec spec = legal_spec();
  EXPECT_EQ(canonical_text(spec), "sparse_attention index_num_heads=64 index_head_size=128 " +
                                      canonical_text(spec.attention));
  spec.index_num_heads = 32;
  spec.index_head_size = 64;
  spec.contiguous_index_keys = true;
  spec.attention.soft_cap = true;
  EXPECT_EQ(canonical_text(spec),
            "sparse_attention index_num_heads=32 index_head_size=64 contiguous_index_keys=1 "
            "decode q=bf16 kv=bf16 out=bf16 head_size=576 head_size_v=512 block_size=64 "
            "group_size=128 table=positions latent=1 soft_cap=1");
}

TEST(SparseAttentionSpecTest, ItsPartsAreOtherFamiliesKernels) {
  SparseAttentionSpec spec = legal_spec();
  SparseAttentionParts parts = sparse_attention_parts(spec);
  EXPECT_EQ(canonical_text(parts.logits), "index_logits num_heads=64 head_size=128 block_size=64");
  EXPECT_EQ(canonical_text(parts.top_k), "top_k");
  EXPECT_EQ(parts.attention, spec.attention);
  spec.contiguous_index_keys = true;
  spec.attention.debug = true;
  parts = sparse_attention_parts(spec);
  EXPECT_EQ(canonical_text(parts.logits),
            "index_logits num_heads=64 head_size=128 block_size=0 debug=1");
  EXPECT_EQ(canonical_text(parts.top_k), "top_k debug=1");
}

}  // namespace
}  // namespace pagejit
