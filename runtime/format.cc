#include "runtime/format.h"

#include <fmt/format.h>

namespace pagejit {

std::string format_arguments(fmt::string_view text, fmt::format_args arguments) {
  return fmt::vformat(text, arguments);
}

}  // namespace pagejit
