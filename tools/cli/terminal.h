// What is known of where text goes: whether it is a terminal, how wide, and whether it may be
// coloured. The only place of these facts. Thread-safety: plain values and free functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/jit/environment.h"

namespace pagejit::cli {

// The defaults are those of a file or a pipe: nothing is cut and nothing is coloured.
struct Terminal {
  bool is_terminal = false;
  int width = 0;  // columns; 0: as many as the text has
  bool colour = false;
};

// Of an open descriptor. A terminal has COLUMNS columns where that is a positive number, else as
// many as the terminal says, else 80. It is coloured unless NO_COLOR is set and not empty
// (no-color.org) or TERM is "dumb".
Terminal examine_terminal(int fd, const Environment& environment);

enum class Style : uint8_t { kPlain, kTitle, kGood, kWarning, kBad };

// `text` between the terminal's sequences for a style; `text` itself where there are no colours.
std::string styled(const std::string& text, Style style, const Terminal& terminal);

// Terminal columns of UTF-8 text: its characters, each taken as one wide.
int columns_of(const std::string& text);

// At most `width` columns of UTF-8 text; what is cut ends in an ellipsis.
std::string cut_to(const std::string& text, int width);

// Lines of at most `width` columns, broken at blanks; words that are longer stay whole.
std::string wrapped(const std::string& text, int width);

// `text` itself where it goes to no terminal. Else its lines that are wider than the terminal are
// broken at blanks; words that are longer stay whole. What is broken off stands `hang` columns in;
// without: below the last of the columns that the line begins with ("what   text"), or as far in as
// the line itself. Has no sequences of styled().
std::string fitted(const std::string& text, const Terminal& terminal,
                   std::optional<int> hang = std::nullopt);

}  // namespace pagejit::cli
