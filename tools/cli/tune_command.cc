// `pagejit tune`: the planner's candidates for a spec, measured on the GPU at hand.
#include <CLI/CLI.hpp>
#include <memory>
#include <set>

#include "cache/bundle_writer.h"
#include "runtime/engine/device.h"
#include "tools/cli/check_session.h"
#include "tools/cli/commands.h"
#include "tools/cli/output_file.h"
#include "tools/cli/tune_outcome.h"
#include "tools/cli/tune_report.h"
#include "tools/cli/version.h"
#include "tools/tune/gpu_timer.h"

namespace pagejit::cli {
namespace {

struct TuneFlags {
  SpecFlags spec;
  CheckSessionFlags session;
  // A lone sequence and a full batch; a length that fits the L2 of most GPUs, and one that does
  // not.
  std::vector<int> batches = {1, 32};
  std::vector<int> seq_lens = {1024, 8192};
  int candidates = 8;
  bool all = false;
  int rounds = 5;
  std::string output;
  std::string json_path;
};

constexpr int kMaxBatch = 4096;
constexpr int kMaxSeqLen = 1 << 20;
constexpr int kMaxRounds = 1000;
// Where neither a model nor a flag says it: of the usual models with 8B to 70B parameters.
constexpr int kUsualKvHeads = 8;

Status check_range(const char* flag, int value, int least, int most) {
  if (value >= least && value <= most) return {};
  return Status(StatusCode::kInvalidArgument, std::string(flag) + " " + std::to_string(value) +
                                                  ": must be in [" + std::to_string(least) + ", " +
                                                  std::to_string(most) + "]");
}

Status check_flags(const TuneFlags& flags) {
  Status status = check_range("--candidates", flags.candidates, 1, 1000);
  if (status) status = check_range("--rounds", flags.rounds, 1, kMaxRounds);
  for (const int batch : flags.batches) {
    if (status) status = check_range("--batch", batch, 1, kMaxBatch);
  }
  for (const int tokens : flags.seq_lens) {
    if (status) status = check_range("--seq-len", tokens, 1, kMaxSeqLen);
  }
  const size_t num_problems = flags.batches.size() * flags.seq_lens.size();
  if (status && num_problems > kMaxTunedProblems) {
    return Status(StatusCode::kInvalidArgument,
                  "--batch and --seq-len: " + std::to_string(num_problems) +
                      " problems, must be at most " + std::to_string(kMaxTunedProblems));
  }
  return status;
}

std::vector<TuneProblem> problems_of(const TuneFlags& flags, const WorkItem& item) {
  const int kv_heads = item.spec.latent        ? 1
                       : item.num_kv_heads > 0 ? item.num_kv_heads
                                               : kUsualKvHeads;
  const QueryLengths queries = item.spec.queries;
  const bool is_prompt = queries == QueryLengths::kMany || queries == QueryLengths::kShared;
  std::vector<TuneProblem> problems;
  for (const int batch : is_prompt ? std::vector<int>{1} : flags.batches) {
    for (const int tokens : flags.seq_lens) {
      problems.push_back(
          {.num_seqs = batch, .seq_len = tokens, .num_kv_heads = kv_heads, .is_prompt = is_prompt});
    }
  }
  return problems;
}

AttentionBenchCase launch_values_of(const WorkItem& item) {
  AttentionBenchCase values;
  values.spec = item.spec;
  values.window_left = item.window_left;
  values.window_right = item.window_right;
  values.chunk_size = item.chunk_size;
  values.soft_cap = static_cast<float>(item.soft_cap);
  values.block_sparse = item.block_sparse;
  return values;
}

class TuneSession {
 public:
  TuneSession(const TuneFlags& flags, const CheckSession& session, CommandContext& context)
      : flags_(flags), session_(session), context_(context) {}

  Status open() {
    Result<Target> target = session_.engine().target_of_device(session_.device().device());
    if (!target) return target.status();
    target_ = *target;
    const Driver& driver = session_.device().driver();
    CUdevice device = 0;
    if (Status status =
            driver.check(driver.cuDeviceGet(&device, session_.device().device()), "cuDeviceGet");
        !status) {
      return status;
    }
    device_name_ = device_name(driver, device);
    options_ = session_.options();
    if (options_.disk_cache) {
      const Result<cache::DirectoryChoice> choice = find_cache_directory(options_);
      if (!choice) return choice.status();
      if (Status status = check_cache_directory(options_); !status) return status;
      options_.cache_dir = choice->path;
      cache::DiskCacheOptions disk;
      disk.directory = *choice;
      disk.max_bytes = options_.cache_max_bytes;
      disk_ = cache::DiskCache::open(std::move(disk));
    } else if (flags_.output.empty()) {
      return Status(StatusCode::kInvalidArgument,
                    "PAGEJIT_CACHE is off: there is nowhere to keep the choice but --output");
    }
    return {};
  }

