#include "tools/cli/find_entry.h"

#include <vector>

namespace pagejit::cli {

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
