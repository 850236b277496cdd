#include "tools/inspect/roofline.h"

#include "tools/inspect/number_text.h"

namespace pagejit::inspect {
namespace {

constexpr int kFewQueries = 4;      // three speculated tokens and one more
constexpr int kSharedQueries = 64;  // sequences
constexpr int kUsualKvHeads = 8;    // of most models of 7 to 70 billion parameters

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

std::string number(double value) { return significant(value); }

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
      return kSharedQueries;
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
  const AttentionBenchCase c = case_of(config.spec, problem);
  const int terms = pagejit_shared::operand_terms(config.attention);
  Roofline r;
  r.problem = problem;
  r.kv_bytes = problem.batch * pagejit::kv_bytes(c);
  r.query_bytes = problem.batch * pagejit::query_bytes(c);
  r.flops = problem.batch * pagejit::flops(c);
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
  const int num_heads = p.num_kv_heads * spec.group_size;
  const bool is_half = spec.causality != Causality::kNone && spec.queries != QueryLengths::kOne;
  std::string text;
  const auto line = [&](const std::string& what, const std::string& formula,
                        const std::string& value) {
    text += what + std::string(what.size() < 14 ? 14 - what.size() : 1, ' ') + formula + " = " +
            value + "\n";
  };
  line("K and V",
       "batch " + with_commas(p.batch) + " x seq_len " + with_commas(p.seq_len) + " x KV heads " +
           with_commas(p.num_kv_heads) + " x " + with_commas(kv_token_bytes(spec)) + " B a token",
       number(r.kv_bytes * 1e-6) + " MB");
  line("q and result",
       "batch x query_len " + with_commas(p.query_len) + " x heads " + with_commas(num_heads) +
           " x (" + std::to_string(spec.head_size) + " x " +
           std::to_string(data_type_bits(spec.q_dtype) / 8) + " B + " +
           std::to_string(head_size_v) + " x " +
           std::to_string(data_type_bits(spec.out_dtype) / 8) + " B)",
       number(r.query_bytes * 1e-6) + " MB");
  line("operations",
       "2 x batch x query_len x " + std::string(is_half ? "(seq_len - query_len / 2)" : "seq_len") +
           " x heads x (" + std::to_string(spec.head_size) + " + " + std::to_string(head_size_v) +
           ")",
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

}  // namespace pagejit::inspect
