// The word that was probably meant: "did you mean decode?". Thread-safety: free functions without
// state.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pagejit::models {

// Levenshtein's, with swaps: insertions, deletions and replacements of one character, and two
// neighbours in each other's place.
size_t edit_distance(std::string_view a, std::string_view b);

// The first of the nearest of `words`; "" where none is near: three edits at most, and at most one
// for each three characters of `word`, so that short words do not become others. What `word` is the
// beginning of is near too, from three characters on.
std::string nearest_word(std::string_view word, const std::vector<std::string>& words);

// "; did you mean X?", or "" where nothing is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& words);

}  // namespace pagejit::models
