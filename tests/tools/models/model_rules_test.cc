// Rules of the guide that no published file above shows, and input that is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tools/models/model_config.h"

namespace pagejit::models {
namespace {

// A small model of `type` with more fields; 8 layers, 8/2 heads of 64.
std::string config(const std::string& type, const std::string& fields = "") {
  return "{\"model_type\": \"" + type +
         "\", \"num_hidden_layers\": 8, \"num_attention_heads\": 8, \"num_key_value_heads\": 2, "
         "\"head_dim\": 64, \"hidden_size\": 512" +
         (fields.empty() ? "" : ", " + fields) + "}";
}

ModelShape parse(const std::string& json) {
  const Result<ModelShape> shape = parse_model_config(json);
  EXPECT_TRUE(shape.is_ok()) << shape.status().to_string() << "\n" << json;
  return shape ? *shape : ModelShape{};
}

std::string error_of(const std::string& json) {
  const Result<ModelShape> shape = parse_model_config(json);
  EXPECT_EQ(shape.status().code(), StatusCode::kInvalidArgument) << json;
  return shape.status().message();
}

// The mask of each layer: c causal, s sliding, k chunked, b bidirectional, - no softmax attention.
std::string masks(const ModelShape& shape) {
  std::string text(shape.num_layers, '?');
  for (const LayerKind& kind : shape.kinds) {
    const bool softmax = kind.attention.family == LayerFamily::kSoftmax;
    for (const int i : kind.layers) {
      text[i] = softmax ? "cskbp"[static_cast<int>(kind.attention.mask)] : '-';
    }
  }
  return text;
}

TEST(LayerRulesTest, LayerTypesWinOverAPattern) {
  EXPECT_EQ(
      masks(parse(config(
          "exaone4",
          R"("sliding_window": 16, "sliding_window_pattern": "LG", "layer_types": ["full_attention",
                "full_attention", "sliding_attention", "full_attention", "full_attention", "full_attention",
                "full_attention", "sliding_attention"])"))),
      "ccscccc"
      "s");
}

TEST(LayerRulesTest, PatternsByNumberAndLetters) {
  const std::string window = "\"sliding_window\": 16, ";
  EXPECT_EQ(masks(parse(config("cohere2", window + "\"sliding_window_pattern\": 3"))), "sscsscss");
  EXPECT_EQ(masks(parse(config("gemma3_text", window + "\"_sliding_window_pattern\": 2"))),
            "scscscsc");
  EXPECT_EQ(masks(parse(config("exaone4", window + "\"sliding_window_pattern\": \"LLG\""))),
            "sscsscss");
  EXPECT_EQ(masks(parse(config("afmoe", window + "\"global_attn_every_n_layers\": 4"))),
            "sssc"
            "sssc");
  EXPECT_EQ(masks(parse(config("olmo3", window + "\"vocab_size\": 1"))),
            "sssc"
            "sssc");
}

TEST(LayerRulesTest, PatternWithoutAWindowIsCausal) {
  EXPECT_EQ(masks(parse(config("exaone4", "\"sliding_window\": null"))), "cccccccc");
}

TEST(LayerRulesTest, QwenUsesItsWindowOnlyWhenToldTo) {
  const std::string window = "\"sliding_window\": 16, \"max_window_layers\": 5";
  EXPECT_EQ(masks(parse(config("qwen2", window))), "cccccccc");
  EXPECT_EQ(masks(parse(config("qwen2", window + ", \"use_sliding_window\": true"))), "cccccsss");
  EXPECT_EQ(masks(parse(config("qwen2_moe", window + ", \"use_sliding_window\": true"))),
            "scscsccc");
  EXPECT_EQ(masks(parse(config("qwen3_moe", window + ", \"use_sliding_window\": true"))),
            "ssssssss");
}

TEST(LayerRulesTest, NoRopeLayersOfLlama4) {
  EXPECT_EQ(masks(parse(config("llama4_text", "\"no_rope_layers\": null"))), "kkkckkkc");
  EXPECT_EQ(masks(parse(config("llama4_text", "\"no_rope_layers\": [1,0,1,1,1,1,1,0]"))),
            "kckkkkkc");
  EXPECT_EQ(masks(parse(config("llama4_text", "\"attention_chunk_size\": null"))), "cccccccc");
  EXPECT_EQ(error_of(config("llama4_text", "\"no_rope_layers\": [1]")),
            "no_rope_layers has 1 entries: must have none or one for each of the 8 layers");
}

TEST(LayerRulesTest, HybridModels) {
  EXPECT_EQ(masks(parse(config("qwen3_next", "\"full_attention_interval\": 4"))), "---c---c");
  EXPECT_EQ(masks(parse(config("nemotron_h", "\"hybrid_override_pattern\": \"M-M*M-ME\""))),
            "---c----");
  EXPECT_EQ(masks(parse(config("bamba", "\"attn_layer_indices\": [2, 6]"))), "--c---c-");
  EXPECT_EQ(masks(parse(config("jamba", "\"attn_layer_period\": 4, \"attn_layer_offset\": 2"))),
            "--c---c-");
  EXPECT_EQ(masks(parse(config("granitemoehybrid",
                               R"("layer_types": ["mamba", "mamba", "attention", "mamba", "mamba",
                               "mamba", "mamba", "attention"])"))),
            "--c----c");
}

TEST(LayerRulesTest, ModernBertIsBidirectional) {
  const ModelShape shape = parse(config("modernbert", "\"local_attention\": 128"));
  EXPECT_EQ(masks(shape), "bbbbbbbb");
  EXPECT_EQ(shape.kinds[0].attention.window, 0);
  EXPECT_EQ(shape.kinds[0].layers, (std::vector<int>{0, 3, 6}));
  EXPECT_EQ(shape.kinds[1].attention.window, 65);
}

TEST(LayerRulesTest, BidirectionalGemma3HalvesItsWindow) {
  const ModelShape shape = parse(
      config("gemma3_text", "\"sliding_window\": 512, \"use_bidirectional_attention\": true"));
  EXPECT_EQ(shape.kinds[0].attention.mask, MaskKind::kBidirectional);
  EXPECT_EQ(shape.kinds[0].attention.window, 257);
  EXPECT_EQ(shape.kinds[1].attention.window, 0);
}

TEST(LayerRulesTest, PrefixLanguageModel) {
  EXPECT_EQ(masks(parse(config("mpt", "\"attn_config\": {\"alibi\": false, \"prefix_lm\": true}"))),
            "pppppppp");
}

TEST(LayerRulesTest, StepsOtherHeadsBelongToSlidingLayers) {
  const ModelShape shape = parse(
      config("step3p5",
             R"("num_attention_groups": 4, "sliding_window": 16, "num_nextn_predict_layers": 1,
      "attention_other_setting": {"num_attention_heads": 12, "num_attention_groups": 2, "head_dim": 32},
      "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "sliding_attention",
      "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention"])"));
  EXPECT_EQ(masks(shape),
            "csss"
            "csss");
  EXPECT_EQ(shape.kinds[0].attention.num_kv_heads, 4);
  EXPECT_EQ(shape.kinds[1].attention.num_heads, 12);
  EXPECT_EQ(shape.kinds[1].attention.head_size, 32);
}

TEST(LayerRulesTest, UnknownLayerTypeIsKeptAsUnknown) {
  const ModelShape shape = parse(config(
      "llama", R"("layer_types": ["attention", "attention", "attention", "attention", "attention",
      "attention", "attention", "retention"])"));
  ASSERT_EQ(shape.kinds.size(), 2u);
  EXPECT_EQ(shape.kinds[1].attention.family, LayerFamily::kUnknown);
  EXPECT_EQ(shape.kinds[1].attention.layer_type, "retention");
}

TEST(LayerRulesTest, WindowOfZeroOrNullIsNone) {
  EXPECT_EQ(masks(parse(config("mistral", "\"sliding_window\": 0"))), "cccccccc");
  EXPECT_EQ(masks(parse(config("mistral", "\"sliding_window\": null"))), "cccccccc");
  EXPECT_EQ(masks(parse(config("mistral"))), "ssssssss");
}

TEST(ScaleRulesTest, EachRule) {
  const auto scale = [](const std::string& json) { return parse(json).kinds[0].attention.scale; };
  EXPECT_DOUBLE_EQ(scale(config("llama")), 0.125);
  EXPECT_DOUBLE_EQ(scale(config("granite", "\"attention_multiplier\": 0.25")), 0.25);
  EXPECT_DOUBLE_EQ(scale(config("gemma3n_text")), 1.0);
  EXPECT_DOUBLE_EQ(
      scale(config("mpt", "\"attn_config\": {\"alibi\": true, \"softmax_scale\": 0.5}")), 0.5);
  EXPECT_DOUBLE_EQ(scale(config("gpt2", "\"scale_attn_weights\": false")), 1.0);
  EXPECT_NEAR(scale(config("zamba2", R"("layers_block_type": ["hybrid", "mamba", "mamba", "mamba",
      "mamba", "mamba", "mamba", "mamba"])")),
              1 / std::sqrt(32.0), 1e-12);
  // Without mscale_all_dim YaRN leaves the scale alone.
  EXPECT_NEAR(scale(R"({"model_type": "deepseek_v3", "rope_scaling": {"factor": 40}})"),
              1 / std::sqrt(192.0), 1e-12);
  EXPECT_NEAR(
      scale(
          R"({"model_type": "deepseek_v3", "rope_parameters": {"factor": 40, "mscale_all_dim": 1}})"),
      0.13523, 5e-6);
}

TEST(ScaleRulesTest, Gpt2MayScaleByLayer) {
  const ModelShape shape = parse(config("gpt2", "\"scale_attn_by_inverse_layer_idx\": true"));
  ASSERT_EQ(shape.kinds.size(), 8u);
  EXPECT_DOUBLE_EQ(shape.kinds[3].attention.scale, 0.125 / 4);
}

TEST(KvHeadRulesTest, NullIsHeadsAndAbsentIsTheClassDefault) {
  const auto kv_heads = [](const std::string& type, const std::string& field) {
    return parse("{\"model_type\": \"" + type +
                 "\", \"num_hidden_layers\": 2, \"num_attention_heads\": 32, \"head_dim\": 64" +
                 field + "}")
        .kinds[0]
        .attention.num_kv_heads;
  };
  EXPECT_EQ(kv_heads("llama", ""), 32);
  EXPECT_EQ(kv_heads("mistral", ""), 8);
  EXPECT_EQ(kv_heads("mixtral", ""), 8);
  EXPECT_EQ(kv_heads("gemma2", ""), 4);
  EXPECT_EQ(kv_heads("qwen3_moe", ""), 4);
  EXPECT_EQ(kv_heads("gpt_oss", ""), 8);
  EXPECT_EQ(kv_heads("qwen2", ""), 32);
  EXPECT_EQ(kv_heads("phi3", ""), 32);
  EXPECT_EQ(kv_heads("mistral", ", \"num_key_value_heads\": null"), 32);
  EXPECT_EQ(kv_heads("gpt_bigcode", ""), 1);
  EXPECT_EQ(kv_heads("gpt_bigcode", ", \"multi_query\": false"), 32);
  EXPECT_EQ(kv_heads("falcon", ", \"num_kv_heads\": 71"), 1);
  EXPECT_EQ(kv_heads("falcon", ", \"multi_query\": false"), 32);
  EXPECT_EQ(kv_heads("falcon", ", \"new_decoder_architecture\": true, \"num_kv_heads\": 8"), 8);
  EXPECT_EQ(
      kv_heads("mpt", ", \"attn_config\": {\"alibi\": true, \"kv_n_heads\": 4}, \"d_model\": 2048"),
      4);
}

TEST(HeadSizeRulesTest, ZeroAndNullMeanNotGiven) {
  const auto head_size = [](const std::string& field) {
    return parse(R"({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32)" +
                 field + "}")
        .kinds[0]
        .attention.head_size;
  };
  EXPECT_EQ(head_size(", \"head_dim\": 0"), 128);
  EXPECT_EQ(head_size(", \"head_dim\": null"), 128);
  EXPECT_EQ(head_size(", \"head_dim\": 96"), 96);
}

TEST(ClassDefaultsTest, WindowsAndHeadSizes) {
  struct Expected {
    const char* type;
    int64_t window;  // of the first layer; 0: none
    int head_size;
  };
  // 2048/16 where the class has no head_dim.
  const Expected cases[] = {
      {"mistral", 4096, 128}, {"mixtral", 0, 128},        {"phi3", 0, 128},
      {"starcoder2", 0, 128}, {"gemma", 0, 256},          {"gemma2", 4096, 256},
      {"gpt_oss", 128, 64},   {"gemma3_text", 4096, 256}, {"qwen3", 0, 128},
      {"qwen3_moe", 0, 128},  {"llama4_text", 8192, 128}, {"cohere2", 4096, 128},
      {"olmo3", 4096, 128},   {"exaone4", 4096, 128},     {"gemma3n_text", 512, 256},
  };
  for (const Expected& expected : cases) {
    const ModelShape shape = parse(
        "{\"model_type\": \"" + std::string(expected.type) +
        "\", \"hidden_size\": 2048, \"num_attention_heads\": 16, \"num_key_value_heads\": 4}");
    EXPECT_EQ(shape.kinds[0].attention.window, expected.window) << expected.type;
    EXPECT_EQ(shape.kinds[0].attention.head_size, expected.head_size) << expected.type;
  }
}

TEST(MlaRulesTest, NullLatentRankIsOrdinaryAttention) {
  const ModelShape shape = parse(config("deepseek_v3", "\"kv_lora_rank\": null"));
  EXPECT_EQ(shape.kinds[0].attention.family, LayerFamily::kSoftmax);
  EXPECT_EQ(shape.kinds[0].attention.head_size, 64);
}

TEST(MlaRulesTest, HeadDimOfResavedFilesIsIgnored) {
  EXPECT_EQ(parse(config("deepseek_v2")).kinds[0].attention.head_size, 576);
}

TEST(WhereToLookTest, SectionsOfMultimodalFiles) {
  for (const char* section : {"text_config", "decoder", "llm_config", "language_config"}) {
    const ModelShape shape =
        parse("{\"model_type\": \"wrapper\", \"vision_config\": {\"num_attention_heads\": 3}, \"" +
              std::string(section) + "\": " + config("llama") + "}");
    EXPECT_EQ(shape.kinds[0].attention.num_heads, 8) << section;
    EXPECT_EQ(shape.file_model_type, "wrapper");
  }
  EXPECT_EQ(parse("{\"model_type\": \"omni\", \"thinker_config\": {\"text_config\": " +
                  config("qwen2") + "}}")
                .kinds[0]
                .attention.num_heads,
            8);
}

TEST(DtypeRulesTest, OrderAndNames) {
  const auto dtype = [](const std::string& fields) { return parse(config("llama", fields)).dtype; };
  EXPECT_EQ(dtype("\"torch_dtype\": \"float16\""), DataType::kFloat16);
  EXPECT_EQ(dtype("\"dtype\": \"float16\""), DataType::kFloat16);
  EXPECT_EQ(dtype("\"torch_dtype\": \"torch.float16\""), DataType::kFloat16);
  EXPECT_EQ(dtype("\"torch_dtype\": \"float32\""), DataType::kBFloat16);
  EXPECT_EQ(dtype("\"torch_dtype\": null"), DataType::kBFloat16);
  EXPECT_EQ(parse("{\"model_type\": \"x\", \"text_config\": " +
                  config("llama", "\"dtype\": \"float16\"") + "}")
                .dtype,
            DataType::kFloat16);
  EXPECT_EQ(error_of(config("llama", "\"torch_dtype\": \"int8\"")),
            "torch_dtype \"int8\": must be float16, bfloat16 or float32; else say --dtype");
}

struct BadConfig {
  const char* json;
  const char* sentence;  // a part of it
};

TEST(BadInputTest, OneSentenceWithTheValueAndWhatIsLegal) {
  const BadConfig cases[] = {
      {"{}", "model_type is absent"},
      {R"({"model_type": "llama-ng"})", "model_type \"llama-ng\": not known"},
      {R"({"model_type": 3})", "model_type 3: must be a string"},
      {R"({"model_type": "llama", "num_hidden_layers": 0})",
       "num_hidden_layers 0: must be an integer in [1, 2048]"},
      {R"({"model_type": "llama", "num_hidden_layers": 2000000000})",
       "num_hidden_layers 2000000000: must be"},
      {R"({"model_type": "llama", "num_hidden_layers": "32"})",
       "num_hidden_layers \"32\": must be"},
      {R"({"model_type": "llama", "num_attention_heads": -1})", "num_attention_heads -1: must be"},
      {R"({"model_type": "llama", "num_attention_heads": 1e3})",
       "num_attention_heads 1000.0: must be"},
      {R"({"model_type": "llama", "num_attention_heads": 33})",
       "hidden_size 4096: must be a multiple of num_attention_heads 33"},
      {R"({"model_type": "llama", "num_key_value_heads": 5})",
       "num_attention_heads 32: must be a multiple of num_key_value_heads 5"},
      {R"({"model_type": "llama", "num_key_value_heads": 0})", "num_key_value_heads 0: must be"},
      {R"({"model_type": "llama", "hidden_size": 99999999999999999999})", "hidden_size"},
      {R"({"model_type": "llama", "head_dim": -128})", "head_dim -128: must be"},
      {R"({"model_type": "llama", "head_dim": 100000})", "head_dim 100000: must be"},
      {R"({"model_type": "llama", "head_dim": [128]})", "head_dim [128]: must be"},
      {R"({"model_type": "llama", "layer_types": ["full_attention"]})",
       "layer_types has 1 entries: must have one for each of the 32 layers"},
      {R"({"model_type": "llama", "layer_types": "full_attention"})",
       "layer_types \"full_attention\": must be"},
      {R"({"model_type": "mistral", "sliding_window": -1})", "sliding_window -1: must be"},
      {R"({"model_type": "mistral", "sliding_window": "4k"})", "sliding_window \"4k\": must be"},
      {R"({"model_type": "llama", "num_hidden_layers": 1, "layer_types": ["sliding_attention"]})",
       "layer_types has sliding_attention at layer 0: sliding_window must"},
      {R"({"model_type": "exaone4", "sliding_window_pattern": "LXG"})",
       "sliding_window_pattern \"LXG\": must be a number of layers or letters"},
      {R"({"model_type": "gemma2", "attn_logit_softcapping": -5})", "attn_logit_softcapping -5"},
      {R"({"model_type": "gemma2", "query_pre_attn_scalar": 0})", "query_pre_attn_scalar 0"},
      {R"({"model_type": "bloom", "n_layer": 30})",
       "num_attention_heads is absent: bloom has no default"},
      {R"({"model_type": "mpt", "n_layers": 2, "n_heads": 2, "d_model": 128})",
       "attn_config.alibi is absent"},
      {R"({"model_type": "gemma4_text", "num_hidden_layers": 2, "num_attention_heads": 2})",
       "layer_types is absent: gemma4_text needs it"},
      {R"({"model_type": "kimi_k2", "num_hidden_layers": 2, "num_attention_heads": 2})",
       "kv_lora_rank is absent"},
      {R"({"model_type": "gemma3", "text_config": 3})", "text_config 3: must be an object"},
      {R"({"model_type": "mpt", "n_layers": 2, "n_heads": 2, "d_model": 128, "attn_config": []})",
       "attn_config []: must be an object"},
  };
  for (const BadConfig& bad : cases) {
    const std::string message = error_of(bad.json);
    EXPECT_NE(message.find(bad.sentence), std::string::npos) << bad.json << "\n" << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(ModelTypesTest, ListIsSortedAndHasTheAliases) {
  const std::vector<std::string> types = known_model_types();
  EXPECT_TRUE(std::is_sorted(types.begin(), types.end()));
  for (const char* type : {"phi-msft", "RefinedWebModel", "gemma3", "llama", "deepseek_v32"}) {
    EXPECT_TRUE(std::binary_search(types.begin(), types.end(), type)) << type;
  }
}

}  // namespace
}  // namespace pagejit::models
