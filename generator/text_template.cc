#include "generator/text_template.h"

#include <algorithm>

namespace pagejit {
namespace {

Status bad(std::string_view file, size_t line, const std::string& what) {
  return Status(StatusCode::kInternal,
                "template " + std::string(file) + ":" + std::to_string(line) + ": " + what);
}

}  // namespace

Result<std::string> expand_template(std::string_view file, std::string_view text,
                                    const TemplateValues& values) {
  std::vector<bool> used(values.size(), false);
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (values[i].first == values[j].first) {
        return bad(file, 1, "value \"" + values[i].first + "\" is given twice");
      }
    }
  }
  std::string out;
  out.reserve(text.size());
  size_t position = 0;
  while (true) {
    const size_t open = text.find("{{", position);
    out += text.substr(position, open == std::string_view::npos ? open : open - position);
    if (open == std::string_view::npos) break;
    const auto line = [&] {  // for errors only: counting reads all that stands before
      return 1 + static_cast<size_t>(std::count(
                     text.begin(), text.begin() + static_cast<std::ptrdiff_t>(open), '\n'));
    };
    const size_t close = text.find("}}", open);
    const std::string_view name =
        text.substr(open + 2, close == std::string_view::npos ? close : close - open - 2);
    if (close == std::string_view::npos || name.find_first_of("\n{") != std::string_view::npos) {
      return bad(file, line(), "a name is opened and not closed");
    }
    const auto value =
        std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == name; });
    if (value == values.end())
      return bad(file, line(), "no value for \"" + std::string(name) + "\"");
    used[static_cast<size_t>(value - values.begin())] = true;
    out += value->second;
    position = close + 2;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (!used[i]) return bad(file, 1, "value \"" + values[i].first + "\" is not used");
  }
  return out;
}

}  // namespace pagejit
