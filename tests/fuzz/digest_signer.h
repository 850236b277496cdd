// DigestSigner, DigestVerifier: stand-ins for Ed25519 that need no library: a signature is twice
// the digest of key and message. They protect nothing. Thread-safety: constant.
#pragma once

#include <algorithm>
#include <string_view>

#include "cache/signature.h"

namespace pagejit::cache {

inline Signature digest_signature(std::string_view message, const PublicKey& key) {
  const Digest digest = sha256({as_bytes(key), message});
  Signature signature;
  std::copy(digest.begin(), digest.end(), signature.begin());
  std::copy(digest.begin(), digest.end(), signature.begin() + digest.size());
  return signature;
}

class DigestSigner : public Signer {
 public:
  explicit DigestSigner(uint8_t key) { key_.fill(key); }
  const PublicKey& public_key() const override { return key_; }
  Result<Signature> sign(std::string_view message) const override {
    return digest_signature(message, key_);
  }

 private:
  PublicKey key_{};
};

class DigestVerifier : public SignatureVerifier {
 public:
  Status verify(std::string_view message, const PublicKey& key,
                const Signature& signature) const override {
    if (signature == digest_signature(message, key)) return Status::ok();
    return Status(StatusCode::kDataCorrupt, "has not signed this");
  }
};

// The key that fuzzers and their seeds trust.
inline constexpr uint8_t kTrustedKey = 0x11;

}  // namespace pagejit::cache
