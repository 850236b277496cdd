// GpuTuneTimer: times of launches on a GPU for `pagejit tune`, taken as `pagejit bench` takes them:
// over caches that take turns, so that the L2 cannot serve them, by the replays of a captured
// graph. Where the caches would take too much memory for that (pools_for()), a note says so.
// Thread-safety: one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "tools/bench/attention_bench.h"
#include "tools/tune/tune_run.h"

namespace pagejit {

// kUnsupported names what of the spec has no launch here: masks, biases, ranges, scales of tokens,
// tables and layouts of its own.
Status check_tunable(const KernelSpec& spec);

// "" where num_pools are enough for what pools_for() is to reach; else a sentence for people.
std::string describe_shortfall(const AttentionBenchCase& c, int num_pools);

class GpuTuneTimer final : public TuneTimer {
 public:
  // `launch_values`: spec, window, chunk, cap and sparse blocks; what a problem says is replaced.
  // `on_note` is given sentences about times that the L2 may have shortened. Engine and session
  // must outlive the result.
  GpuTuneTimer(Engine& engine, const DeviceSession& session, AttentionBenchCase launch_values,
               std::function<void(const std::string&)> on_note)
      : engine_(engine),
        session_(session),
        case_(std::move(launch_values)),
        on_note_(std::move(on_note)) {}

  Result<double> time_us(const TuneProblem& problem, const KernelConfig& config,
                         const Kernel& kernel) override;

 private:
  Engine& engine_;
  const DeviceSession& session_;
  AttentionBenchCase case_;
  std::function<void(const std::string&)> on_note_;
  std::string problem_;  // that the workload is of
  std::optional<AttentionWorkload> workload_;
};

}  // namespace pagejit
