#include "tools/models/attention_fields.h"

#include <cmath>
#include <string>
#include <string_view>

namespace pagejit::models {
namespace {

// No published model comes near; what is beyond is a damaged file, and products of two of them fit
// 64 bits.
constexpr IntegerRange kLayerRange = {1, 2048};
constexpr IntegerRange kHeadRange = {1, 2048};
constexpr IntegerRange kWidthRange = {1, 1 << 20};
constexpr IntegerRange kHeadSizeRange = {1, 4096};

std::string default_text(const FieldSource& source, const std::string& key, int64_t value) {
  return key + " " + std::to_string(value) + " (default of " + source.shape->model_type + ")";
}

// A key that every model has under one of several names; absent or null: the class default, which
// is recorded.
int read_or_default(const FieldSource& source, std::initializer_list<std::string_view> keys,
                    int fallback, IntegerRange range) {
  if (const auto value = source.text.integer(keys, range)) return static_cast<int>(*value);
  const std::string name(*keys.begin());
  if (fallback == 0) {
    source.text.fail(name + " is absent: " + source.shape->model_type +
                     " has no default that would stand for it");
    return 0;
  }
  source.shape->defaulted.push_back(default_text(source, name, fallback));
  return fallback;
}

int read_num_heads(const FieldSource& source) {
  return read_or_default(source, {"num_attention_heads", "n_head", "n_heads"},
                         source.defaults.num_heads, kHeadRange);
}

// Falcon's three keys. The oldest 40B files, type RefinedWeb, have the new architecture without
// saying so.
int read_falcon_kv_heads(const FieldSource& source, int num_heads) {
  const bool new_architecture = source.text.boolean("new_decoder_architecture")
                                    .value_or(source.shape->file_model_type == "RefinedWeb");
  const auto given = source.text.integer({"num_kv_heads", "n_head_kv"}, kHeadRange);
  if (new_architecture) return static_cast<int>(given.value_or(num_heads));
  const auto multi_query = source.text.boolean("multi_query");
  if (!multi_query) source.shape->defaulted.push_back("multi_query true (default of falcon)");
  if (!multi_query.value_or(true)) return static_cast<int>(given.value_or(num_heads));
  if (given && *given != 1) {
    source.shape->notes.push_back("num_kv_heads " + std::to_string(*given) +
                                  " is not used: multi_query is true, so there is 1");
  }
  return 1;
}

int read_num_kv_heads(const FieldSource& source, int num_heads) {
  switch (source.defaults.kv_heads) {
    case KvHeadRule::kEqualHeads:
      return num_heads;
    case KvHeadRule::kFalcon:
      return read_falcon_kv_heads(source, num_heads);
    case KvHeadRule::kMultiQuery: {
      const auto multi_query = source.text.boolean("multi_query");
      if (!multi_query) {
        source.shape->defaulted.push_back("multi_query true (default of " +
                                          source.shape->model_type + ")");
      }
      return multi_query.value_or(true) ? 1 : num_heads;
    }
    case KvHeadRule::kMpt: {
      const auto attention = source.text.section("attn_config");
      const auto given = attention ? attention->integer({"kv_n_heads"}, kHeadRange) : std::nullopt;
      return static_cast<int>(given.value_or(num_heads));
    }
    case KvHeadRule::kChatGlm:
      if (!source.text.boolean("multi_query_attention").value_or(false)) return num_heads;
      return read_or_default(source, {"multi_query_group_num"}, 0, kHeadRange);
    case KvHeadRule::kAttentionGroups:
      return read_or_default(source, {"num_attention_groups"}, 0, kHeadRange);
    case KvHeadRule::kKeyValueHeads:
      break;
  }
  if (const auto given = source.text.integer({"num_key_value_heads", "n_head_kv"}, kHeadRange)) {
    return static_cast<int>(*given);
  }
  const bool is_null =
      source.text.is_null("num_key_value_heads") || source.text.is_null("n_head_kv");
  if (is_null) return num_heads;
  const int fallback = source.defaults.num_kv_heads == 0 ? num_heads : source.defaults.num_kv_heads;
  source.shape->defaulted.push_back(default_text(source, "num_key_value_heads", fallback));
  return fallback;
}

int read_width(const FieldSource& source) {
  return read_or_default(source, {"hidden_size", "d_model", "n_embd", "n_embed"},
                         source.defaults.hidden_size, kWidthRange);
}

// head_dim wins over the quotient; 0 and null mean that it is not given.
int read_head_size(const FieldSource& source, int num_heads) {
  const auto given = source.text.integer({"head_dim", "attention_head_dim", "kv_channels"},
                                         {0, kHeadSizeRange.max});
  if (given && *given != 0) return static_cast<int>(*given);
  if (source.defaults.head_dim != 0) {
    source.shape->defaulted.push_back(default_text(source, "head_dim", source.defaults.head_dim));
    return source.defaults.head_dim;
  }
  const int width = read_width(source);
  if (width == 0 || num_heads == 0) return 0;
  if (width % num_heads != 0) {
    source.text.fail("hidden_size " + std::to_string(width) +
                     ": must be a multiple of num_attention_heads " + std::to_string(num_heads) +
                     " where head_dim is not given");
    return 0;
  }
  return width / num_heads;
}

double read_scale(const FieldSource& source, int num_heads, int head_size) {
  const double by_head_size = 1.0 / std::sqrt(static_cast<double>(head_size));
  const auto positive = [&](std::string_view key, std::optional<double> value) {
    if (value && *value <= 0) {
      source.text.fail(std::string(key) + " " + std::to_string(*value) + ": must be above 0");
    }
    return value;
  };
  switch (source.defaults.scale) {
    case ScaleRule::kHeadSize:
      return by_head_size;
    case ScaleRule::kHalfHeadSize:
      return 1.0 / std::sqrt(head_size / 2.0);
    case ScaleRule::kOne:
      return 1.0;
    case ScaleRule::kQueryPreAttnScalar: {
      const char* key = "query_pre_attn_scalar";
      const auto given = positive(key, source.text.real(key));
      if (!given) {
        source.shape->defaulted.push_back(
            default_text(source, key, static_cast<int64_t>(source.defaults.query_pre_attn_scalar)));
      }
      return 1.0 / std::sqrt(given.value_or(source.defaults.query_pre_attn_scalar));
    }
    case ScaleRule::kAttentionMultiplier: {
      const auto given = positive("attention_multiplier", source.text.real("attention_multiplier"));
      if (!given)
        source.shape->defaulted.push_back(default_text(source, "attention_multiplier", 1));
      return given.value_or(1.0);
    }
    case ScaleRule::kMpt: {
      const auto attention = source.text.section("attn_config");
      const auto given =
          attention ? positive("attn_config.softmax_scale", attention->real("softmax_scale"))
                    : std::nullopt;
      if (given) return *given;
      const int width = read_width(source);
      return num_heads == 0 ? 0 : 1.0 / std::sqrt(static_cast<double>(width) / num_heads);
    }
    case ScaleRule::kGpt2:
      return source.text.boolean("scale_attn_weights").value_or(true) ? by_head_size : 1.0;
  }
  return by_head_size;
}

void read_alibi(const FieldSource& source, int head_size, LayerAttention* attention) {
  constexpr double kUsualMaxBias = 8;  // the paper's slopes, and the only ones of bloom and falcon
  switch (source.defaults.alibi) {
    case AlibiRule::kNone:
      return;
    case AlibiRule::kAlways:
      attention->alibi = true;
      attention->alibi_max_bias = kUsualMaxBias;
      return;
    case AlibiRule::kFalcon:
      attention->alibi = source.text.boolean("alibi").value_or(false);
      attention->alibi_scaled = attention->alibi;
      attention->alibi_max_bias = attention->alibi ? kUsualMaxBias : 0;
      if (attention->alibi) {
        source.shape->notes.push_back("falcon adds ALiBi before the scale: pass slope / sqrt(" +
                                      std::to_string(head_size) + ")");
      }
      return;
    case AlibiRule::kMpt: {
      const auto section = source.text.section("attn_config");
      const auto alibi = section ? section->boolean("alibi") : std::nullopt;
      if (!alibi) {
        // transformers takes true, mosaicml's own code false.
        source.text.fail(
            "attn_config.alibi is absent, and implementations of mpt differ in its default: must "
            "be "
            "true or false");
        return;
      }
      attention->alibi = *alibi;
      if (*alibi)
        attention->alibi_max_bias = section->real("alibi_bias_max").value_or(kUsualMaxBias);
      return;
    }
  }
}

double read_soft_cap(const FieldSource& source) {
  const char* key = "attn_logit_softcapping";
  double cap = 0;
  if (source.text.is_present(key)) {
    cap = source.text.real(key).value_or(0);
  } else if (source.defaults.soft_cap > 0) {
    cap = source.defaults.soft_cap;
    source.shape->defaulted.push_back(default_text(source, key, static_cast<int64_t>(cap)));
  }
  if (cap < 0)
    source.text.fail(std::string(key) + " " + std::to_string(cap) + ": must be above 0, or null");
  return cap;
}

// YaRN's correction of the logits, squared: (0.1 * mscale_all_dim * ln(factor) + 1)^2.
double read_mla_correction(const FieldSource& source) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto rope = source.text.section(key);
    if (!rope) continue;
    const double all_dim = rope->real("mscale_all_dim").value_or(0);
    const double factor = rope->real("factor").value_or(1);
    if (all_dim == 0 || factor <= 1) return 1;
    const double m = 0.1 * all_dim * std::log(factor) + 1;
    source.shape->notes.push_back(
        "the softmax scale holds mscale_all_dim squared; some implementations of " +
        source.shape->model_type + " leave it out");
    return m * m;
  }
  return 1;
}

