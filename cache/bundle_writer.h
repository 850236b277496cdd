// BundleWriter: gathers entries in any order and writes them as one bundle (bundle.h). The same
// entries give the same bytes, whatever their order and however they were gathered; whoever wants
// that adds entries without times in their metadata. Not for changing a bundle: a new one is
// written. Thread-safety: one thread at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "cache/bundle.h"
#include "cache/entry.h"
#include "cache/file_system.h"
#include "cache/key.h"
#include "cache/signature.h"
#include "pagejit/status.h"

namespace pagejit::cache {

class BundleWriter {
 public:
  // Yields an entry once more, as it was when it was added.
  using Reread = std::function<Result<Entry>()>;

  // file_system: null = the real one.
  explicit BundleWriter(std::shared_ptr<FileSystem> file_system = nullptr);

  // An entry that is equal to one that was added before is ignored. With `reread` only the key, the
  // size and the checksum are kept, and the entry is asked for when the bundle is written; without
  // it the bytes are kept. kInvalidArgument: another entry has the same key, the entry is too
  // large, or there are kMaxBundleEntries already.
  Status add(const Entry& entry, Reread reread = nullptr);

  size_t num_entries() const { return entries_.size(); }

  // Hands the bundle to `sink` piece by piece. The errors are those of the sink and of `reread`;
  // kCacheError where an entry is no longer what it was.
  Status write_to(const Bundle::Sink& sink) const;
  // Under `path` the bundle is whole or not at all: it is written beside it under another name,
  // synced and renamed. Mode 0644 less the umask. What stands there is replaced, but only a regular
  // file or a symbolic link (the link itself). kCacheError with the reason.
  Status write_file(const std::string& path) const;

 private:
  struct Item {
    uint64_t size = 0;  // bytes of the encoded entry
    Digest checksum{};
    std::string bytes;  // of the encoded entry, where it is not read again
    Reread reread;
  };

  static Result<std::string> bytes_of(const Key& key, const Item& item);

  std::shared_ptr<FileSystem> file_system_;
  std::map<Key, Item> entries_;  // in the order of the index
};

// Replaces the file at `path`, which is open as `bundle`, by the same bundle with the signer's
// signature, as write_file() does. All of the bundle is verified before. An earlier signature is
// dropped. Errors: kDataCorrupt, kCacheError, the signer's.
Status sign_bundle(const Bundle& bundle, const std::string& path, const Signer& signer,
                   FileSystem* file_system);

}  // namespace pagejit::cache
