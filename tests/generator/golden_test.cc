// Golden sources: a change of any of them is a change of every user's cache key, and is made on
// purpose: PAGEJIT_UPDATE_GOLDEN=1 writes them anew. One is kept whole, for people to read; of the
// others the banner, the configuration and the entry, and digests of the text between them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "cache/sha256.h"
#include "generator/families.h"
#include "generator/renderer.h"

namespace pagejit {
namespace {

std::string kernel_text(const AnySpec& spec) {
  const auto config = plan_any(spec, *parse_target("sm_90a"));
  EXPECT_TRUE(config) << config.status().to_string();
  const auto source = render(*config);
  EXPECT_TRUE(source) << source.status().to_string();
  const size_t marker = source->text.find(kKernelTextMarker);
  EXPECT_NE(marker, std::string::npos);
  return source->text.substr(marker);
}

// A stretch of text as its digest.
std::string digest_of(const std::string& text, size_t begin, size_t end) {
  EXPECT_LE(begin, end);
  return "... sha256 " +
         cache::to_hex(cache::sha256({std::string_view(text).substr(begin, end - begin)})) +
         " ...\n";
}

// The configuration may stand before the functions or behind them; the entry is the last.
std::string without_body(const std::string& text) {
  const size_t banner_end = text.find("#line ");
  // Configurations are the first constants of an entry file.
  const size_t config_begin = text.rfind("\nconstexpr ", text.find(" kConfig = {")) + 1;
  const size_t config_end = text.find("\n};\n", config_begin) + 4;
  const size_t entry_begin = text.rfind("\nPAGEJIT_KERNEL(") + 1;
  EXPECT_LT(config_end, entry_begin);
  return text.substr(0, banner_end) + digest_of(text, banner_end, config_begin) +
         text.substr(config_begin, config_end - config_begin) +
         digest_of(text, config_end, entry_begin) + text.substr(entry_begin);
}

void compare_golden(const AnySpec& spec, bool is_whole) {
  std::string text = kernel_text(spec);
  if (!is_whole) text = without_body(text);
  std::string name = text_of(spec);
  for (char& c : name) c = c == ' ' || c == '=' ? '_' : c;
  const std::string path = std::string(PAGEJIT_TEST_GOLDEN_DIR) + "/" + name + ".cu";
  if (std::getenv("PAGEJIT_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  ASSERT_TRUE(file) << path << " is missing; PAGEJIT_UPDATE_GOLDEN=1 writes it";
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_TRUE(golden.str() == text) << "the rendered source differs from " << path
                                    << "; if that is meant, PAGEJIT_UPDATE_GOLDEN=1 writes it anew";
}

TEST(GoldenSourceTest, Decode) {
  compare_golden(*parse_spec("decode head_size=128 block_size=16 group_size=4"), true);
}

TEST(GoldenSourceTest, Attention) {
  for (const char* text :
       {"decode q=f16 kv=f16 out=f16 head_size=72 block_size=5 group_size=71 debug=1",
        "many head_size=128 block_size=16 group_size=8 causal=1",
        "few q=f16 kv=f16 out=f16 head_size=96 block_size=24 group_size=5 causal=sequence "
        "window=1 soft_cap=1 alibi=1 sinks=1",
        "decode q=bf16 kv=fp8_e4m3 out=bf16 head_size=576 head_size_v=512 block_size=64 "
        "group_size=128 table=slots layout=ds_mla latent=1"}) {
    compare_golden(*parse_spec(text), false);
  }
}

TEST(GoldenSourceTest, OtherFamilies) {
  compare_golden(MergeStatesSpec{.head_size = 128}, false);
  compare_golden(CacheWriteSpec{.kv_dtype = DataType::kFloat8E4m3,
                                .scale = KvScale::kHead,
                                .rope = RopeStyle::kNeox,
                                .rotary_dim = 64},
                 false);
  compare_golden(CopyBlocksSpec{}, false);
  compare_golden(GatherCacheSpec{}, false);
  compare_golden(
      GatherCacheSpec{
          .kv_dtype = DataType::kFloat8E4m3, .layout = KvLayout::kDsMla, .head_size = 576},
      false);
  compare_golden(ConvertFloat8Spec{}, false);
  compare_golden(MlaCacheWriteSpec{.format = MlaFormat::kDsMla, .rope = RopeStyle::kNeox}, false);
  compare_golden(IndexKeyWriteSpec{}, false);
  compare_golden(IndexKeyGatherSpec{}, false);
  compare_golden(IndexLogitsSpec{.block_size = 64}, false);
  compare_golden(TopKSpec{}, false);
}

}  // namespace
}  // namespace pagejit
