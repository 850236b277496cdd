// GpuTuneTimer: times of launches on a GPU for `pagejit tune`, taken as `pagejit bench` takes them:
// over caches that the L2 cannot serve, by the replays of a captured graph. Thread-safety: one
// thread.
#pragma once

#include <optional>
#include <string>

#include "tools/bench/attention_bench.h"
#include "tools/tune/tune_run.h"

namespace pagejit {

// kUnsupported names what of the spec has no launch here: masks, biases, ranges, scales of tokens,
// tables and layouts of its own.
Status check_tunable(const KernelSpec& spec);

class GpuTuneTimer final : public TuneTimer {
 public:
  // `launch_values`: spec, window, chunk, cap and sparse blocks; what a problem says is replaced.
  // Both must outlive the result.
  GpuTuneTimer(Engine& engine, const DeviceSession& session, AttentionBenchCase launch_values)
      : engine_(engine), session_(session), case_(std::move(launch_values)) {}

  Result<double> time_us(const TuneProblem& problem, const KernelConfig& config,
                         const Kernel& kernel) override;

 private:
  Engine& engine_;
  const DeviceSession& session_;
  AttentionBenchCase case_;
  std::string problem_;  // that the workload is of
  std::optional<AttentionWorkload> workload_;
};

}  // namespace pagejit
