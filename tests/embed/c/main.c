// Decodes two sequences over one paged cache as an inference engine does, with pagejit's kernels,
// and compares every step with dense attention of its own.
//
//   paged_decoder [--break block-table|fork|copy|grow|swap]
//
// Exit code 0: every step is right; 1: one is not; 2: it could not be run. On the CPU emulator
// with PAGEJIT_DRIVER=emulator.
#include <pagejit/pagejit.h>
#include <stdio.h>
#include <string.h>

#include "attention_layer.h"
#include "cuda_driver.h"
#include "dense_attention.h"
#include "paged_cache.h"

typedef struct {
  sequence tokens;        // in the paged cache
  token_history history;  // the same tokens, for comparison
} request;

typedef struct {
  attention_layer layer;
  paged_cache cache;
  uint32_t random_state;
  decoder_step step;
  int num_wrong;  // lines
} decoder;

// `num_steps` steps, each with `num_new_tokens` more tokens for each request; prints one line.
// `second` may be null.
static void run_phase(decoder* self, const char* phase, request* first, request* second,
                      int num_steps, int num_new_tokens) {
  request* const requests[] = {first, second};
  const int num_seqs = second != NULL ? 2 : 1;
  double worst = 0;
  char what[256] = "";
  for (int i = 0; i < num_steps; ++i) {
    // Here the model computes q, K and V of the new tokens.
    decoder_step* step = &self->step;
    const int num_tokens = num_seqs * num_new_tokens;
    step->num_seqs = num_seqs;
    step->num_new_tokens = num_new_tokens;
    for (int r = 0; r < num_seqs; ++r) step->sequences[r] = &requests[r]->tokens;
    random_numbers(&self->random_state, step->q, num_tokens * Q_ELEMENTS);
    random_numbers(&self->random_state, step->k, num_tokens * KV_ELEMENTS);
    random_numbers(&self->random_state, step->v, num_tokens * KV_ELEMENTS);

    attention_layer_run(&self->layer, &self->cache, step);

    for (int r = 0; r < num_seqs; ++r) {
      const int token = r * num_new_tokens;
      token_history* history = &requests[r]->history;
      token_history_append(history, &step->k[token * KV_ELEMENTS], &step->v[token * KV_ELEMENTS],
                           num_new_tokens);
      char where[128];
      const double ratio =
          compare_with_dense(history, &step->q[token * Q_ELEMENTS], &step->out[token * Q_ELEMENTS],
                             num_new_tokens, where, sizeof where);
      if (ratio <= worst) continue;
      worst = ratio;
      snprintf(what, sizeof what, "step %d, sequence %d, %s", i, r, where);
    }
  }
  printf("%-26s %2d steps of %d sequences, worst error %.2f of its limit: %s%s\n", phase, num_steps,
         num_seqs, worst, worst <= 1 ? "ok" : "WRONG: ", worst <= 1 ? "" : what);
  if (!(worst <= 1)) ++self->num_wrong;
}

static int num_used_blocks(const decoder* self) { return NUM_BLOCKS - self->cache.num_free; }

// That so many blocks are in use; prints one line, as the next one does.
static void expect_used_blocks(decoder* self, const char* when, int num_blocks) {
  const int is_right = num_used_blocks(self) == num_blocks;
  printf("%-26s %2d blocks in use: %s\n", when, num_used_blocks(self), is_right ? "ok" : "WRONG");
  if (!is_right) ++self->num_wrong;
}

// That a sequence has none of the blocks that it had before.
static void expect_other_blocks(decoder* self, const sequence* before, const sequence* after) {
  int is_right = 1;
  for (int32_t i = 0; i < before->num_blocks; ++i) {
    for (int32_t k = 0; k < after->num_blocks; ++k) {
      if (before->blocks[i] == after->blocks[k]) is_right = 0;
    }
  }
  printf("%-26s in other blocks than before: %s\n", "swap in", is_right ? "ok" : "WRONG");
  if (!is_right) ++self->num_wrong;
}

static void decode_two_sequences(decoder* self) {
  static request a, b;
  run_phase(self, "prefill", &a, NULL, 1, 37);
  run_phase(self, "decode", &a, NULL, 3, 1);
  const int num_blocks = num_used_blocks(self);

  // 40 tokens: the third block is half full. The next step writes it, for both sequences.
  b.tokens = paged_cache_fork(&self->cache, &a.tokens);
  b.history = a.history;
  expect_used_blocks(self, "fork", num_blocks);
  run_phase(self, "fork, then copy on write", &a, &b, 4, 1);
  expect_used_blocks(self, "copy on write", num_blocks + 1);

  // What a had in the device is overwritten by NaN, then by b's fourth block.
  const sequence before = a.tokens;
  void* const host = paged_cache_swap_out(&self->cache, &a.tokens);
  expect_used_blocks(self, "swap out", num_blocks);
  run_phase(self, "one swapped out", &b, NULL, 5, 1);

  paged_cache_swap_in(&self->cache, &a.tokens, host);
  expect_other_blocks(self, &before, &a.tokens);
  run_phase(self, "swapped in again", &a, &b, 5, 1);
}

int main(int argc, char** argv) {
  static const char* const names[] = {[FAULT_BLOCK_TABLE] = "block-table",
                                      [FAULT_FORK] = "fork",
                                      [FAULT_COPY] = "copy",
                                      [FAULT_GROW] = "grow",
                                      [FAULT_SWAP] = "swap"};
  planted_fault fault = FAULT_NONE;
  for (int i = FAULT_BLOCK_TABLE; argc == 3 && i <= FAULT_SWAP; ++i) {
    if (strcmp(argv[1], "--break") == 0 && strcmp(argv[2], names[i]) == 0) {
      fault = (planted_fault)i;
    }
  }
  if (argc != 1 && fault == FAULT_NONE) {
    fprintf(stderr, "usage: %s [--break block-table|fork|copy|grow|swap]\n", argv[0]);
    return 2;
  }

  pagejit_error* error;
  require(pagejit_error_create(&error), NULL);
  pagejit_engine_options options;
  pagejit_environment* environment;
  pagejit_engine_options_init(&options, sizeof options);
  require(pagejit_engine_options_from_environment(&options, &environment, error), error);
  cuda_open(&options);
  pagejit_engine* engine;
  require(pagejit_engine_create(&options, &engine, error), error);
  pagejit_environment_destroy(environment, NULL);

  static decoder self = {.random_state = 1};
  attention_layer_init(&self.layer, engine, error);
  paged_cache_init(&self.cache, engine, error);
  self.layer.fault = self.cache.fault = fault;
  decode_two_sequences(&self);

  attention_layer_destroy(&self.layer);
  paged_cache_destroy(&self.cache);
  pagejit_engine_destroy(engine, NULL);
  pagejit_error_destroy(error);
  cuda_close();
  return self.num_wrong == 0 ? 0 : 1;
}
