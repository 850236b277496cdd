#include "cache/signature.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cache/entry.h"

namespace pagejit::cache {
namespace {

constexpr std::string_view kMagic = "PJKSIGN1";
constexpr size_t kKeyOffset = 8;
constexpr size_t kSignatureOffset = 40;
static_assert(kKeyOffset + sizeof(PublicKey) == kSignatureOffset);
static_assert(kSignatureOffset + sizeof(Signature) == kSignatureBlockBytes);

std::string message_of(std::string_view domain, const Digest& digest) {
  std::string message(domain);
  message += '\0';  // ends the domain, so that none is the beginning of another
  message += as_bytes(digest);
  return message;
}

}  // namespace

std::string_view signature_verdict_name(SignatureVerdict verdict) {
  switch (verdict) {
    case SignatureVerdict::kUnsigned:
      return "unsigned";
    case SignatureVerdict::kTrusted:
      return "trusted";
    case SignatureVerdict::kUnknownKey:
      return "unknown key";
    case SignatureVerdict::kInvalid:
      return "invalid";
  }
  return "unknown verdict";
}

std::string bundle_message(const Digest& digest) { return message_of("pagejit bundle 1", digest); }

std::string entry_message(const Digest& checksum) {
  return message_of("pagejit entry 1", checksum);
}

Result<std::string> make_signature_block(std::string_view message, const Signer& signer) {
  const Result<Signature> signature = signer.sign(message);
  if (!signature) return signature.status();
  std::string block(kMagic);
  block += as_bytes(signer.public_key());
  block.append(signature->begin(), signature->end());
  return block;
}

SignatureCheck check_signature_block(std::string_view block, std::string_view message,
                                     std::span<const PublicKey> trusted_keys,
                                     const SignatureVerifier* verifier) {
  SignatureCheck check;
  if (block.size() != kSignatureBlockBytes || !block.starts_with(kMagic)) return check;
  check.key = digest_at(block, kKeyOffset);
  if (std::find(trusted_keys.begin(), trusted_keys.end(), check.key) == trusted_keys.end()) {
    check.verdict = SignatureVerdict::kUnknownKey;
    return check;
  }
  if (verifier == nullptr) {
    check.status = Status(StatusCode::kUnsupported, "there is nothing to check signatures with");
  } else {
    Signature signature;
    std::copy_n(block.data() + kSignatureOffset, signature.size(), signature.begin());
    check.status = verifier->verify(message, check.key, signature);
  }
  check.status = check.status.with_context("signature by the trusted key " + to_hex(check.key));
  check.verdict = check.status ? SignatureVerdict::kTrusted : SignatureVerdict::kInvalid;
  return check;
}

Result<std::string> sign_entry(std::string_view entry, const Signer& signer) {
  if (entry.size() < kEntryHeaderBytes) {
    return Status(StatusCode::kInvalidArgument, "entry of " + std::to_string(entry.size()) +
                                                    " bytes: has at least " +
                                                    std::to_string(kEntryHeaderBytes));
  }
  return make_signature_block(entry_message(digest_at(entry, kEntryChecksumOffset)), signer);
}

SignedEntry check_signed_entry(std::string_view bytes, std::span<const PublicKey> trusted_keys,
                               const SignatureVerifier* verifier) {
  SignedEntry result{.entry = bytes, .signature = {}};
  const std::optional<uint64_t> size = claimed_entry_size(bytes);
  if (!size || bytes.size() < *size || bytes.size() - *size != kSignatureBlockBytes) return result;
  result.signature = check_signature_block(bytes.substr(*size),
                                           entry_message(digest_at(bytes, kEntryChecksumOffset)),
                                           trusted_keys, verifier);
  // Bytes that are no block belong to what is wrong with the entry.
  if (result.signature.verdict != SignatureVerdict::kUnsigned)
    result.entry = bytes.substr(0, *size);
  return result;
}

Result<PublicKey> parse_public_key(std::string_view hex) {
  if (const std::optional<PublicKey> key = digest_from_hex(hex)) return *key;
  std::string shown(hex.substr(0, 80));  // 80: a line's worth of it
  // A stray byte of the environment shall not reach a terminal.
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c >= 0x7f; }, '?');
  return Status(StatusCode::kInvalidArgument,
                "public key \"" + shown + "\": must be 64 hexadecimal digits");
}

}  // namespace pagejit::cache
