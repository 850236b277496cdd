// `pagejit cache`: the cache directory as a whole. It makes no kernel and needs no compiler.
#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cache/cache_maintenance.h"
#include "runtime/metadata.h"
#include "runtime/tuned_record.h"
#include "tools/cli/commands.h"
#include "tools/cli/engine_flags.h"
#include "tools/cli/find_entry.h"
#include "tools/cli/output_file.h"
#include "tools/cli/text_table.h"
#include "tools/models/config_reader.h"

namespace pagejit::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CacheFlags {
  EngineFlags engine;
  bool json = false;
  bool dry_run = false;
  std::optional<uint64_t> max_mib;
  std::string key;
  std::string output;
};

// An entry's name is 73 characters; so many of its first ones tell entries apart.
constexpr size_t kShownDigits = 16;

// Nothing where there is no directory to look at, which is then said.
std::unique_ptr<cache::CacheMaintenance> open_directory(const CacheFlags& flags, bool read_only,
                                                        uint64_t* max_bytes,
                                                        CommandContext& context) {
  const Result<EngineOptions> options = make_engine_options(flags.engine, [](const auto&) {});
  if (!options) {
    context.fail(options.status());
    return nullptr;
  }
  const Result<cache::DirectoryChoice> choice = find_cache_directory(*options);
  if (!choice) {
    context.fail(choice.status());
    return nullptr;
  }
  if (max_bytes != nullptr) *max_bytes = options->cache_max_bytes;
  // No failure: it is so before the first kernel, but also where the name is wrong.
  std::error_code error;
  if (!std::filesystem::exists(choice->path, error) && !error) {
    context.note(choice->path + ": there is no such directory yet");
  }
  cache::MaintenanceOptions maintenance;
  maintenance.directory = *choice;
  maintenance.read_only = read_only;
  return std::make_unique<cache::CacheMaintenance>(std::move(maintenance));
}

std::string format_bytes(uint64_t bytes) { return format_count(static_cast<int64_t>(bytes)); }

Json to_json(const cache::FileCount& count) {
  return {{"files", count.files}, {"bytes", count.bytes}};
}

