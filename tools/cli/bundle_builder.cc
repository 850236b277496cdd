#include "tools/cli/bundle_builder.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace pagejit::cli {
namespace {

Result<cache::Entry> reproducible(cache::Entry entry) {
  Result<std::string> metadata = reproducible_metadata(entry.metadata);
  if (!metadata) return metadata.status().with_context(entry.key.name());
  entry.metadata = std::move(metadata).value();
  return entry;
}

Status missing(const cache::Key& key) {
  return Status(StatusCode::kCacheError, key.name() + ": was removed while the bundle was written");
}

// The entry of a look-up, or why there is none.
Result<cache::Entry> entry_of(const cache::LookupResult& found, const cache::Key& key) {
  if (found.entry) return *found.entry;
  return found.status ? missing(key) : found.status;
}

}  // namespace

BundleBuilder::BundleBuilder(std::vector<std::string> only_targets)
    : only_targets_(std::move(only_targets)) {}

Status BundleBuilder::add(const cache::Entry& entry, cache::BundleWriter::Reread reread) {
  const Result<KernelMetadata> metadata = parse_metadata(entry.metadata);
  if (!metadata) {
    ++counts_.unknown;
    return Status::ok();
  }
  if (!only_targets_.empty() && std::find(only_targets_.begin(), only_targets_.end(),
                                          metadata->target) == only_targets_.end()) {
    ++counts_.other_targets;
    return Status::ok();
  }
  const Result<cache::Entry> to_add = reproducible(entry);
  if (!to_add) return to_add.status();
  ++counts_.added;
  return writer_.add(*to_add, std::move(reread));
}

Status BundleBuilder::add_entry(const cache::Entry& entry) { return add(entry, nullptr); }

Status BundleBuilder::add_path(const std::string& path) {
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (kind == std::filesystem::file_type::not_found) {
    return Status(StatusCode::kNotFound, path + ": no such cache directory or bundle");
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
    return Status(StatusCode::kNotFound, path + ": must be a cache directory, has no v1 in it");
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
    const auto read = [bundle, i, verbatim]() -> Result<cache::Entry> {
      Result<cache::Entry> entry = entry_of(bundle->read_item(i), bundle->item(i).key);
      return entry && !verbatim ? reproducible(std::move(entry).value()) : entry;
    };
    const Result<cache::Entry> entry = entry_of(bundle->read_item(i), bundle->item(i).key);
    if (!entry) return entry.status();
    if (verbatim) ++counts_.added;
    const Status status = verbatim ? writer_.add(*entry, read) : add(*entry, read);
    if (!status) return status.with_context(path);
  }
  return Status::ok();
}

}  // namespace pagejit::cli
