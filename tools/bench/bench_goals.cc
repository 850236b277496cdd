#include "tools/bench/bench_goals.h"

namespace pagejit {
namespace {

BenchGoal at_least(const char* figure, double limit) { return {figure, limit, true}; }
BenchGoal at_most(const char* figure, double limit) { return {figure, limit, false}; }

}  // namespace

std::optional<BenchGoal> goal_of(const BenchResult& result, const std::string& gpu) {
  if (gpu.find("H200") == std::string::npos) return std::nullopt;
  const std::string& name = result.name;
  const auto number = [&](const char* key) { return result.shape.value(key, 0); };
  const int num_seqs = number("num_seqs");
  const int seq_len = number("seq_len");
  if (result.suite == "decode") {
    if (name == "MHA 32/32") return at_least("tb_per_s", 3.9);
    if (name != "GQA 32/8") return std::nullopt;
    if (num_seqs == 8 && seq_len == 32768) return at_least("tb_per_s", 3.9);
    if (num_seqs == 1 && seq_len == 32768) return at_most("value", 41);
    if (num_seqs == 1 && seq_len == 1024) return at_most("value", 7);
  }
  if (result.suite == "paging" && name != "contiguous") return at_most("of_contiguous", 1.03);
  if (result.suite == "fp8" && name != "KV bf16") return at_most("value", 150);
  // Of the batches the one that fills the GPU; bf16, without a remark behind the name.
  if (result.suite == "mla" && num_seqs == 128) {
    if (name == "MLA, 16 heads") return at_least("tb_per_s", 3.4);
    if (name == "MLA, 128 heads") return at_least("tflops", 300);
  }
  if (result.suite == "prefill" && number("chunk_queries") == 16384) {
    return at_least("tflops", 330);
  }
  if (result.suite == "cascade" && name == "GQA 32/8" && num_seqs == 64 &&
      number("prefix_len") == 8192) {
    return at_least("speedup", 8);
  }
  return std::nullopt;
}

}  // namespace pagejit
