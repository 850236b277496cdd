#include "tools/models/layer_kinds.h"

#include <algorithm>
#include <optional>

namespace pagejit::models {
namespace {

constexpr IntegerRange kAnyCount = {0, INT32_MAX};

LayerSlot full_slot() { return {}; }
LayerSlot sliding_slot() { return {LayerFamily::kSoftmax, LayerReach::kSliding, {}}; }
LayerSlot chunked_slot() { return {LayerFamily::kSoftmax, LayerReach::kChunked, {}}; }
LayerSlot other_slot(LayerFamily family, std::string type) {
  return {family, LayerReach::kFull, std::move(type)};
}

// Every name that layer_types and layers_block_type hold.
LayerSlot slot_of_type(const std::string& type, bool mla) {
  if (type == "sliding_attention") return sliding_slot();
  if (type == "chunked_attention") return chunked_slot();
  for (const char* full : {"full_attention", "attention", "dense", "hybrid"}) {
    if (type == full) return full_slot();
  }
  // In a model with latent attention index_topk says what is sparse.
  if (mla && (type == "sparse" || type == "deepseek_sparse_attention")) return full_slot();
  for (const char* linear : {"linear_attention", "conv", "mamba", "mamba2", "recurrent"}) {
    if (type == linear) return other_slot(LayerFamily::kLinear, type);
  }
  for (const char* none : {"mlp", "moe"}) {
    if (type == none) return other_slot(LayerFamily::kNone, type);
  }
  return other_slot(LayerFamily::kUnknown, printable(type));
}

// Builds the slots of one file; each method is one rule of the guide.
class SlotBuilder {
 public:
  SlotBuilder(const ConfigReader& reader, const ModelDefaults& defaults, int num_layers,
              const LayerWindows& windows, ModelShape* shape)
      : reader_(reader),
        defaults_(defaults),
        num_layers_(num_layers),
        windows_(windows),
        shape_(shape),
        mla_(defaults.mla && !reader.is_null("kv_lora_rank")) {}

  std::vector<LayerSlot> build() {
    if (const auto types = reader_.text_list("layer_types"))
      return from_types("layer_types", *types);
    if (!reader_.status()) return {};
    if (defaults_.layers != LayerRule::kModernBert) {
      for (const char* key : {"sliding_window_pattern", "_sliding_window_pattern"}) {
        if (reader_.is_text(key)) return from_letters(key);
      }
      const auto period = reader_.integer(
          {"sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers"},
          kAnyCount);
      if (period) return from_period(*period, sliding_slot());
    }
    return from_model_type();
  }

 private:
  std::vector<LayerSlot> uniform(const LayerSlot& slot) const {
    return std::vector<LayerSlot>(num_layers_, slot);
  }

  template <class IsFull>
  std::vector<LayerSlot> mixed(IsFull is_full, const LayerSlot& other) const {
    std::vector<LayerSlot> slots;
    slots.reserve(static_cast<size_t>(num_layers_));
    for (int i = 0; i < num_layers_; ++i) slots.push_back(is_full(i) ? full_slot() : other);
    return slots;
  }

  std::vector<LayerSlot> absent(const std::string& key) const {
    reader_.fail(key + " is absent: " + shape_->model_type + " needs it to tell its layers apart");
    return {};
  }

  // A period of 0 means that no layer slides.
  std::vector<LayerSlot> from_period(int64_t period, const LayerSlot& other) const {
    return mixed([&](int i) { return period == 0 || (i + 1) % period == 0; }, other);
  }

  std::vector<LayerSlot> from_types(std::string_view key,
                                    const std::vector<std::string>& types) const {
    // step3p5 lists its prediction layers too; they are not counted.
    const int64_t extra = reader_.integer({"num_nextn_predict_layers"}, {0, 64}).value_or(0);
    const auto count = static_cast<int64_t>(types.size());
    if (count != num_layers_ && count != num_layers_ + extra) {
      reader_.fail(std::string(key) + " has " + std::to_string(types.size()) +
                   " entries: must have one for each of the " + std::to_string(num_layers_) +
                   " layers");
      return {};
    }
    std::vector<LayerSlot> slots;
    slots.reserve(static_cast<size_t>(num_layers_));
    for (int i = 0; i < num_layers_; ++i) slots.push_back(slot_of_type(types[i], mla_));
    return slots;
  }

