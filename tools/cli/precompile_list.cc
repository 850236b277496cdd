#include "tools/cli/precompile_list.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tools/cli/text_table.h"
#include "tools/cli/work_flags.h"
#include "tools/manifest/kernel_list.h"
#include "tools/manifest/manifest.h"
#include "tools/manifest/trace.h"

namespace pagejit::cli {
namespace {

using manifest::ListedKernel;

// The targets asked for, else that of the first GPU.
Result<std::vector<Target>> choose_targets(const std::vector<std::string>& archs, Engine& engine) {
  if (!archs.empty()) return parse_targets(archs);
  const Result<Target> target = engine.target_of_device(0);
  if (target) return std::vector<Target>{*target};
  return Status(StatusCode::kInvalidArgument,
                "--arch is missing, and there is no GPU whose architecture could stand for it (" +
                    target.status().message() + ")");
}

bool has_work(const SpecFlags& flags) { return !flags.models.empty() || flags.has_spec(); }

// All pairs of the models' or the spec's kernels and targets that this version serves. A spec of
// the user's own that it does not is an error; a model's is one more unsupported layer kind.
Status add_work(const ListFlags& flags, Engine& engine, PrecompileList* list) {
  Result<WorkList> work = make_work_list(flags.spec);
  if (!work) return work.status();
  const Result<std::vector<Target>> targets = choose_targets(flags.archs, engine);
  if (!targets) return targets.status();
  list->description += work->description;
  list->unsupported = std::move(work->unsupported);
  for (const Target& target : *targets) {
    for (const KernelSpec& spec : work->specs()) {
      Status status = supports(spec, target);
      if (status) {
        list->jobs.push_back({spec, target});
        continue;
      }
      if (flags.spec.models.empty() || status.code() != StatusCode::kUnsupported) return status;
      list->unsupported.push_back(short_spec(spec) + " for " + target.to_string() + ": " +
                                  status.message());
    }
  }
  return {};
}

std::string describe(const std::string& path, size_t kept, size_t all) {
  std::string text = path + ": " + format_kernels(all);
  if (kept != all) text += ", " + std::to_string(kept) + " of them for --arch";
  return text + "\n";
}

// Those for one of the targets, where there are any.
void add_listed(const std::string& path, const std::vector<Target>& targets,
                std::vector<ListedKernel> listed, std::vector<ListedKernel>* kernels,
                PrecompileList* list) {
  const size_t all = listed.size();
  if (!targets.empty()) {
    std::erase_if(listed, [&](const ListedKernel& kernel) {
      return std::find(targets.begin(), targets.end(), kernel.target) == targets.end();
    });
  }
  list->description += describe(path, listed.size(), all);
  kernels->insert(kernels->end(), std::make_move_iterator(listed.begin()),
                  std::make_move_iterator(listed.end()));
}

}  // namespace

Status check_list_flags(const ListFlags& flags) {
  if (has_work(flags.spec) || !flags.has_list()) {
    if (const auto work = make_work_list(flags.spec); !work) return work.status();
  }
  if (!flags.shard.empty()) {
    if (const auto shard = manifest::parse_shard(flags.shard); !shard) {
      return shard.status().with_context("--shard");
    }
  }
  return parse_targets(flags.archs).status();
}

Result<PrecompileList> make_precompile_list(const ListFlags& flags, Engine& engine) {
  PrecompileList list;
  if (has_work(flags.spec) || !flags.has_list()) {
    if (Status s = add_work(flags, engine, &list); !s) return s;
  }
  if (!flags.has_list() && flags.shard.empty()) return list;

  const Result<std::vector<Target>> targets = parse_targets(flags.archs);
  if (!targets) return targets.status();
  std::vector<ListedKernel> kernels;
  for (const PrecompileJob& job : list.jobs) kernels.emplace_back(job.spec, job.target);
  for (const std::string& path : flags.manifests) {
    Result<manifest::Manifest> read = manifest::load_manifest(path, *targets);
    if (!read) return read.status();
    for (std::string& sentence : read->unsupported) {
      list.unsupported.push_back(std::move(sentence));
    }
    add_listed(path, *targets, std::move(read->kernels), &kernels, &list);
  }
  for (const std::string& path : flags.traces) {
    Result<manifest::Trace> read = manifest::load_trace(path);
    if (!read) return read.status();
    for (std::string& sentence : read->damaged) list.damaged.push_back(std::move(sentence));
    add_listed(path, *targets, std::move(read->kernels), &kernels, &list);
  }
  manifest::sort_unique(&kernels);
  if (!flags.shard.empty()) {
    const Result<manifest::Shard> shard = manifest::parse_shard(flags.shard);
    if (!shard) return shard.status().with_context("--shard");
    const size_t all = kernels.size();
    kernels = manifest::shard_of(kernels, *shard);
    list.description += "shard " + flags.shard + ": " + std::to_string(kernels.size()) + " of " +
                        std::to_string(all) + " kernels\n";
  }
  list.jobs.clear();
  for (const ListedKernel& kernel : kernels) {
    list.jobs.push_back({kernel.spec, kernel.target});
  }
  return list;
}

}  // namespace pagejit::cli