LayerAttention read_mla(const FieldSource& source, int num_heads) {
  const auto dim = [&](const char* key, int fallback) {
    return read_or_default(source, {key}, fallback, {1, 1 << 14});
  };
  MlaDims dims;
  dims.kv_lora_rank = dim("kv_lora_rank", source.defaults.kv_lora_rank);
  dims.qk_rope_head_dim = dim("qk_rope_head_dim", source.defaults.qk_rope_head_dim);
  dims.qk_nope_head_dim = dim("qk_nope_head_dim", source.defaults.qk_nope_head_dim);
  dims.v_head_dim = dim("v_head_dim", source.defaults.v_head_dim);
  if (source.text.has_value("index_topk")) {
    dims.index_topk = dim("index_topk", 0);
    dims.index_heads = dim("index_n_heads", 0);
    dims.index_head_dim = dim("index_head_dim", 0);
  }
  LayerAttention attention;
  attention.family = LayerFamily::kMla;
  attention.num_heads = num_heads;
  attention.num_kv_heads = 1;
  attention.head_size = dims.kv_lora_rank + dims.qk_rope_head_dim;
  const int prefill_head_size = dims.qk_nope_head_dim + dims.qk_rope_head_dim;
  attention.scale = read_mla_correction(source) / std::sqrt(static_cast<double>(prefill_head_size));
  attention.mla = dims;
  return attention;
}

}  // namespace

