#include "cache/bundle.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "cache/little_endian.h"

namespace pagejit::cache {
namespace {

constexpr std::string_view kMagic = "PJKBUNDL";
constexpr size_t kVersionOffset = 8;
constexpr size_t kFlagsOffset = 12;
constexpr size_t kCountOffset = 16;
constexpr size_t kSizeOffset = 24;
constexpr size_t kDigestOffset = 32;
static_assert(kDigestOffset + sizeof(Digest) == kBundleHeaderBytes);
// Of an item of the index; S and C come first, in the order in which keys are compared.
constexpr size_t kItemOffsetOffset = 64;
constexpr size_t kItemSizeOffset = 72;
constexpr size_t kItemChecksumOffset = 80;
static_assert(kItemChecksumOffset + sizeof(Digest) == kBundleIndexItemBytes);
constexpr size_t kSmallestBundle = kBundleHeaderBytes + sizeof(Digest);
// So that no sum of sizes of legal entries wraps around.
static_assert(kMaxBundleEntries <= (uint64_t{1} << 20) && kMaxEntryBytes <= (uint64_t{1} << 28));

Status corrupt(std::string message) { return Status(StatusCode::kDataCorrupt, std::move(message)); }

Key key_of(std::string_view record) {
  return Key{.source = digest_at(record, 0), .compiler = digest_at(record, sizeof(Digest))};
}

LookupResult corrupt_entry(Corruption kind, std::string message) {
  LookupResult result;
  result.outcome = LookupOutcome::kCorrupt;
  result.corruption = kind;
  result.status = corrupt(std::move(message));
  return result;
}

LookupResult miss(Status status) {
  LookupResult result;
  result.status = std::move(status);
  return result;
}

}  // namespace

Bundle::Bundle(std::string name, const BundleOptions& options)
    : name_(std::move(name)),
      file_system_(options.file_system ? options.file_system
                                       : std::make_shared<PosixFileSystem>()) {}

Result<std::unique_ptr<Bundle>> Bundle::open_memory(std::string_view bytes,
                                                    const BundleOptions& options,
                                                    std::string name) {
  try {
    std::unique_ptr<Bundle> bundle(new Bundle(std::move(name), options));
    bundle->memory_ = bytes;
    const Status status = bundle->open(bytes.size(), options);
    if (!status) return status.with_context(bundle->description());
    return bundle;
  } catch (const std::exception&) {  // std::bad_alloc
    return Status::out_of_memory();
  }
}

Result<std::unique_ptr<Bundle>> Bundle::open_file(const std::string& path,
                                                  const BundleOptions& options) {
  try {
    std::unique_ptr<Bundle> bundle(new Bundle(path, options));
    FileSystem* const fs = bundle->file_system_.get();
    // O_NONBLOCK: the path might lead to a FIFO, which would block the open for ever.
    const int open_error =
        open_named_file(fs, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, &bundle->file_);
    if (open_error != 0) {
      return IoStatus::failure(open_error, "open bundle " + path).to_status();
    }
    struct stat info;
    if (const int result = fs->stat_fd(bundle->file_.get(), &info); result < 0) {
      return IoStatus::failure(-result, "stat bundle " + path).to_status();
    }
    if (!S_ISREG(info.st_mode)) {
      return Status(StatusCode::kCacheError, "bundle " + path + ": must be a regular file");
    }
    const uid_t user = fs->effective_user();
    if ((info.st_uid != 0 && info.st_uid != user) || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
      bundle->not_private_ = Status(
          StatusCode::kCacheError,
          "must be signed by a trusted key, or belong to root or to user " + std::to_string(user) +
              " and be writable by nobody else: it belongs to user " + std::to_string(info.st_uid) +
              ((info.st_mode & S_IWOTH) != 0   ? " and is writable by everybody"
               : (info.st_mode & S_IWGRP) != 0 ? " and is writable by its group"
                                               : ""));
    }
    const Status status = bundle->open(static_cast<uint64_t>(info.st_size), options);
    if (!status) return status.with_context(bundle->description());
    return bundle;
  } catch (const std::exception&) {  // std::bad_alloc
    return Status::out_of_memory();
  }
}

Result<std::string_view> Bundle::read(uint64_t offset, size_t size, std::string* buffer) const {
  if (!file_.is_open()) return memory_.substr(std::min<uint64_t>(offset, memory_.size()), size);
  const int error = read_range(file_system_.get(), file_.get(), offset, size, buffer);
  if (error != 0) return IoStatus::failure(error, "read " + name_).to_status();
  return std::string_view(*buffer);
}

Status Bundle::open(uint64_t file_size, const BundleOptions& options) {
  const auto truncated = [&](const std::string& what) {
    return corrupt("is truncated: " + std::to_string(file_size) + " bytes, " + what);
  };
  if (file_size < kSmallestBundle) {
    return truncated("the smallest has " + std::to_string(kSmallestBundle));
  }
  std::string header_buffer;
  const Result<std::string_view> header = read(0, kBundleHeaderBytes, &header_buffer);
  if (!header) return header.status();
  if (header->size() != kBundleHeaderBytes) return truncated("its header has 64");
  if (!header->starts_with(kMagic)) return corrupt("does not begin with \"PJKBUNDL\"");
  const uint64_t version = load_little_endian(*header, kVersionOffset, 4);
  if (version != kBundleFormatVersion) {
    return corrupt("has format version " + std::to_string(version) + ", must be " +
                   std::to_string(kBundleFormatVersion));
  }
  if (const uint64_t flags = load_little_endian(*header, kFlagsOffset, 4); flags != 0) {
    return corrupt("has flags " + std::to_string(flags) + ", version 1 has none");
  }

  const uint64_t count = load_little_endian(*header, kCountOffset, 8);
  size_ = load_little_endian(*header, kSizeOffset, 8);
  if (size_ > file_size) return truncated("its header says " + std::to_string(size_));
  const uint64_t tail = file_size - size_;
  if (tail != 0 && tail != kSignatureBlockBytes) {
    return corrupt("has " + std::to_string(tail) +
                   " bytes after its end, where none or a signature of 104 may be");
  }
  if (count > kMaxBundleEntries ||
      kSmallestBundle + count * (kBundleIndexItemBytes + kEntryHeaderBytes) > size_) {
    return corrupt("claims " + std::to_string(count) + " entries in " + std::to_string(size_) +
                   " bytes: at most " + std::to_string(kMaxBundleEntries) +
                   ", and each takes at least " +
                   std::to_string(kBundleIndexItemBytes + kEntryHeaderBytes));
  }

  const Result<std::string_view> index =
      read(kBundleHeaderBytes, count * kBundleIndexItemBytes, &index_storage_);
  if (!index) return index.status();
  if (index->size() != count * kBundleIndexItemBytes) return truncated("its index is longer");
  index_ = *index;
  digest_ = digest_at(*header, kDigestOffset);
  if (sha256({header->substr(0, kDigestOffset), index_}) != digest_) {
    return corrupt("its header or index is damaged: their digest is not " + to_hex(digest_));
  }
  if (Status status = check_index(); !status) return status;

  if (tail != 0) {
    std::string block_buffer;
    const Result<std::string_view> block = read(size_, kSignatureBlockBytes, &block_buffer);
    if (!block) return block.status();
    signature_ = check_signature_block(*block, bundle_message(digest_), options.trusted_keys,
                                       options.verifier.get());
    if (signature_.verdict == SignatureVerdict::kUnsigned) {
      return corrupt("has 104 bytes after its end that are no signature");
    }
  }
  return check_trust(options);
}

Status Bundle::check_index() const {
  uint64_t offset = kBundleHeaderBytes + index_.size();
  for (size_t i = 0; i < num_entries(); ++i) {
    const BundleItem item = this->item(i);
    const auto fault = [&](const std::string& what) {
      return corrupt("item " + std::to_string(i) + " of its index " + what);
    };
    if (i > 0 &&
        record(i - 1).substr(0, kItemOffsetOffset) >= record(i).substr(0, kItemOffsetOffset)) {
      return fault("is not greater than the one before it");
    }
    if (item.offset != offset) {
      return fault("has offset " + std::to_string(item.offset) + ", must be " +
                   std::to_string(offset));
    }
    if (item.size < kEntryHeaderBytes || item.size > kMaxEntryBytes) {
      return fault("has size " + std::to_string(item.size) + ", must be in [" +
                   std::to_string(kEntryHeaderBytes) + ", " + std::to_string(kMaxEntryBytes) + "]");
    }
    offset += item.size;
  }
  if (offset + sizeof(Digest) != size_) {
    return corrupt("its entries end at " + std::to_string(offset) + " and not 32 bytes before " +
                   std::to_string(size_));
  }
  return Status::ok();
}

Status Bundle::check_trust(const BundleOptions& options) const {
  if (signature_.verdict == SignatureVerdict::kInvalid) return signature_.status;
  if (signature_.verdict == SignatureVerdict::kTrusted) return Status::ok();
  if (options.require_signed) {
    return Status(StatusCode::kCacheError,
                  signature_.verdict == SignatureVerdict::kUnknownKey
                      ? "must be signed by a trusted key, is signed by the unknown key " +
                            to_hex(signature_.key)
                      : "must be signed by a trusted key, is not signed");
  }
  return options.require_private ? not_private_ : Status::ok();
}

std::string_view Bundle::record(size_t index) const {
  return index_.substr(index * kBundleIndexItemBytes, kBundleIndexItemBytes);
}

BundleItem Bundle::item(size_t index) const {
  const std::string_view bytes = record(index);
  return BundleItem{.key = key_of(bytes),
                    .offset = load_little_endian(bytes, kItemOffsetOffset, 8),
                    .size = load_little_endian(bytes, kItemSizeOffset, 8),
                    .checksum = digest_at(bytes, kItemChecksumOffset)};
}

// The first item whose beginning is not less than `prefix`, of 32 or 64 bytes.
size_t Bundle::lower_bound(std::string_view prefix) const {
  size_t begin = 0;
  size_t end = num_entries();
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    if (record(middle).substr(0, prefix.size()) < prefix) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

LookupResult Bundle::read_and_decode(size_t index) const {
  const BundleItem item = this->item(index);
  const std::string name = name_ + ": " + item.key.name();
  std::string buffer;
  const Result<std::string_view> bytes = read(item.offset, item.size, &buffer);
  if (!bytes) return miss(bytes.status());
  Corruption kind{};
  Result<Entry> entry = decode_entry(*bytes, item.key, &kind);
  if (!entry) return corrupt_entry(kind, name + ": " + entry.status().message());
  if (digest_at(*bytes, kEntryChecksumOffset) != item.checksum) {
    return corrupt_entry(Corruption::kChecksum, name + ": is not the entry that the index names");
  }
  LookupResult result;
  result.outcome = LookupOutcome::kHit;
  result.entry = std::make_shared<const Entry>(std::move(entry).value());
  return result;
}

LookupResult Bundle::read_item(size_t index) const {
  try {
    return read_and_decode(index);
  } catch (const std::exception&) {  // std::bad_alloc
    return miss(Status::out_of_memory());
  }
}

LookupResult Bundle::lookup(const Key& key) {
  const size_t index = lower_bound(as_bytes(key.source));
  // Few compilers make one source, so the rest is a short walk.
  for (size_t i = index; i < num_entries() && record(i).starts_with(as_bytes(key.source)); ++i) {
    if (record(i).substr(sizeof(Digest)).starts_with(as_bytes(key.compiler))) return read_item(i);
  }
  return LookupResult();
}

LookupResult Bundle::lookup_any_compiler(const Digest& source, const IsBetter& is_better) {
  LookupResult best;
  try {
    for (size_t i = lower_bound(as_bytes(source));
         i < num_entries() && record(i).starts_with(as_bytes(source)); ++i) {
      LookupResult found = read_and_decode(i);
      if (found.outcome == LookupOutcome::kHit
              ? best.outcome != LookupOutcome::kHit ||
                    (is_better && is_better(*found.entry, *best.entry))
              : best.outcome == LookupOutcome::kMiss) {
        best = std::move(found);
      }
    }
  } catch (const std::exception&) {  // std::bad_alloc
    if (best.outcome != LookupOutcome::kHit) best = miss(Status::out_of_memory());
  }
  return best;
}

Status Bundle::copy_to(const Sink& sink) const {
  static constexpr size_t kPieceBytes = size_t{1} << 20;  // few calls, and little memory
  try {
    Sha256 hash;
    std::string buffer;
    const uint64_t end = size_ - sizeof(Digest);
    for (uint64_t offset = 0; offset < end;) {
      const size_t size = std::min<uint64_t>(kPieceBytes, end - offset);
      const Result<std::string_view> piece = read(offset, size, &buffer);
      if (!piece) return piece.status();
      if (piece->size() != size) return corrupt(name_ + ": has been truncated");
      hash.update(*piece);
      if (Status status = sink(*piece); !status) return status;
      offset += size;
    }
    const Digest closing = hash.finish();
    const Result<std::string_view> stored = read(end, sizeof(Digest), &buffer);
    if (!stored) return stored.status();
    if (*stored != as_bytes(closing)) {
      return corrupt(name_ + ": its closing digest is not that of its bytes, " + to_hex(closing));
    }
    return sink(*stored);
  } catch (const std::exception&) {  // std::bad_alloc
    return Status::out_of_memory();
  }
}

Status Bundle::verify() const {
  Status first;
  size_t num_faults = 0;
  for (size_t i = 0; i < num_entries(); ++i) {
    const LookupResult found = read_item(i);
    if (found.outcome == LookupOutcome::kHit) continue;
    if (num_faults++ == 0) first = found.status;
  }
  if (num_faults > 0) {
    return first.with_context(std::to_string(num_faults) + " of " + std::to_string(num_entries()) +
                              " entries fail, the first is");
  }
  return copy_to([](std::string_view) { return Status::ok(); });
}

}  // namespace pagejit::cache
