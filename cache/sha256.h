// SHA-256 (FIPS 180-4) of byte strings, and hexadecimal text. A thin face on OpenSSL, so that only
// sha256.cc includes its header; not a streaming interface, because everything that the cache
// hashes is already in memory. Thread-safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace pagejit::cache {

using Digest = std::array<uint8_t, 32>;

// The digest of the parts written one after another. The parts are not delimited: whoever needs
// that writes lengths.
Digest sha256(std::initializer_list<std::string_view> parts);

// Lower-case hexadecimal, two characters per byte.
std::string to_hex(std::string_view bytes);
std::string to_hex(const Digest& digest);

// The digest's 32 bytes as text; valid as long as `digest` is.
std::string_view as_bytes(const Digest& digest);

}  // namespace pagejit::cache
