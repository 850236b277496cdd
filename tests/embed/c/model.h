// The sizes of the attention layer that this program serves (those of a small model with grouped
// query heads), and how long what it decodes may become.
#pragma once

#include <stdint.h>

enum {
  NUM_HEADS = 8,     // of q
  NUM_KV_HEADS = 2,  // of K and V
  HEAD_SIZE = 64,
  BLOCK_SIZE = 16,  // tokens per block of the paged cache

  Q_ELEMENTS = NUM_HEADS * HEAD_SIZE,          // of a token's query, and of its result
  KV_ELEMENTS = NUM_KV_HEADS * HEAD_SIZE,      // of a token's K, and of its V
  BLOCK_BYTES = 2 * BLOCK_SIZE * KV_ELEMENTS,  // of K, and of V

  MAX_SEQ_BLOCKS = 4,  // of a sequence
  MAX_SEQ_LEN = MAX_SEQ_BLOCKS * BLOCK_SIZE,
  MAX_SEQS = 2,
  MAX_STEP_TOKENS = MAX_SEQ_LEN,  // new ones, of all sequences together
  NUM_BLOCKS = 8,                 // of the cache: few, so that blocks are soon used again
};

static const float SCALE = 0.125f;  // 1 / sqrt(HEAD_SIZE)

typedef uint16_t bf16;  // the bits of a bfloat16