int read_num_layers(const FieldSource& source) {
  const int layers =
      read_or_default(source, {"num_hidden_layers", "n_layer", "n_layers", "num_layers"},
                      source.defaults.num_layers, kLayerRange);
  const auto extra = source.text.integer({"num_nextn_predict_layers"}, {0, 64});
  if (extra && *extra > 0) {
    source.shape->notes.push_back("num_nextn_predict_layers " + std::to_string(*extra) +
                                  " is not counted: prediction layers have the same shape");
  }
  return layers;
}

LayerAttention read_attention(const FieldSource& source) {
  const int num_heads = read_num_heads(source);
  if (source.defaults.mla && !source.text.is_null("kv_lora_rank"))
    return read_mla(source, num_heads);
  LayerAttention attention;
  attention.num_heads = num_heads;
  attention.num_kv_heads = read_num_kv_heads(source, num_heads);
  attention.head_size = read_head_size(source, num_heads);
  if (attention.head_size > 0) {
    attention.scale = read_scale(source, num_heads, attention.head_size);
  }
  attention.soft_cap = read_soft_cap(source);
  attention.sinks = source.defaults.sinks;
  read_alibi(source, attention.head_size, &attention);
  return attention;
}

void adjust_full_layer(const FieldSource& source, LayerAttention* attention) {
  if (source.defaults.model_type != "gemma4_text") return;
  if (const auto size = source.text.integer({"global_head_dim"}, kHeadSizeRange)) {
    attention->head_size = static_cast<int>(*size);
  }
  // The other number of KV heads belongs to layers whose V is their K.
  if (!source.text.boolean("attention_k_eq_v").value_or(false)) return;
  if (const auto heads = source.text.integer({"num_global_key_value_heads"}, kHeadRange)) {
    attention->num_kv_heads = static_cast<int>(*heads);
  }
}

