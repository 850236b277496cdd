// Bundle::open_memory on any bytes; and again with the index's digest made right, so that numbers,
// order and offsets are looked at. Whatever opens is read through.
#include <algorithm>
#include <cstring>
#include <string>

#include "cache/bundle.h"
#include "cache/little_endian.h"
#include "cache/sha256.h"
#include "tests/fuzz/fuzz_check.h"

namespace pagejit::cache {
namespace {

void check(std::string_view bytes) {
  const auto opened = Bundle::open_memory(bytes);
  if (!opened.is_ok()) {
    FUZZ_CHECK(!opened.status().message().empty());
    return;
  }
  Bundle& bundle = **opened;
  FUZZ_CHECK(bundle.size() <= bytes.size());
  bool is_whole = true;
  for (size_t i = 0; i < bundle.num_entries(); ++i) {
    const BundleItem item = bundle.item(i);
    FUZZ_CHECK(item.offset <= bytes.size() && item.size <= bytes.size() - item.offset);
    const LookupResult result = bundle.lookup(item.key);
    FUZZ_CHECK(result.outcome != LookupOutcome::kMiss);
    if (result.outcome == LookupOutcome::kCorrupt) is_whole = false;
    FUZZ_CHECK(result.entry == nullptr || result.entry->key == item.key);
    const auto any = [](const Entry&, const Entry&) { return false; };
    const LookupResult some = bundle.lookup_any_compiler(item.key.source, any);
    FUZZ_CHECK(some.entry == nullptr || some.entry->key.source == item.key.source);
  }
  FUZZ_CHECK(!bundle.verify().is_ok() || is_whole);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  check(bytes);
  if (size < kBundleHeaderBytes) return 0;
  static constexpr size_t kDigestOffset = 32;
  static constexpr size_t kNumEntriesOffset = 16;
  const uint64_t num_entries = load_little_endian(bytes, kNumEntriesOffset, 8);
  const uint64_t most = (size - kBundleHeaderBytes) / kBundleIndexItemBytes;
  const size_t index_bytes = std::min(num_entries, most) * kBundleIndexItemBytes;
  const std::string_view view = bytes;
  const Digest digest =
      sha256({view.substr(0, kDigestOffset), view.substr(kBundleHeaderBytes, index_bytes)});
  std::memcpy(bytes.data() + kDigestOffset, digest.data(), digest.size());
  check(bytes);
  return 0;
}

}  // namespace pagejit::cache
