#include "transformer.h"

namespace llm {

using pagejit::Status;
using Clock = std::chrono::steady_clock;

Status Transformer::forward(const std::vector<StepPart>& parts, std::vector<float>& logits) {
  const auto begin = Clock::now();
  const auto attention_before = attention_time;
  x_.clear();
  std::vector<size_t> last_rows;
  for (const StepPart& part : parts) {
    const Sequence& sequence = *part.sequence;
    for (size_t i = 0; i < part.num_tokens; ++i) {
      const auto token = static_cast<size_t>(sequence.tokens[sequence.num_cached + i]);
      append_row(model_.embedding, token, model_.embedding_scale, x_);
    }
    last_rows.push_back(x_.size() / model_.width - 1);
  }

  Status status = attention_.begin_step(parts);
  for (size_t i = 0; i < model_.layers.size(); ++i) {
    if (status) status = attention_block(i);
    if (!status) return status;
    feed_forward_block(model_.layers[i]);
  }

  added_.clear();
  for (const size_t row : last_rows) {
    const auto first = x_.begin() + static_cast<int64_t>(row * model_.width);
    added_.insert(added_.end(), first, first + static_cast<int64_t>(model_.width));
  }
  rms_norm(model_.final_norm, model_.norm_epsilon, added_, normed_);
  multiply(workers_, model_.unembedding, normed_, logits);
  other_time += Clock::now() - begin - (attention_time - attention_before);
  return {};
}

Status Transformer::attention_block(size_t index) {
  const Layer& layer = model_.layers[index];
  rms_norm(layer.attention_norm, model_.norm_epsilon, x_, normed_);
  multiply(workers_, layer.query, normed_, q_);
  multiply(workers_, layer.key, normed_, k_);
  multiply(workers_, layer.value, normed_, v_);
  // Of each head.
  if (layer.query_norm.data != nullptr) rms_norm(layer.query_norm, model_.norm_epsilon, q_, q_);
  if (layer.key_norm.data != nullptr) rms_norm(layer.key_norm, model_.norm_epsilon, k_, k_);

  const auto begin = Clock::now();
  const Status status = attention_.attend(index, q_, k_, v_, attended_);
  attention_time += Clock::now() - begin;
  if (!status) return status.with_context("layer " + std::to_string(index));

  multiply(workers_, layer.output, attended_, added_);
  const Vector& post_norm = layer.attention_post_norm;
  if (post_norm.data != nullptr) rms_norm(post_norm, model_.norm_epsilon, added_, added_);
  for (size_t i = 0; i < x_.size(); ++i) x_[i] += added_[i];
  return {};
}

void Transformer::feed_forward_block(const Layer& layer) {
  rms_norm(layer.feed_forward_norm, model_.norm_epsilon, x_, normed_);
  multiply(workers_, layer.gate, normed_, gate_);
  multiply(workers_, layer.up, normed_, up_);
  gate_with(model_.has_gelu, up_, gate_);
  multiply(workers_, layer.down, gate_, added_);
  const Vector& post_norm = layer.feed_forward_post_norm;
  if (post_norm.data != nullptr) rms_norm(post_norm, model_.norm_epsilon, added_, added_);
  for (size_t i = 0; i < x_.size(); ++i) x_[i] += added_[i];
}

}  // namespace llm