  // "LLLG" repeats: L local, G global.
  std::vector<LayerSlot> from_letters(const char* key) const {
    const std::string letters = reader_.text(key).value_or("");
    if (letters.empty() || letters.find_first_not_of("LG") != std::string::npos) {
      reader_.fail(std::string(key) + " \"" + printable(letters) +
                   "\": must be a number of layers or letters L (sliding) and G (full)");
      return {};
    }
    return mixed([&](int i) { return letters[i % letters.size()] == 'G'; }, sliding_slot());
  }

  // The class default of an integer key, recorded.
  int64_t integer_or_default(const char* key, int fallback) const {
    if (const auto value = reader_.integer({key}, kAnyCount)) return *value;
    shape_->defaulted.push_back(std::string(key) + " " + std::to_string(fallback) +
                                " (default of " + shape_->model_type + ")");
    return fallback;
  }

  std::vector<LayerSlot> from_model_type() {
    switch (defaults_.layers) {
      case LayerRule::kUniform:
        return uniform(windows_.sliding > 0 ? sliding_slot() : full_slot());
      case LayerRule::kEvenSliding:
        return mixed([](int i) { return i % 2 == 1; }, sliding_slot());
      case LayerRule::kPattern:
        if (defaults_.window_pattern == 0) return absent("layer_types");
        shape_->defaulted.push_back(
            "every layer number " + std::to_string(defaults_.window_pattern) +
            " full, the others sliding (default of " + shape_->model_type + ")");
        return from_period(defaults_.window_pattern, sliding_slot());
      case LayerRule::kMaxWindowLayers:
      case LayerRule::kQwen2Moe:
      case LayerRule::kUseSlidingWindow:
        return from_use_sliding_window();
      case LayerRule::kChunkedNoRope:
        return from_no_rope_layers();
      case LayerRule::kFullInterval:
        return from_period(integer_or_default("full_attention_interval", defaults_.window_pattern),
                           other_slot(LayerFamily::kLinear, "linear_attention"));
      case LayerRule::kHybridPattern:
        return from_hybrid_pattern();
      case LayerRule::kAttentionIndices:
        return from_attention_indices();
      case LayerRule::kBlockTypes:
        return from_block_types();
      case LayerRule::kModernBert: {
        const int64_t period =
            integer_or_default("global_attn_every_n_layers", defaults_.window_pattern);
        return mixed([&](int i) { return period == 0 || i % period == 0; }, sliding_slot());
      }
      case LayerRule::kListOnly:
        return absent("layer_types");
    }
    return {};
  }

  std::vector<LayerSlot> from_use_sliding_window() {
    if (!reader_.boolean("use_sliding_window").value_or(false)) {
      if (windows_.sliding > 0 && reader_.has_value("sliding_window")) {
        shape_->notes.push_back("sliding_window " + std::to_string(windows_.sliding) +
                                " is not used: use_sliding_window is not true");
      }
      return uniform(full_slot());
    }
    if (windows_.sliding == 0) return uniform(full_slot());
    if (defaults_.layers == LayerRule::kUseSlidingWindow) return uniform(sliding_slot());
    const int64_t first = integer_or_default("max_window_layers", defaults_.max_window_layers);
    if (defaults_.layers == LayerRule::kQwen2Moe) {
      return mixed([&](int i) { return i % 2 == 1 || i >= first; }, sliding_slot());
    }
    return mixed([&](int i) { return i < first; }, sliding_slot());
  }

  // 1 = rope. Null or []: every no_rope_layer_interval-th layer has none.
  std::vector<LayerSlot> from_no_rope_layers() {
    if (windows_.chunk == 0) return uniform(full_slot());
    const auto list = reader_.integer_list("no_rope_layers", {0, 1});
    if (!reader_.status()) return {};
    if (!list || list->empty()) {
      // Class default 4.
      return from_period(integer_or_default("no_rope_layer_interval", 4), chunked_slot());
    }
    if (static_cast<int>(list->size()) != num_layers_) {
      reader_.fail("no_rope_layers has " + std::to_string(list->size()) +
                   " entries: must have none or one for each of the " +
                   std::to_string(num_layers_) + " layers");
      return {};
    }
    return mixed([&](int i) { return (*list)[i] == 0; }, chunked_slot());
  }

