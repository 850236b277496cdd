// attention_layer: what pagejit does in a step of an engine. The new tokens' K and V go into the
// paged cache, then their queries attend to everything that is in it. What fails ends the program.
// One thread.
#pragma once

#include <pagejit/pagejit.h>
#include <stddef.h>
#include <stdint.h>

#include "model.h"
#include "paged_cache.h"

// The new tokens of a step, those of the first sequence first: one of each sequence (a decode
// step), or more (a prefill, or a chunk of one).
typedef struct {
  sequence* sequences[MAX_SEQS];
  int num_seqs;
  int num_new_tokens;                     // of each sequence
  bf16 q[MAX_STEP_TOKENS * Q_ELEMENTS];   // [tokens, NUM_HEADS, HEAD_SIZE]
  bf16 k[MAX_STEP_TOKENS * KV_ELEMENTS];  // [tokens, NUM_KV_HEADS, HEAD_SIZE]
  bf16 v[MAX_STEP_TOKENS * KV_ELEMENTS];
  bf16 out[MAX_STEP_TOKENS * Q_ELEMENTS];  // the result: as q
} decoder_step;

typedef struct {
  pagejit_error* error;  // the caller's
  pagejit_cache_write_kernel* write;
  pagejit_kernel* prefill;
  pagejit_kernel* decode;
  void* workspace;
  size_t workspace_bytes;
  // A step's tensors on the device.
  void *q, *k, *v, *out, *slots, *block_table, *seq_lens, *query_start;
  planted_fault fault;
} attention_layer;

// Prepares all kernels: from pagejit's cache where this program ran before, else compiled now.
void attention_layer_init(attention_layer* layer, pagejit_engine* engine, pagejit_error* error);
void attention_layer_destroy(attention_layer* layer);

// The attention of every new token over its sequence up to itself. The sequences have their new
// tokens when this returns.
void attention_layer_run(attention_layer* layer, paged_cache* cache, decoder_step* step);
