#include "tools/cli/find_entry.h"

#include <algorithm>
#include <vector>

#include "cache/sha256.h"

namespace pagejit::cli {

bool begins_key(const std::string& text) {
  constexpr const char* kHexDigits = "0123456789abcdef";
  const size_t digits = std::min(text.find_first_not_of(kHexDigits), text.size());
  if (digits == text.size()) return !text.empty();
  return digits == 2 * sizeof(cache::Digest) && text[digits] == '.' &&
         text.find_first_not_of(kHexDigits, digits + 1) == std::string::npos;
}

Result<std::string> find_entry(cache::CacheMaintenance& directory, const std::string& key) {
  const Result<std::vector<cache::ListedEntry>> entries = directory.list(/*with_metadata=*/false);
  if (!entries) return entries.status();
  std::vector<std::string> found;
  for (const cache::ListedEntry& entry : *entries) {
    if (entry.file_name.starts_with(key)) found.push_back(entry.file_name);
  }
  if (found.size() == 1) return found.front();
  return Status(StatusCode::kNotFound, "key \"" + key + "\": " + std::to_string(found.size()) +
                                           " entries of " + directory.path() +
                                           " begin with it; must be one");
}

}  // namespace pagejit::cli
