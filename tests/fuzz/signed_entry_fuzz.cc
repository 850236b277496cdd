// check_signed_entry on any bytes: only what the trusted key has signed is trusted, and the entry
// is never more than the bytes without the block. What decodes is signed here and checked again.
#include <string>

#include "cache/entry.h"
#include "tests/fuzz/digest_signer.h"
#include "tests/fuzz/fuzz_check.h"

namespace pagejit::cache {
namespace {

void check(std::string_view bytes) {
  const DigestSigner signer(kTrustedKey);
  const PublicKey trusted[] = {signer.public_key()};
  const DigestVerifier verifier;
  const SignedEntry found = check_signed_entry(bytes, trusted, &verifier);
  const SignatureVerdict verdict = found.signature.verdict;
  FUZZ_CHECK(bytes.starts_with(found.entry));
  FUZZ_CHECK(bytes.size() - found.entry.size() ==
             (verdict == SignatureVerdict::kUnsigned ? 0 : kSignatureBlockBytes));
  FUZZ_CHECK(found.signature.status.is_ok() == (verdict != SignatureVerdict::kInvalid));
  if (verdict == SignatureVerdict::kTrusted) {
    const auto block = sign_entry(found.entry, signer);
    FUZZ_CHECK(block.is_ok() && bytes.ends_with(*block));
  }
  FUZZ_CHECK(check_signed_entry(bytes, {}, &verifier).signature.verdict !=
             SignatureVerdict::kTrusted);
  FUZZ_CHECK(check_signed_entry(bytes, trusted, nullptr).signature.verdict !=
             SignatureVerdict::kTrusted);
  const std::string metadata = unchecked_metadata(found.entry);
  const auto entry = decode_entry(found.entry);
  if (!entry.is_ok()) return;
  FUZZ_CHECK(metadata == entry->metadata && !is_of_other_version(found.entry));

  const auto block = sign_entry(found.entry, signer);
  FUZZ_CHECK(block.is_ok());
  std::string whole = std::string(found.entry) + *block;
  const auto verdict_of = [&] {
    const SignedEntry again = check_signed_entry(whole, trusted, &verifier);
    FUZZ_CHECK(again.entry == found.entry);
    return again.signature.verdict;
  };
  FUZZ_CHECK(verdict_of() == SignatureVerdict::kTrusted);
  whole.back() = static_cast<char>(whole.back() ^ 1);
  FUZZ_CHECK(verdict_of() == SignatureVerdict::kInvalid);
  whole.replace(found.entry.size(), block->size(),
                *sign_entry(found.entry, DigestSigner(kTrustedKey + 1)));
  FUZZ_CHECK(verdict_of() == SignatureVerdict::kUnknownKey);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  check(bytes);
  const auto claimed = claimed_entry_size(bytes);
  if (!claimed || *claimed > size) return 0;
  // Random bytes never have the checksum that they claim.
  const std::string_view view = bytes;
  const Digest digest = sha256({view.substr(0, kEntryChecksumOffset),
                                view.substr(kEntryHeaderBytes, *claimed - kEntryHeaderBytes)});
  bytes.replace(kEntryChecksumOffset, digest.size(), as_bytes(digest));
  check(bytes);
  return 0;
}

}  // namespace pagejit::cache
