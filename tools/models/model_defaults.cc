#include "tools/models/model_defaults.h"

namespace pagejit::models {
namespace {

using enum LayerRule;
using K = KvHeadRule;
using S = ScaleRule;

// clang-format off
constexpr ModelDefaults kDefaults[] = {
    // One shape for all layers.
    {.model_type = "llama", .num_layers = 32, .hidden_size = 4096, .num_heads = 32},
    {.model_type = "mistral", .num_layers = 32, .hidden_size = 4096, .num_heads = 32, .num_kv_heads = 8, .sliding_window = 4096},
    {.model_type = "ministral", .num_layers = 32, .hidden_size = 4096, .num_heads = 32, .num_kv_heads = 8, .sliding_window = 4096},
    {.model_type = "ministral3", .num_layers = 34, .hidden_size = 4096, .num_heads = 32, .num_kv_heads = 8, .head_dim = 128},
    {.model_type = "mixtral", .num_layers = 32, .hidden_size = 4096, .num_heads = 32, .num_kv_heads = 8},
    {.model_type = "starcoder2", .num_layers = 30, .hidden_size = 3072, .num_heads = 24, .num_kv_heads = 2},
    {.model_type = "phi", .num_layers = 24, .hidden_size = 2048, .num_heads = 32},
    {.model_type = "phi3", .num_layers = 32, .hidden_size = 3072, .num_heads = 32},
    {.model_type = "phimoe", .num_layers = 32, .hidden_size = 4096, .num_heads = 32, .num_kv_heads = 8},
    {.model_type = "gemma", .num_layers = 28, .hidden_size = 3072, .num_heads = 16, .num_kv_heads = 16, .head_dim = 256},
    {.model_type = "cohere", .num_layers = 40, .hidden_size = 8192, .num_heads = 64},
    {.model_type = "olmo", .num_layers = 32, .hidden_size = 4096, .num_heads = 32},
    {.model_type = "olmo2", .num_layers = 32, .hidden_size = 4096, .num_heads = 32},
    {.model_type = "olmoe", .num_layers = 16, .hidden_size = 2048, .num_heads = 16},
    {.model_type = "smollm3", .num_layers = 36, .hidden_size = 2048, .num_heads = 16, .num_kv_heads = 4, .layers = kUseSlidingWindow},
    {.model_type = "glm", .num_layers = 40, .hidden_size = 4096, .num_heads = 32, .num_kv_heads = 2, .head_dim = 128},
    {.model_type = "glm4", .num_layers = 40, .hidden_size = 4096, .num_heads = 32, .num_kv_heads = 2, .head_dim = 128},
    {.model_type = "chatglm", .kv_heads = K::kChatGlm},
    {.model_type = "stablelm", .num_layers = 32, .hidden_size = 2560, .num_heads = 32, .num_kv_heads = 32},
    {.model_type = "granite", .num_layers = 32, .hidden_size = 4096, .num_heads = 32, .scale = S::kAttentionMultiplier},
    {.model_type = "granitemoe", .num_layers = 32, .hidden_size = 4096, .num_heads = 32, .scale = S::kAttentionMultiplier},

    // No key for KV heads, or one of their own.
    {.model_type = "gpt2", .num_layers = 12, .hidden_size = 768, .num_heads = 12, .kv_heads = K::kEqualHeads, .scale = S::kGpt2},
    {.model_type = "gpt_bigcode", .num_layers = 12, .hidden_size = 768, .num_heads = 12, .kv_heads = K::kMultiQuery, .scale = S::kGpt2},
    {.model_type = "gpt_neox", .num_layers = 44, .hidden_size = 6144, .num_heads = 64, .kv_heads = K::kEqualHeads},
    {.model_type = "gptj", .num_layers = 28, .hidden_size = 4096, .num_heads = 16, .kv_heads = K::kEqualHeads},
    {.model_type = "opt", .num_layers = 12, .hidden_size = 768, .num_heads = 12, .kv_heads = K::kEqualHeads},
    {.model_type = "falcon", .num_layers = 32, .hidden_size = 4544, .num_heads = 71, .kv_heads = K::kFalcon, .alibi = AlibiRule::kFalcon},
    // The class defaults of bloom (2 layers of width 64) and mpt are those of no published model.
    {.model_type = "bloom", .kv_heads = K::kEqualHeads, .alibi = AlibiRule::kAlways},
    {.model_type = "mpt", .kv_heads = K::kMpt, .scale = S::kMpt, .alibi = AlibiRule::kMpt},

    // Windows on some layers.
    {.model_type = "qwen2", .num_layers = 32, .hidden_size = 4096, .num_heads = 32, .num_kv_heads = 32, .sliding_window = 4096, .max_window_layers = 28, .layers = kMaxWindowLayers},
    {.model_type = "qwen2_vl_text", .num_layers = 80, .hidden_size = 8192, .num_heads = 64, .num_kv_heads = 8, .sliding_window = 4096, .max_window_layers = 80, .layers = kMaxWindowLayers},
    {.model_type = "qwen2_5_vl_text", .num_layers = 80, .hidden_size = 8192, .num_heads = 64, .num_kv_heads = 8, .sliding_window = 4096, .max_window_layers = 80, .layers = kMaxWindowLayers},
    {.model_type = "qwen2_moe", .num_layers = 24, .hidden_size = 2048, .num_heads = 16, .num_kv_heads = 16, .sliding_window = 4096, .max_window_layers = 28, .layers = kQwen2Moe},
    {.model_type = "qwen3", .num_layers = 32, .hidden_size = 4096, .num_heads = 32, .num_kv_heads = 32, .head_dim = 128, .sliding_window = 4096, .max_window_layers = 28, .layers = kMaxWindowLayers},
    {.model_type = "qwen3_moe", .num_layers = 24, .hidden_size = 2048, .num_heads = 32, .num_kv_heads = 4, .sliding_window = 4096, .layers = kUseSlidingWindow},
    {.model_type = "qwen3_vl_text", .num_layers = 32, .hidden_size = 4096, .num_heads = 32, .num_kv_heads = 32, .head_dim = 128},
    {.model_type = "qwen3_vl_moe_text", .num_layers = 24, .hidden_size = 2048, .num_heads = 16, .num_kv_heads = 16},
    {.model_type = "gemma2", .num_layers = 26, .hidden_size = 2304, .num_heads = 8, .num_kv_heads = 4, .head_dim = 256, .sliding_window = 4096, .soft_cap = 50, .query_pre_attn_scalar = 256, .layers = kEvenSliding, .scale = S::kQueryPreAttnScalar},
    {.model_type = "vaultgemma", .num_layers = 26, .hidden_size = 2304, .num_heads = 8, .num_kv_heads = 4, .head_dim = 256, .sliding_window = 4096, .soft_cap = 50, .query_pre_attn_scalar = 256, .layers = kEvenSliding, .scale = S::kQueryPreAttnScalar},
    {.model_type = "gemma3_text", .num_layers = 26, .hidden_size = 2304, .num_heads = 8, .num_kv_heads = 4, .head_dim = 256, .sliding_window = 4096, .window_pattern = 6, .query_pre_attn_scalar = 256, .layers = kPattern, .scale = S::kQueryPreAttnScalar},
    {.model_type = "gemma3n_text", .num_layers = 35, .hidden_size = 2048, .num_heads = 8, .num_kv_heads = 2, .head_dim = 256, .sliding_window = 512, .window_pattern = 5, .layers = kPattern, .scale = S::kOne},
    {.model_type = "gemma4_text", .head_dim = 256, .layers = kListOnly, .scale = S::kOne},
    {.model_type = "cohere2", .num_layers = 40, .hidden_size = 8192, .num_heads = 64, .sliding_window = 4096, .window_pattern = 4, .layers = kPattern},
    {.model_type = "olmo3", .num_layers = 32, .hidden_size = 4096, .num_heads = 32, .sliding_window = 4096, .window_pattern = 4, .layers = kPattern},
    {.model_type = "exaone4", .num_layers = 32, .hidden_size = 4096, .num_heads = 32, .num_kv_heads = 32, .sliding_window = 4096, .window_pattern = 4, .layers = kPattern},
    {.model_type = "afmoe", .layers = kPattern},
    {.model_type = "step3p5", .layers = kListOnly, .kv_heads = K::kAttentionGroups},
    {.model_type = "gpt_oss", .num_layers = 36, .hidden_size = 2880, .num_heads = 64, .num_kv_heads = 8, .head_dim = 64, .sliding_window = 128, .layers = kEvenSliding, .sinks = true},
    {.model_type = "llama4_text", .num_layers = 48, .hidden_size = 5120, .num_heads = 40, .num_kv_heads = 8, .head_dim = 128, .layers = kChunkedNoRope},
    {.model_type = "modernbert", .num_layers = 22, .hidden_size = 768, .num_heads = 12, .window_pattern = 3, .layers = kModernBert, .kv_heads = K::kEqualHeads, .bidirectional = true},

    // Attention on some layers only.
    {.model_type = "qwen3_next", .num_layers = 48, .hidden_size = 2048, .num_heads = 16, .num_kv_heads = 2, .head_dim = 256, .window_pattern = 4, .layers = kFullInterval},
    {.model_type = "qwen3_5_text", .num_layers = 32, .hidden_size = 4096, .num_heads = 16, .num_kv_heads = 4, .head_dim = 256, .window_pattern = 4, .layers = kFullInterval},
    {.model_type = "qwen3_5_moe_text", .num_layers = 40, .hidden_size = 2048, .num_heads = 16, .num_kv_heads = 2, .head_dim = 256, .window_pattern = 4, .layers = kFullInterval},
    {.model_type = "nemotron_h", .layers = kHybridPattern},
    {.model_type = "bamba", .num_layers = 32, .hidden_size = 4096, .num_heads = 32, .num_kv_heads = 8, .layers = kAttentionIndices},
    {.model_type = "jamba", .num_layers = 32, .hidden_size = 4096, .num_heads = 32, .num_kv_heads = 8, .layers = kBlockTypes},
    {.model_type = "granitemoehybrid", .num_layers = 32, .hidden_size = 4096, .num_heads = 32, .layers = kBlockTypes, .scale = S::kAttentionMultiplier},
    {.model_type = "zamba2", .layers = kBlockTypes, .scale = S::kHalfHeadSize},

    // Multi-head latent attention.
    {.model_type = "deepseek_v2", .num_layers = 32, .hidden_size = 4096, .num_heads = 32, .mla = true, .kv_lora_rank = 512, .qk_rope_head_dim = 64, .qk_nope_head_dim = 128, .v_head_dim = 128},
    {.model_type = "deepseek_v3", .num_layers = 61, .hidden_size = 7168, .num_heads = 128, .mla = true, .kv_lora_rank = 512, .qk_rope_head_dim = 64, .qk_nope_head_dim = 128, .v_head_dim = 128},
    {.model_type = "deepseek_v32", .mla = true},
    {.model_type = "kimi_k2", .mla = true},
    {.model_type = "glm_moe_dsa", .mla = true},
};
// clang-format on

constexpr ModelAlias kAliases[] = {
    {"RefinedWeb", "falcon"},      {"RefinedWebModel", "falcon"},
    {"phi-msft", "phi"},           {"gemma3", "gemma3_text"},
    {"gemma3n", "gemma3n_text"},   {"gemma4", "gemma4_text"},
    {"llama4", "llama4_text"},     {"llava", "llama"},
    {"llava_next", "llama"},       {"mistral3", "mistral"},
    {"qwen2_vl", "qwen2_vl_text"}, {"qwen2_5_vl", "qwen2_5_vl_text"},
    {"qwen3_vl", "qwen3_vl_text"}, {"qwen3_vl_moe", "qwen3_vl_moe_text"},
    {"qwen3_5", "qwen3_5_text"},   {"qwen3_5_moe", "qwen3_5_moe_text"},
};

}  // namespace

std::span<const ModelDefaults> all_model_defaults() { return kDefaults; }

std::span<const ModelAlias> all_model_aliases() { return kAliases; }

const ModelDefaults* find_model_defaults(std::string_view model_type) {
  for (const ModelDefaults& defaults : kDefaults) {
    if (defaults.model_type == model_type) return &defaults;
  }
  return nullptr;
}

std::string_view resolve_model_type(std::string_view model_type) {
  for (const ModelAlias& entry : kAliases) {
    if (entry.alias == model_type) return entry.model_type;
  }
  return model_type;
}

}  // namespace pagejit::models
