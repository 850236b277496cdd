// BundleBuilder: gathers kernels from cache directories and bundles and writes them as one bundle.
// The same kernels give the same bytes, wherever and in how many parts they were compiled.
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cache/bundle_writer.h"
#include "cache/entry.h"
#include "cache/layer.h"
#include "pagejit/status.h"

namespace pagejit::cli {

struct BundleBuilderCounts {
  uint64_t added = 0;          // equal ones counted each time
  uint64_t other_targets = 0;  // left out
  uint64_t corrupt = 0;        // left out; the directory has set them aside
  uint64_t unknown = 0;  // left out: metadata that this version does not read, so that no kernel of
                         // it would be taken from the bundle either
};

class BundleBuilder {
 public:
  // only_targets: as Target::to_string(); empty = all.
  explicit BundleBuilder(std::vector<std::string> only_targets = {});

  // Every kernel of a cache directory (one that holds v1/) or of a bundle. kCacheError where
  // there is none at `path` or it cannot be read, kDataCorrupt for a damaged bundle,
  // kInvalidArgument where it holds another kernel under the key of one that was added.
  Status add_path(const std::string& path);
  // Only bundles, and these byte by byte, whatever their metadata: kDataCorrupt for what is none.
  Status add_bundle_verbatim(const std::string& path);
  // One stored kernel, made reproducible (runtime/metadata.h). `lookup` is called now and again
  // when the bundle is written, so what it looks into must live as long as this object. kNotFound
  // where it finds nothing, else its status.
  using Lookup = std::function<cache::LookupResult()>;
  Status add_stored(const cache::Key& key, Lookup lookup);

  const BundleBuilderCounts& counts() const { return counts_; }
  size_t num_entries() const { return writer_.num_entries(); }

  // As cache::BundleWriter::write_file().
  Status write_file(const std::string& path) const { return writer_.write_file(path); }

 private:
  Status add_directory(const std::string& path);
  Status add_bundle(const std::string& path, bool verbatim);
  Status add_verbatim(const cache::Key& key, const Lookup& lookup);
  Status add(const cache::Entry& entry, cache::BundleWriter::Reread reread);

  const std::vector<std::string> only_targets_;
  BundleBuilderCounts counts_;
  cache::BundleWriter writer_;
};

}  // namespace pagejit::cli