void adjust_sliding_layer(const FieldSource& source, LayerAttention* attention) {
  if (source.defaults.model_type != "step3p5") return;
  const auto other = source.text.section("attention_other_setting");
  if (!other) return;
  const auto take = [](std::optional<int64_t> value, int* field) {
    if (value) *field = static_cast<int>(*value);
  };
  take(other->integer({"num_attention_heads"}, kHeadRange), &attention->num_heads);
  take(other->integer({"num_attention_groups"}, kHeadRange), &attention->num_kv_heads);
  take(other->integer({"head_dim"}, kHeadSizeRange), &attention->head_size);
  attention->scale = 1.0 / std::sqrt(static_cast<double>(attention->head_size));
}

Direction read_direction(const FieldSource& source) {
  if (source.defaults.bidirectional) return Direction::kBidirectional;
  const char* key = "use_bidirectional_attention";
  if (source.text.is_text(key)) {
    const std::string value = source.text.text(key).value_or("");
    if (value == "all") return Direction::kBidirectional;
    if (value == "vision") {
      source.shape->notes.push_back(
          "tokens of one image attend to each other both ways at prefill");
    } else {
      source.text.fail(std::string(key) + " \"" + printable(value) +
                       "\": must be true, false, \"all\" or \"vision\"");
    }
    return Direction::kCausal;
  }
  if (source.text.boolean(key).value_or(false)) return Direction::kBidirectional;
  if (source.shape->file_model_type == "gemma3") {
    source.shape->notes.push_back("tokens of one image attend to each other both ways at prefill");
  }
  if (source.defaults.kv_heads == KvHeadRule::kMpt) {
    const auto section = source.text.section("attn_config");
    if (section && section->boolean("prefix_lm").value_or(false)) return Direction::kPrefix;
  }
  return Direction::kCausal;
}

DataType read_dtype(const FieldSource& source, std::optional<DataType> asked) {
  if (asked) return *asked;
  std::optional<std::string> text;
  for (const ConfigReader* reader : {&source.top, &source.text}) {
    for (const char* key : {"torch_dtype", "dtype"}) {
      if (!text) text = reader->text(key);
    }
  }
  if (text && *text == "auto") text.reset();
  if (!text) {
    source.shape->defaulted.push_back("dtype bfloat16 (the file gives none)");
    return DataType::kBFloat16;
  }
  std::string_view name = *text;
  if (name.starts_with("torch.")) name.remove_prefix(6);
  if (name == "float32" || name == "float") {
    source.shape->notes.push_back("dtype float32 is lowered to bfloat16");
    return DataType::kBFloat16;
  }
  if (name == "bfloat16") return DataType::kBFloat16;
  if (name == "float16" || name == "half") return DataType::kFloat16;
  source.text.fail("torch_dtype \"" + printable(*text) +
                   "\": must be float16, bfloat16 or float32; else say --dtype");
  return DataType::kBFloat16;
}

void check_attention(const FieldSource& source, const LayerAttention& attention) {
  if (attention.num_kv_heads > 0 && attention.num_heads % attention.num_kv_heads != 0) {
    source.text.fail("num_attention_heads " + std::to_string(attention.num_heads) +
                     ": must be a multiple of num_key_value_heads " +
                     std::to_string(attention.num_kv_heads));
  }
  if (attention.head_size > kHeadSizeRange.max && attention.family != LayerFamily::kMla) {
    source.text.fail("head size " + std::to_string(attention.head_size) + ": must be at most " +
                     std::to_string(kHeadSizeRange.max));
  }
}

}  // namespace pagejit::models
