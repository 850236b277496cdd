#include "tools/cli/precompile_output.h"

#include <utility>

#include "cache/bundle_writer.h"
#include "runtime/engine/stored_kernel.h"
#include "runtime/metadata.h"

namespace pagejit::cli {
namespace {

Result<cache::Entry> reproducible_entry(Engine& engine, const PrecompileJob& job) {
  const Result<StoredKernel> stored = find_stored(engine, job.spec, job.target);
  if (!stored) return stored.status();
  cache::Entry entry = *stored->entry;
  Result<std::string> metadata = reproducible_metadata(entry.metadata);
  if (!metadata) return metadata.status();
  entry.metadata = std::move(metadata).value();
  return entry;
}

}  // namespace

Status write_bundle_of(const std::string& path, Engine& engine,
                       const std::vector<PrecompileOutcome>& outcomes) {
  cache::BundleWriter writer;
  for (const PrecompileOutcome& outcome : outcomes) {
    if (!outcome.result || !*outcome.result) {
      return Status(StatusCode::kNotFound,
                    path + ": is not written, since not all of its kernels were made");
    }
    const auto read = [&engine, &job = outcome.job] { return reproducible_entry(engine, job); };
    const Result<cache::Entry> entry = read();
    if (!entry) return entry.status().with_context(path);
    if (Status status = writer.add(*entry, read); !status) return status.with_context(path);
  }
  return writer.write_file(path);
}

}  // namespace pagejit::cli
