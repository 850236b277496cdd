#include "tools/models/model_config.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "tools/models/attention_fields.h"
#include "tools/models/config_reader.h"
#include "tools/models/layer_kinds.h"
#include "tools/models/model_defaults.h"
#include "tools/models/near_words.h"

namespace pagejit::models {
namespace {

// The section that holds the text model, or the file itself. Never vision_config.
ConfigReader find_text_section(const ConfigReader& top) {
  if (auto section = top.section("text_config")) return *section;
  for (const char* key : {"decoder", "generator", "llm_config", "language_config"}) {
    if (!top.is_object(key)) continue;  // other models use these words for other things
    if (auto section = top.section(key)) return *section;
  }
  if (top.is_object("thinker_config")) {
    if (auto section = top.section("thinker_config")->section("text_config")) return *section;
  }
  return top;
}

// The section's own type where it has one, aliases followed. Null on error.
const ModelDefaults* find_type(const ConfigReader& top, const ConfigReader& text,
                               ModelShape* shape) {
  const auto top_type = top.text("model_type");
  const auto text_type = text.text("model_type");
  if (!top.status()) return nullptr;
  if (!top_type && !text_type) {
    top.fail("model_type is absent: masks and scales hang on it, so the file must have it");
    return nullptr;
  }
  shape->file_model_type = top_type.value_or(text_type.value_or(""));
  const std::string type = text_type.value_or(*top_type);
  const ModelDefaults* defaults = find_model_defaults(resolve_model_type(type));
  if (defaults == nullptr) {
    top.fail(
        "model_type \"" + printable(type) +
        "\": not known, and masks, sinks and scales hang on it; use --head-size, --num-heads and "
        "--num-kv-heads, or one of the types that --list-models prints" +
        did_you_mean(type, known_model_types()));
    return nullptr;
  }
  shape->model_type = std::string(defaults->model_type);
  return defaults;
}

// Masks of one layer from its slot. `max_tokens` 0: not known.
void apply_mask(const LayerSlot& slot, const LayerWindows& windows, Direction direction,
                int64_t max_tokens, LayerAttention* attention) {
  const auto in_effect = [&](int64_t window) {
    return window > 0 && (max_tokens == 0 || window < max_tokens);
  };
  if (direction == Direction::kPrefix) attention->mask = MaskKind::kPrefix;
  if (direction == Direction::kBidirectional) attention->mask = MaskKind::kBidirectional;
  if (slot.reach == LayerReach::kSliding && in_effect(windows.sliding)) {
    if (direction == Direction::kBidirectional) {
      attention->window = windows.sliding / 2 + 1;
    } else {
      attention->mask = MaskKind::kSlidingWindow;
      attention->window = windows.sliding;
    }
  }
  if (slot.reach == LayerReach::kChunked && in_effect(windows.chunk)) {
    attention->mask = MaskKind::kChunked;
    attention->window = windows.chunk;
  }
}

LayerAttention layer_of_slot(const FieldSource& source, const LayerSlot& slot,
                             const LayerAttention& base) {
  LayerAttention attention = base;
  if (slot.family != LayerFamily::kSoftmax) {
    attention = {};
    attention.family = slot.family;
    attention.layer_type = slot.layer_type;
    return attention;
  }
  if (slot.reach == LayerReach::kFull) adjust_full_layer(source, &attention);
  if (slot.reach == LayerReach::kSliding) adjust_sliding_layer(source, &attention);
  return attention;
}

void note_unused_window(const std::vector<LayerSlot>& slots, const LayerWindows& windows,
                        int64_t max_tokens, ModelShape* shape) {
  const auto note = [&](LayerReach reach, const char* word, int64_t window) {
    const auto has = [&](const LayerSlot& slot) { return slot.reach == reach; };
    if (max_tokens == 0 || window < max_tokens || std::none_of(slots.begin(), slots.end(), has))
      return;
    shape->notes.push_back(std::string(word) + " " + std::to_string(window) +
                           " has no effect: max_position_embeddings is " +
                           std::to_string(max_tokens));
  };
  note(LayerReach::kSliding, "sliding_window", windows.sliding);
  note(LayerReach::kChunked, "attention_chunk_size", windows.chunk);
}

void read_shape(const ConfigReader& top, const ConfigReader& text, const ParseOptions& options,
                ModelShape* shape) {
  const ModelDefaults* defaults = find_type(top, text, shape);
  if (defaults == nullptr) return;
  const FieldSource source = {top, text, *defaults, shape};
  shape->num_layers = read_num_layers(source);
  const LayerAttention base = read_attention(source);
  const LayerWindows windows = read_layer_windows(text, *defaults, shape);
  const Direction direction = read_direction(source);
  shape->dtype = read_dtype(source, options.dtype);
  const int64_t max_tokens = text.integer({"max_position_embeddings"}, {1, INT32_MAX}).value_or(0);
  if (!top.status()) return;

  const std::vector<LayerSlot> slots =
      read_layer_slots(text, *defaults, shape->num_layers, windows, shape);
  if (!top.status()) return;
  note_unused_window(slots, windows, max_tokens, shape);
  const bool by_layer_index = defaults->scale == ScaleRule::kGpt2 &&
                              text.boolean("scale_attn_by_inverse_layer_idx").value_or(false);
  std::vector<LayerAttention> layers;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].reach == LayerReach::kSliding && windows.sliding == 0 &&
        text.is_list("layer_types")) {
      text.fail("layer_types has sliding_attention at layer " + std::to_string(i) +
                ": sliding_window must then be a number of tokens above 0");
    }
    layers.push_back(layer_of_slot(source, slots[i], base));
    LayerAttention& layer = layers.back();
    if (layer.family == LayerFamily::kSoftmax || layer.family == LayerFamily::kMla) {
      apply_mask(slots[i], windows, direction, max_tokens, &layer);
      if (by_layer_index) layer.scale /= static_cast<double>(i + 1);
      check_attention(source, layer);
    }
  }
  shape->kinds = group_layers(layers);
}

}  // namespace

