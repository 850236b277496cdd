#include "runtime/engine/store_layers.h"

#include <string>
#include <utility>

#include "cache/bundle.h"
#include "cache/disk_cache.h"
#include "runtime/format.h"

namespace pagejit {
namespace {

class LayerList {
 public:
  explicit LayerList(const Logger& logger) : logger_(logger) {}

  void add(ImageOrigin origin, const std::string& what,
           Result<std::unique_ptr<cache::Bundle>> bundle) {
    if (!bundle) return leave_out(what, bundle.status());
    logger_.debug(format("{}: {} entries", (*bundle)->description(), (*bundle)->num_entries()));
    layers_.push_back({std::move(bundle).value(), origin});
  }
  void add(const std::string& what, std::unique_ptr<cache::DiskCache> directory) {
    if (directory->is_memory_only()) return leave_out(what, directory->memory_only_reason());
    layers_.push_back({std::move(directory), ImageOrigin::kReadOnlyDirectory});
  }

  std::vector<StoreLayer> take() { return std::move(layers_); }

 private:
  void leave_out(const std::string& what, const Status& status) {
    logger_.warning(format("{} is left out: {}", what, status.message()));
  }

  const Logger& logger_;
  std::vector<StoreLayer> layers_;
};

}  // namespace

std::vector<StoreLayer> open_store_layers(const EngineOptions& options, const Trust& trust,
                                          const Logger& logger,
                                          const std::shared_ptr<cache::FileSystem>& file_system) {
  LayerList list(logger);
  const cache::BundleOptions bundle_options{.file_system = file_system,
                                            .trusted_keys = trust.keys,
                                            .verifier = trust.verifier,
                                            .require_signed = trust.require_signed};
  for (size_t i = 0; i < options.memory_bundles.size(); ++i) {
    const std::string name = format("in memory ({})", i);
    list.add(ImageOrigin::kBundle, "the bundle " + name,
             cache::Bundle::open_memory(options.memory_bundles[i], bundle_options, name));
  }
  for (const std::string& path : options.bundles) {
    list.add(ImageOrigin::kBundle, "the bundle " + path,
             cache::Bundle::open_file(path, bundle_options));
  }
  for (const std::string& path : options.read_only_dirs) {
    cache::DiskCacheOptions directory;
    directory.directory.path = path;
    directory.file_system = file_system;
    directory.read_only = true;
    list.add("the read-only directory " + path, cache::DiskCache::open(std::move(directory)));
  }
  return list.take();
}

}  // namespace pagejit
