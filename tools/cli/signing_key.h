// The file of a signing key: the key's seed as 64 hexadecimal digits and a line feed. Whoever can
// read it can sign. Thread-safety: free functions.
#pragma once

#include <memory>
#include <string>

#include "cache/signature.h"
#include "pagejit/status.h"

namespace pagejit::cli {

// Makes a key pair from the system's random numbers and its file, mode 0600; yields the public key.
// kCacheError where the file cannot be made: one that exists is never replaced. kUnsupported where
// there is no libsodium.
Result<cache::PublicKey> make_signing_key(const std::string& path);

// kCacheError where the file cannot be read, kInvalidArgument where it is not one, kUnsupported
// where there is no libsodium. No message holds any part of the seed.
Result<std::unique_ptr<cache::Signer>> read_signing_key(const std::string& path);

}  // namespace pagejit::cli
