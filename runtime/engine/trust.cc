#include "runtime/engine/trust.h"

#include <utility>

#include "runtime/format.h"
#include "runtime/optional/sodium.h"

namespace pagejit {

Result<std::string_view> Trust::open_entry(std::string_view answer) const {
  const cache::SignedEntry opened = cache::check_signed_entry(answer, keys, verifier.get());
  const cache::SignatureVerdict verdict = opened.signature.verdict;
  if (verdict == cache::SignatureVerdict::kInvalid) {
    return Status(StatusCode::kDataCorrupt,
                  "its signature does not hold: " + opened.signature.status.message());
  }
  if (require_signed && verdict != cache::SignatureVerdict::kTrusted) {
    return Status(StatusCode::kDataCorrupt,
                  format("it must be signed by a trusted key; it is {}",
                         verdict == cache::SignatureVerdict::kUnsigned ? "not signed"
                                                                       : "signed by another key"));
  }
  return opened.entry;
}

Result<Trust> make_trust(const EngineOptions& options) {
  Trust trust;
  for (const std::string& text : options.trusted_keys) {
    Result<cache::PublicKey> key = cache::parse_public_key(text);
    if (!key) return key.status().with_context("trusted_keys (PAGEJIT_TRUSTED_KEYS)");
    trust.keys.push_back(*key);
  }
  trust.require_signed = options.require_signed;
  if (trust.require_signed && trust.keys.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "require_signed (PAGEJIT_REQUIRE_SIGNED) without trusted_keys "
                  "(PAGEJIT_TRUSTED_KEYS): no bundle and no remote entry could be used");
  }
  if (!trust.keys.empty()) trust.verifier = make_sodium_verifier();
  return trust;
}

}  // namespace pagejit
