#include "tools/tune/gpu_timer.h"

#include <cstdio>
#include <utility>

namespace pagejit {

Status check_tunable(const KernelSpec& spec) {
  const std::pair<bool, const char*> rules[] = {
      {spec.custom_mask, "custom_mask"},
      {spec.qq_bias, "qq_bias"},
      {spec.bidirectional_ranges, "bidirectional_ranges"},
      {spec.token_scales, "token_scales"},
      {spec.causality == Causality::kPerSequence, "causality per sequence"},
      {spec.kv_table != KvTable::kBlocks, "a table other than blocks"},
      {spec.kv_layout == KvLayout::kVllm, "kv_layout vllm"}};
  for (const auto& [holds, what] : rules) {
    if (!holds) continue;
    return Status(StatusCode::kUnsupported,
                  canonical_text(spec) + ": kernels with " + what + " cannot be timed yet");
  }
  return {};
}

std::string describe_shortfall(const AttentionBenchCase& c, int num_pools) {
  const double rotated = num_pools * read_bytes(c);
  if (rotated >= kRotatedBytes) return "";
  char megabytes[32];
  std::snprintf(megabytes, sizeof megabytes, "%.3g", rotated * 1e-6);
  return std::to_string(num_pools) + " caches take turns, of which launches read " + megabytes +
         " MB in all; an L2 of that size or more serves them";
}

Result<double> GpuTuneTimer::time_us(const TuneProblem& problem, const KernelConfig&,
                                     const Kernel& kernel) {
  if (!workload_ || problem_ != problem.name()) {
    workload_.reset();  // first the memory of the last one
    case_.name = problem_ = problem.name();
    case_.num_kv_heads = problem.num_kv_heads;
    case_.num_seqs = problem.is_prompt ? 0 : problem.num_seqs;
    case_.seq_len = problem.is_prompt ? 0 : problem.seq_len;
    case_.chunk_queries = case_.chunk_seq_len = problem.is_prompt ? problem.seq_len : 0;
    const int num_pools = pools_for(case_);
    Result<AttentionWorkload> workload =
        AttentionWorkload::create(engine_, session_, case_, num_pools);
    if (!workload) return workload.status();
    workload_.emplace(std::move(*workload));
    const std::string shortfall = describe_shortfall(case_, num_pools);
    if (!shortfall.empty() && on_note_) on_note_(problem_ + ": " + shortfall);
  }
  if (Status status = workload_->use(session_, kernel); !status) return status;
  const Result<RotatedTimes> times =
      time_rotated(session_, workload_->num_pools(),
                   [&](int pool, Stream stream) { return workload_->launch(pool, stream); });
  if (!times) return times.status();
  return times->median_us;
}

}  // namespace pagejit
