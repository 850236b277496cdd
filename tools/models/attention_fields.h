// The fields of a config.json that hold for all layers of a model: heads, head size, scale, soft
// cap, ALiBi, sinks, latent dimensions, dtype. One function per question of the guide; errors go to
// the reader's status. Thread-safety: free functions without state.
#pragma once

#include <cstdint>
#include <optional>

#include "tools/models/config_reader.h"
#include "tools/models/model_config.h"
#include "tools/models/model_defaults.h"

namespace pagejit::models {

// What the functions below read from and report to. All outlive the call.
struct FieldSource {
  const ConfigReader& top;   // the file
  const ConfigReader& text;  // its section with the text model; the file itself where there is none
  const ModelDefaults& defaults;
  ModelShape* shape;  // takes `defaulted` and `notes`
};

// 0 on error, like all of the following.
int read_num_layers(const FieldSource& source);

// Heads, KV heads, head size, scale, soft cap, sinks and ALiBi of a layer with full attention.
// Latent attention where the type has it and kv_lora_rank is not null.
LayerAttention read_attention(const FieldSource& source);

// What differs on the layers of one kind: gemma4's full layers, step3p5's sliding ones.
void adjust_full_layer(const FieldSource& source, LayerAttention* attention);
void adjust_sliding_layer(const FieldSource& source, LayerAttention* attention);

enum class Direction : uint8_t { kCausal, kBidirectional, kPrefix };
Direction read_direction(const FieldSource& source);

DataType read_dtype(const FieldSource& source, std::optional<DataType> asked);

// Refuses heads that KV heads do not divide and head sizes out of any range.
void check_attention(const FieldSource& source, const LayerAttention& attention);

}  // namespace pagejit::models
