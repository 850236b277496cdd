// Decodes two sequences over one paged cache as an inference engine does, with pagejit's kernels,
// and compares every step with dense attention of its own.
//
//   paged_decoder [--break block-table]
//
// Exit code 0: every step is right; 1: one is not; 2: it could not be run. On the CPU emulator
// with PAGEJIT_DRIVER=emulator.
#include <pagejit/engine.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include "attention_layer.h"
#include "cuda_driver.h"
#include "dense_attention.h"
#include "paged_cache.h"

namespace {

struct Request {
  Sequence sequence;  // in the paged cache
  History history;    // the same tokens, for comparison
};

class Decoder {
 public:
  Decoder(const CudaDriver& cuda, pagejit::Engine& engine)
      : layer(cuda, engine), cache(cuda, engine, kNumBlocks) {}

  // `num_steps` steps, each with `num_new_tokens` more tokens for each request; prints one line.
  void run(const char* phase, const std::vector<Request*>& requests, int num_steps,
           int num_new_tokens);

  bool has_passed() const { return has_passed_; }

  AttentionLayer layer;
  PagedCache cache;

 private:
  // Few, so that blocks are soon used again.
  static constexpr int kNumBlocks = 8;
  RandomNumbers random_;
  bool has_passed_ = true;
};

void Decoder::run(const char* phase, const std::vector<Request*>& requests, int num_steps,
                  int num_new_tokens) {
  double worst = 0;
  std::string what;
  for (int i = 0; i < num_steps; ++i) {
    // Here the model computes q, K and V of the new tokens.
    const int num_tokens = static_cast<int>(requests.size()) * num_new_tokens;
    Step step{.sequences = {},
              .num_new_tokens = std::vector<int32_t>(requests.size(), num_new_tokens),
              .q = random_.take(num_tokens * kQElements),
              .k = random_.take(num_tokens * kKvElements),
              .v = random_.take(num_tokens * kKvElements)};
    for (Request* request : requests) step.sequences.push_back(&request->sequence);

    const std::vector<Bf16> out = layer.run(cache, step);

    for (size_t r = 0; r < requests.size(); ++r) {
      const size_t token = r * static_cast<size_t>(num_new_tokens);
      History& history = requests[r]->history;
      history.append(&step.k[token * kKvElements], &step.v[token * kKvElements], num_new_tokens);
      std::string where;
      const double ratio = compare_with_dense(history, &step.q[token * kQElements],
                                              &out[token * kQElements], num_new_tokens, where);
      if (ratio <= worst) continue;
      worst = ratio;
      what = "step " + std::to_string(i) + ", sequence " + std::to_string(r) + ", " + where;
    }
  }
  const bool passed = worst <= 1;
  std::printf("%-26s %2d steps of %zu sequences, worst error %.2f of its limit: %s\n", phase,
              num_steps, requests.size(), worst, passed ? "ok" : ("WRONG: " + what).c_str());
  has_passed_ = has_passed_ && passed;
}

bool decode_two_sequences(bool break_block_tables) {
  pagejit::EngineOptions options = require(pagejit::EngineOptions::from_environment());
  const CudaDriver cuda(options);
  const std::shared_ptr<pagejit::Engine> engine = require(pagejit::Engine::create(options));
  Decoder decoder(cuda, *engine);
  if (break_block_tables) decoder.layer.break_block_tables();

  Request a;
  decoder.run("prefill", {&a}, 1, 37);
  decoder.run("decode", {&a}, 3, 1);

  // 40 tokens: the third block is half full. The next step writes it, for both sequences.
  Request b{.sequence = decoder.cache.fork(a.sequence), .history = a.history};
  decoder.run("fork, then copy on write", {&a, &b}, 4, 1);

  // What a had in the device is overwritten by NaN, then by b's fourth block.
  const SwappedSequence swapped = decoder.cache.swap_out(a.sequence);
  decoder.run("one swapped out", {&b}, 5, 1);

  a.sequence = decoder.cache.swap_in(swapped);
  decoder.run("swapped in again", {&a, &b}, 5, 1);
  return decoder.has_passed();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  const bool is_broken = arguments == std::vector<std::string_view>{"--break", "block-table"};
  if (!arguments.empty() && !is_broken) {
    std::fprintf(stderr, "usage: %s [--break block-table]\n", argv[0]);
    return 2;
  }
  try {
    return decode_two_sequences(is_broken) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
