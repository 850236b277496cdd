// Entries whose bytes follow from their key, so that any process can tell whether what it read is
// what somebody published. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "cache/disk_cache.h"
#include "cache/entry.h"
#include "cache/key.h"
#include "cache/sha256.h"

namespace pagejit::cache {

// Image and metadata are made from number, size and version; the key from the number alone.
inline Entry stored_entry(int number, size_t image_bytes, int version = 0) {
  KeyIngredients ingredients;
  ingredients.text = "stored " + std::to_string(number);
  ingredients.target = "sm_90a";
  ingredients.compiler_identity = "compiler";
  Entry entry{
      make_key(ingredients),
      std::to_string(number) + " " + std::to_string(image_bytes) + " " + std::to_string(version),
      {}};
  uint32_t state = static_cast<uint32_t>(number) * 2654435761u + static_cast<uint32_t>(version);
  entry.image.reserve(image_bytes);
  while (entry.image.size() < image_bytes) {
    state = state * 1664525u + 1013904223u;  // Numerical Recipes' generator; any would do
    entry.image += static_cast<char>(state >> 24);
  }
  return entry;
}

// Whether an entry is one that stored_entry() makes, judged by its metadata.
inline bool is_stored_entry(const Entry& entry) {
  int number = 0;
  unsigned long long image_bytes = 0;
  int version = 0;
  if (std::sscanf(entry.metadata.c_str(), "%d %llu %d", &number, &image_bytes, &version) != 3) {
    return false;
  }
  return image_bytes <= kMaxEntryBytes && entry == stored_entry(number, image_bytes, version);
}

// A look-up that yielded anything else than a whole entry or a miss.
inline bool is_bad(const LookupResult& result) {
  return result.outcome == LookupOutcome::kCorrupt ||
         (result.outcome == LookupOutcome::kHit && !is_stored_entry(*result.entry));
}

}  // namespace pagejit::cache
