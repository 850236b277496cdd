#include "cache/sha256.h"

#include <algorithm>

// The functions of SHA-256 alone: EVP, which OpenSSL prefers since 3.0, would link megabytes of
// providers into the library.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

namespace pagejit::cache {

struct Sha256::Context {
  SHA256_CTX state;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) { SHA256_Init(&context_->state); }

Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) {
  if (bytes.empty()) return;  // its data() may be null
  SHA256_Update(&context_->state, bytes.data(), bytes.size());
}

Digest Sha256::finish() {
  Digest digest;
  SHA256_Final(digest.data(), &context_->state);
  return digest;
}

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

std::optional<Digest> digest_from_hex(std::string_view hex) {
  Digest digest{};
  if (hex.size() != 2 * digest.size()) return std::nullopt;
  for (size_t i = 0; i < hex.size(); ++i) {
    const char c = hex[i];
    int digit;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if (c >= 'a' && c <= 'f') {
      digit = c - 'a' + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = c - 'A' + 10;
    } else {
      return std::nullopt;
    }
    digest[i / 2] = static_cast<uint8_t>(digest[i / 2] << 4 | digit);
  }
  return digest;
}

Digest digest_at(std::string_view bytes, size_t offset) {
  Digest digest;
  std::copy_n(bytes.data() + offset, digest.size(), digest.begin());
  return digest;
}

std::string_view as_bytes(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace pagejit::cache
