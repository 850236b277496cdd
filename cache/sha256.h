// SHA-256 (FIPS 180-4) of byte strings, and hexadecimal text. A thin face on OpenSSL, so that only
// sha256.cc includes its header. Thread-safety: pure functions; a Sha256 belongs to one thread at a
// time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace pagejit::cache {

using Digest = std::array<uint8_t, 32>;

// The digest of the parts written one after another. The parts are not delimited: whoever needs
// that writes lengths.
Digest sha256(std::initializer_list<std::string_view> parts);

// The same for bytes that come piece by piece, e.g. of a file that is larger than memory should be.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::string_view bytes);
  // Of all bytes so far. Call it once, last.
  Digest finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// Lower-case hexadecimal, two characters per byte.
std::string to_hex(std::string_view bytes);
std::string to_hex(const Digest& digest);

// The way back, from 64 digits of either case; nullopt where `hex` is anything else.
std::optional<Digest> digest_from_hex(std::string_view hex);

// The 32 bytes from `offset`; bytes.size() >= offset + 32 is required.
Digest digest_at(std::string_view bytes, size_t offset);

// The digest's 32 bytes as text; valid as long as `digest` is.
std::string_view as_bytes(const Digest& digest);

}  // namespace pagejit::cache