void print_json(const Json& json, CommandContext& context) {
  // What a damaged file says of itself need not be UTF-8.
  context.out << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

void print_counts(const std::vector<std::pair<std::string, cache::FileCount>>& counts,
                  CommandContext& context) {
  TextTable table({{"what"}, {"files", Align::kRight}, {"bytes", Align::kRight}});
  for (const auto& [name, count] : counts) {
    table.add_row({name, format_bytes(count.files), format_bytes(count.bytes)});
  }
  context.out << table.to_string(context.out_terminal);
}

void print_stats(const CacheFlags& flags, CommandContext& context) {
  uint64_t max_bytes = 0;
  const auto directory = open_directory(flags, /*read_only=*/true, &max_bytes, context);
  if (!directory) return;
  const Result<cache::CacheUsage> usage = directory->usage();
  if (!usage) return context.fail(usage.status());
  if (flags.json) {
    Json compilers = Json::object();
    for (const auto& [digits, count] : usage->by_compiler) compilers[digits] = to_json(count);
    return print_json({{"directory", directory->path()},
                       {"max_bytes", max_bytes},
                       {"entries", to_json(usage->entries)},
                       {"by_compiler", compilers},
                       {"temporaries", to_json(usage->temporaries)},
                       {"bad", to_json(usage->bad)}},
                      context);
  }
  context.out << fitted(directory->path() + ", at most " +
                            (max_bytes == 0 ? "any number of" : format_bytes(max_bytes)) +
                            " bytes\n",
                        context.out_terminal);
  std::vector<std::pair<std::string, cache::FileCount>> counts = {{"entries", usage->entries}};
  for (const auto& [digits, count] : usage->by_compiler) {
    counts.emplace_back("  of compiler " + digits, count);
  }
  counts.emplace_back("temporaries", usage->temporaries);
  counts.emplace_back("set aside", usage->bad);
  print_counts(counts, context);
}

std::string name_of(const cache::ListedEntry& entry) {
  return entry.file_name.substr(0, entry.file_name.size() - 4);  // without ".pjk"
}

// "3 d", "2 h", "5 min": of the largest unit that fits; 0 where the time lies in the future.
std::string format_age(int64_t seconds) {
  if (seconds >= 86400) return std::to_string(seconds / 86400) + " d";
  if (seconds >= 3600) return std::to_string(seconds / 3600) + " h";
  return std::to_string(std::max<int64_t>(seconds, 0) / 60) + " min";
}

void print_list(const CacheFlags& flags, CommandContext& context) {
  const auto directory = open_directory(flags, /*read_only=*/true, nullptr, context);
  if (!directory) return;
  const Result<std::vector<cache::ListedEntry>> entries = directory->list(/*with_metadata=*/true);
  if (!entries) return context.fail(entries.status());
  const auto now = std::chrono::system_clock::now();
  Json list = Json::array();
  TextTable table(
      {{"key"}, {"target"}, {"spec"}, {"bytes", Align::kRight}, {"age", Align::kRight}});
  uint64_t bytes = 0;
  for (const cache::ListedEntry& entry : *entries) {
    bytes += entry.bytes;
    const auto age = std::chrono::duration_cast<std::chrono::seconds>(now - entry.used_at);
    const Result<KernelMetadata> metadata = parse_metadata(entry.metadata);
    const Result<TunedRecord> record = parse_tuned_record(entry.metadata);
    if (flags.json) {
      Json item = {{"key", name_of(entry)}, {"bytes", entry.bytes}, {"age_seconds", age.count()}};
      if (metadata) {
        item["target"] = metadata->target;
        item["spec"] = metadata->spec;
        item["compiler"] = metadata->compiler;
      } else if (record) {
        item["target"] = record->target;
        item["spec"] = record->spec;
        item["tuned_on"] = record->device;
        item["tile"] = record->tile;
      }
      list.push_back(std::move(item));
      continue;
    }
    table.add_row({entry.file_name.substr(0, kShownDigits),
                   metadata ? models::printable(metadata->target)
                   : record ? models::printable(record->target)
                            : "?",
                   metadata ? models::printable(metadata->spec)
                   : record ? "tuned on " + models::printable(record->device) + ": " +
                                  models::printable(record->spec)
                            : "not readable by this version",
                   format_bytes(entry.bytes), format_age(age.count())});
  }
  if (flags.json) return print_json(list, context);
  context.out << table.to_string(context.out_terminal)
              << fitted(format_count_of(entries->size(), "entry", "entries") + ", " +
                            format_bytes(bytes) + " bytes in " + directory->path() + "\n",
                        context.out_terminal);
}

void verify(const CacheFlags& flags, CommandContext& context) {
  const auto directory = open_directory(flags, flags.dry_run, nullptr, context);
  if (!directory) return;
  const Result<cache::VerifyReport> report = directory->verify(flags.dry_run);
  if (!report) return context.fail(report.status());
  if (flags.json) {
    const auto problems = [](const std::vector<cache::VerifyReport::Problem>& found) {
      Json list = Json::array();
      for (const auto& problem : found) {
        list.push_back({{"file", problem.file_name}, {"reason", problem.reason}});
      }
      return list;
    };
    print_json({{"directory", directory->path()},
                {"intact", report->intact},
                {"intact_bytes", report->intact_bytes},
                {"corrupt", problems(report->corrupt)},
                {"unreadable", problems(report->unreadable)}},
               context);
  } else {
    context.out << format_count_of(report->intact, "entry is", "entries are") << " intact, "
                << report->corrupt.size() << " corrupt, " << report->unreadable.size()
                << " could not be read\n";
  }
  for (const auto& problem : report->corrupt) {
    context.fail(Status(StatusCode::kDataCorrupt,
                        problem.reason + (flags.dry_run ? "" : "; it was set aside")),
                 ExitCode::kVerification);
  }
  for (const auto& problem : report->unreadable) {
    context.fail(Status(StatusCode::kCacheError, problem.reason));
  }
}

void collect_garbage(const CacheFlags& flags, CommandContext& context) {
  uint64_t max_bytes = 0;
  const auto directory = open_directory(flags, /*read_only=*/false, &max_bytes, context);
  if (!directory) return;
  if (flags.max_mib) max_bytes = *flags.max_mib << 20;
  const Result<cache::GarbageReport> report = directory->collect_garbage(max_bytes);
  if (!report) return context.fail(report.status());
  if (flags.json) {
    return print_json({{"directory", directory->path()},
                       {"max_bytes", max_bytes},
                       {"temporaries", to_json(report->temporaries)},
                       {"bad", to_json(report->bad)},
                       {"other_versions", to_json(report->other_versions)},
                       {"evicted", to_json(report->evicted)}},
                      context);
  }
  context.out << fitted("removed from " + directory->path() + "\n", context.out_terminal);
  print_counts({{"temporaries left behind", report->temporaries},
                {"entries set aside", report->bad},
                {"entries of other versions", report->other_versions},
                {"entries over the limit", report->evicted}},
               context);
}

void clear(const CacheFlags& flags, CommandContext& context) {
  const auto directory = open_directory(flags, /*read_only=*/false, nullptr, context);
  if (!directory) return;
  const Result<cache::FileCount> removed = directory->clear();
  if (!removed) return context.fail(removed.status());
  if (flags.json) {
    return print_json({{"directory", directory->path()}, {"removed", to_json(*removed)}}, context);
  }
  context.out << fitted("removed " + format_count_of(removed->files, "file", "files") + ", " +
                            format_bytes(removed->bytes) + " bytes from " + directory->path() +
                            "\n",
                        context.out_terminal);
}

void extract(const CacheFlags& flags, CommandContext& context) {
  const auto directory = open_directory(flags, /*read_only=*/true, nullptr, context);
  if (!directory) return;
  const Result<std::string> name = find_entry(*directory, flags.key);
  if (!name) return context.fail(name.status());
  const Result<cache::Entry> entry = directory->read(*name);
  if (!entry) {
    const bool is_corrupt = entry.status().code() == StatusCode::kDataCorrupt;
    return context.fail(entry.status(),
                        is_corrupt ? ExitCode::kVerification : exit_code_of(entry.status()));
  }
  if (const Status status = write_output(flags.output, entry->image, context.out); !status) {
    context.fail(status);
  }
}

using Action = void (*)(const CacheFlags&, CommandContext&);

CLI::App* add_action(CLI::App& parent, const char* name, const char* help, const char* examples,
                     Action action, const std::shared_ptr<CacheFlags>& flags,
                     CommandContext& context) {
  CLI::App* command = parent.add_subcommand(name, help);
  command
      ->add_option("--cache-dir", flags->engine.cache_dir,
                   "The directory (PAGEJIT_CACHE_DIR; default: the user's)")
      ->type_name("DIR");
  command->footer(std::string("Examples:\n") + examples);
  command->callback([action, flags, &context] { action(*flags, context); });
  return command;
}

}  // namespace

