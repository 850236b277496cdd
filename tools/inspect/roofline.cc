#include "tools/inspect/roofline.h"

#include <algorithm>

#include "tools/inspect/number_text.h"

namespace pagejit::inspect {
namespace {

constexpr int kFewQueries = 4;      // three speculated tokens and one more
constexpr int kSharedQueries = 64;  // sequences
constexpr int kUsualKvHeads = 8;    // of most models of 7 to 70 billion parameters
constexpr int kScaleBytes = 4;      // f32

bool counts_window(const KernelSpec& spec, const Problem& problem) {
  return spec.window && problem.window > 0 && spec.queries != QueryLengths::kShared &&
         !spec.bidirectional_ranges;
}

// A query token at position p sees no key before p - (window - 1); the last one is at seq_len - 1.
int keys_within_window(const Problem& problem) {
  return static_cast<int>(
      std::min<int64_t>(problem.seq_len, int64_t{problem.query_len} + problem.window - 1));
}

// Pairs of a query token and a key that lies too far before it: the last query token has seq_len -
// window of them, each one before it one less.
double pairs_before_window(const Problem& problem) {
  const double most = std::max(0, problem.seq_len - problem.window);
  const double queries = std::min<double>(problem.query_len, most);
  return queries * most - queries * (queries - 1) / 2;
}

// Of K and of V, one each for a token and a KV head.
int scales_of_token(const KernelSpec& spec) { return spec.token_scales ? 2 : 0; }

// "512 B": of a token and a KV head.
std::string token_bytes_text(const KernelSpec& spec) {
  const std::string rows = with_commas(kv_token_bytes(spec)) + " B";
  if (!spec.token_scales) return rows;
  return "(" + rows + " + " + std::to_string(scales_of_token(spec)) + " scales x " +
         std::to_string(kScaleBytes) + " B)";
}

// One of the sequences, since all are alike.
AttentionBenchCase case_of(const KernelSpec& spec, const Problem& problem) {
  AttentionBenchCase c;
  c.spec = spec;
  c.num_kv_heads = problem.num_kv_heads;
  if (spec.queries == QueryLengths::kOne) {
    c.num_seqs = 1;
    c.seq_len = problem.seq_len;
  } else {
    c.num_seqs = c.seq_len = 0;
    c.chunk_queries = problem.query_len;
    c.chunk_seq_len = problem.seq_len;
  }
  return c;
}

// One query token and one key of the same heads.
AttentionBenchCase pair_of(AttentionBenchCase c) {
  c.num_seqs = c.seq_len = 1;
  c.chunk_queries = c.chunk_seq_len = 0;
  return c;
}

std::string number(double value) { return significant(value); }

// "the chunks and the custom mask": what hides keys that are counted all the same.
std::string uncounted_masks(const Roofline& r, const KernelSpec& spec) {
  std::vector<std::string> masks;
  if (spec.window && !r.is_windowed) masks.emplace_back("the window");
  if (spec.chunked) masks.emplace_back("the chunks");
  if (spec.block_sparse) masks.emplace_back("the pattern of blocks");
  if (spec.custom_mask) masks.emplace_back("the custom mask");
  std::string text;
  for (size_t i = 0; i < masks.size(); ++i) {
    text += (i == 0 ? "" : i + 1 < masks.size() ? ", " : " and ") + masks[i];
  }
  return text;
}

}  // namespace

int usual_query_len(const KernelSpec& spec, int seq_len) {
  switch (spec.queries) {
    case QueryLengths::kOne:
      return 1;
    case QueryLengths::kFew:
      return kFewQueries < seq_len ? kFewQueries : seq_len;
    case QueryLengths::kMany:
      return seq_len;
    case QueryLengths::kShared:
      // Causal ones lie within seq_len.
      return spec.causality == Causality::kNone ? kSharedQueries
                                                : std::min(kSharedQueries, seq_len);
  }
  return 1;
}

Status check_problem(const Problem& problem, const KernelSpec& spec) {
  const auto usage = [](const std::string& message) {
    return Status(StatusCode::kInvalidArgument, message);
  };
  const auto check = [&](const char* name, int value) -> Status {
    // Products of all of them must stay exact numbers; and no GPU holds more.
    constexpr int kMost = 1 << 30;
    if (value >= 1 && value <= kMost) return Status::ok();
    return usage(std::string(name) + " " + std::to_string(value) + ": must be 1 to " +
                 std::to_string(kMost));
  };
  if (Status s = check("--batch", problem.batch); !s) return s;
  if (Status s = check("--seq-len", problem.seq_len); !s) return s;
  if (problem.num_kv_heads != 0) {
    if (Status s = check("--num-kv-heads", problem.num_kv_heads); !s) return s;
  }
  if (problem.window != 0) {
    if (Status s = check("--window", problem.window); !s) return s;
    if (!spec.window) {
      return usage("--window " + std::to_string(problem.window) + ": the kernel has no window");
    }
  }
  if (problem.query_len == 0) return Status::ok();
  if (Status s = check("--query-len", problem.query_len); !s) return s;
  if (spec.queries == QueryLengths::kOne && problem.query_len != 1) {
    return usage("--query-len " + std::to_string(problem.query_len) +
                 ": must be 1 for a kernel of one query token; --queries few or many takes more");
  }
  if (spec.causality != Causality::kNone && problem.query_len > problem.seq_len) {
    return usage("--query-len " + std::to_string(problem.query_len) +
                 ": must be at most --seq-len " + std::to_string(problem.seq_len));
  }
  return Status::ok();
}

Roofline roofline_of(const KernelConfig& config, Problem problem, const Gpu& gpu) {
  if (problem.query_len == 0) problem.query_len = usual_query_len(config.spec, problem.seq_len);
  if (problem.num_kv_heads == 0) problem.num_kv_heads = config.spec.latent ? 1 : kUsualKvHeads;
  const AttentionBenchCase all = case_of(config.spec, problem);
  const int terms = pagejit_shared::operand_terms(config.attention);
  Roofline r;
  r.problem = problem;
  r.is_windowed = counts_window(config.spec, problem);
  r.num_keys = r.is_windowed ? keys_within_window(problem) : problem.seq_len;
  Problem seen = problem;
  seen.seq_len = r.num_keys;
  r.kv_bytes = problem.batch * pagejit::kv_bytes(case_of(config.spec, seen));
  r.kv_bytes += static_cast<double>(problem.batch) * r.num_keys * problem.num_kv_heads *
                scales_of_token(config.spec) * kScaleBytes;
  r.query_bytes = problem.batch * pagejit::query_bytes(all);
  const double pair_flops = pagejit::flops(pair_of(all));
  double pairs = pagejit::flops(all) / pair_flops;
  if (r.is_windowed) pairs -= pairs_before_window(problem);
  r.keys_per_query = pairs / problem.query_len;
  r.flops = problem.batch * pairs * pair_flops;
  r.products_each = terms * (terms + 1) / 2;
  r.memory_us = r.bytes() / gpu.bandwidth_gb_s * 1e-3;
  if (gpu.tensor_tflops > 0) {
    r.compute_us = r.flops * r.products_each / gpu.tensor_tflops * 1e-6;
  }
  return r;
}

std::string explain_roofline(const Roofline& r, const KernelSpec& spec, const Gpu& gpu) {
  const Problem& p = r.problem;
  const int head_size_v = value_head_size(spec);
  const int64_t num_heads = int64_t{p.num_kv_heads} * spec.group_size;
  const bool is_half = spec.causality != Causality::kNone && spec.queries != QueryLengths::kOne;
  const std::string keys = (r.is_windowed ? "keys seen " : "seq_len ") +
                           with_commas(r.is_windowed ? r.num_keys : p.seq_len);
  const std::string keys_per_query = r.is_windowed ? "keys of a query " + number(r.keys_per_query)
                                     : is_half     ? "(seq_len - query_len / 2)"
                                                   : "seq_len";
  std::string text;
  const auto line = [&](const std::string& what, const std::string& formula,
                        const std::string& value) {
    text += what + std::string(what.size() < 14 ? 14 - what.size() : 1, ' ') + formula + " = " +
            value + "\n";
  };
  line("K and V",
       "batch " + with_commas(p.batch) + " x " + keys + " x KV heads " +
           with_commas(p.num_kv_heads) + " x " + token_bytes_text(spec) + " a token",
       number(r.kv_bytes * 1e-6) + " MB");
  line("q and result",
       "batch x query_len " + with_commas(p.query_len) + " x heads " + with_commas(num_heads) +
           " x (" + std::to_string(spec.head_size) + " x " +
           std::to_string(data_type_bits(spec.q_dtype) / 8) + " B + " +
           std::to_string(head_size_v) + " x " +
           std::to_string(data_type_bits(spec.out_dtype) / 8) + " B)",
       number(r.query_bytes * 1e-6) + " MB");
  line("operations",
       "2 x batch x query_len x " + keys_per_query + " x heads x (" +
           std::to_string(spec.head_size) + " + " + std::to_string(head_size_v) + ")",
       number(r.flops * 1e-9) + " GFLOP");
  line("intensity", "operations / bytes", number(r.intensity()) + " FLOP/B");
  line("memory time", "bytes / " + number(gpu.bandwidth_gb_s) + " GB/s",
       number(r.memory_us) + " us");
  if (gpu.tensor_tflops > 0) {
    const std::string products =
        r.products_each > 1
            ? "operations x " + std::to_string(r.products_each) + " products of bf16 for one of f32"
            : "operations";
    line("product time", products + " / " + number(gpu.tensor_tflops) + " TFLOP/s",
         number(r.compute_us) + " us");
    text += std::string(r.is_memory_bound() ? "memory" : "products") +
            " are the limit: " + number(r.limit_us()) + " us, " +
            number(r.bytes() / r.limit_us() * 1e-3) + " GB/s, " + number(r.tflops()) + " TFLOP/s\n";
    if (r.is_memory_bound()) text.replace(text.rfind("memory are"), 10, "memory is");
  } else {
    text += "no rate of products is known of this GPU; by memory alone " + number(r.memory_us) +
            " us\n";
  }
  return text;
}

std::vector<std::string> roofline_caveats(const Roofline& r, const KernelConfig& config,
                                          const Gpu& gpu) {
  const KernelSpec& spec = config.spec;
  std::vector<std::string> sentences;
  const std::string masks = uncounted_masks(r, spec);
  sentences.push_back(
      std::string("bytes are those of every key") +
      (r.is_windowed ? " within the window of " + with_commas(r.problem.window) : "") + " once" +
      (masks.empty() ? "" : ", and operations of every pair, whatever " + masks + " may hide"));
  if (spec.window && r.problem.window == 0) {
    sentences.emplace_back("the size of the window is not known; --window tells it");
  }
  if (spec.bidirectional_ranges) {
    sentences.emplace_back("what ranges show of later keys is not counted");
  }
  // Whose data sheets tell the rates of wgmma and of tcgen05.
  constexpr int kHopper = 90;
  constexpr int kAfterTcgen05 = 110;
  if (gpu.tensor_tflops > 0 && gpu.sm >= kHopper && gpu.sm < kAfterTcgen05) {
    sentences.emplace_back(
        "the rate of products is that of wgmma or tcgen05; these kernels use mma.sync");
  }
  sentences.push_back("GPU: " + std::string(gpu.source));
  return sentences;
}

}  // namespace pagejit::inspect
