// Which layers attend to everything, to a window, to a chunk, or do not attend at all: the rules of
// layer_types, of pattern keys and of model types, in this order. Thread-safety: free functions
// without state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/models/config_reader.h"
#include "tools/models/model_config.h"
#include "tools/models/model_defaults.h"

namespace pagejit::models {

enum class LayerReach : uint8_t { kFull = 0, kSliding = 1, kChunked = 2 };

struct LayerSlot {
  LayerFamily family = LayerFamily::kSoftmax;  // kSoftmax stands for MLA too
  LayerReach reach = LayerReach::kFull;
  std::string layer_type;  // where the family is not kSoftmax
};

// The window in tokens (0: none) and the chunk size (0: none) that the sliding and the chunked
// layers take.
struct LayerWindows {
  int64_t sliding = 0;
  int64_t chunk = 0;
};

// One slot per layer. On error the reader's status tells, and the list is empty. What is taken from
// the class goes to shape->defaulted, what the reader of the report should know to shape->notes.
std::vector<LayerSlot> read_layer_slots(const ConfigReader& reader, const ModelDefaults& defaults,
                                        int num_layers, const LayerWindows& windows,
                                        ModelShape* shape);

LayerWindows read_layer_windows(const ConfigReader& reader, const ModelDefaults& defaults,
                                ModelShape* shape);

// Layers with equal attention, in order of their first layer.
std::vector<LayerKind> group_layers(const std::vector<LayerAttention>& layers);

// "layers 0, 2, 4, ..., 40 (21 of 42)"; "all 32 layers".
std::string describe_layers(const std::vector<int>& layers, int num_layers);

}  // namespace pagejit::models
