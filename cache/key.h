// Key: what names a compiled image: the exact inputs of its compile (S) and the exact compiler (C).
// Not a place for paths, times, host names or environment variables: two machines that compile the
// same text get the same key. Thread-safety: plain values and pure functions.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cache/sha256.h"

namespace pagejit::cache {

// Everything that decides the bytes of an image. Each string may hold any bytes, NUL included.
struct KeyIngredients {
  uint32_t format_version =
      1;             // of the caller's recipe; raise it when the meaning of an image changes
  std::string text;  // the rendered source, whole
  std::vector<std::string> options;  // in the order in which the compiler gets them
  std::string target;                // e.g. "sm_90a", "host"
  std::string parameter_abi;         // how the kernel's parameters lie in memory
  std::string compiler_identity;     // e.g. the compiler's version and build ids
};

struct Key {
  Digest source{};    // S = SHA-256 of format version, text, options, target and parameter ABI
  Digest compiler{};  // C = SHA-256 of the compiler identity

  auto operator<=>(const Key&) const = default;

  // "<64 hex of S>.<first 8 hex of C>": for people, logs and KernelInfo::key.
  std::string name() const;
  // name() + ".pjk": the entry's file. An entry holds the whole of C, so a clash of the 8 digits is
  // found on reading.
  std::string file_name() const;
};

struct KeyHash {
  size_t operator()(const Key& key) const;
};

// S is taken over
//   u64 format version
//   string text
//   u64 number of options, then each option as a string
//   string target
//   string parameter ABI
// where a u64 is 8 bytes little-endian and a string is its length as u64 and then its bytes. A
// reader could parse this back without a doubt at any place, so different ingredients never yield
// the same bytes.
Key make_key(const KeyIngredients& ingredients);

// One line per ingredient (short ones quoted, the text by size and hash), then S, C and the file
// name. Ends in a newline.
std::string explain(const KeyIngredients& ingredients);

}  // namespace pagejit::cache
