// Entry: one compiled image with its key and the runtime's metadata, as one string of bytes. Not a
// file: see disk_cache.h. Grammar, version 1; integers are little-endian; nothing is aligned,
// padded or optional:
//
//   offset  bytes  field
//        0      8  magic "PJKENTRY"
//        8      4  format version = 1
//       12      4  flags = 0
//       16      8  metadata size M
//       24      8  image size I
//       32     32  S, the key's source digest
//       64     32  C, the key's compiler digest
//       96     32  SHA-256 of every other byte of the entry: [0, 96) and [128, end)
//      128      M  metadata, opaque here
//    128+M      I  image
//    128+M+I       end; nothing follows
//
// Thread-safety: plain values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cache/key.h"
#include "pagejit/status.h"

namespace pagejit::cache {

inline constexpr uint32_t kEntryFormatVersion = 1;
inline constexpr size_t kEntryHeaderBytes = 128;
inline constexpr size_t kEntryChecksumOffset = 96;
// No compiler output comes near this (cubins: 20-80 KB, checked host objects: a few MB); it bounds
// what a damaged length or a stray file can make a reader allocate.
inline constexpr size_t kMaxEntryBytes = size_t{256} << 20;

struct Entry {
  Key key;
  std::string metadata;
  std::string image;

  bool operator==(const Entry&) const = default;
};

// Why stored bytes are not the entry that was asked for. The order of the checks is the order here.
enum class Corruption : uint8_t {
  kNotPrivateFile =
      0,           // not a regular file, not ours, or writable by others (found by the disk cache)
  kTruncated = 1,  // shorter than its header or than the lengths in it
  kMagic = 2,
  kVersion = 3,        // another format version, or unknown flags
  kLength = 4,         // lengths that no entry can have
  kTrailingBytes = 5,  // longer than the lengths say
  kChecksum = 6,
  kWrongKey = 7,  // a valid entry, but of another key
};
inline constexpr size_t kNumCorruptions = 8;

// E.g. "trailing bytes". Never null.
std::string_view corruption_name(Corruption corruption);

// kInvalidArgument where the entry would exceed kMaxEntryBytes.
Result<std::string> encode_entry(const Entry& entry);

// The size that the header says, checking nothing else; nullopt where that is none or there is no
// whole header. For entries that something follows.
std::optional<uint64_t> claimed_entry_size(std::string_view bytes);
// The checksum that encode_entry() writes for this entry.
Digest checksum_of(const Entry& entry);

// The checksum that stands in an entry's header, compared with nothing; nullopt where the bytes are
// fewer than a header or do not begin as this version's entries do. Bytes behind the header are not
// looked at.
std::optional<Digest> stored_checksum(std::string_view bytes);

// For tools, from the first bytes of a file, without any checksum: whether they are the beginning
// of an entry of another format version, and the metadata of one of this version ("" where they are
// not, or where it does not end within them).
bool is_of_other_version(std::string_view bytes);
std::string unchecked_metadata(std::string_view bytes);

// Checks everything but the key. kDataCorrupt says in a sentence what is wrong; `corruption`, if
// not null, is then set.
Result<Entry> decode_entry(std::string_view bytes, Corruption* corruption = nullptr);

// The same, and the entry must be that of `expected`.
Result<Entry> decode_entry(std::string_view bytes, const Key& expected,
                           Corruption* corruption = nullptr);

}  // namespace pagejit::cache
