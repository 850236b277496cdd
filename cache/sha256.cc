#include "cache/sha256.h"

// The functions of SHA-256 alone: EVP, which OpenSSL prefers since 3.0, would link megabytes of
// providers into the library.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

namespace pagejit::cache {

Digest sha256(std::initializer_list<std::string_view> parts) {
  SHA256_CTX context;
  SHA256_Init(&context);
  for (std::string_view part : parts) {
    if (part.empty()) continue;  // its data() may be null
    SHA256_Update(&context, part.data(), part.size());
  }
  Digest digest;
  SHA256_Final(digest.data(), &context);
  return digest;
}

std::string to_hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string to_hex(const Digest& digest) { return to_hex(as_bytes(digest)); }

std::string_view as_bytes(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace pagejit::cache