  std::vector<LayerSlot> from_hybrid_pattern() {
    const auto letters = reader_.text("hybrid_override_pattern");
    if (!letters) return absent("hybrid_override_pattern");
    std::vector<std::string> types;
    for (const char c : *letters) {
      types.push_back(c == '*'   ? "attention"
                      : c == 'M' ? "mamba2"
                      : c == '-' ? "mlp"
                      : c == 'E' ? "moe"
                                 : std::string("hybrid_override_pattern ") + c);
    }
    return from_types("hybrid_override_pattern", types);
  }

  std::vector<LayerSlot> from_attention_indices() {
    const auto indices = reader_.integer_list("attn_layer_indices", {0, num_layers_ - 1});
    if (!indices) return absent("attn_layer_indices");
    return mixed(
        [&](int i) { return std::find(indices->begin(), indices->end(), i) != indices->end(); },
        other_slot(LayerFamily::kLinear, "mamba2"));
  }

  std::vector<LayerSlot> from_block_types() {
    if (const auto types = reader_.text_list("layers_block_type")) {
      return from_types("layers_block_type", *types);
    }
    // jamba; class defaults 8 and 4.
    if (defaults_.model_type != "jamba") return absent("layers_block_type");
    const int64_t period = std::max<int64_t>(1, integer_or_default("attn_layer_period", 8));
    const int64_t offset = integer_or_default("attn_layer_offset", 4);
    return mixed([&](int i) { return i % period == offset; },
                 other_slot(LayerFamily::kLinear, "mamba"));
  }

  const ConfigReader& reader_;
  const ModelDefaults& defaults_;
  const int num_layers_;
  const LayerWindows& windows_;
  ModelShape* shape_;
  const bool mla_;
};

}  // namespace

LayerWindows read_layer_windows(const ConfigReader& reader, const ModelDefaults& defaults,
                                ModelShape* shape) {
  LayerWindows windows;
  const bool modern_bert = defaults.layers == LayerRule::kModernBert;
  const char* key = modern_bert ? "local_attention" : "sliding_window";
  // 128 is modernbert's class default.
  const int fallback = modern_bert ? 128 : defaults.sliding_window;
  if (reader.is_present(key)) {
    windows.sliding = reader.integer({key}, {0, INT32_MAX}).value_or(0);
  } else if (fallback > 0) {
    windows.sliding = fallback;
    shape->defaulted.push_back(std::string(key) + " " + std::to_string(fallback) + " (default of " +
                               shape->model_type + ")");
  }
  if (reader.is_present("attention_chunk_size")) {
    windows.chunk = reader.integer({"attention_chunk_size"}, {0, INT32_MAX}).value_or(0);
  } else if (defaults.layers == LayerRule::kChunkedNoRope) {
    windows.chunk = 8192;  // class default
    shape->defaulted.push_back("attention_chunk_size 8192 (default of " + shape->model_type + ")");
  }
  return windows;
}

std::vector<LayerSlot> read_layer_slots(const ConfigReader& reader, const ModelDefaults& defaults,
                                        int num_layers, const LayerWindows& windows,
                                        ModelShape* shape) {
  std::vector<LayerSlot> slots = SlotBuilder(reader, defaults, num_layers, windows, shape).build();
  if (!reader.status()) slots.clear();
  return slots;
}

std::vector<LayerKind> group_layers(const std::vector<LayerAttention>& layers) {
  std::vector<LayerKind> kinds;
  for (int i = 0; i < static_cast<int>(layers.size()); ++i) {
    const auto same = [&](const LayerKind& kind) { return kind.attention == layers[i]; };
    const auto it = std::find_if(kinds.begin(), kinds.end(), same);
    if (it != kinds.end()) {
      it->layers.push_back(i);
    } else {
      kinds.push_back({layers[i], {i}});
    }
  }
  return kinds;
}

std::string describe_layers(const std::vector<int>& layers, int num_layers) {
  const size_t count = layers.size();
  if (static_cast<int>(count) == num_layers) {
    return count == 1 ? "the only layer" : "all " + std::to_string(count) + " layers";
  }
  std::string text = count == 1 ? "layer " : "layers ";
  for (size_t i = 0; i < count; ++i) {
    // Four name the pattern; the last one shows where it ends.
    if (count > 5 && i == 3) {
      text += ", ..., " + std::to_string(layers.back());
      break;
    }
    text += (i == 0 ? "" : ", ") + std::to_string(layers[i]);
  }
  return text + " (" + std::to_string(count) + " of " + std::to_string(num_layers) + ")";
}

}  // namespace pagejit::models
