#include "runtime/jit/environment.h"

#include <cstdlib>

namespace pagejit {

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

namespace jit {

std::vector<std::string> split_path_list(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const size_t colon = list.find(':');
    const std::string_view part = list.substr(0, colon);
    if (!part.empty()) parts.emplace_back(part);
    list.remove_prefix(colon == std::string_view::npos ? list.size() : colon + 1);
  }
  return parts;
}

}  // namespace jit
}  // namespace pagejit
