// Decodes two sequences over one paged cache as an inference engine does, with pagejit's kernels,
// and compares every step with dense attention of its own.
//
//   paged_decoder [--break block-table|fork|copy|grow|swap]
//
// Exit code 0: every step is right; 1: one is not; 2: it could not be run. On the CPU emulator
// with PAGEJIT_DRIVER=emulator.
#include <pagejit/engine.h>

#include <algorithm>
#include <array>
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
  // That so many blocks are in use; prints one line, as the next one does.
  void expect_used_blocks(const char* when, int num_blocks);
  // That a sequence has none of the blocks that it had before.
  void expect_other_blocks(const std::vector<int32_t>& before, const Sequence& after);

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

void Decoder::expect_used_blocks(const char* when, int num_blocks) {
  const int used = cache.num_used_blocks();
  std::printf("%-26s %2d blocks in use: %s\n", when, used, used == num_blocks ? "ok" : "WRONG");
  has_passed_ = has_passed_ && used == num_blocks;
}

void Decoder::expect_other_blocks(const std::vector<int32_t>& before, const Sequence& after) {
  const bool is_right = std::ranges::find_first_of(after.blocks, before) == after.blocks.end();
  std::printf("%-26s in other blocks than before: %s\n", "swap in", is_right ? "ok" : "WRONG");
  has_passed_ = has_passed_ && is_right;
}

bool decode_two_sequences(Fault fault) {
  pagejit::EngineOptions options = require(pagejit::EngineOptions::from_environment());
  const CudaDriver cuda(options);
  const std::shared_ptr<pagejit::Engine> engine = require(pagejit::Engine::create(options));
  Decoder decoder(cuda, *engine);
  decoder.layer.break_by(fault);
  decoder.cache.break_by(fault);

  Request a;
  decoder.run("prefill", {&a}, 1, 37);
  decoder.run("decode", {&a}, 3, 1);
  const int num_blocks = decoder.cache.num_used_blocks();

  // 40 tokens: the third block is half full. The next step writes it, for both sequences.
  Request b{.sequence = decoder.cache.fork(a.sequence), .history = a.history};
  decoder.expect_used_blocks("fork", num_blocks);
  decoder.run("fork, then copy on write", {&a, &b}, 4, 1);
  decoder.expect_used_blocks("copy on write", num_blocks + 1);

  // What a had in the device is overwritten by NaN, then by b's fourth block.
  const std::vector<int32_t> before = a.sequence.blocks;
  const SwappedSequence swapped = decoder.cache.swap_out(a.sequence);
  decoder.expect_used_blocks("swap out", num_blocks);
  decoder.run("one swapped out", {&b}, 5, 1);

  a.sequence = decoder.cache.swap_in(swapped);
  decoder.expect_other_blocks(before, a.sequence);
  decoder.run("swapped in again", {&a, &b}, 5, 1);
  return decoder.has_passed();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  // In the order of Fault, behind kNone.
  static constexpr std::array<std::string_view, 5> kFaults{"block-table", "fork", "copy", "grow",
                                                           "swap"};
  auto fault = Fault::kNone;
  if (arguments.size() == 2 && arguments[0] == "--break") {
    const auto* const place = std::ranges::find(kFaults, arguments[1]);
    if (place != kFaults.end()) fault = static_cast<Fault>(place - kFaults.begin() + 1);
  }
  if (!arguments.empty() && fault == Fault::kNone) {
    std::fprintf(stderr, "usage: %s [--break block-table|fork|copy|grow|swap]\n", argv[0]);
    return 2;
  }
  try {
    return decode_two_sequences(fault) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