Result<ModelShape> parse_model_config(std::string_view json, const ParseOptions& options) {
  const Result<ConfigReader> parsed = ConfigReader::parse(json);
  if (!parsed) return parsed.status();
  const ConfigReader& top = *parsed;
  const ConfigReader text = find_text_section(top);
  ModelShape shape;
  if (top.status()) read_shape(top, text, options, &shape);
  if (!top.status()) return top.status();
  return shape;
}

Result<ModelShape> load_model_config(const std::string& path, const ParseOptions& options) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path file = path;
  if (fs::is_directory(file, error)) file /= "config.json";
  const fs::file_type type = fs::status(file, error).type();
  if (type != fs::file_type::regular && type != fs::file_type::none) {
    const char* what = type == fs::file_type::not_found ? "no such file" : "not a regular file";
    return Status(
        StatusCode::kCacheError,
        file.string() + ": " + what + "; --model takes a config.json or the folder of one");
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  // One byte more than is legal is enough for parse() to refuse.
  text.resize(kMaxConfigBytes + 1);
  if (stream) stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream.is_open() || stream.bad()) {
    return Status(StatusCode::kCacheError,
                  file.string() + ": cannot be read: " + std::strerror(errno));
  }
  text.resize(static_cast<size_t>(stream.gcount()));
  Result<ModelShape> shape = parse_model_config(text, options);
  if (!shape) return shape.status().with_context(file.string());
  return shape;
}

std::vector<std::string> known_model_types() {
  std::vector<std::string> types;
  for (const ModelDefaults& defaults : all_model_defaults())
    types.emplace_back(defaults.model_type);
  for (const ModelAlias& entry : all_model_aliases()) types.emplace_back(entry.alias);
  std::sort(types.begin(), types.end());
  return types;
}

}  // namespace pagejit::models
