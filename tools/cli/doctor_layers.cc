// The places beside the cache directory that kernels are looked for in.
#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "cache/bundle.h"
#include "cache/disk_cache.h"
#include "runtime/engine/remote.h"
#include "runtime/engine/trust.h"
#include "runtime/metadata.h"
#include "runtime/target_ladder.h"
#include "runtime/tuned_record.h"
#include "tools/cli/doctor_checks.h"
#include "tools/cli/text_table.h"
#include "tools/models/config_reader.h"

namespace pagejit::cli {
namespace {

// For how many of its kernels there is a GPU, and for which GPU there is none.
void examine_coverage(const std::string& path, cache::Bundle& bundle, const std::vector<int>& sms,
                      DoctorReport& report) {
  std::map<std::string, size_t> by_target;
  size_t num_records = 0;  // of tuned choices
  for (size_t i = 0; i < bundle.num_entries(); ++i) {
    const cache::LookupResult found = bundle.read_item(i);
    const Result<KernelMetadata> metadata =
        found.entry ? parse_metadata(found.entry->metadata)
                    : Result<KernelMetadata>(Status(StatusCode::kDataCorrupt, "damaged"));
    if (found.entry && is_tuned_record(found.entry->metadata)) {
      ++num_records;
      continue;
    }
    ++by_target[metadata ? models::printable(metadata->target) : "damaged or of another version"];
  }
  std::string text = path + ": " + format_kernels(bundle.num_entries() - num_records);
  nlohmann::json counts = nlohmann::json::object();
  for (const auto& [target, count] : by_target) {
    text += ", " + std::to_string(count) + " for " + target;
    counts[target] = count;
  }
  if (num_records > 0) text += ", " + format_count_of(num_records, "tuned choice", "tuned choices");
  std::string uncovered;
  for (const int sm : std::set<int>(sms.begin(), sms.end())) {
    const bool is_covered = std::any_of(by_target.begin(), by_target.end(), [&](const auto& item) {
      const Result<Target> target = parse_target(item.first);
      return target && runs_on(*target, sm);
    });
    if (!is_covered) {
      uncovered +=
          (uncovered.empty() ? "" : ", ") + std::to_string(sm / 10) + "." + std::to_string(sm % 10);
    }
  }
  const nlohmann::json values = {{"path", path}, {"kernels", counts}};
  if (uncovered.empty()) return report.ok("bundle", text, values);
  report.warning("bundle", text + "; none for this machine's GPUs of " + uncovered,
                 "precompile for their targets too (see the GPUs above)", values);
}

}  // namespace

void examine_bundles(const EngineOptions& options, const std::vector<int>& sms,
                     DoctorReport& report) {
  const Result<Trust> trust = make_trust(options);
  if (!trust) {
    return report.problem("bundle", trust.status().message(), "correct the keys that are trusted");
  }
  const cache::BundleOptions bundle_options{.file_system = nullptr,
                                            .trusted_keys = trust->keys,
                                            .verifier = trust->verifier,
                                            .require_signed = trust->require_signed};
  for (const std::string& path : options.bundles) {
    const auto bundle = cache::Bundle::open_file(path, bundle_options);
    if (bundle) {
      examine_coverage(path, **bundle, sms, report);
    } else {
      report.warning("bundle", path + ": " + bundle.status().message(),
                     "it is left out: correct the path or the file, or remove it");
    }
  }
}

void examine_read_only_dirs(const EngineOptions& options, DoctorReport& report) {
  for (const std::string& path : options.read_only_dirs) {
    cache::DiskCacheOptions directory;
    directory.directory.path = path;
    directory.read_only = true;
    const auto opened = cache::DiskCache::open(std::move(directory));
    if (opened->is_memory_only()) {
      report.warning("read-only directory", opened->memory_only_reason().message(),
                     "it is left out: only root or you may own and write it; correct the path, or "
                     "remove it");
    } else {
      report.ok("read-only directory", path, {{"path", path}});
    }
  }
}

void examine_remote(const EngineOptions& options, DoctorReport& report,
                    std::shared_ptr<cache::HttpTransport> transport) {
  if (options.remote.empty()) return;
  const std::string url = cache::without_credentials(options.remote);
  const auto remote =
      make_remote(options, {.logger = std::make_shared<Logger>(LogLevel::kOff, nullptr),
                            .check_signature = {},
                            .compilers = {},
                            .transport = std::move(transport)});
  if (!remote) {
    return report.problem("remote", remote.status().message(), "correct PAGEJIT_REMOTE");
  }
  // A key that no kernel has: what counts is that the server answers.
  const auto begin = std::chrono::steady_clock::now();
  const cache::LookupResult answer = (*remote)->lookup(cache::Key());
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - begin;
  const bool is_safe = options.remote.starts_with("https://") || options.require_signed;
  if (!answer.status) {
    report.warning("remote", url + ": " + answer.status.message(),
                   "kernels that it has are compiled here; see that it runs and can be reached");
  } else if (!is_safe) {
    report.warning("remote", url + ": answers, but is neither encrypted nor are its kernels signed",
                   "who sits between can put in code: use https, or PAGEJIT_TRUSTED_KEYS with "
                   "PAGEJIT_REQUIRE_SIGNED=1");
  } else {
    report.ok("remote", url + ": answers in " + format_ms(elapsed.count()) + " ms",
              {{"url", url}, {"ms", elapsed.count()}});
  }
}

}  // namespace pagejit::cli
