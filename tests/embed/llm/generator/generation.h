// Greedy generation for two prompts that begin alike: paged prefill of the first, prefill of what
// the second has beyond the shared prefix, then decode of both together. Thread-safety: none
// needed.
#pragma once

#include <pagejit/status.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention_layers.h"
#include "model.h"
#include "sequence.h"
#include "transformer.h"

namespace llm {

// What is done wrong on purpose, to show that it is found.
enum class Fault {
  kNone,
  kBlockTable,  // one id of the table is wrong from the first decode step on
  kSharing,     // the second prompt takes nothing from the first
  kLaunches,    // one attention is launched twice
  kCounts,      // one attention is launched twice and counted once
};

struct GenerationOptions {
  size_t num_tokens = 32;  // to generate for each prompt
  size_t chunk = 256;      // tokens of a prompt that are computed at once
  Fault fault = Fault::kNone;
};

struct Generation {
  std::vector<Sequence> sequences;
  // [sequences, num_tokens, vocabulary]: those from which each token was chosen.
  std::vector<float> logits;
  size_t num_reused = 0;       // tokens of the second prompt that were taken from the first
  size_t num_shared = 0;       // blocks that stood in both tables after the prefills
  uint64_t prefill_steps = 0;  // forward passes
  uint64_t decode_steps = 0;
};

pagejit::Result<Generation> generate(const Model& model, AttentionLayers& attention,
                                     Transformer& transformer, BlockPool& pool,
                                     const GenerationOptions& options);

}  // namespace llm
