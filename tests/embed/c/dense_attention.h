// What the results are compared with: attention in double precision over K and V as the program
// gave them, without blocks, tables or pagejit. Pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model.h"

// Writes numbers that are the same in each run: bf16, evenly between -2 and 2. `state` begins at 1.
void random_numbers(uint32_t* state, bf16* numbers, int count);

// K and V of all tokens of a sequence, [tokens, NUM_KV_HEADS, HEAD_SIZE].
typedef struct {
  bf16 k[MAX_SEQ_LEN * KV_ELEMENTS];
  bf16 v[MAX_SEQ_LEN * KV_ELEMENTS];
  int num_tokens;
} token_history;

void token_history_append(token_history* history, const bf16* k, const bf16* v, int num_tokens);

// Compares `out` with the attention of `q`, both [count, NUM_HEADS, HEAD_SIZE], the last `count`
// tokens of `history`, each over the tokens up to itself. The worst error over its limit: above 1
// something is wrong. `where` gets the place.
//
// The limit: bf16 has 8 significant bits, so rounding to it changes a value by at most 2^-8 of
// itself. The result is rounded, and so are the weights before they are multiplied with V: together
// at most 2^-7 of the sum of |weight * v|. A hundredth more is for float32, in which all else is
// computed.
double compare_with_dense(const token_history* history, const bf16* q, const bf16* out, int count,
                          char* where, size_t where_size);
