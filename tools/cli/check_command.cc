#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/cli/check_session.h"
#include "tools/cli/commands.h"
#include "tools/cli/output_file.h"
#include "tools/cli/shipped_models.h"
#include "tools/cli/text_table.h"
#include "tools/cli/word_checks.h"

namespace pagejit::cli {
namespace {

struct CheckFlags {
  SpecFlags spec;
  CheckSessionFlags session;
  uint64_t seed = 1;
  int num_batches = 2;  // the borders of blocks, and one of random lengths
  int num_splits = 0;
  int cascade_levels = 0;  // 0: no cascade
  std::string json_path;
};

// The kernels that were asked for, else those of the models that the program holds.
Result<WorkList> choose_work(const SpecFlags& flags) {
  if (!flags.models.empty() || flags.has_spec()) return make_work_list(flags);
  WorkList list;
  for (const DataType dtype : {DataType::kBFloat16, DataType::kFloat16}) {
    for (const ShippedModel& model : shipped_models()) {
      const auto shape = models::parse_model_config(model.config, {.dtype = dtype});
      if (!shape) return shape.status().with_context(model.name);
      if (const Status s = add_model(*shape, std::string(model.name), flags, &list); !s) return s;
    }
  }
  list.description.clear();  // of each model twice
  return list;
}

class CheckRun {
 public:
  CheckRun(const CheckFlags& flags, const CheckSession& session, CommandContext& context)
      : flags_(flags), session_(session), context_(context) {}

  void check(const WorkItem& item, int batch_idx) {
    // The emulator is some thousand times slower than a GPU; two KV heads show an error in how
    // heads are told apart.
    const int max_kv_heads = session_.is_emulator() ? 2 : 0;
    CheckOptions options = make_check(item, max_kv_heads, flags_.seed, batch_idx);
    options.num_splits = flags_.num_splits;
    const Result<CheckReport> report = run(item, options, max_kv_heads, batch_idx);
    std::vector<std::string> row = {item.model, short_spec(item.spec),
                                    std::to_string(options.batch.num_kv_heads),
                                    std::string(cache_layout_name(options.batch.layout))};
    nlohmann::ordered_json line;
    line["spec"] = canonical_text(item.spec);
    line["model"] = item.model;
    line["num_kv_heads"] = options.batch.num_kv_heads;
    line["layout"] = cache_layout_name(options.batch.layout);
    if (flags_.cascade_levels > 0) line["cascade_levels"] = flags_.cascade_levels;
    line["seed"] = options.batch.seed;
    if (!report) {
      row.resize(table_columns().size() - 1);
      row.push_back("did not run");
      line["verdict"] = "did not run";
      line["message"] = report.status().message();
      context_.fail(report.status().with_context(short_spec(item.spec)));
    } else {
      add_report(*report, &row, &line);
      if (!report->passed) {
        context_.fail(Status(StatusCode::kDeviceCheckFailed,
                             short_spec(item.spec) + ", seed " +
                                 std::to_string(options.batch.seed) + ": " + report->sentence));
      }
    }
    ++num_checks_;
    table_.add_row(std::move(row), report && report->passed ? Style::kPlain : Style::kBad);
    json_ += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }

  // The table (unless JSON takes its place) and the verdict.
  void finish(size_t num_wanted) {
    const bool json_to_out = flags_.json_path == "-";
    if (!json_to_out) {
      context_.out << table_.to_string(context_.out_terminal) << num_passed_ << " of " << num_wanted
                   << " checks passed";
      if (num_checks_ < num_wanted)
        context_.out << ", " << num_wanted - num_checks_ << " not started";
      context_.out << "\n";
    }
    if (num_checks_ < num_wanted) {
      context_.exit_code = worse(context_.exit_code, ExitCode::kInterrupted);
    }
    if (flags_.json_path.empty()) return;
    if (const Status s = write_output(flags_.json_path, json_, context_.out); !s) context_.fail(s);
  }

 private:
  Result<CheckReport> run(const WorkItem& item, const CheckOptions& options, int max_kv_heads,
                          int batch_idx) {
    if (flags_.cascade_levels == 0) {
      return run_check(session_.engine(), session_.device(), item.spec, options);
    }
    CascadeCheckOptions cascade =
        make_cascade_check(item, flags_.cascade_levels, max_kv_heads, flags_.seed, batch_idx);
    cascade.num_splits = flags_.num_splits;
    return run_cascade_check(session_.engine(), session_.device(), {item.spec}, cascade);
  }

  static std::vector<TableColumn> table_columns() {
    const auto right = [](const char* title) { return TableColumn{title, Align::kRight}; };
    return {{"model"},           {"spec"},
            right("KV heads"),   {"layout"},
            right("splits"),     right("tokens"),
            right("elements"),   right("max error"),
            right("naive max"),  right("mean error"),
            right("naive mean"), right("lse error"),
            {"verdict"}};
  }

