// `pagejit inspect`: what a kernel takes of a GPU, what its machine code does, and what the problem
// allows: of a spec, which it compiles for the purpose, of a cubin, or of a stored entry. It needs
// no GPU, and stores nothing.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "cache/cache_maintenance.h"
#include "generator/families.h"
#include "generator/renderer.h"
#include "generator/spec_parser.h"
#include "runtime/jit/file_io.h"
#include "runtime/metadata.h"
#include "tools/cli/commands.h"
#include "tools/cli/engine_flags.h"
#include "tools/cli/find_entry.h"
#include "tools/cli/output_file.h"
#include "tools/cli/word_checks.h"
#include "tools/cli/work_flags.h"
#include "tools/inspect/inspection.h"
#include "tools/inspect/inspection_json.h"
#include "tools/inspect/inspection_page.h"
#include "tools/inspect/inspection_text.h"
#include "tools/inspect/line_info_compiler.h"
#include "tools/models/config_reader.h"

namespace pagejit::cli {
namespace {

// A cubin has some 50 KB; one of a library of kernels some hundred MB.
constexpr size_t kMaxCubinBytes = size_t{512} << 20;
// Threads or bytes of a CTA: far more than any GPU has, and so little that sums of it are numbers.
constexpr int kMostOfAnything = 1 << 24;

struct InspectFlags {
  std::string what;  // a cubin's file or the beginning of an entry's key
  SpecFlags spec;
  std::string spec_text;
  EngineFlags engine;
  std::string arch;
  inspect::InspectOptions options;
  std::vector<std::string> of_problem;  // the flags given that say the problem of attention,
  std::vector<std::string> of_cubin;    // and that say what only a cubin does not tell
  std::optional<int> threads;
  std::optional<int> dynamic_shared_bytes;
  std::string html;
  bool json = false;
};

Status usage(const std::string& message) { return Status(StatusCode::kInvalidArgument, message); }

// --num-kv-heads and --window belong to a spec that the flags give, and say the problem of any.
bool has_spec(SpecFlags flags) {
  flags.num_kv_heads.reset();
  flags.window.reset();
  return flags.has_spec();
}

Result<AnySpec> spec_of(const InspectFlags& flags) {
  if (!flags.spec_text.empty()) {
    if (has_spec(flags.spec)) return usage("--spec excludes --head-size and the like");
    const Result<AnySpec> spec = parse_any_spec(flags.spec_text);
    if (spec) return *spec;
    return Status(spec.status().code(),
                  spec.status().message() + did_you_mean_family(flags.spec_text));
  }
  const Result<KernelSpec> spec = make_spec(flags.spec);
  if (!spec) return spec.status();
  return AnySpec(*spec);
}

Result<KernelSource> source_of(const AnySpec& spec, const Target& target) {
  const Result<AnyConfig> config = plan_any(spec, target);
  if (!config) return config.status();
  return render(*config);
}

Result<inspect::Subject> compile_spec(const InspectFlags& flags) {
  const Result<AnySpec> spec = spec_of(flags);
  if (!spec) return spec.status();
  if (flags.arch.empty()) return usage("--arch is missing");
  const Result<Target> target = parse_target(flags.arch);
  if (!target) return target.status().with_context("--arch");
  if (target->is_host() || target->variant == TargetVariant::kPtx) {
    return usage("--arch " + flags.arch + ": must be one that gives a cubin, like sm_90a");
  }
  const Result<KernelSource> source = source_of(*spec, *target);
  if (!source) return source.status();
  const Result<EngineOptions> options = make_engine_options(flags.engine, [](const auto&) {});
  if (!options) return options.status();
  jit::NvrtcSearch search;
  search.explicit_path = options->nvrtc_path;
  search.library_folder = jit::folder_of_this_library();
  inspect::LineInfoCompiler compiler(std::move(search), /*threads=*/1);
  const Result<CompiledImage> image = compiler.compile(*source);
  if (!image) return image.status();
  inspect::Subject subject;
  subject.image = image->image;
  subject.origin = "compiled now by " + image->compiler;
  subject.source = *source;
  subject.report = image->report;
  return subject;
}

// Of what an entry says of itself, the configuration that this version has for its spec, if that is
// how the entry is launched.
std::optional<KernelSource> source_of_entry(const KernelMetadata& metadata) {
  const Result<AnySpec> spec = parse_any_spec(metadata.spec);
  const Result<Target> target = parse_target(metadata.target);
  if (!spec || !target) return std::nullopt;
  const Result<KernelSource> source = source_of(*spec, *target);
  if (!source || source->kernel_name != metadata.symbol ||
      parameter_abi(source->config) != metadata.abi ||
      threads_per_cta(source->config) != static_cast<int>(metadata.threads_per_cta) ||
      shared_bytes(source->config) != static_cast<int>(metadata.dynamic_shared_bytes)) {
    return std::nullopt;
  }
  return *source;
}

Result<inspect::Subject> read_entry(const InspectFlags& flags) {
  const Result<EngineOptions> options = make_engine_options(flags.engine, [](const auto&) {});
  if (!options) return options.status();
  const Result<cache::DirectoryChoice> choice = find_cache_directory(*options);
  if (!choice) return choice.status();
  cache::MaintenanceOptions maintenance;
  maintenance.directory = *choice;
  maintenance.read_only = true;
  cache::CacheMaintenance directory(std::move(maintenance));
  const Result<std::string> name = find_entry(directory, flags.what);
  if (!name) return name.status();
  const Result<cache::Entry> entry = directory.read(*name);
  if (!entry) return entry.status();
  inspect::Subject subject;
  subject.image = entry->image;
  subject.origin = "entry " + name->substr(0, name->size() - 4);  // without ".pjk"
  const Result<KernelMetadata> metadata = parse_metadata(entry->metadata);
  if (!metadata) return metadata.status();
  const auto to_int = [](uint32_t value) {
    return static_cast<int>(std::min<uint32_t>(value, kMostOfAnything));
  };
  CompileReport report;
  report.registers = to_int(metadata->registers);
  report.spill_store_bytes = to_int(metadata->spill_store_bytes);
  report.spill_load_bytes = to_int(metadata->spill_load_bytes);
  report.stack_bytes = to_int(metadata->stack_bytes);
  report.static_shared_bytes = to_int(metadata->static_shared_bytes);
  subject.report = report;
  subject.threads = to_int(metadata->threads_per_cta);
  subject.dynamic_shared_bytes = to_int(metadata->dynamic_shared_bytes);
  subject.source = source_of_entry(*metadata);
  return subject;
}

// What is no file and no key: the text of a spec, or a mistake.
Result<inspect::Subject> compile_text(InspectFlags flags) {
  flags.spec_text = std::exchange(flags.what, "");
  const std::string word = flags.spec_text.substr(0, flags.spec_text.find(' '));
  if (begins_spec(word)) return compile_spec(flags);
  const std::string meant = did_you_mean_family(flags.spec_text);
  // A name that is near no family's was a file's.
  return Status(meant.empty() ? StatusCode::kCacheError : StatusCode::kInvalidArgument,
                models::printable(flags.spec_text) +
                    ": no such file or directory, nor the key of an entry, nor a spec, which "
                    "begins with " +
                    spec_beginnings() + meant);
}

Result<inspect::Subject> find_subject(const InspectFlags& flags) {
  if (flags.what.empty()) return compile_spec(flags);
  std::error_code error;
  const bool exists = std::filesystem::exists(flags.what, error);
  const bool is_entry = !exists && begins_key(flags.what);
  if (!exists && !is_entry && flags.spec_text.empty()) return compile_text(flags);
  if (has_spec(flags.spec) || !flags.spec_text.empty() || !flags.arch.empty()) {
    return usage(flags.what +
                 ": a cubin or an entry excludes --arch, --spec, --head-size and the "
                 "like");
  }
  if (is_entry) return read_entry(flags);
  const Result<std::string> bytes = jit::read_file(flags.what, kMaxCubinBytes);
  // A file that the user named and that cannot be read is a matter of files.
  if (!bytes) return Status(StatusCode::kCacheError, bytes.status().message());
  inspect::Subject subject;
  subject.image = *bytes;
  subject.origin = flags.what;
  subject.threads = flags.threads;
  subject.dynamic_shared_bytes = flags.dynamic_shared_bytes;
  return subject;
}

constexpr const char* kOfNoRoofline =
    ": is for the roofline of a spec; which this cubin is of is not known";

// A flag that would change nothing is refused.
Status check_use_of(const InspectFlags& flags, const inspect::Subject& subject) {
  // An entry's source is not always known, its metadata is.
  const bool is_cubin = !subject.source && !subject.report;
  if (!is_cubin && !flags.of_cubin.empty()) {
    return usage(flags.of_cubin.front() + ": is for a cubin's file; a spec and an entry tell it");
  }
  const bool is_attention =
      subject.source && std::holds_alternative<KernelConfig>(subject.source->config);
  if (!is_attention && !flags.of_problem.empty()) {
    return usage(flags.of_problem.front() +
                 (subject.source ? ": is for attention; the roofline of the other kernels is that "
                                   "of one unit of their work"
                                 : kOfNoRoofline));
  }
  if (!subject.source && !flags.options.gpu.empty()) {
    return usage(std::string("--gpu") + kOfNoRoofline);
  }
  // 0 stands for the default only where the flag is not given.
  const inspect::Problem& problem = flags.options.problem;
  for (const auto& [name, value] :
       {std::pair{"--query-len", problem.query_len},
        std::pair{"--num-kv-heads", problem.num_kv_heads}, std::pair{"--window", problem.window}}) {
    const auto& given = flags.of_problem;
    if (value == 0 && std::find(given.begin(), given.end(), name) != given.end()) {
      return usage(name + std::string(" 0: must be at least 1"));
    }
  }
  return Status::ok();
}

// A stored entry that is corrupt fails a verification; a file that is no cubin is wrong input.
ExitCode exit_code_of_corrupt(const Status& status, bool is_entry) {
  if (status.code() != StatusCode::kDataCorrupt) return exit_code_of(status);
  return is_entry ? ExitCode::kVerification : ExitCode::kUsage;
}

void print_inspection(InspectFlags flags, CommandContext& context) {
  if (flags.html == "-" && flags.json) {
    return context.fail(
        usage("--html - and --json both take the standard output; --html takes a file beside it"));
  }
  const Result<inspect::Subject> subject = find_subject(flags);
  if (!subject) return context.fail(subject.status(), exit_code_of_corrupt(subject.status(), true));
  if (const Status status = check_use_of(flags, *subject); !status) return context.fail(status);
  flags.options.environment = process_environment();
  const Result<inspect::Inspection> inspection = inspect::inspect(*subject, flags.options);
  if (!inspection) {
    const Status& status = inspection.status();
    const bool is_image = status.code() == StatusCode::kDataCorrupt;
    return context.fail(is_image ? status.with_context(subject->origin) : status,
                        exit_code_of_corrupt(status, false));
  }
  if (!flags.html.empty()) {
    const Status status = write_output(flags.html, inspect::to_html(*inspection), context.out);
    if (!status) return context.fail(status);
    if (flags.html == "-") return;
  }
  if (flags.json) {
    context.out << inspect::to_json(*inspection)
                       .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
                << "\n";
  } else {
    context.out << inspect::to_text(*inspection, context.out_terminal);
  }
}

// Those of `names` that the command line has.
std::vector<std::string> given_of(const CLI::App& command, std::vector<std::string> names) {
  std::erase_if(names, [&](const std::string& name) { return command.count(name) == 0; });
  return names;
}

void add_problem_flags(CLI::App& command, InspectFlags* flags) {
  inspect::Problem& problem = flags->options.problem;
  const auto number = [&](const char* name, int* value, const char* help) {
    command.add_option(name, *value, help)->type_name("N")->capture_default_str()->group("Problem");
  };
  number("--batch", &problem.batch, "Sequences, all alike");
  number("--seq-len", &problem.seq_len, "Tokens of each, the new ones included");
  command
      .add_option("--query-len", problem.query_len,
                  "New tokens of each (default: 1; for few 4, for many all, for shared 64)")
      ->type_name("N")
      ->group("Problem");
  command
      .add_option("--gpu", flags->options.gpu,
                  "For the roofline: h200, h100, b200, a100-80, l40s, rtx4090 and so on (default: "
                  "the first that the kernel runs on)")
      ->type_name("NAME")
      ->group("Problem");
}

}  // namespace

void add_inspect_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand(
      "inspect", "Registers, occupancy, machine code, pipeline and roofline of a kernel");
  const auto flags = std::make_shared<InspectFlags>();
  command
      ->add_option("WHAT", flags->what,
                   "A cubin, the beginning of the key of a stored entry, or a spec's text as for "
                   "--spec; else give a spec by flags")
      ->type_name("FILE|KEY|SPEC");
  add_spec_flags(*command, &flags->spec, false);
  command
      ->add_option("--spec", flags->spec_text,
                   "A spec of any family as `cache ls` and traces have it, instead of the flags")
      ->type_name("TEXT")
      ->group("What");
  command->add_option("--arch,-a", flags->arch, "Of a spec: sm_80, sm_90a, sm_100f")
      ->type_name("ARCH")
      ->check(target_words())
      ->group("What");
  command->add_option("--kernel", flags->options.symbol, "Which kernel of a cubin that has several")
      ->type_name("NAME")
      ->group("What");
  const auto of_cubin = [&](const char* name, std::optional<int>* value, int least,
                            const char* help) {
    command->add_option(name, *value, help)
        ->type_name("N")
        ->check(CLI::Range(least, kMostOfAnything).description(""))
        ->group("What");
  };
  of_cubin("--threads", &flags->threads, 1,
           "Of a cubin: threads per CTA (default: its launch bound)");
  of_cubin("--dynamic-shared", &flags->dynamic_shared_bytes, 0,
           "Of a cubin: bytes of dynamic shared memory per CTA, which it does not tell");
  add_problem_flags(*command, flags.get());
  command
      ->add_option("--cache-dir", flags->engine.cache_dir,
                   "Where a KEY is looked for (PAGEJIT_CACHE_DIR; default: the user's)")
      ->type_name("DIR")
      ->group("How");
  command
      ->add_option("--nvrtc", flags->engine.nvrtc,
                   "libnvrtc.so, or the folder that holds it (PAGEJIT_NVRTC)")
      ->type_name("PATH")
      ->group("How");
  command
      ->add_option("--nvdisasm", flags->options.nvdisasm,
                   "nvdisasm, or the folder that holds it (default: searched)")
      ->type_name("PATH")
      ->group("How");
  command->add_flag("--json", flags->json, "JSON instead of text")->group("How");
  command
      ->add_option("--html", flags->html,
                   "Also a page with the source beside its machine code; - is the standard output")
      ->type_name("FILE")
      ->group("How");
  command->footer(
      std::string(
          "Needs no GPU and stores nothing; numbers are those of the compile log, the cubin and\n"
          "the machine code.\n\n"
          "Examples:\n"
          "  pagejit inspect --head-size 128 --group-size 4 --arch sm_90a\n"
          "  pagejit inspect --head-size 128 --group-size 4 --queries many --causal --arch sm_80 "
          "--gpu a100-80 --batch 1 --seq-len 16384\n"
          "  pagejit inspect --head-size 128 --group-size 4 --arch sm_90a --html kernel.html\n"
          "  pagejit inspect merge_states --arch sm_90a\n"
          "  pagejit inspect kernel.cubin --dynamic-shared 65536\n"
          "  pagejit inspect 3f9a0c --json\n\n") +
      kExitCodeHelp);
  command->callback([flags, command, &context] {
    flags->of_problem =
        given_of(*command, {"--batch", "--seq-len", "--query-len", "--num-kv-heads", "--window"});
    flags->of_cubin = given_of(*command, {"--kernel", "--threads", "--dynamic-shared"});
    flags->options.problem.num_kv_heads = flags->spec.num_kv_heads.value_or(0);
    flags->options.problem.window = flags->spec.window.value_or(0);
    print_inspection(*flags, context);
  });
}

}  // namespace pagejit::cli
