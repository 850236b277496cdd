// From the places that line information names back to the lines of a rendered source, by its #line
// directives. Thread-safety: a value.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pagejit::inspect {

class SourceMap {
 public:
  explicit SourceMap(std::string_view source);

  // The lines of the source, without line breaks.
  const std::vector<std::string_view>& lines() const { return lines_; }

  // The index in lines() of a line of a file, as a compiler names it: with the folder that it ran
  // in before the directive's path. -1 where the source has no such line.
  int find(std::string_view file, int line) const;

 private:
  std::vector<std::string_view> lines_;
  // By the file's name in the directive; "" before the first directive.
  std::map<std::string, std::map<int, int>, std::less<>> places_;
};

}  // namespace pagejit::inspect
