// Measuring the planner's candidates for one spec on one device, each checked before it is timed,
// and keeping the choice as a tuned record (runtime/tuned_record.h). How times are taken is the
// caller's: on a GPU gpu_timer.h, in tests whatever they choose. Thread-safety: one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cache/disk_cache.h"
#include "generator/config.h"
#include "pagejit/engine.h"
#include "runtime/tuned_record.h"
#include "tools/check/check.h"
#include "tools/tune/tune_choice.h"

namespace pagejit {

// What a launch is timed on.
struct TuneProblem {
  int num_seqs = 1;  // of one query token each; 0 where queries are a prompt's
  int seq_len = 0;   // tokens
  int num_kv_heads = 1;
  bool is_prompt = false;  // one sequence, all of whose tokens are query tokens

  // "batch=32 seq_len=8192 kv_heads=8", "prompt=8192 kv_heads=8".
  std::string name() const;
};

class TuneTimer {
 public:
  virtual ~TuneTimer() = default;
  // Microseconds of one launch of the kernel, as often repeated as a time takes. Problems come one
  // after the other, never an earlier one again.
  virtual Result<double> time_us(const TuneProblem& problem, const KernelConfig& config,
                                 const Kernel& kernel) = 0;
};

struct TuneRequest {
  KernelSpec spec;
  Target target;       // what the engine compiles for on the device
  std::string device;  // the driver's name of it
  EngineOptions options;
  std::vector<TuneProblem> problems;  // at least one
  std::vector<CheckOptions> checks;   // that each candidate must pass before it is timed
  size_t max_candidates = 8;          // the best by the planner's model; 0: all that fit
  int rounds = 5;
  std::string version;  // of pagejit
  // Asked between compiles, checks and times. Null: never.
  std::function<bool()> is_interrupted;
  std::function<void(const std::string&)> on_progress;
  // The source of a candidate. Null: the renderer's. Tests plant mistakes.
  std::function<Result<KernelSource>(const AnyConfig&)> render = nullptr;
};

struct TuneCandidate {
  KernelConfig config;
  double predicted_slowdown = 1;  // PlanCandidate's
  Status status;                  // not ok: it did not compile, or its results are wrong
  KernelInfo info;
  std::shared_ptr<const cache::Entry> entry;  // its image; null where it did not compile
  RoundTimes times;
};

struct TuneResult {
  std::vector<TuneCandidate> candidates;  // the first is the planner's choice
  TuneVerdict verdict;
  TunedRecord record;

  const TuneCandidate& choice() const { return candidates[verdict.choice]; }
};

// kInvalidArgument with the reason where a spec is batch_invariant.
Status check_batch_invariance(const KernelSpec& spec);

// Refusals: specs that are batch_invariant, since a tile of its own would give a machine bits of
// its own (kInvalidArgument). kCancelled where it was interrupted: nothing was stored. The status
// of the planner's own kernel where that fails its check (kDeviceCheckFailed) or does not compile;
// other candidates that fail are left out, and say so. Candidates are kept in memory; whatever the
// options say, they are looked for in the cache but not stored.
Result<TuneResult> run_tune(const TuneRequest& request, const DeviceSession& session,
                            TuneTimer& timer);

// The planner's image, the choice's and the record, in this order, so that no record lies where its
// image does not. kCacheError.
Status store_choice(const TuneResult& result, cache::DiskCache& cache);
// The same as entries of a bundle, without times of compiles.
Result<std::vector<cache::Entry>> entries_of(const TuneResult& result);

}  // namespace pagejit
