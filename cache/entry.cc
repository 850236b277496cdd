#include "cache/entry.h"

#include <utility>

#include "cache/little_endian.h"

namespace pagejit::cache {
namespace {

constexpr std::string_view kMagic = "PJKENTRY";
constexpr size_t kVersionOffset = 8;
constexpr size_t kFlagsOffset = 12;
constexpr size_t kMetadataSizeOffset = 16;
constexpr size_t kImageSizeOffset = 24;
constexpr size_t kSourceOffset = 32;
constexpr size_t kCompilerOffset = 64;
static_assert(kEntryChecksumOffset + sizeof(Digest) == kEntryHeaderBytes);
// So that the two lengths and the header can be added without overflow once each is known to be at
// most kMaxEntryBytes.
static_assert(kMaxEntryBytes < (size_t{1} << 62));

Status corrupt(Corruption kind, std::string message, Corruption* corruption) {
  if (corruption != nullptr) *corruption = kind;
  return Status(StatusCode::kDataCorrupt, std::move(message));
}

std::string header_before_checksum(const Entry& entry) {
  std::string bytes;
  bytes.reserve(kEntryHeaderBytes);
  bytes += kMagic;
  append_little_endian(&bytes, kEntryFormatVersion, 4);
  append_little_endian(&bytes, 0, 4);  // flags
  append_little_endian(&bytes, entry.metadata.size(), 8);
  append_little_endian(&bytes, entry.image.size(), 8);
  bytes += as_bytes(entry.key.source);
  bytes += as_bytes(entry.key.compiler);
  return bytes;
}

}  // namespace

std::string_view corruption_name(Corruption corruption) {
  switch (corruption) {
    case Corruption::kNotPrivateFile:
      return "not a private file";
    case Corruption::kTruncated:
      return "truncated";
    case Corruption::kMagic:
      return "magic";
    case Corruption::kVersion:
      return "version";
    case Corruption::kLength:
      return "length";
    case Corruption::kTrailingBytes:
      return "trailing bytes";
    case Corruption::kChecksum:
      return "checksum";
    case Corruption::kWrongKey:
      return "wrong key";
  }
  return "unknown corruption";
}

Digest checksum_of(const Entry& entry) {
  return sha256({header_before_checksum(entry), entry.metadata, entry.image});
}

std::optional<Digest> stored_checksum(std::string_view bytes) {
  if (bytes.size() < kEntryHeaderBytes || !bytes.starts_with(kMagic) ||
      load_little_endian(bytes, kVersionOffset, 4) != kEntryFormatVersion) {
    return std::nullopt;
  }
  return digest_at(bytes, kEntryChecksumOffset);
}

bool is_of_other_version(std::string_view bytes) {
  return bytes.starts_with(kMagic) && bytes.size() >= kFlagsOffset &&
         load_little_endian(bytes, kVersionOffset, 4) != kEntryFormatVersion;
}

std::string unchecked_metadata(std::string_view bytes) {
  if (!stored_checksum(bytes)) return {};
  const uint64_t size = load_little_endian(bytes, kMetadataSizeOffset, 8);
  if (size > bytes.size() - kEntryHeaderBytes) return {};
  return std::string(bytes.substr(kEntryHeaderBytes, size));
}

Result<std::string> encode_entry(const Entry& entry) {
  const size_t room = kMaxEntryBytes - kEntryHeaderBytes;
  if (entry.metadata.size() > room || entry.image.size() > room - entry.metadata.size()) {
    return Status(StatusCode::kInvalidArgument,
                  "entry of " + std::to_string(entry.metadata.size()) + " metadata and " +
                      std::to_string(entry.image.size()) + " image bytes: must be at most " +
                      std::to_string(room) + " bytes together");
  }
  std::string bytes;
  bytes.reserve(kEntryHeaderBytes + entry.metadata.size() + entry.image.size());
  bytes += header_before_checksum(entry);
  bytes += as_bytes(sha256({bytes, entry.metadata, entry.image}));
  bytes += entry.metadata;
  bytes += entry.image;
  return bytes;
}

std::optional<uint64_t> claimed_entry_size(std::string_view bytes) {
  if (bytes.size() < kEntryHeaderBytes) return std::nullopt;
  const uint64_t metadata_size = load_little_endian(bytes, kMetadataSizeOffset, 8);
  const uint64_t image_size = load_little_endian(bytes, kImageSizeOffset, 8);
  if (metadata_size > kMaxEntryBytes || image_size > kMaxEntryBytes) return std::nullopt;
  const uint64_t size = kEntryHeaderBytes + metadata_size + image_size;
  return size > kMaxEntryBytes ? std::nullopt : std::optional(size);
}

Result<Entry> decode_entry(std::string_view bytes, Corruption* corruption) {
  if (bytes.size() < kEntryHeaderBytes) {
    return corrupt(Corruption::kTruncated,
                   "entry is truncated: " + std::to_string(bytes.size()) +
                       " bytes, its header alone has " + std::to_string(kEntryHeaderBytes),
                   corruption);
  }
  if (!bytes.starts_with(kMagic)) {
    return corrupt(Corruption::kMagic, "entry does not begin with \"PJKENTRY\"", corruption);
  }
  const uint64_t version = load_little_endian(bytes, kVersionOffset, 4);
  if (version != kEntryFormatVersion) {
    return corrupt(Corruption::kVersion,
                   "entry has format version " + std::to_string(version) + ", not " +
                       std::to_string(kEntryFormatVersion),
                   corruption);
  }
  const uint64_t flags = load_little_endian(bytes, kFlagsOffset, 4);
  if (flags != 0) {
    return corrupt(Corruption::kVersion,
                   "entry has flags " + std::to_string(flags) + ", version 1 has none", corruption);
  }

  const uint64_t metadata_size = load_little_endian(bytes, kMetadataSizeOffset, 8);
  const uint64_t image_size = load_little_endian(bytes, kImageSizeOffset, 8);
  if (metadata_size > kMaxEntryBytes || image_size > kMaxEntryBytes ||
      kEntryHeaderBytes + metadata_size + image_size > kMaxEntryBytes) {
    return corrupt(Corruption::kLength,
                   "entry claims " + std::to_string(metadata_size) + " metadata and " +
                       std::to_string(image_size) + " image bytes, more than the limit of " +
                       std::to_string(kMaxEntryBytes),
                   corruption);
  }
  const uint64_t size = kEntryHeaderBytes + metadata_size + image_size;
  if (bytes.size() != size) {
    const bool too_short = bytes.size() < size;
    return corrupt(
        too_short ? Corruption::kTruncated : Corruption::kTrailingBytes,
        std::string(too_short ? "entry is truncated: " : "entry has bytes after its end: ") +
            std::to_string(bytes.size()) + " bytes, its header says " + std::to_string(size),
        corruption);
  }

  const Digest stored = digest_at(bytes, kEntryChecksumOffset);
  const Digest computed =
      sha256({bytes.substr(0, kEntryChecksumOffset), bytes.substr(kEntryHeaderBytes)});
  if (stored != computed) {
    return corrupt(Corruption::kChecksum,
                   "entry's checksum is " + to_hex(computed) + ", stored is " + to_hex(stored),
                   corruption);
  }

  Entry entry;
  entry.key.source = digest_at(bytes, kSourceOffset);
  entry.key.compiler = digest_at(bytes, kCompilerOffset);
  entry.metadata = bytes.substr(kEntryHeaderBytes, metadata_size);
  entry.image = bytes.substr(kEntryHeaderBytes + metadata_size);
  return entry;
}

Result<Entry> decode_entry(std::string_view bytes, const Key& expected, Corruption* corruption) {
  Result<Entry> entry = decode_entry(bytes, corruption);
  if (entry.is_ok() && entry->key != expected) {
    return corrupt(Corruption::kWrongKey,
                   "entry belongs to key S " + to_hex(entry->key.source) + " C " +
                       to_hex(entry->key.compiler) + ", not to S " + to_hex(expected.source) +
                       " C " + to_hex(expected.compiler),
                   corruption);
  }
  return entry;
}

}  // namespace pagejit::cache
