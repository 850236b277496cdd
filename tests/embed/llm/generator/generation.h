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

struct GenerationOptions {
  size_t num_tokens = 32;           // to generate for each prompt
  size_t chunk = 256;               // tokens of a prompt that are computed at once
  bool breaks_block_table = false;  // one id of the table is wrong from the first decode step on
};

struct Generation {
  std::vector<Sequence> sequences;
  // [sequences, num_tokens, vocabulary]: those from which each token was chosen.
  std::vector<float> logits;
  size_t num_reused = 0;       // tokens of the second prompt that were taken from the first
  uint64_t prefill_steps = 0;  // forward passes
  uint64_t decode_steps = 0;
};

pagejit::Result<Generation> generate(const Model& model, AttentionLayers& attention,
                                     Transformer& transformer, BlockPool& pool,
                                     const GenerationOptions& options);

}  // namespace llm
