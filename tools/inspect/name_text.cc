#include "tools/inspect/name_text.h"

#include "tools/models/config_reader.h"

namespace pagejit::inspect {

std::string name_text(std::string_view name) {
  constexpr size_t kPart = 32;  // less than printable() shows
  std::string text;
  for (size_t at = 0; at < name.size(); at += kPart) {
    text += models::printable(name.substr(at, kPart));
  }
  return text;
}

}  // namespace pagejit::inspect
