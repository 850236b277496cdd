// The looking half of ImageStore: which layers are asked in which order, and what of theirs is
// taken.
#include <optional>
#include <utility>

#include "generator/families.h"
#include "runtime/engine/image_store.h"
#include "runtime/engine/source_metadata.h"
#include "runtime/engine/stopwatch.h"
#include "runtime/format.h"

namespace pagejit {

const std::vector<StoreLayer>& ImageStore::layers() {
  std::call_once(layers_opened_, [this] {
    if (open_layers_) layers_ = open_layers_();
  });
  return layers_;
}

cache::RemoteStore* ImageStore::remote() {
  std::call_once(remote_opened_, [this] {
    if (open_remote_) remote_ = open_remote_();
    is_remote_open_.store(remote_ != nullptr, std::memory_order_release);
  });
  return remote_.get();
}

// Memory holds what this process has used before, from wherever.
ImageStore::Shared ImageStore::lookup_in_memory(const Wanted& wanted) {
  std::shared_ptr<const cache::Entry> entry = memory_.find(wanted.key);
  if (entry == nullptr) return nullptr;
  Result<KernelMetadata> metadata = parse_metadata(entry->metadata);
  if (!metadata) return nullptr;
  ++hits_[static_cast<size_t>(ImageOrigin::kMemory)];
  return std::make_shared<StoredImage>(
      StoredImage{std::move(entry), std::move(metadata).value(), ImageOrigin::kMemory});
}

ImageStore::Shared ImageStore::lookup_ahead(const Wanted& wanted, const KernelSource& source) {
  if (Shared found = lookup_in_memory(wanted)) return found;
  for (const StoreLayer& place : layers()) {
    if (Shared image = accept(look_in(*place.layer, wanted, source), source, place.origin))
      return image;
  }
  return nullptr;
}

ImageStore::Shared ImageStore::lookup_own(const Wanted& wanted, const KernelSource& source) {
  if (Shared found = lookup_in_memory(wanted)) return found;
  return accept(look_in(*disk_, wanted, source), source, ImageOrigin::kDisk);
}

cache::LookupResult ImageStore::look_in(cache::Layer& layer, const Wanted& wanted,
                                        const KernelSource& source) {
  if (wanted.has_compiler) return layer.lookup(wanted.key);
  // The newest compiler's, of those that are kernels of this library at all.
  const auto is_better = [&](const cache::Entry& a, const cache::Entry& b) {
    const Result<KernelMetadata> x = parse_metadata(a.metadata);
    const Result<KernelMetadata> y = parse_metadata(b.metadata);
    const bool x_fits = x && check_metadata(*x, source);
    const bool y_fits = y && check_metadata(*y, source);
    if (x_fits != y_fits) return x_fits;
    return x_fits && is_newer_compiler(x->compiler, y->compiler);
  };
  return layer.lookup_any_compiler(wanted.key.source, is_better);
}

ImageStore::Shared ImageStore::fetch(const Wanted& wanted, const KernelSource& source) {
  if (remote() == nullptr || !may_cross_network(source.target)) return nullptr;
  Shared image = accept(look_in(*remote_, wanted, source), source, ImageOrigin::kRemote);
  if (image != nullptr) store(*image->entry);
  return image;
}

// An object for the host is code that runs in this process. Anybody can make one that fits a key,
// so it is taken from no server unless it is signed.
bool ImageStore::may_cross_network(const Target& target) const {
  return !target.is_host() || requires_signed_;
}

void ImageStore::store(const cache::Entry& entry) {
  const Status stored = disk_->publish(entry);
  if (!stored && !disk_->is_memory_only()) {
    logger_->info(format("{} was not stored: {}", entry.key.name(), stored.message()));
  }
}

ImageStore::Shared ImageStore::lookup_replacement(const cache::Key& key,
                                                  const StoredImage& rejected,
                                                  const KernelSource& source) {
  const std::shared_ptr<const cache::Entry> in_memory = memory_.find(key);
  if (in_memory != nullptr && in_memory->image != rejected.image()) {
    return lookup_own({key, /*has_compiler=*/true}, source);
  }
  const cache::LookupResult found = disk_->lookup(key);
  const bool is_rejected_one = found.entry != nullptr && found.entry->image == rejected.image();
  return is_rejected_one ? nullptr : accept(found, source, ImageOrigin::kDisk);
}

// A hit is intact, and a host object comes only from where this user or the operator can write (the
// layers have checked what they read), or signed; what is left is whether it is this kernel.
ImageStore::Shared ImageStore::accept(const cache::LookupResult& found, const KernelSource& source,
                                      ImageOrigin origin) {
  const auto warn = [&](const std::string& reason) {
    logger_->warning(format("a stored kernel is not used ({}): {} ({} for {})", origin_name(origin),
                            reason, spec_text(source.config), source.target.to_string()));
  };
  if (found.outcome == cache::LookupOutcome::kCorrupt) {
    warn(found.status.message());
    // The directory counts its own; what a remote sends are failures of it.
    if (origin == ImageOrigin::kBundle || origin == ImageOrigin::kReadOnlyDirectory) {
      ++layers_corrupt_[static_cast<size_t>(found.corruption)];
    }
  }
  if (found.entry == nullptr) return nullptr;
  Result<KernelMetadata> metadata = parse_metadata(found.entry->metadata);
  Status status = metadata ? check_metadata(*metadata, source) : metadata.status();
  if (!status) {
    ++bad_metadata_;
    if (origin == ImageOrigin::kDisk) disk_->reject(*found.entry);
    warn(found.entry->key.name() + ": " + status.message());
    return nullptr;
  }
  ++hits_[static_cast<size_t>(origin)];
  memory_.put(found.entry);
  return std::make_shared<StoredImage>(
      StoredImage{found.entry, std::move(metadata).value(), origin});
}

}  // namespace pagejit
