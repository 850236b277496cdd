#include "tools/inspect/source_map.h"

#include <charconv>

namespace pagejit::inspect {
namespace {

// `#line 12 "attention/work.cuh"`.
bool parse_directive(std::string_view text, int* line, std::string* file) {
  constexpr std::string_view kLine = "#line ";
  if (!text.starts_with(kLine)) return false;
  const char* begin = text.data() + kLine.size();
  const char* end = text.data() + text.size();
  const auto number = std::from_chars(begin, end, *line);
  if (number.ec != std::errc()) return false;
  const std::string_view rest(number.ptr, static_cast<size_t>(end - number.ptr));
  const size_t open = rest.find('"');
  const size_t close = rest.rfind('"');
  if (open != std::string_view::npos && close > open)
    *file = rest.substr(open + 1, close - open - 1);
  return true;
}

}  // namespace

SourceMap::SourceMap(std::string_view source) {
  std::string file;
  int line = 1;
  for (size_t at = 0; at < source.size();) {
    const size_t end = std::min(source.find('\n', at), source.size());
    const std::string_view text = source.substr(at, end - at);
    if (!parse_directive(text, &line, &file)) {
      places_[file].emplace(line++, static_cast<int>(lines_.size()));
    }
    lines_.push_back(text);
    at = end + 1;
  }
}

int SourceMap::find(std::string_view file, int line) const {
  // The longest name that ends the path at a slash.
  for (size_t at = 0; at <= file.size();) {
    if (const auto found = places_.find(file.substr(at)); found != places_.end()) {
      const auto place = found->second.find(line);
      return place == found->second.end() ? -1 : place->second;
    }
    const size_t slash = file.find('/', at);
    if (slash == std::string_view::npos) break;
    at = slash + 1;
  }
  return -1;
}

}  // namespace pagejit::inspect
