// `pagejit demo`: from published models to checked kernels, in one table.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "tools/cli/check_session.h"
#include "tools/cli/commands.h"
#include "tools/cli/shipped_models.h"
#include "tools/cli/text_table.h"

namespace pagejit::cli {
namespace {

constexpr int kBlockSize = 16;
// One per generation: Ampere, Hopper, Blackwell's consumer chips.
constexpr const char* kTargets[] = {"sm_80", "sm_90a", "sm_120a"};
// At least two long enough for several splits; the others end inside, at and behind a block.
const std::vector<int> kSeqLens = {2048, 1, 2309, 17, 640, 0, 333};

struct DemoFlags {
  CheckSessionFlags session;
};

// A directory that is removed at the end, so that the first compile is one.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::error_code error;
    std::string path =
        std::filesystem::temp_directory_path(error).string() + "/pagejit-demo-XXXXXX";
    if (mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~TemporaryDirectory() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// "153/160/158": a value per target.
class PerTarget {
 public:
  void add(const std::string& value) { text_ += (text_.empty() ? "" : "/") + value; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

class Demo {
 public:
  Demo(const CheckSession& session, CommandContext& context)
      : session_(session), context_(context) {}

  void run_model(const ShippedModel& model, DataType dtype) {
    const auto shape = models::parse_model_config(model.config, {.dtype = dtype});
    if (!shape) return context_.fail(shape.status().with_context(model.name));
    WorkList work;
    SpecFlags flags;
    flags.block_size = kBlockSize;
    if (const Status s = add_model(*shape, std::string(model.name), flags, &work); !s) {
      return context_.fail(s);
    }
    for (const WorkItem& item : work.items) run_kernel(item);
  }

  std::string table() const { return table_.to_string(context_.out_terminal); }
  size_t num_rows() const { return table_.num_rows(); }
  size_t num_passed() const { return num_passed_; }

 private:
  // Compiles for every target, and again from the cache by an engine that knows nothing yet.
  void compile(const WorkItem& item, std::vector<std::string>* row) {
    PerTarget compiled, cached, registers, shared;
    const auto fresh = Engine::create(session_.options());
    for (const char* name : kTargets) {
      const Target target = *parse_target(name);
      const Result<KernelInfo> first = session_.engine().precompile(item.spec, target);
      const Result<KernelInfo> second = first && fresh ? (*fresh)->precompile(item.spec, target)
                                                       : Result<KernelInfo>(first.status());
      if (!first || !second) {
        fail_once((first ? second : first).status());
        for (PerTarget* column : {&compiled, &cached, &registers, &shared}) column->add("-");
        continue;
      }
      if (second->origin != ImageOrigin::kDisk) {
        fail_once(Status(StatusCode::kCacheError,
                         "a kernel that was compiled just now was not in the cache"));
      }
      compiled.add(std::to_string(std::lround(first->compile_ms)));
      cached.add(format_ms(second->prepare_ms));
      registers.add(std::to_string(first->registers));
      shared.add(std::to_string(first->shared_bytes / 1024));
    }
    for (const PerTarget* column : {&compiled, &cached, &registers, &shared}) {
      row->push_back(column->text());
    }
  }

  // Ragged lengths, scattered blocks, two splits or more.
  Result<CheckReport> launch(const WorkItem& item) {
    const Result<Kernel> kernel = session_.engine().prepare(item.spec);
    if (!kernel) return kernel.status();
    CheckOptions options;
    // All heads on a GPU; two KV heads on the emulator, which is some thousand times slower.
    options.batch.num_kv_heads =
        session_.is_emulator() ? std::min(2, item.num_kv_heads) : item.num_kv_heads;
    options.batch.seq_lens = kSeqLens;
    options.batch.scale = static_cast<float>(item.scale);
    options.batch.window_left = item.window_left;
    options.batch.chunk_size = item.chunk_size;
    options.batch.soft_cap = static_cast<float>(item.soft_cap);
    const int longest = *std::max_element(kSeqLens.begin(), kSeqLens.end());
    options.num_splits =
        std::max(2, kernel->choose_num_splits(static_cast<int>(kSeqLens.size()),
                                              options.batch.num_kv_heads, longest));
    return run_check(session_.engine(), session_.device(), item.spec, options);
  }

  void run_kernel(const WorkItem& item) {
    std::vector<std::string> row = {item.model, short_spec(item.spec)};
    compile(item, &row);
    const Result<CheckReport> report = launch(item);
    if (!report) {
      fail_once(report.status());
      row.resize(kNumColumns - 1);
      row.push_back("did not run");
    } else {
      num_passed_ += report->passed ? 1 : 0;
      for (std::string cell :
           {std::to_string(report->num_splits), format_count(report->tokens),
            format_count(report->elements), format_error(report->max_error),
            format_error(report->naive_max_error), std::string(report->passed ? "pass" : "FAIL")}) {
        row.push_back(std::move(cell));
      }
      if (!report->passed) {
        context_.fail(Status(StatusCode::kDeviceCheckFailed,
                             item.model + " " + short_spec(item.spec) + ": " + report->sentence));
      }
    }
    table_.add_row(std::move(row), report && report->passed ? Style::kPlain : Style::kBad);
  }

  // A missing NVRTC would be said for every kernel.
  void fail_once(const Status& status) {
    if (status.message() == last_failure_) return;
    last_failure_ = status.message();
    context_.fail(status);
  }

  static constexpr size_t kNumColumns = 12;

  const CheckSession& session_;
  CommandContext& context_;
  TextTable table_{{{"model"},
                    {"shape"},
                    {"compile ms", Align::kRight},
                    {"cached ms", Align::kRight},
                    {"registers", Align::kRight},
                    {"shared KiB", Align::kRight},
                    {"splits", Align::kRight},
                    {"tokens", Align::kRight},
                    {"elements", Align::kRight},
                    {"max error", Align::kRight},
                    {"naive", Align::kRight},
                    {"verdict"}}};
  std::string last_failure_;
  size_t num_passed_ = 0;
};

void run_demo(DemoFlags flags, CommandContext& context) {
  const TemporaryDirectory temporary;
  if (!flags.session.engine.cache_dir) {
    if (temporary.path().empty()) {
      return context.fail(
          Status(StatusCode::kCacheError, "no temporary directory could be made; say --cache-dir"));
    }
    flags.session.engine.cache_dir = temporary.path();
  }
  flags.session.allow_emulator = true;
  const auto on_log = [&](const std::string& line) { context.note(line); };
  const auto session = CheckSession::open(flags.session, on_log);
  if (!session) return context.fail(session.status());
  context.out << fitted("compiled for sm_80/sm_90a/sm_120a; run on " +
                            (*session)->describe_device() +
                            ((*session)->is_emulator() ? ", two KV heads at most\n" : "\n"),
                        context.out_terminal)
              << std::flush;

  Demo demo(**session, context);
  size_t num_wanted = 0;
  for (const ShippedModel& model : shipped_models()) {
    for (const DataType dtype : {DataType::kBFloat16, DataType::kFloat16}) {
      ++num_wanted;
      if (context.interrupted.load()) continue;
      context.err << "pagejit: " << model.name << " " << data_type_name(dtype) << "\n";
      demo.run_model(model, dtype);
    }
  }
  context.out << demo.table() << demo.num_passed() << " of " << num_wanted << " kernels passed\n";
  if (demo.num_rows() < num_wanted)
    context.exit_code = worse(context.exit_code, ExitCode::kInterrupted);
}

}  // namespace

void add_demo_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("demo",
                                         "Compile six published models for three GPUs, run them on "
                                         "the GPU or the emulator, and check them");
  const auto flags = std::make_shared<DemoFlags>();
  add_engine_flags(*command, &flags->session.engine, true);
  command->footer(std::string("The kernels are kept only with --cache-dir.\n\n"
                              "Examples:\n"
                              "  pagejit demo\n"
                              "  pagejit demo --driver emulator --cache-dir /tmp/kernels\n\n") +
                  kExitCodeHelp);
  command->callback([flags, &context] { run_demo(*flags, context); });
}

}  // namespace pagejit::cli