  void add_report(const CheckReport& report, std::vector<std::string>* row,
                  nlohmann::ordered_json* line) {
    num_passed_ += report.passed ? 1 : 0;
    for (std::string cell :
         {std::to_string(report.num_splits), format_count(report.tokens),
          format_count(report.elements), format_error(report.max_error),
          format_error(report.naive_max_error), format_error(report.mean_error),
          format_error(report.naive_mean_error), format_error(report.lse_max_error),
          std::string(report.passed ? "pass" : "FAIL")}) {
      row->push_back(std::move(cell));
    }
    (*line)["num_splits"] = report.num_splits;
    (*line)["tokens"] = report.tokens;
    (*line)["elements"] = report.elements;
    (*line)["max_error"] = report.max_error;
    (*line)["naive_max_error"] = report.naive_max_error;
    (*line)["mean_error"] = report.mean_error;
    (*line)["naive_mean_error"] = report.naive_mean_error;
    (*line)["lse_max_error"] = report.lse_max_error;
    (*line)["lse_tolerance"] = report.lse_tolerance;
    (*line)["worst_ratio"] = report.worst_ratio;
    (*line)["verdict"] = report.passed ? "pass" : "fail";
    (*line)["message"] = report.sentence;
  }

  const CheckFlags& flags_;
  const CheckSession& session_;
  CommandContext& context_;
  TextTable table_{table_columns()};
  std::string json_;
  size_t num_checks_ = 0;
  size_t num_passed_ = 0;
};

void check(CheckFlags flags, CommandContext& context) {
  if (flags.num_batches < 1 || flags.num_batches > 1000) {
    return context.fail(
        Status(StatusCode::kInvalidArgument,
               "--batches " + std::to_string(flags.num_batches) + ": must be in [1, 1000]"));
  }
  if (flags.cascade_levels < 0 || flags.cascade_levels > kMaxCascadeLevels) {
    return context.fail(Status(StatusCode::kInvalidArgument,
                               "--cascade " + std::to_string(flags.cascade_levels) +
                                   ": must be in [1, " + std::to_string(kMaxCascadeLevels) + "]"));
  }
  const Result<WorkList> work = choose_work(flags.spec);
  if (!work) return context.fail(work.status());
  flags.session.allow_emulator = true;
  const auto on_log = [&](const std::string& line) { context.note(line); };
  const auto session = CheckSession::open(flags.session, on_log);
  if (!session) return context.fail(session.status());
  if (flags.json_path != "-") {
    context.out << fitted(work->description + "checked on " + (*session)->describe_device() + "\n",
                          context.out_terminal)
                << std::flush;
  }
  CheckRun run(flags, **session, context);
  for (const WorkItem& item : work->items) {
    for (int i = 0; i < flags.num_batches && !context.interrupted.load(); ++i) run.check(item, i);
  }
  run.finish(work->items.size() * static_cast<size_t>(flags.num_batches));
  for (const std::string& sentence : work->unsupported) {
    context.fail(Status(StatusCode::kUnsupported, sentence), ExitCode::kUnsupportedLayers);
  }
}

}  // namespace

void add_check_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand(
      "check",
      "Run kernels on random data, on the GPU or the CPU emulator, and compare with a reference");
  const auto flags = std::make_shared<CheckFlags>();
  add_spec_flags(*command, &flags->spec, true);
  command
      ->add_option("--arch,-a", flags->session.arch,
                   "What the emulator stands for: sm_80, sm_90a, ... (default sm_90)")
      ->type_name("ARCH")
      ->check(target_words())
      ->group("What");
  command->add_option("--seed", flags->seed, "Of the first batch; the next has seed + 1")
      ->type_name("N");
  command
      ->add_option("--batches", flags->num_batches,
                   "Batches per kernel: the first with lengths at "
                   "borders, the others with random ones")
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--num-splits", flags->num_splits,
                   "Splits per sequence (default: the library's choice)")
      ->type_name("N");
  command
      ->add_option("--cascade", flags->cascade_levels,
                   "Each kernel's cascade instead, of so many levels: groups of sequences share "
                   "prefixes")
      ->type_name("LEVELS");
  add_engine_flags(*command, &flags->session.engine, true);
  command
      ->add_option("--json", flags->json_path,
                   "A file for one JSON object per check; - is the standard output")
      ->type_name("FILE");
  command->footer(
      std::string(
          "Without --model and without a spec: the models of `pagejit demo`.\n\n"
          "Examples:\n"
          "  pagejit check --model config.json --tp 2\n"
          "  pagejit check --head-size 128 --group-size 4 --batches 10 --seed 7\n"
          "  pagejit check --head-size 128 --group-size 4 --cascade 2\n"
          "  pagejit check --head-size 64 --group-size 71 --driver emulator --arch sm_80\n\n") +
      kExitCodeHelp);
  command->callback([flags, &context] { check(*flags, context); });
}

}  // namespace pagejit::cli
