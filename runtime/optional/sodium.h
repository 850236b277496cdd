// Ed25519 signatures by libsodium, which is opened at run time and never linked: who signs nothing
// needs no such library. Declares the few functions it calls itself, after libsodium's
// crypto_sign.h, whose ABI is the same in libsodium.so.23 (1.0.13 to 1.0.18) and .so.26 (1.0.19 and
// later). Thread-safety: all functions may be called from several threads at once.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cache/signature.h"
#include "pagejit/status.h"

namespace pagejit {

// What a key pair is made from: 32 secret random bytes.
using SigningSeed = std::array<uint8_t, 32>;

// File names for dlopen, tried in order.
std::vector<std::string> sodium_candidates();

// Opens the library at the first signature that it checks, so that making one costs nothing and
// never fails. Where there is none every check is kUnsupported, and names the Debian package.
std::shared_ptr<const cache::SignatureVerifier> make_sodium_verifier(
    std::vector<std::string> candidates = sodium_candidates());

// Signs with the key pair of this seed. kUnsupported where there is no library.
Result<std::unique_ptr<cache::Signer>> make_sodium_signer(
    const SigningSeed& seed, const std::vector<std::string>& candidates = sodium_candidates());

}  // namespace pagejit
