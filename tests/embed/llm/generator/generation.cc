#include "generation.h"

#include <algorithm>

namespace llm {

using pagejit::Result;
using pagejit::Status;

namespace {

// Keeps one row of logits and appends the greatest one's token.
void choose(const Model& model, size_t step, size_t num_steps, size_t index, const float* row,
            Generation& result) {
  const size_t size = model.vocabulary_size();
  const size_t place = (index * num_steps + step) * size;
  std::copy_n(row, size, result.logits.begin() + static_cast<int64_t>(place));
  result.sequences[index].tokens.push_back(
      static_cast<int32_t>(std::max_element(row, row + size) - row));
}

// All tokens that are not in the cache, in chunks; logits of the last one.
Status prefill(Sequence& sequence, BlockPool& pool, Transformer& transformer, size_t chunk,
               std::vector<float>& logits, uint64_t& steps) {
  while (sequence.num_cached < sequence.tokens.size()) {
    const size_t count = std::min(chunk, sequence.tokens.size() - sequence.num_cached);
    Status status = sequence.grow(pool, sequence.num_cached + count);
    if (status) status = transformer.forward({{&sequence, count}}, logits);
    if (!status) return status;
    sequence.num_cached += count;
    ++steps;
  }
  return {};
}

}  // namespace

Result<Generation> generate(const Model& model, AttentionLayers& attention,
                            Transformer& transformer, BlockPool& pool,
                            const GenerationOptions& options) {
  Generation result;
  const size_t size = model.vocabulary_size();
  result.sequences.resize(model.prompts.size());
  result.logits.resize(model.prompts.size() * options.num_tokens * size);
  std::vector<float> logits;
  if (options.fault == Fault::kLaunches || options.fault == Fault::kCounts) {
    attention.repeat_next_launch(options.fault == Fault::kLaunches);
  }
  for (size_t i = 0; i < result.sequences.size(); ++i) {
    Sequence& sequence = result.sequences[i];
    sequence.tokens = model.prompts[i];
    sequence.prompt_length = sequence.tokens.size();
    if (i > 0 && options.fault != Fault::kSharing) {
      const auto copy = sequence.share_prefix(pool, result.sequences[0]);
      if (!copy) return copy.status();
      if (*copy) {
        if (Status status = attention.copy_block(**copy); !status) return status;
      }
      result.num_reused = sequence.num_cached;
    }
    const Status status =
        prefill(sequence, pool, transformer, options.chunk, logits, result.prefill_steps);
    if (!status) return status;
    choose(model, 0, options.num_tokens, i, logits.data(), result);
  }

  result.num_shared = num_shared_blocks(result.sequences[0], result.sequences[1]);
  if (options.fault == Fault::kBlockTable) {
    // The first block that differs: it holds tokens of the prompts.
    attention.break_block_table(result.num_shared);
  }
  for (size_t step = 1; step < options.num_tokens; ++step) {
    std::vector<StepPart> parts;
    for (Sequence& sequence : result.sequences) {
      if (Status status = sequence.grow(pool, sequence.num_cached + 1); !status) return status;
      parts.push_back({&sequence, 1});
    }
    if (Status status = transformer.forward(parts, logits); !status) return status;
    ++result.decode_steps;
    for (size_t i = 0; i < result.sequences.size(); ++i) {
      ++result.sequences[i].num_cached;
      choose(model, step, options.num_tokens, i, logits.data() + i * size, result);
    }
  }
  for (Sequence& sequence : result.sequences) sequence.release(pool);
  if (pool.num_free() == pool.num_blocks()) return result;
  return Status(pagejit::StatusCode::kInternal, "blocks of the cache were lost");
}

}  // namespace llm
