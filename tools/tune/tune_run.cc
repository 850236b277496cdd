#include "tools/tune/tune_run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "generator/families.h"
#include "generator/planner.h"
#include "generator/tile_text.h"
#include "runtime/engine/dependencies.h"
#include "runtime/engine/stored_kernel.h"
#include "runtime/metadata.h"
#include "tools/bench/quartiles.h"
#include "tools/check/device_buffer.h"

namespace pagejit {
namespace {

// One engine for each candidate: each knows one plan.
class TuneRun {
 public:
  TuneRun(const TuneRequest& request, const DeviceSession& session, TuneTimer& timer)
      : request_(request),
        session_(session),
        timer_(timer),
        options_(candidate_options(request.options)),
        dependencies_(default_dependencies(options_)) {}

  Status find_candidates() {
    const Result<PlanExplanation> explanation = explain(request_.spec, request_.target);
    if (!explanation) return explanation.status();
    if (!explanation->candidates.front().fits) return plan(request_.spec, request_.target).status();
    std::vector<std::string> tiles;
    for (const PlanCandidate& planned : explanation->candidates) {
      const bool is_enough =
          request_.max_candidates != 0 && tiles.size() >= request_.max_candidates;
      if (is_enough) break;
      const std::string tile = tile_text(planned.config.attention);
      if (!planned.fits || std::find(tiles.begin(), tiles.end(), tile) != tiles.end()) continue;
      tiles.push_back(tile);
      TuneCandidate& candidate = result_.candidates.emplace_back();
      candidate.config = planned.config;
      candidate.predicted_slowdown = planned.predicted_slowdown;
    }
    return {};
  }

  // Compiled, looked at and checked: nothing wrong is ever timed.
  Status make_all() {
    for (size_t i = 0; i < result_.candidates.size(); ++i) {
      TuneCandidate& candidate = result_.candidates[i];
      if (Status status = check_interrupt(); !status) return status;
      candidate.status = make(candidate);
      say(std::to_string(i + 1) + "/" + std::to_string(result_.candidates.size()) + " " +
          describe_tile(candidate.config.attention) + ": " +
          (candidate.status ? "compiled and checked" : candidate.status.message()));
      if (!candidate.status && i == 0) {
        return candidate.status.with_context("the planner's choice");
      }
    }
    return {};
  }

  Status time_all() {
    for (TuneCandidate& candidate : result_.candidates) {
      if (candidate.status) candidate.times.resize(request_.problems.size());
    }
    for (size_t p = 0; p < request_.problems.size(); ++p) {
      const TuneProblem& problem = request_.problems[p];
      say("timing " + problem.name());
      for (int round = 0; round < request_.rounds; ++round) {
        for (size_t i = 0; i < result_.candidates.size(); ++i) {
          TuneCandidate& candidate = result_.candidates[i];
          if (!candidate.status) continue;
          if (Status status = check_interrupt(); !status) return status;
          const Result<double> us = timer_.time_us(problem, candidate.config, kernels_[i]);
          if (!us) return us.status().with_context(problem.name());
          candidate.times[p].push_back(*us);
        }
      }
    }
    return {};
  }

  TuneResult finish() {
    std::vector<RoundTimes> times;
    for (const TuneCandidate& candidate : result_.candidates) times.push_back(candidate.times);
    result_.verdict = choose_candidate(times);
    const TuneCandidate& planned = result_.candidates.front();
    const TuneCandidate& chosen = result_.choice();
    result_.record = {.spec = canonical_text(request_.spec),
                      .target = request_.target.to_string(),
                      .device = request_.device,
                      .tile = tile_text(chosen.config.attention),
                      .planned_tile = tile_text(planned.config.attention),
                      .image = chosen.entry->key.name(),
                      .version = request_.version,
                      .problems = {}};
    const auto nanoseconds = [](const std::vector<double>& us) {
      return static_cast<uint64_t>(std::llround(median(us) * 1000));
    };
    for (size_t p = 0; p < request_.problems.size(); ++p) {
      result_.record.problems.push_back({.name = request_.problems[p].name(),
                                         .planned_ns = nanoseconds(planned.times[p]),
                                         .tuned_ns = nanoseconds(chosen.times[p])});
    }
    return std::move(result_);
  }

