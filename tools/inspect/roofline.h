// How long a problem of attention takes at least on a GPU: by the bytes that its memory must move
// and by the products that its tensor cores must make. A limit and no prediction.
// Thread-safety: plain values and free functions.
#pragma once

#include <string>
#include <vector>

#include "generator/config.h"
#include "tools/bench/attention_case.h"
#include "tools/inspect/gpu_table.h"

namespace pagejit::inspect {

// All sequences alike.
struct Problem {
  int batch = 8;
  int seq_len = 8192;    // tokens of the cache, the new ones included
  int num_kv_heads = 0;  // 0: 1 where K's rows hold V, else 8
  int query_len = 0;     // new tokens of each sequence; 0: usual_query_len()
  int window = 0;        // keys that a query token sees, its own included; 0: not known
};

// 1 for `one`, 4 for `few` (a speculated continuation), seq_len for `many` (a prompt), 64 for
// `shared` (that many sequences that share the keys, of one token each; where causal, at most
// seq_len).
int usual_query_len(const KernelSpec& spec, int seq_len);

// kInvalidArgument where a number is not positive, query_len is above seq_len where it must not be,
// the kernel takes one query token and query_len is another, or has no window and `window` is one.
Status check_problem(const Problem& problem, const KernelSpec& spec);

struct Roofline {
  Problem problem;  // with nothing left open but the window
  // Whether only keys within the window are counted: where its size is known, and each query token
  // sees no other key. Not of `shared`, whose query tokens have positions of their own.
  bool is_windowed = false;
  int num_keys = 0;           // of each sequence that some query token sees
  double keys_per_query = 0;  // that one query token sees, on the average
  // Of K and V by the formulas of tools/bench/attention_case.h, and the scales of token_scales.
  double kv_bytes = 0;
  double query_bytes = 0;
  double flops = 0;
  // Products of operands for each one of the formula: f32 takes six of bf16.
  int products_each = 1;
  double memory_us = 0;
  double compute_us = 0;  // 0 where the GPU's rate is not known

  double bytes() const { return kv_bytes + query_bytes; }
  double intensity() const { return flops / bytes(); }  // FLOP per byte
  double limit_us() const { return memory_us > compute_us ? memory_us : compute_us; }
  bool is_memory_bound() const { return memory_us >= compute_us; }
  double tflops() const { return flops / limit_us() * 1e-6; }
};
// `problem` must have passed check_problem().
Roofline roofline_of(const KernelConfig& config, Problem problem, const Gpu& gpu);

// The formulas with the problem's numbers in them, a line each.
std::string explain_roofline(const Roofline& roofline, const KernelSpec& spec, const Gpu& gpu);

// What the formulas leave out and where the GPU's figures are from, a sentence each: whoever shows
// the numbers shows these too.
std::vector<std::string> roofline_caveats(const Roofline& roofline, const KernelConfig& config,
                                          const Gpu& gpu);

}  // namespace pagejit::inspect
