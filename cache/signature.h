// Signatures of bundles and of entries: the block that holds one, what exactly is signed, and the
// faces of whoever signs and checks. No cryptography here: runtime/optional/sodium.h has it.
// Thread-safety: plain values and pure functions; a verifier allows calls from several threads.
//
// The block, 104 bytes, directly after what it signs:
//
//   offset  bytes  field
//        0      8  magic "PJKSIGN1"
//        8     32  the signer's Ed25519 public key (RFC 8032)
//       40     64  the Ed25519 signature of the message
//
// The message is short, because it holds a digest of the rest:
//   of an entry:   "pagejit entry 1" and a zero byte, then the entry's checksum (its bytes 96..127)
//   of a bundle:   "pagejit bundle 1" and a zero byte, then the bundle's bytes 32..63
// so that the one is never taken for the other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cache/sha256.h"
#include "pagejit/status.h"

namespace pagejit::cache {

inline constexpr size_t kSignatureBlockBytes = 104;

using PublicKey = std::array<uint8_t, 32>;
using Signature = std::array<uint8_t, 64>;

class SignatureVerifier {
 public:
  virtual ~SignatureVerifier() = default;
  // Ok: this key's owner has signed the message. kDataCorrupt: has not. Any other code: it could
  // not be checked, e.g. kUnsupported where the library for it is missing.
  virtual Status verify(std::string_view message, const PublicKey& key,
                        const Signature& signature) const = 0;
};

class Signer {
 public:
  virtual ~Signer() = default;
  virtual const PublicKey& public_key() const = 0;
  virtual Result<Signature> sign(std::string_view message) const = 0;
};

enum class SignatureVerdict : uint8_t {
  kUnsigned = 0,
  kTrusted = 1,     // signed by one of the trusted keys
  kUnknownKey = 2,  // carries a signature of another key; it was not checked, since it says nothing
  kInvalid = 3,     // names a trusted key, but the signature is wrong or could not be checked
};

// E.g. "unknown key". Never null.
std::string_view signature_verdict_name(SignatureVerdict verdict);

struct SignatureCheck {
  SignatureVerdict verdict = SignatureVerdict::kUnsigned;
  PublicKey key{};  // of the block; zeros where kUnsigned
  Status status;    // of the verifier; not ok exactly where kInvalid
};

// What is signed of a bundle, whose bytes 32..63 are `digest`, and of an entry with that checksum.
std::string bundle_message(const Digest& digest);
std::string entry_message(const Digest& checksum);

// The 104 bytes. The errors are the signer's.
Result<std::string> make_signature_block(std::string_view message, const Signer& signer);

// Judges a block of 104 bytes; kUnsigned where it is no block at all. verifier: may be null, and
// then a signature by a trusted key counts as one that could not be checked (kUnsupported).
SignatureCheck check_signature_block(std::string_view block, std::string_view message,
                                     std::span<const PublicKey> trusted_keys,
                                     const SignatureVerifier* verifier);

struct SignedEntry {
  std::string_view entry;  // the bytes without the block
  SignatureCheck signature;
};

// The block for an encoded entry. kInvalidArgument where the bytes are too short to be one.
Result<std::string> sign_entry(std::string_view entry, const Signer& signer);

// Splits an entry's bytes from the block that may follow them and judges the block. The signature
// covers the entry's checksum only, so that the caller must also decode_entry(). Bytes that are no
// entry with or without a block come back whole, as kUnsigned: decode_entry() says what is wrong.
SignedEntry check_signed_entry(std::string_view bytes, std::span<const PublicKey> trusted_keys,
                               const SignatureVerifier* verifier);

// 64 hexadecimal digits of either case. kInvalidArgument says what is wrong.
// (to_hex() of sha256.h is the way back.)
Result<PublicKey> parse_public_key(std::string_view hex);

}  // namespace pagejit::cache
