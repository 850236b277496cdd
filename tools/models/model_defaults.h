// The table of model types: what a config.json leaves unsaid because the model's class says it.
// Values are those of the configuration classes of transformers. Thread-safety: constant data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace pagejit::models {

// How layers differ where the file has neither layer_types nor a pattern key.
enum class LayerRule : uint8_t {
  kUniform,           // a non-null sliding_window holds for all layers
  kEvenSliding,       // even layers sliding, odd layers full (gemma2, gpt_oss)
  kPattern,           // full where (i + 1) % window_pattern == 0 (gemma3, cohere2, olmo3, exaone4)
  kMaxWindowLayers,   // with use_sliding_window: sliding from max_window_layers on (qwen2, qwen3)
  kQwen2Moe,          // with use_sliding_window: sliding for even i < max_window_layers
  kUseSlidingWindow,  // with use_sliding_window: all layers (qwen3_moe)
  kChunkedNoRope,     // no_rope_layers: rope layers are chunked (llama4)
  kFullInterval,   // full where (i + 1) % full_attention_interval == 0, others linear (qwen3_next)
  kHybridPattern,  // hybrid_override_pattern, '*' is attention (nemotron_h)
  kAttentionIndices,  // attn_layer_indices (bamba)
  kBlockTypes,        // layers_block_type (granitemoehybrid, zamba2), or period and offset (jamba)
  kModernBert,        // full where i % global_attn_every_n_layers == 0, else local_attention
  kListOnly,          // no rule is known: the file must have layer_types (gemma4, step3p5)
};

// How many KV heads where no key of the common list says so.
enum class KvHeadRule : uint8_t {
  kKeyValueHeads,    // num_key_value_heads; null: as many as query heads; absent: the class default
  kEqualHeads,       // the class has no such key
  kFalcon,           // new_decoder_architecture, multi_query, num_kv_heads
  kMultiQuery,       // gpt_bigcode
  kMpt,              // attn_config.kv_n_heads
  kChatGlm,          // multi_query_group_num
  kAttentionGroups,  // num_attention_groups
};

enum class ScaleRule : uint8_t {
  kHeadSize,             // head size ^ -0.5
  kQueryPreAttnScalar,   // query_pre_attn_scalar ^ -0.5 (gemma2, gemma3)
  kAttentionMultiplier,  // attention_multiplier itself (granite)
  kOne,                  // 1 (gemma3n, gemma4)
  kMpt,                  // attn_config.softmax_scale, else 1/sqrt(d_model / n_heads)
  kGpt2,                 // scale_attn_weights, scale_attn_by_inverse_layer_idx
  kHalfHeadSize,         // (head size / 2) ^ -0.5 (zamba2)
};

enum class AlibiRule : uint8_t { kNone, kAlways, kMpt, kFalcon };

// Zero means "the class has no default that is worth taking": the key is then required, or, for
// num_key_value_heads, head_dim and sliding_window, means heads, hidden_size / heads and none.
struct ModelDefaults {
  std::string_view model_type;
  int num_layers = 0;
  int hidden_size = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int sliding_window = 0;
  int window_pattern = 0;  // of LayerRule::kPattern, kFullInterval, kModernBert
  int max_window_layers = 0;
  double soft_cap = 0;
  double query_pre_attn_scalar = 0;
  LayerRule layers = LayerRule::kUniform;
  KvHeadRule kv_heads = KvHeadRule::kKeyValueHeads;
  ScaleRule scale = ScaleRule::kHeadSize;
  AlibiRule alibi = AlibiRule::kNone;
  bool sinks = false;
  bool mla = false;  // where kv_lora_rank is not null
  bool bidirectional = false;
  // MLA only.
  int kv_lora_rank = 0;
  int qk_rope_head_dim = 0;
  int qk_nope_head_dim = 0;
  int v_head_dim = 0;
};

std::span<const ModelDefaults> all_model_defaults();

// Null where the type is unknown. Takes resolved types only.
const ModelDefaults* find_model_defaults(std::string_view model_type);

struct ModelAlias {
  std::string_view alias;
  std::string_view model_type;
};

std::span<const ModelAlias> all_model_aliases();

// "phi" for "phi-msft", "gemma3_text" for "gemma3"; anything else unchanged.
std::string_view resolve_model_type(std::string_view model_type);

}  // namespace pagejit::models