  Status tune(const WorkItem& item) {
    TuneRequest request{.spec = item.spec,
                        .target = target_,
                        .device = device_name_,
                        .options = options_,
                        .problems = problems_of(flags_, item),
                        .checks = {make_check(item, 2, 1, 0), make_check(item, 2, 2, 1)},
                        .max_candidates = flags_.all ? 0 : static_cast<size_t>(flags_.candidates),
                        .rounds = flags_.rounds,
                        .version = version_text().substr(version_text().find(' ') + 1),
                        .is_interrupted = [this] { return context_.interrupted.load(); },
                        .on_progress =
                            [this](const std::string& line) {
                              context_.err << line << "\n" << std::flush;
                            }};
    say(canonical_text(item.spec) + " for " + target_.to_string() + " on " + device_name_ + "\n");
    GpuTuneTimer timer(session_.engine(), session_.device(), launch_values_of(item),
                       [this](const std::string& sentence) { context_.note(sentence); });
    const Result<TuneResult> result = run_tune(request, session_.device(), timer);
    if (!result) {
      json_ += tune_failure_json(request, result.status());
      return result.status();
    }
    json_ += tune_json(*result);
    say(tune_table(*result, context_.out_terminal) + "\n");
    fail_left_out(*result, context_);
    if (disk_ != nullptr) {
      if (Status status = store_choice(*result, *disk_); !status) return status;
    }
    if (flags_.output.empty()) return {};
    const Result<std::vector<cache::Entry>> entries = entries_of(*result);
    if (!entries) return entries.status();
    for (const cache::Entry& entry : *entries) {
      if (Status status = bundle_.add(entry); !status) return status;
    }
    return {};
  }

  // What was measured, also where a later spec failed.
  bool write_files() const {
    return write_tune_files({.json_path = flags_.json_path, .bundle_path = flags_.output}, json_,
                            bundle_, context_);
  }

  // For people: where JSON takes the standard output, nothing.
  void say(const std::string& text) const {
    if (flags_.json_path != "-") context_.out << text << std::flush;
  }

 private:
  const TuneFlags& flags_;
  const CheckSession& session_;
  CommandContext& context_;
  EngineOptions options_;
  Target target_;
  std::string device_name_;
  std::unique_ptr<cache::DiskCache> disk_;  // null: only a bundle
  cache::BundleWriter bundle_;
  std::string json_;
};

// What can be said without a device.
Status check_item(const WorkItem& item) {
  const Status status = check_batch_invariance(item.spec);
  return status ? check_tunable(item.spec) : status;
}

void tune(const TuneFlags& flags, CommandContext& context) {
  if (const Status status = check_flags(flags); !status) return context.fail(status);
  const Result<WorkList> work = make_work_list(flags.spec);
  if (!work) return context.fail(work.status());
  for (const WorkItem& item : work->items) {
    if (const Status status = check_item(item); !status) return context.fail(status);
  }
  const auto on_log = [&](const std::string& line) { context.note(line); };
  const auto session = CheckSession::open(flags.session, on_log);
  if (!session) return context.fail(session.status());
  if ((*session)->is_emulator()) {
    return context.fail(Status(StatusCode::kUnsupported,
                               "the emulator's times say nothing of a GPU; tuning needs one"),
                        ExitCode::kEnvironment);
  }
  TuneSession run(flags, **session, context);
  if (const Status status = run.open(); !status) return context.fail(status);
  run.say(work->description);
  std::set<std::string> done;  // kernels that differ in launch values alone share a record
  Status status;
  for (const WorkItem& item : work->items) {
    if (status && done.insert(canonical_text(item.spec)).second) status = run.tune(item);
  }
  if (!status) context.fail(status);
  const bool is_written = run.write_files();
  if (!done.empty() && status && is_written) {
    run.say(
        "Engines take what was chosen where EngineOptions::tuned (PAGEJIT_TUNED=on) says so.\n");
  }
  for (const std::string& sentence : work->unsupported) {
    context.fail(Status(StatusCode::kUnsupported, sentence), ExitCode::kUnsupportedLayers);
  }
}

}  // namespace

void add_tune_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand(
      "tune", "Measure the planner's candidates on this machine's GPU and keep the fastest");
  const auto flags = std::make_shared<TuneFlags>();
  add_spec_flags(*command, &flags->spec, true);
  command
      ->add_option(
          "--batch", flags->batches,
          "Sequences of a launch; several numbers are several problems. Prompts (--queries "
          "many, shared) are timed alone")
      ->delimiter(',')
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--seq-len", flags->seq_lens, "Tokens of each sequence, likewise")
      ->delimiter(',')
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--candidates", flags->candidates,
                   "So many of the planner's candidates, the best by its model")
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--all", flags->all, "All that can run on the GPU");
  command->add_option("--rounds", flags->rounds, "Times that each candidate is timed on a problem")
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("-o,--output", flags->output,
                   "A bundle of the choices, their kernels and the planner's, too")
      ->type_name("FILE");
  command
      ->add_option("--json", flags->json_path,
                   "A file for one JSON object per spec, each round's times too; - is the standard "
                   "output")
      ->type_name("FILE");
  add_engine_flags(*command, &flags->session.engine, true);
  command->footer(
      std::string("A candidate is timed only after its results were checked; the KV heads are "
                  "those of the model or of --num-kv-heads, else 8.\n"
                  "One that fails is left out, and the exit code says why: 2 where it does not "
                  "compile, 5 where its results are wrong.\n"
                  "Another choice than the planner's is kept where it is faster by more than the "
                  "noise of both, at least 2 %, and slower on no problem.\n"
                  "Needs a GPU. Not for --batch-invariant kernels, whose bits must be the same on "
                  "all machines.\n\n"
                  "Examples:\n"
                  "  pagejit tune --head-size 128 --group-size 4\n"
                  "  pagejit tune --model config.json --tp 2 --batch 8,64 --seq-len 4096\n"
                  "  pagejit tune --head-size 128 --group-size 4 --all --output tuned.pjb\n"
                  "  pagejit tune --model config.json --json tuned.json\n"
                  "  PAGEJIT_TUNED=on PAGEJIT_BUNDLES=tuned.pjb ./program\n\n") +
      kExitCodeHelp);
  command->callback([flags, &context] { tune(*flags, context); });
}

}  // namespace pagejit::cli
