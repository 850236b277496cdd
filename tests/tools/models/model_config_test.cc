// One config.json per published model, against the shapes that its own implementation computes.
#include "tools/models/model_config.h"

#include <gtest/gtest.h>

#include <numeric>
#include <ostream>

#include "tests/tools/models/model_files.h"

namespace pagejit::models {
namespace {

struct ExpectedKind {
  int num_heads;
  int num_kv_heads;
  int group_size;
  int head_size;
  double scale;
  MaskKind mask = MaskKind::kCausal;
  int64_t window = 0;
  // Layers i of [0, num_layers) with i % period in `residues`.
  int period = 1;
  std::vector<int> residues = {0};
  double soft_cap = 0;
  bool sinks = false;
  double alibi_max_bias = 0;  // 0: no ALiBi
  LayerFamily family = LayerFamily::kSoftmax;
};

struct ExpectedModel {
  const char* file;
  const char* model_type;
  int num_layers;
  DataType dtype;
  std::vector<ExpectedKind> kinds;
};

std::ostream& operator<<(std::ostream& stream, const ExpectedModel& model) {
  return stream << model.file;
}

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr MaskKind kCausal = MaskKind::kCausal;
constexpr MaskKind kWindow = MaskKind::kSlidingWindow;
constexpr LayerFamily kMla = LayerFamily::kMla;

// clang-format off
const ExpectedModel kModels[] = {
    {"llama-3.1-8b", "llama", 32, kBF16, {{32, 8, 4, 128, 0.088388}}},
    {"llama-3.1-70b", "llama", 80, kBF16, {{64, 8, 8, 128, 0.088388}}},
    {"llama-3.1-405b", "llama", 126, kBF16, {{128, 8, 16, 128, 0.088388}}},
    {"llama-3.2-1b", "llama", 16, kBF16, {{32, 8, 4, 64, 0.125}}},
    {"smollm2-135m", "llama", 30, kBF16, {{9, 3, 3, 64, 0.125}}},
    {"qwen2.5-7b", "qwen2", 28, kBF16, {{28, 4, 7, 128, 0.088388}}},
    {"qwen3-8b", "qwen3", 36, kBF16, {{32, 8, 4, 128, 0.088388}}},
    {"qwen3-8b-without-head-dim", "qwen3", 36, kBF16, {{32, 8, 4, 128, 0.088388}}},
    {"qwen3-30b-a3b", "qwen3_moe", 48, kBF16, {{32, 4, 8, 128, 0.088388}}},
    {"mistral-7b-v0.1", "mistral", 32, kBF16, {{32, 8, 4, 128, 0.088388, kWindow, 4096}}},
    {"mixtral-8x7b", "mixtral", 32, kBF16, {{32, 8, 4, 128, 0.088388}}},
    {"gemma-2-9b", "gemma2", 42, kBF16, {
        {.num_heads = 16, .num_kv_heads = 8, .group_size = 2, .head_size = 256, .scale = 0.0625, .mask = kWindow, .window = 4096, .period = 2, .residues = {0}, .soft_cap = 50},
        {.num_heads = 16, .num_kv_heads = 8, .group_size = 2, .head_size = 256, .scale = 0.0625, .period = 2, .residues = {1}, .soft_cap = 50}}},
    {"gemma-2-27b", "gemma2", 46, kBF16, {
        {.num_heads = 32, .num_kv_heads = 16, .group_size = 2, .head_size = 128, .scale = 0.083333, .mask = kWindow, .window = 4096, .period = 2, .residues = {0}, .soft_cap = 50},
        {.num_heads = 32, .num_kv_heads = 16, .group_size = 2, .head_size = 128, .scale = 0.083333, .period = 2, .residues = {1}, .soft_cap = 50}}},
    {"gemma-3-270m", "gemma3_text", 18, kBF16, {
        {4, 1, 4, 256, 0.0625, kWindow, 512, 6, {0, 1, 2, 3, 4}},
        {4, 1, 4, 256, 0.0625, kCausal, 0, 6, {5}}}},
    {"gpt-oss-20b", "gpt_oss", 24, kBF16, {
        {.num_heads = 64, .num_kv_heads = 8, .group_size = 8, .head_size = 64, .scale = 0.125, .mask = kWindow, .window = 128, .period = 2, .residues = {0}, .sinks = true},
        {.num_heads = 64, .num_kv_heads = 8, .group_size = 8, .head_size = 64, .scale = 0.125, .period = 2, .residues = {1}, .sinks = true}}},
    {"gpt-oss-120b", "gpt_oss", 36, kBF16, {
        {.num_heads = 64, .num_kv_heads = 8, .group_size = 8, .head_size = 64, .scale = 0.125, .mask = kWindow, .window = 128, .period = 2, .residues = {0}, .sinks = true},
        {.num_heads = 64, .num_kv_heads = 8, .group_size = 8, .head_size = 64, .scale = 0.125, .period = 2, .residues = {1}, .sinks = true}}},
    {"phi-2", "phi", 32, kF16, {{32, 32, 1, 80, 0.11180}}},
    {"phi-2-msft", "phi", 32, kF16, {{32, 32, 1, 80, 0.11180}}},
    {"phi-3-mini-4k", "phi3", 32, kBF16, {{32, 32, 1, 96, 0.10206, kWindow, 2047}}},
    {"gpt-neox-20b", "gpt_neox", 44, kF16, {{64, 64, 1, 96, 0.10206}}},
    {"falcon-7b", "falcon", 32, kBF16, {{71, 1, 71, 64, 0.125}}},
    {"falcon-7b-refined-web", "falcon", 32, kBF16, {{71, 1, 71, 64, 0.125}}},
    {"mpt-7b", "mpt", 32, kBF16, {{.num_heads = 32, .num_kv_heads = 32, .group_size = 1, .head_size = 128, .scale = 0.088388, .alibi_max_bias = 8}}},
    {"bloom-7b1", "bloom", 30, kF16, {{.num_heads = 32, .num_kv_heads = 32, .group_size = 1, .head_size = 128, .scale = 0.088388, .alibi_max_bias = 8}}},
    {"opt-125m", "opt", 12, kF16, {{12, 12, 1, 64, 0.125}}},
    {"deepseek-v2-lite", "deepseek_v2", 27, kBF16, {{.num_heads = 16, .num_kv_heads = 1, .group_size = 16, .head_size = 576, .scale = 0.11472, .family = kMla}}},
    {"deepseek-v3", "deepseek_v3", 61, kBF16, {{.num_heads = 128, .num_kv_heads = 1, .group_size = 128, .head_size = 576, .scale = 0.13523, .family = kMla}}},
    {"deepseek-v3.2", "deepseek_v32", 61, kBF16, {{.num_heads = 128, .num_kv_heads = 1, .group_size = 128, .head_size = 576, .scale = 0.13523, .family = kMla}}},

    // More that break a naive parser.
    {"gemma-3-4b", "gemma3_text", 34, kBF16, {
        {8, 4, 2, 256, 0.0625, kWindow, 1024, 6, {0, 1, 2, 3, 4}},
        {8, 4, 2, 256, 0.0625, kCausal, 0, 6, {5}}}},
    {"gemma-3-27b", "gemma3_text", 62, kBF16, {
        {32, 16, 2, 128, 0.077152, kWindow, 1024, 6, {0, 1, 2, 3, 4}},
        {32, 16, 2, 128, 0.077152, kCausal, 0, 6, {5}}}},
    {"llama-4-scout", "llama4_text", 48, kBF16, {
        {40, 8, 5, 128, 0.088388, MaskKind::kChunked, 8192, 4, {0, 1, 2}},
        {40, 8, 5, 128, 0.088388, kCausal, 0, 4, {3}}}},
    {"qwen2.5-vl-7b", "qwen2_5_vl_text", 28, kBF16, {{28, 4, 7, 128, 0.088388}}},
    {"phi-3.5-mini", "phi3", 32, kBF16, {{32, 32, 1, 96, 0.10206}}},
    {"phi-4-mini", "phi3", 32, kBF16, {{24, 8, 3, 128, 0.088388}}},
    {"exaone-4.0-32b", "exaone4", 64, kBF16, {
        {40, 8, 5, 128, 0.088388, kWindow, 4096, 4, {0, 1, 2}},
        {40, 8, 5, 128, 0.088388, kCausal, 0, 4, {3}}}},
    {"gemma-4-26b", "gemma4_text", 30, kBF16, {
        {16, 8, 2, 256, 1.0, kWindow, 1024, 6, {0, 1, 2, 3, 4}},
        {16, 2, 8, 512, 1.0, kCausal, 0, 6, {5}}}},
    {"llava-1.5-7b", "llama", 32, kF16, {{32, 32, 1, 128, 0.088388}}},
    {"devstral-small-2", "ministral3", 40, kBF16, {{32, 8, 4, 128, 0.088388}}},
    {"falcon-40b-refined-web", "falcon", 60, kBF16, {{128, 8, 16, 64, 0.125}}},
    {"falcon-rw-1b", "falcon", 24, kBF16, {{.num_heads = 32, .num_kv_heads = 32, .group_size = 1, .head_size = 64, .scale = 0.125, .alibi_max_bias = 8}}},
    {"granite-3.1-8b", "granite", 40, kBF16, {{32, 8, 4, 128, 0.0078125}}},
    {"gpt-bigcode-starcoder", "gpt_bigcode", 40, kBF16, {{48, 1, 48, 128, 0.088388}}},
    {"chatglm3-6b", "chatglm", 28, kF16, {{32, 2, 16, 128, 0.088388}}},
    {"qwen3-next-80b", "qwen3_next", 48, kBF16, {
        {.num_heads = 0, .num_kv_heads = 0, .group_size = 0, .head_size = 0, .scale = 0, .period = 4, .residues = {0, 1, 2}, .family = LayerFamily::kLinear},
        {16, 2, 8, 256, 0.0625, kCausal, 0, 4, {3}}}},
};
// clang-format on

std::vector<int> layers_of(const ExpectedKind& kind, int num_layers) {
  std::vector<int> layers;
  for (int i = 0; i < num_layers; ++i) {
    for (const int residue : kind.residues) {
      if (i % kind.period == residue) layers.push_back(i);
    }
  }
  return layers;
}

class ModelFileTest : public testing::TestWithParam<ExpectedModel> {};

TEST_P(ModelFileTest, HasTheShapeOfItsImplementation) {
  const ExpectedModel& expected = GetParam();
  const Result<ModelShape> shape = load_model_config(data_path(expected.file));
  ASSERT_TRUE(shape.is_ok()) << shape.status().to_string();
  EXPECT_EQ(shape->model_type, expected.model_type);
  EXPECT_EQ(shape->num_layers, expected.num_layers);
  EXPECT_EQ(shape->dtype, expected.dtype);
  ASSERT_EQ(shape->kinds.size(), expected.kinds.size());
  for (size_t i = 0; i < expected.kinds.size(); ++i) {
    SCOPED_TRACE(i);
    const ExpectedKind& want = expected.kinds[i];
    const LayerAttention& got = shape->kinds[i].attention;
    EXPECT_EQ(shape->kinds[i].layers, layers_of(want, expected.num_layers));
    EXPECT_EQ(got.family, want.family);
    EXPECT_EQ(got.num_heads, want.num_heads);
    EXPECT_EQ(got.num_kv_heads, want.num_kv_heads);
    EXPECT_EQ(got.group_size(), want.group_size);
    EXPECT_EQ(got.head_size, want.head_size);
    EXPECT_NEAR(got.scale, want.scale, 5e-6 * want.scale + 5e-6);
    EXPECT_EQ(got.mask, want.mask);
    EXPECT_EQ(got.window, want.window);
    EXPECT_EQ(got.soft_cap, want.soft_cap);
    EXPECT_EQ(got.sinks, want.sinks);
    EXPECT_EQ(got.alibi, want.alibi_max_bias > 0);
    EXPECT_EQ(got.alibi_max_bias, want.alibi_max_bias);
    EXPECT_EQ(got.mla.has_value(), want.family == kMla);
  }
}

std::string name_of_case(const testing::TestParamInfo<ExpectedModel>& model) {
  std::string name;
  for (const char* c = model.param.file; *c != 0; ++c) name += isalnum(*c) ? *c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Published, ModelFileTest, testing::ValuesIn(kModels), name_of_case);

TEST(ModelConfigTest, MlaKeepsBothFormsOfItsAttention) {
  const Result<ModelShape> lite = load_model_config(data_path("deepseek-v2-lite"));
  ASSERT_TRUE(lite.is_ok());
  const MlaDims expected = {
      .kv_lora_rank = 512, .qk_rope_head_dim = 64, .qk_nope_head_dim = 128, .v_head_dim = 128};
  EXPECT_EQ(lite->kinds[0].attention.mla, expected);

  const Result<ModelShape> sparse = load_model_config(data_path("deepseek-v3.2"));
  ASSERT_TRUE(sparse.is_ok());
  EXPECT_EQ(sparse->kinds[0].attention.mla->index_topk, 2048);
  EXPECT_EQ(sparse->kinds[0].attention.mla->index_heads, 64);
  EXPECT_EQ(sparse->kinds[0].attention.mla->index_head_dim, 128);
}

TEST(ModelConfigTest, FalconWithAlibiAddsItBeforeTheScale) {
  const Result<ModelShape> shape = load_model_config(data_path("falcon-rw-1b"));
  ASSERT_TRUE(shape.is_ok());
  EXPECT_TRUE(shape->kinds[0].attention.alibi_scaled);
  EXPECT_FALSE(load_model_config(data_path("bloom-7b1"))->kinds[0].attention.alibi_scaled);
}

TEST(ModelConfigTest, SparseNestedFileNamesEveryDefault) {
  const Result<ModelShape> shape = load_model_config(data_path("gemma-3-4b"));
  ASSERT_TRUE(shape.is_ok());
  const std::vector<std::string> expected = {
      "num_attention_heads 8 (default of gemma3_text)",
      "num_key_value_heads 4 (default of gemma3_text)", "head_dim 256 (default of gemma3_text)",
      "query_pre_attn_scalar 256 (default of gemma3_text)",
      "every layer number 6 full, the others sliding (default of gemma3_text)"};
  EXPECT_EQ(shape->defaulted, expected);
}

TEST(ModelConfigTest, CompleteFileTakesNothingFromTheClass) {
  EXPECT_TRUE(load_model_config(data_path("llama-3.1-8b"))->defaulted.empty());
  EXPECT_TRUE(load_model_config(data_path("gemma-2-9b"))->notes.size() == 1);  // float32
}

TEST(ModelConfigTest, FileOfAnOldAliasRemembersItsName) {
  const Result<ModelShape> shape = load_model_config(data_path("phi-2-msft"));
  EXPECT_EQ(shape->file_model_type, "phi-msft");
  EXPECT_EQ(shape->model_type, "phi");
}

TEST(ModelConfigTest, WindowBeyondTheMaximumLengthIsReported) {
  const Result<ModelShape> shape = load_model_config(data_path("phi-4-mini"));
  ASSERT_EQ(shape->notes.size(), 1u);
  EXPECT_EQ(shape->notes[0],
            "sliding_window 262144 has no effect: max_position_embeddings is 131072");
}

TEST(ModelConfigTest, UnusedKvHeadsOfFalconAreReported) {
  const Result<ModelShape> shape = load_model_config(data_path("falcon-7b"));
  ASSERT_EQ(shape->notes.size(), 1u);
  EXPECT_EQ(shape->notes[0], "num_kv_heads 71 is not used: multi_query is true, so there is 1");
}

TEST(ModelConfigTest, AskedDtypeWinsOverTheFile) {
  const Result<ModelShape> shape =
      load_model_config(data_path("llama-3.1-8b"), {.dtype = DataType::kFloat16});
  EXPECT_EQ(shape->dtype, DataType::kFloat16);
}

TEST(ModelConfigTest, MissingFileCannotBeRead) {
  const Result<ModelShape> shape = load_model_config("/nonexistent/config.json");
  EXPECT_EQ(shape.status().code(), StatusCode::kCacheError);
}

// Every prefix of a file is either refused with a sentence or, after its closing brace, read.
TEST(ModelConfigTest, TruncationAtEveryByteIsRefused) {
  const std::string text = read_data("llama-4-scout");
  ASSERT_GT(text.size(), 1000u);
  for (size_t size = 0; size + 2 < text.size(); ++size) {
    const Result<ModelShape> shape = parse_model_config(text.substr(0, size));
    ASSERT_FALSE(shape.is_ok()) << size;
    ASSERT_EQ(shape.status().code(), StatusCode::kInvalidArgument);
    ASSERT_FALSE(shape.status().message().empty());
  }
}

// A byte that changes must not crash or hang, whatever it then means.
TEST(ModelConfigTest, FlippedBytesNeverCrash) {
  const std::string text = read_data("gpt-oss-20b");
  for (size_t i = 0; i < text.size(); ++i) {
    for (const char byte : {'\0', '"', '9', '{', '-', '\xff'}) {
      std::string damaged = text;
      damaged[i] = byte;
      const Result<ModelShape> shape = parse_model_config(damaged);
      if (!shape) {
        ASSERT_FALSE(shape.status().message().empty());
      }
    }
  }
}

}  // namespace
}  // namespace pagejit::models
