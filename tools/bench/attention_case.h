// A problem of attention as the benchmarks and `pagejit inspect` take it, with the bytes and the
// operations that it needs at least. Needs no device. Thread-safety: plain values and free
// functions.
#pragma once

#include <string>

#include "pagejit/launch.h"
#include "pagejit/spec.h"

namespace pagejit {

struct AttentionBenchCase {
  std::string name;
  KernelSpec spec;
  int num_kv_heads = 8;
  // Sequences of one query token each.
  int num_seqs = 1;
  int seq_len = 1024;
  // One sequence more: its last chunk_queries tokens. 0: there is none. Needs a spec whose queries
  // are not one.
  int chunk_queries = 0;
  int chunk_seq_len = 0;
  int num_splits = 0;           // 0 = chosen by the library
  bool shuffled_blocks = true;  // else block ids count up: what a contiguous cache would be
  // Where the spec has them: the fields of AttentionArgs with these names.
  int window_left = -1;
  int window_right = -1;
  int chunk_size = 0;
  float soft_cap = 0;
  BlockSparseArgs block_sparse = {};

  int all_seqs() const { return num_seqs + (chunk_queries > 0 ? 1 : 0); }
  int query_tokens() const { return num_seqs + chunk_queries; }
  int longest() const { return chunk_seq_len > seq_len ? chunk_seq_len : seq_len; }
};

// K and V rows of all sequences, each once: tokens * num_kv_heads * (head_size + head_size_v) *
// bytes, where K's rows hold V tokens * num_kv_heads * head_size * bytes.
double kv_bytes(const AttentionBenchCase& c);
// Of those the rows that a launch has to read, which are fewer where the spec has a window, chunks
// or sparse blocks: of each sequence the tokens that some query token sees. Of sparse blocks a
// sequence of one query token has those that one head sees, which is the least; longer queries are
// taken to see all. Never less than one token.
double read_bytes(const AttentionBenchCase& c);
// q, read once, and the result, written once: query tokens * heads * (head_size * bytes of q +
// head_size_v * bytes of out).
double query_bytes(const AttentionBenchCase& c);
// 2 * Lq * Lk * heads * (head_size + head_size_v): two products of a multiplication and an addition
// each, of every query token with every key of its sequence. A causal chunk sees its own keys half:
// Lq * (Lk - Lq / 2), which is Lq * Lk / 2 without a cache before it.
double flops(const AttentionBenchCase& c);

}  // namespace pagejit