void add_cache_command(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("cache", "Look at the cache directory, check it, make room in it");
  const auto flags = std::make_shared<CacheFlags>();
  const auto add = [&](const char* name, const char* help, const char* examples, Action action) {
    return add_action(*command, name, help, examples, action, flags, context);
  };
  CLI::App* stats = add("stats", "Entries and bytes, by compiler",
                        "  pagejit cache stats\n"
                        "  pagejit cache stats --cache-dir /srv/kernels --json",
                        print_stats);
  CLI::App* ls = add("ls", "Every entry: target, spec, bytes, when it was last used",
                     "  pagejit cache ls\n"
                     "  pagejit cache ls --json",
                     print_list);
  CLI::App* check = add("verify", "Read every entry and set corrupt ones aside",
                        "  pagejit cache verify\n"
                        "  pagejit cache verify --dry-run --json",
                        verify);
  check->add_flag("--dry-run", flags->dry_run, "Set nothing aside");
  CLI::App* gc = add("gc", "Remove what killed processes left, and what is over the limit",
                     "  pagejit cache gc\n"
                     "  pagejit cache gc --max-mib 256",
                     collect_garbage);
  gc->add_option("--max-mib", flags->max_mib,
                 "The limit in MiB, 0 = none (PAGEJIT_CACHE_MAX_MIB; default 512)")
      // Bytes still fit 64 bits.
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40).description(""))
      ->type_name("N");
  CLI::App* all = add("clear", "Remove every entry",
                      "  pagejit cache clear\n"
                      "  pagejit cache clear --cache-dir /tmp/kernels",
                      clear);
  for (CLI::App* action : {stats, ls, check, gc, all}) {
    action->add_flag("--json", flags->json, "JSON instead of a table");
  }
  CLI::App* image = add("extract",
                        "Write the image of an entry: a cubin, or a shared object for "
                        "\"host\"",
                        "  pagejit cache extract 3f9a0c -o kernel.cubin", extract);
  image->add_option("KEY", flags->key, "An entry's name, or an unambiguous beginning of it")
      ->required();
  image->add_option("-o,--output", flags->output, "The file; - is the standard output")
      ->type_name("FILE")
      ->required();
  command->require_subcommand(1);
  command->footer(
      "Safe beside running processes. verify: exit code 5 where an entry is corrupt.\n\n"
      "Examples:\n"
      "  pagejit cache stats\n"
      "  pagejit cache ls --json\n"
      "  pagejit cache gc --max-mib 256\n"
      "  pagejit cache extract 3f9a0c -o kernel.cubin");
}

}  // namespace pagejit::cli
