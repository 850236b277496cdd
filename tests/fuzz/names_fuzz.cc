// Short texts of others: names of files in a cache directory, addresses of remote stores and
// public keys. A name that is taken for one of the cache's is exactly what the cache would write;
// a message holds printable letters and no password.
#include <algorithm>
#include <string>

#include "cache/key.h"
#include "cache/remote_url.h"
#include "cache/signature.h"
#include "cache/stored_files.h"
#include "tests/fuzz/fuzz_check.h"

namespace pagejit::cache {
namespace {

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7f; });
}

void check_refusal(const Status& status) {
  FUZZ_CHECK(status.code() == StatusCode::kInvalidArgument);
  FUZZ_CHECK(!status.message().empty() && is_printable(status.message()));
}

void check_file_name(std::string_view name) {
  const bool is_entry = is_entry_name(name);
  FUZZ_CHECK(is_entry + is_temporary_name(name) + is_shard_name(name) <= 1);
  if (is_temporary_name(name) || is_shard_name(name)) {
    FUZZ_CHECK(is_printable(name) && name.find('/') == name.npos);
  }
  if (!is_entry) return;
  static constexpr size_t kSourceDigits = 64;
  static constexpr size_t kCompilerDigits = 8;
  Key key;
  const auto source = digest_from_hex(name.substr(0, kSourceDigits));
  // Of the compiler's digest the name has the beginning only.
  const auto compiler =
      digest_from_hex(std::string(name.substr(kSourceDigits + 1, kCompilerDigits)) +
                      std::string(kSourceDigits - kCompilerDigits, '0'));
  FUZZ_CHECK(source && compiler);
  key.source = *source;
  key.compiler = *compiler;
  FUZZ_CHECK(key.file_name() == name);
}

void check_url(std::string_view text) {
  const Result<RemoteUrl> url = parse_remote_url(text);
  if (!url) {
    check_refusal(url.status());
    // The text is quoted at the beginning, without what may be a name and a password.
    const size_t quoted = std::string_view("remote \"").size() + without_credentials(text).size();
    FUZZ_CHECK(url.status().message().substr(0, quoted).find('@') == std::string_view::npos);
    return;
  }
  FUZZ_CHECK(is_printable(url->base) && !url->base.ends_with('/'));
  FUZZ_CHECK(url->visible.find('@') == std::string::npos);
  const Result<RemoteUrl> again = parse_remote_url(url->base);
  FUZZ_CHECK(again.is_ok() && again->base == url->base && again->visible == url->visible);
  for (const auto layout :
       {RemoteLayout::kFlat, RemoteLayout::kSubdirectories, RemoteLayout::kBazel}) {
    FUZZ_CHECK(url->of_entry(Key(), layout).starts_with(url->base + "/"));
  }
}

void check_public_key(std::string_view hex) {
  const Result<PublicKey> key = parse_public_key(hex);
  if (!key) return check_refusal(key.status());
  std::string lower(hex);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  }
  FUZZ_CHECK(to_hex(*key) == lower);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_file_name(text);
  check_url(text);
  check_public_key(text);
  return 0;
}

}  // namespace pagejit::cache
