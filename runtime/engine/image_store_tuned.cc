// The part of ImageStore that looks for tuned records, which lie in the same layers as images.
#include <algorithm>
#include <map>
#include <utility>

#include "runtime/engine/image_store.h"
#include "runtime/format.h"

namespace pagejit {

void ImageStore::take_record(const cache::LookupResult& found, ImageOrigin origin,
                             std::vector<FoundRecord>* records) {
  const auto warn = [&](const std::string& reason) {
    logger_->warning(format("a tuned record is not used ({}): {}", origin_name(origin), reason));
  };
  if (found.outcome == cache::LookupOutcome::kCorrupt) {
    warn(found.status.message());
    if (origin != ImageOrigin::kDisk) ++layers_corrupt_[static_cast<size_t>(found.corruption)];
  }
  if (found.entry == nullptr) return;
  Result<TunedRecord> record = parse_tuned_record(*found.entry);
  if (!record) {
    ++bad_metadata_;
    if (origin == ImageOrigin::kDisk) disk_->reject(*found.entry);
    return warn(record.status().message());
  }
  records->push_back({found.entry, std::move(record).value()});
}

std::vector<FoundRecord> ImageStore::find_records(std::string_view spec, const Target& target,
                                                  std::string_view device) {
  const cache::Key key = tuned_record_key(spec, target.to_string(), device);
  std::vector<FoundRecord> records;
  for (const StoreLayer& place : layers()) {
    take_record(place.layer->lookup(key), place.origin, &records);
  }
  take_record(disk_->lookup(key), ImageOrigin::kDisk, &records);
  return records;
}

std::vector<FoundRecord> ImageStore::find_records(std::string_view spec, const Target& target) {
  // All records of a spec and target have one S, and a layer shows every valid entry of it to
  // whoever chooses among them.
  const cache::Digest source = tuned_record_key(spec, target.to_string(), "").source;
  std::vector<FoundRecord> records;
  const auto look_in = [&](cache::Layer& layer, ImageOrigin origin) {
    std::map<cache::Key, std::shared_ptr<const cache::Entry>> seen;
    const auto keep = [&](const cache::Entry& entry) {
      seen.try_emplace(entry.key, std::make_shared<const cache::Entry>(entry));
    };
    cache::LookupResult best =
        layer.lookup_any_compiler(source, [&](const cache::Entry& a, const cache::Entry& b) {
          keep(a);
          keep(b);
          return false;
        });
    if (best.entry != nullptr) {
      keep(*best.entry);
    } else {
      take_record(best, origin, &records);
    }
    for (const auto& [key, entry] : seen) {
      const auto same = [&wanted = key](const FoundRecord& other) {
        return other.entry->key == wanted;
      };
      if (std::any_of(records.begin(), records.end(), same)) continue;  // of an earlier layer
      take_record({.outcome = cache::LookupOutcome::kHit, .entry = entry, .status = {}}, origin,
                  &records);
    }
  };
  for (const StoreLayer& place : layers()) look_in(*place.layer, place.origin);
  look_in(*disk_, ImageOrigin::kDisk);
  return records;
}

}  // namespace pagejit
