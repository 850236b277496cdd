// Layer: a place that entries are looked up in: a bundle, a directory, a remote. The store asks its
// layers in order (runtime/engine/image_store.h). Thread-safety: all functions of a layer may be
// called from several threads at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cache/entry.h"
#include "cache/key.h"
#include "pagejit/status.h"

namespace pagejit::cache {

enum class LookupOutcome : uint8_t { kHit = 0, kMiss = 1, kCorrupt = 2 };

struct LookupResult {
  LookupOutcome outcome = LookupOutcome::kMiss;
  std::shared_ptr<const Entry> entry;                   // not null exactly on a hit
  Corruption corruption = Corruption::kNotPrivateFile;  // meaningful where outcome is kCorrupt
  // kCorrupt: kDataCorrupt. kMiss: ok where there simply is no entry, else the reason: kCacheError,
  // or kInternal where memory ran out.
  Status status;
};

// Whether the first of two entries for one source is to be preferred to the second. The cache does
// not read metadata, so whoever asks says what is newer.
using IsBetter = std::function<bool(const Entry& a, const Entry& b)>;

class Layer {
 public:
  virtual ~Layer() = default;
  // For logs: "bundle /opt/kernels.pjb", "directory /usr/share/pagejit".
  virtual std::string description() const = 0;
  // Reads the entry whole and checks all of it.
  virtual LookupResult lookup(const Key& key) = 0;
  // The best valid entry for S from whatever compiler: for a machine that has none. Of entries that
  // are equally good the same one on each call.
  virtual LookupResult lookup_any_compiler(const Digest& source, const IsBetter& is_better) = 0;
};

}  // namespace pagejit::cache
