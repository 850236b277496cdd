// Transformer: the forward pass of Llama's and Gemma 3's decoders. Attention and the cache are
// pagejit's (attention_layers.h), the rest runs on the processor (tensor_math.h). Thread-safety:
// one thread.
#pragma once

#include <pagejit/status.h>

#include <chrono>
#include <vector>

#include "attention_layers.h"
#include "model.h"
#include "tensor_math.h"

namespace llm {

class Transformer {
 public:
  Transformer(const Model& model, AttentionLayers& attention, unsigned num_threads)
      : model_(model), attention_(attention), workers_(num_threads) {}

  // One forward pass. logits becomes [parts, vocabulary]: those behind each part's last token.
  pagejit::Status forward(const std::vector<StepPart>& parts, std::vector<float>& logits);

  // Of all passes: what uploads, kernels and downloads took, and what the processor's part took.
  std::chrono::duration<double> attention_time{}, other_time{};

 private:
  pagejit::Status attention_block(size_t index);
  void feed_forward_block(const Layer& layer);

  const Model& model_;
  AttentionLayers& attention_;
  Workers workers_;
  // Rows of the pass's tokens: the residual stream, and scratch.
  std::vector<float> x_, normed_, q_, k_, v_, attended_, gate_, up_, added_;
};

}  // namespace llm
