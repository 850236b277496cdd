#include "tools/cli/bundle_builder.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "cache/bundle.h"
#include "cache/disk_cache.h"
#include "runtime/metadata.h"
#include "runtime/tuned_record.h"

namespace pagejit::cli {
namespace {

Result<cache::Entry> reproducible(cache::Entry entry) {
  if (is_tuned_record(entry.metadata)) return entry;  // measured: what it says is what it is for
  Result<std::string> metadata = reproducible_metadata(entry.metadata);
  if (!metadata) return metadata.status().with_context(entry.key.name());
  entry.metadata = std::move(metadata).value();
  return entry;
}

// The entry of a look-up, or why there is none.
Result<cache::Entry> entry_of(const cache::LookupResult& found, const cache::Key& key) {
  if (found.entry) return *found.entry;
  if (!found.status) return found.status;
  return Status(StatusCode::kNotFound, key.name() + ": there is no such kernel (any more)");
}

}  // namespace

BundleBuilder::BundleBuilder(std::vector<std::string> only_targets)
    : only_targets_(std::move(only_targets)) {}

Status BundleBuilder::add(const cache::Entry& entry, cache::BundleWriter::Reread reread) {
  std::string target;
  if (const Result<KernelMetadata> metadata = parse_metadata(entry.metadata)) {
    target = metadata->target;
  } else if (const Result<TunedRecord> record = parse_tuned_record(entry)) {
    target = record->target;
  } else {
    ++counts_.unknown;
    return Status::ok();
  }
  if (!only_targets_.empty() &&
      std::find(only_targets_.begin(), only_targets_.end(), target) == only_targets_.end()) {
    ++counts_.other_targets;
    return Status::ok();
  }
  const Result<cache::Entry> to_add = reproducible(entry);
  if (!to_add) return to_add.status();
  ++counts_.added;
  return writer_.add(*to_add, std::move(reread));
}

Status BundleBuilder::add_stored(const cache::Key& key, Lookup lookup) {
  const Result<cache::Entry> entry = entry_of(lookup(), key);
  if (!entry) return entry.status();
  return add(*entry, [key, lookup = std::move(lookup)]() -> Result<cache::Entry> {
    Result<cache::Entry> again = entry_of(lookup(), key);
    return again ? reproducible(std::move(again).value()) : again;
  });
}

Status BundleBuilder::add_verbatim(const cache::Key& key, const Lookup& lookup) {
  const auto read = [key, lookup] { return entry_of(lookup(), key); };
  const Result<cache::Entry> entry = read();
  if (!entry) return entry.status();
  ++counts_.added;
  return writer_.add(*entry, read);
}

Status BundleBuilder::add_path(const std::string& path) {
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (kind == std::filesystem::file_type::not_found) {
    return Status(StatusCode::kCacheError, path + ": no such cache directory or bundle");
  }
  if (kind == std::filesystem::file_type::directory) return add_directory(path);
  return add_bundle(path, /*verbatim=*/false);
}

Status BundleBuilder::add_bundle_verbatim(const std::string& path) {
  return add_bundle(path, /*verbatim=*/true);
}

Status BundleBuilder::add_directory(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path + "/v1", error)) {
    return Status(StatusCode::kCacheError, path + ": must be a cache directory, has no v1 in it");
  }
  cache::DiskCacheOptions options;
  options.directory = {path, "", "--from"};
  const std::shared_ptr<cache::DiskCache> directory = cache::DiskCache::open(std::move(options));
  const auto listing = directory->for_each_entry([&](const cache::Entry& entry) {
    return add(entry, [directory, key = entry.key]() -> Result<cache::Entry> {
      Result<cache::Entry> again = entry_of(directory->lookup(key), key);
      return again ? reproducible(std::move(again).value()) : again;
    });
  });
  if (!listing) return listing.status().with_context(path);
  counts_.corrupt += listing->corrupt;
  return Status::ok();
}

Status BundleBuilder::add_bundle(const std::string& path, bool verbatim) {
  Result<std::unique_ptr<cache::Bundle>> opened = cache::Bundle::open_file(path);
  if (!opened) return opened.status();
  const std::shared_ptr<const cache::Bundle> bundle = std::move(opened).value();
  for (size_t i = 0; i < bundle->num_entries(); ++i) {
    const cache::Key key = bundle->item(i).key;
    const auto lookup = [bundle, i] { return bundle->read_item(i); };
    const Status status = verbatim ? add_verbatim(key, lookup) : add_stored(key, lookup);
    if (!status) return status.with_context(path);
  }
  return Status::ok();
}

}  // namespace pagejit::cli
