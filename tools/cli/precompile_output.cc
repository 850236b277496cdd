#include "tools/cli/precompile_output.h"

#include <utility>

#include "cache/bundle_writer.h"
#include "runtime/engine/stored_kernel.h"
#include "runtime/engine/tuned_kernel.h"
#include "runtime/metadata.h"

namespace pagejit::cli {
namespace {

Result<cache::Entry> reproducible(cache::Entry entry) {
  Result<std::string> metadata = reproducible_metadata(entry.metadata);
  if (!metadata) return metadata.status();
  entry.metadata = std::move(metadata).value();
  return entry;
}

Result<cache::Entry> reproducible_entry(Engine& engine, const PrecompileJob& job) {
  const Result<StoredKernel> stored = find_stored(engine, job.spec, job.target);
  if (!stored) return stored.status();
  return reproducible(*stored->entry);
}

// The records that would be followed, each with its kernel.
Status add_tuned(Engine& engine, const PrecompileJob& job, cache::BundleWriter* writer) {
  const KernelSpec* spec = std::get_if<KernelSpec>(&job.spec);
  if (spec == nullptr) return {};
  const Result<std::vector<TunedKernel>> tuned = find_tuned(engine, *spec, job.target);
  if (!tuned) return tuned.status();
  for (const TunedKernel& kernel : *tuned) {
    if (!kernel.image || !kernel.found.record.changes_tile()) continue;
    const Result<cache::Entry> image = reproducible(*kernel.image->entry);
    if (!image) return image.status();
    Status status = writer->add(*image);
    if (status) status = writer->add(*kernel.found.entry);
    if (!status) return status;
  }
  return {};
}

}  // namespace

Status write_bundle_of(const std::string& path, Engine& engine,
                       const std::vector<PrecompileOutcome>& outcomes, bool with_tuned) {
  cache::BundleWriter writer;
  for (const PrecompileOutcome& outcome : outcomes) {
    if (!outcome.result || !*outcome.result) {
      return Status(StatusCode::kNotFound,
                    path + ": is not written, since not all of its kernels were made");
    }
    const auto read = [&engine, &job = outcome.job] { return reproducible_entry(engine, job); };
    const Result<cache::Entry> entry = read();
    if (!entry) return entry.status().with_context(path);
    Status status = writer.add(*entry, read);
    if (status && with_tuned) status = add_tuned(engine, outcome.job, &writer);
    if (!status) return status.with_context(path);
  }
  return writer.write_file(path);
}

}  // namespace pagejit::cli
