#include "tools/models/near_words.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace pagejit::models {
namespace {

constexpr size_t kFarthest = 3;  // more edits make another word
constexpr size_t kCharactersPerEdit = 3;

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  // Of the beginnings of `a` with so many characters less two, less one, and all: by those of `b`.
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = last[j] + (a[i] == b[j] ? 0 : 1);
      row[j + 1] = std::min({replaced, row[j] + 1, last[j + 1] + 1});
      const bool is_swap = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (is_swap) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row.back();
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& words) {
  // One edit is forgiven in two characters already: "sl" is "ls".
  const size_t most = std::min(kFarthest, std::max<size_t>(1, word.size() / kCharactersPerEdit));
  if (word.size() < 2) return "";
  std::string best;
  size_t least = most + 1;
  for (const std::string& known : words) {
    const size_t distance = edit_distance(word, known);
    if (distance < least) {
      least = distance;
      best = known;
    }
  }
  if (!best.empty() || word.size() < kCharactersPerEdit) return best;
  const auto longer = std::find_if(words.begin(), words.end(), [&](const std::string& known) {
    return known.starts_with(word);
  });
  return longer == words.end() ? "" : *longer;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& words) {
  const std::string meant = nearest_word(word, words);
  return meant.empty() ? "" : "; did you mean " + meant + "?";
}

}  // namespace pagejit::models
