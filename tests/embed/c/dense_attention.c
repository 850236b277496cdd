#include "dense_attention.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double to_double(bf16 bits) {
  const uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

void random_numbers(uint32_t* state, bf16* numbers, int count) {
  for (int i = 0; i < count; ++i) {
    *state = *state * 1664525u + 1013904223u;  // Numerical Recipes' generator
    const float number = (float)(*state >> 8) / (1 << 22) - 2.0f;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    numbers[i] = (bf16)(bits >> 16);  // truncated
  }
}

void token_history_append(token_history* history, const bf16* k, const bf16* v, int num_tokens) {
  const size_t begin = (size_t)history->num_tokens * KV_ELEMENTS;
  const size_t bytes = sizeof(bf16) * (size_t)num_tokens * KV_ELEMENTS;
  memcpy(&history->k[begin], k, bytes);
  memcpy(&history->v[begin], v, bytes);
  history->num_tokens += num_tokens;
}

double compare_with_dense(const token_history* history, const bf16* q, const bf16* out, int count,
                          char* where, size_t where_size) {
  double worst = 0;
  for (int row = 0; row < count * NUM_HEADS; ++row) {
    const int query = row / NUM_HEADS, head = row % NUM_HEADS;
    const int num_keys = history->num_tokens - count + query + 1;
    const int kv_offset = head / (NUM_HEADS / NUM_KV_HEADS) * HEAD_SIZE;
    double weights[MAX_SEQ_LEN];
    double sum = 0;
    for (int key = 0; key < num_keys; ++key) {
      const bf16* k = &history->k[key * KV_ELEMENTS + kv_offset];
      double score = 0;
      for (int i = 0; i < HEAD_SIZE; ++i)
        score += to_double(q[row * HEAD_SIZE + i]) * to_double(k[i]);
      weights[key] = exp(score * (double)SCALE);  // scores are small: no maximum is taken off
      sum += weights[key];
    }
    for (int i = 0; i < HEAD_SIZE; ++i) {
      double want = 0, magnitude = 0;
      for (int key = 0; key < num_keys; ++key) {
        const double term =
            weights[key] / sum * to_double(history->v[key * KV_ELEMENTS + kv_offset + i]);
        want += term;
        magnitude += fabs(term);
      }
      const double got = to_double(out[row * HEAD_SIZE + i]);
      const double ratio = fabs(got - want) / (1.01 / 128 * magnitude);
      if (ratio <= worst || isinf(worst)) continue;
      worst = isnan(ratio) ? HUGE_VAL : ratio;
      snprintf(where, where_size, "token %d, head %d, element %d is %f, should be %f", query, head,
               i, got, want);
    }
  }
  return worst;
}
