// Trust: whose signatures count for this engine, as EngineOptions say. Thread-safety: plain values.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/signature.h"
#include "pagejit/options.h"

namespace pagejit {

struct Trust {
  std::vector<cache::PublicKey> keys;
  std::shared_ptr<const cache::SignatureVerifier> verifier;
  bool require_signed = false;

  // The entry's bytes in an answer of a remote, without the signature that may follow them.
  // kDataCorrupt where the signature is wrong, or required and missing or of another key. Only the
  // signature is judged, not the entry.
  Result<std::string_view> open_entry(std::string_view answer) const;
};

// Opens no library yet. kInvalidArgument for a malformed key, and where signatures are required but
// no key is trusted: then nothing could ever be used.
Result<Trust> make_trust(const EngineOptions& options);

}  // namespace pagejit
