// decode_entry on any bytes; and again with the checksum made right, which random bytes never have.
#include <cstring>
#include <string>

#include "cache/entry.h"
#include "cache/sha256.h"
#include "tests/fuzz/fuzz_check.h"

namespace {

using pagejit::cache::Corruption;
using pagejit::cache::decode_entry;
using pagejit::cache::Entry;
using pagejit::cache::kEntryHeaderBytes;

void check(std::string_view bytes) {
  Corruption corruption{};
  const pagejit::Result<Entry> entry = decode_entry(bytes, &corruption);
  if (!entry.is_ok()) {
    FUZZ_CHECK(entry.status().code() == pagejit::StatusCode::kDataCorrupt);
    FUZZ_CHECK(!entry.status().message().empty());
    FUZZ_CHECK(corruption != Corruption::kNotPrivateFile && corruption != Corruption::kWrongKey);
    return;
  }
  // There is one way to write an entry.
  const pagejit::Result<std::string> again = encode_entry(*entry);
  FUZZ_CHECK(again.is_ok() && *again == bytes);
  FUZZ_CHECK(decode_entry(bytes, entry->key).is_ok());
  pagejit::cache::Key other = entry->key;
  other.compiler[0] ^= 1;
  FUZZ_CHECK(!decode_entry(bytes, other, &corruption).is_ok());
  FUZZ_CHECK(corruption == Corruption::kWrongKey);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  check(bytes);
  if (size < kEntryHeaderBytes) return 0;
  static constexpr size_t kChecksumOffset = 96;
  const pagejit::cache::Digest digest =
      pagejit::cache::sha256({std::string_view(bytes).substr(0, kChecksumOffset),
                              std::string_view(bytes).substr(kEntryHeaderBytes)});
  std::memcpy(bytes.data() + kChecksumOffset, digest.data(), digest.size());
  check(bytes);
  return 0;
}
