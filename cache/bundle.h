// Bundle: many entries in one relocatable file or in memory, looked up by key. Opening reads the
// header and the index only; each entry is read when it is asked for, and checked whole. Nothing is
// ever mapped: a mapped file on NFS that is truncated kills the process. It is never written here
// (bundle_writer.h). Thread-safety: all functions may be called from several threads at once.
//
// Grammar, version 1; integers are little-endian; nothing is aligned or padded:
//
//        offset     bytes  field
//             0         8  magic "PJKBUNDL"
//             8         4  format version = 1
//            12         4  flags = 0
//            16         8  number of entries N, at most kMaxBundleEntries
//            24         8  size of the whole bundle without a signature
//            32        32  SHA-256 of [0, 32) and of the index: the bundle's name
//            64     112 N  index: sorted by (S, C), each pair once; N times
//                              S 32, C 32, offset 8, size 8, the entry's own checksum 32
//                              (its bytes 96..127, see entry.h)
//    64 + 112 N            the entries as entry.h encodes them, in the order of the index, one
//                              directly after the other
//     size - 32        32  SHA-256 of everything before: the closing digest
//          size  0 or 104  signature block (signature.h)
//
// The file ends there. The digest at 32 covers the index, and the index holds a checksum of each
// entry, so that whoever signs those 32 bytes signs everything; the closing digest is for verify()
// and for people with sha256sum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/entry.h"
#include "cache/file_io.h"
#include "cache/key.h"
#include "cache/layer.h"
#include "cache/signature.h"
#include "pagejit/status.h"

namespace pagejit::cache {

inline constexpr uint32_t kBundleFormatVersion = 1;
inline constexpr size_t kBundleHeaderBytes = 64;
inline constexpr size_t kBundleIndexItemBytes = 112;
// 112 MiB of index: some hundred times what the largest fleet was seen to need. It bounds what a
// damaged number can make a reader allocate.
inline constexpr uint64_t kMaxBundleEntries = uint64_t{1} << 20;

struct BundleOptions {
  std::shared_ptr<FileSystem> file_system;            // null = the real one
  std::vector<PublicKey> trusted_keys;                // whose signatures count
  std::shared_ptr<const SignatureVerifier> verifier;  // needed where a trusted key has signed
  bool require_signed = false;                        // refuse what no trusted key has signed
  // Refuse an unsigned file that another user owns or can write. False: only to look at it.
  bool require_private = true;
};

struct BundleItem {
  Key key;
  uint64_t offset = 0;  // bytes from the beginning of the bundle
  uint64_t size = 0;    // bytes
  Digest checksum{};    // the entry's own
};

class Bundle final : public Layer {
 public:
  // Bytes that live longer than the bundle and do not change meanwhile; `name` is for messages.
  //
  // kDataCorrupt: not a bundle, or an invalid signature. kCacheError: not signed by a trusted key
  // where that is required. kUnsupported: a trusted key has signed, and nothing can check that.
  static Result<std::unique_ptr<Bundle>> open_memory(std::string_view bytes,
                                                     const BundleOptions& options = {},
                                                     std::string name = "in memory");
  // A regular file, also through a symbolic link. It must belong to root or to the effective user
  // and be writable by nobody else, or be signed by a trusted key. It stays open; replacing it by a
  // rename changes nothing for this object, and what is changed in place is no longer found. Errors
  // as above; also kCacheError where it cannot be read or is refused for its owner or mode.
  static Result<std::unique_ptr<Bundle>> open_file(const std::string& path,
                                                   const BundleOptions& options = {});
  Bundle(const Bundle&) = delete;
  Bundle& operator=(const Bundle&) = delete;

  std::string description() const override { return "bundle " + name_; }
  LookupResult lookup(const Key& key) override;
  // Reads every entry of that source. Of equally good ones: the smallest C.
  LookupResult lookup_any_compiler(const Digest& source, const IsBetter& is_better) override;

  // What the index says, in its order; reads no entry. index < num_entries().
  size_t num_entries() const { return index_.size() / kBundleIndexItemBytes; }
  BundleItem item(size_t index) const;
  // The entry of one item.
  LookupResult read_item(size_t index) const;

  uint64_t size() const { return size_; }           // bytes, without a signature
  const Digest& digest() const { return digest_; }  // its bytes 32..63
  // kUnsigned, kTrusted or kUnknownKey: another one does not open.
  const SignatureCheck& signature() const { return signature_; }

  // Hands all bytes but a signature to `sink` in pieces and compares the closing digest: only where
  // this returns ok they were the bundle. An error of the sink is passed on.
  using Sink = std::function<Status(std::string_view piece)>;
  Status copy_to(const Sink& sink) const;
  // Reads everything: each entry and the closing digest. kDataCorrupt names the first fault and the
  // number of entries that have one.
  Status verify() const;

 private:
  Bundle(std::string name, const BundleOptions& options);

  Status open(uint64_t file_size, const BundleOptions& options);
  Status check_index() const;
  Status check_trust(const BundleOptions& options) const;
  std::string_view record(size_t index) const;
  size_t lower_bound(std::string_view prefix) const;
  LookupResult read_and_decode(size_t index) const;
  // At most `size` bytes; fewer where the file ends. For a file the bytes lie in *buffer.
  Result<std::string_view> read(uint64_t offset, size_t size, std::string* buffer) const;

  const std::string name_;
  const std::shared_ptr<FileSystem> file_system_;
  FileDescriptor file_;      // not open: in memory
  std::string_view memory_;  // the bytes, where in memory
  // Why the file's owner and mode do not do; ok where they do, and in memory.
  Status not_private_;
  std::string index_storage_;  // of a file
  std::string_view index_;
  uint64_t size_ = 0;
  Digest digest_{};
  SignatureCheck signature_;
};

}  // namespace pagejit::cache
