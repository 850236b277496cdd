#include "tools/cli/precompile_output.h"

#include "runtime/engine/stored_kernel.h"
#include "runtime/metadata.h"

namespace pagejit::cli {

Status write_bundle(const std::string& path, size_t num_entries, const EntrySource& entry) {
  static_cast<void>(num_entries);
  static_cast<void>(entry);
  return Status(StatusCode::kUnsupported,
                "--output " + path + ": this version writes no bundles yet");
}

Result<cache::Entry> without_times(const cache::Entry& entry) {
  Result<KernelMetadata> metadata = parse_metadata(entry.metadata);
  if (!metadata) return metadata.status();
  metadata->compile_us = 0;
  metadata->log.clear();
  cache::Entry result = entry;
  result.metadata = encode_metadata(*metadata);
  return result;
}

Status write_bundle_of(const std::string& path, Engine& engine,
                       const std::vector<PrecompileOutcome>& outcomes) {
  for (const PrecompileOutcome& outcome : outcomes) {
    if (outcome.result && *outcome.result) continue;
    return Status(StatusCode::kNotFound,
                  path + ": is not written, since not all of its kernels were made");
  }
  return write_bundle(path, outcomes.size(), [&](size_t index) -> Result<cache::Entry> {
    const PrecompileJob& job = outcomes[index].job;
    const Result<StoredKernel> stored = find_stored(engine, job.spec, job.target);
    if (!stored) return stored.status();
    return without_times(*stored->entry);
  });
}

}  // namespace pagejit::cli
