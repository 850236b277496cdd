// Leaving out what a kernel does not use: lines between #if, #else and #endif of a template are
// kept or dropped by named switches, so that a rendered source holds no text of other kernels.
// Thread-safety: free functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pagejit/status.h"

namespace pagejit {

// Every switch that templates may name, and whether it is on.
struct TextSwitch {
  std::string_view name;
  bool is_on = false;
};
using TextSwitches = std::vector<TextSwitch>;

// Resolves the conditions of one template line by line. The grammar is the part of the C
// preprocessor's that an editor understands as well: `#if`, `#elif`, `#else`, `#endif` at the
// beginning of a line; a condition is switches, each perhaps negated (`!NAME`), joined by `||` or
// by
// `&&`, not both. Anything else that begins with `#if`, a name without a switch, and an #endif too
// many or too few are errors.
class TextConditions {
 public:
  explicit TextConditions(const TextSwitches& switches) : switches_(switches) {}

  enum class Line {
    kKept,
    kDropped,    // text of a branch that is not taken
    kDirective,  // a condition itself, which is not part of the text either
  };
  // What becomes of the next line. kInternal names what is wrong with it.
  Result<Line> next(std::string_view line);
  // After the last line.
  Status finish() const;

 private:
  struct Branch {
    bool is_taken;   // the lines that follow are kept, as far as the enclosing ones are
    bool was_taken;  // this or an earlier branch of the same #if
    bool is_last;    // #else was there
  };

  bool keeps() const;
  Result<bool> evaluate(std::string_view condition) const;
  Result<bool> value_of(std::string_view name) const;

  const TextSwitches& switches_;
  std::vector<Branch> open_;
};

}  // namespace pagejit