 private:
  static EngineOptions candidate_options(EngineOptions options) {
    // What is stored is read, so that a second run compiles nothing; losers are not written.
    std::error_code error;
    if (options.disk_cache && std::filesystem::exists(options.cache_dir + "/v1", error)) {
      options.read_only_dirs.push_back(options.cache_dir);
    }
    options.disk_cache = false;
    options.remote_write = false;
    options.tuned = false;
    options.jit = JitPolicy::kOn;
    options.record_path.clear();
    options.stats_path.clear();
    return options;
  }

  Status check_interrupt() const {
    const bool stop = request_.is_interrupted && request_.is_interrupted();
    return stop ? Status(StatusCode::kCancelled, "interrupted: nothing was kept") : Status();
  }

  void say(const std::string& line) const {
    if (request_.on_progress) request_.on_progress(line);
  }

  Status make(TuneCandidate& candidate) {
    EngineDependencies parts = dependencies_;
    parts.plan = [config = candidate.config](const AnySpec& spec,
                                             const Target& target) -> Result<AnyConfig> {
      if (text_of(spec) == canonical_text(config.spec) && target == config.target) {
        return AnyConfig(config);
      }
      return Status(StatusCode::kUnsupported, "not what is being tuned");
    };
    if (request_.render) parts.render = request_.render;
    kernels_.emplace_back();
    Result<std::shared_ptr<Engine>> engine = create_engine(options_, std::move(parts));
    if (!engine) return engine.status();
    const Result<KernelInfo> info = (*engine)->precompile(request_.spec, request_.target);
    if (!info) return info.status();
    candidate.info = *info;
    const Result<StoredKernel> stored = find_stored(**engine, request_.spec, request_.target);
    if (!stored) return stored.status();
    candidate.entry = stored->entry;
    for (const CheckOptions& options : request_.checks) {
      if (Status status = check_interrupt(); !status) return status;
      const Result<CheckReport> report = run_check(**engine, session_, request_.spec, options);
      if (!report) return report.status();
      if (!report->passed) {
        return Status(StatusCode::kDeviceCheckFailed, "its results are wrong: " + report->sentence);
      }
    }
    Result<Kernel> kernel = (*engine)->prepare(request_.spec, session_.device());
    if (!kernel) return kernel.status();
    kernels_.back() = *kernel;
    return {};
  }

  const TuneRequest& request_;
  const DeviceSession& session_;
  TuneTimer& timer_;
  const EngineOptions options_;
  const EngineDependencies dependencies_;
  TuneResult result_;
  std::vector<Kernel> kernels_;  // of each candidate
};

}  // namespace

std::string TuneProblem::name() const {
  const std::string heads = " kv_heads=" + std::to_string(num_kv_heads);
  if (is_prompt) return "prompt=" + std::to_string(seq_len) + heads;
  return "batch=" + std::to_string(num_seqs) + " seq_len=" + std::to_string(seq_len) + heads;
}

Status check_batch_invariance(const KernelSpec& spec) {
  if (!spec.batch_invariant) return {};
  return Status(StatusCode::kInvalidArgument,
                "batch_invariant 1: must be 0 to be tuned, since machines that are tuned "
                "differently would give different bits");
}

Result<TuneResult> run_tune(const TuneRequest& request, const DeviceSession& session,
                            TuneTimer& timer) {
  if (Status status = validate(request.spec); !status) return status;
  if (Status status = check_batch_invariance(request.spec); !status) return status;
  TuneRun run(request, session, timer);
  Status status = run.find_candidates();
  if (status) status = run.make_all();
  if (status) status = run.time_all();
  if (!status) return status;
  return run.finish();
}

Result<std::vector<cache::Entry>> entries_of(const TuneResult& result) {
  std::vector<cache::Entry> entries;
  for (const size_t i : {size_t{0}, result.verdict.choice}) {
    if (i == 0 && !entries.empty()) continue;  // the planner's choice stays
    cache::Entry entry = *result.candidates[i].entry;
    Result<std::string> metadata = reproducible_metadata(entry.metadata);
    if (!metadata) return metadata.status();
    entry.metadata = std::move(metadata).value();
    entries.push_back(std::move(entry));
  }
  entries.push_back(encode_tuned_record(result.record));
  return entries;
}

Status store_choice(const TuneResult& result, cache::DiskCache& cache) {
  for (const cache::Entry& entry : {*result.candidates.front().entry, *result.choice().entry,
                                    encode_tuned_record(result.record)}) {
    if (Status status = cache.publish(entry); !status) return status;
  }
  return {};
}

}  // namespace pagejit
