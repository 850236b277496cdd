// A strict text template: {{name}} is replaced by a value. An unknown, unused or unclosed name is
// an error, never an empty string. Thread-safety: free functions without state.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pagejit/status.h"

namespace pagejit {

using TemplateValues = std::vector<std::pair<std::string, std::string>>;

// Every value must be used and every name in the text must have exactly one value; kInternal says
// which and in which line of `file` otherwise. Values are not expanded again.
Result<std::string> expand_template(std::string_view file, std::string_view text,
                                    const TemplateValues& values);

}  // namespace pagejit
