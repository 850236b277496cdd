#include "tools/plot/xml_text.h"

#include <cstdint>

namespace pagejit::plot {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD in UTF-8

// Bytes of the character that begins here; 0 where none does. By the table of well-formed UTF-8
// (The Unicode Standard, table 3-7), less U+FFFE and U+FFFF, which XML 1.0 forbids.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) -> uint8_t {
    return i < text.size() ? static_cast<uint8_t>(text[i]) : 0;
  };
  const auto in = [](uint8_t value, int low, int high) { return value >= low && value <= high; };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (in(first, 0xc2, 0xdf)) return in(byte(1), 0x80, 0xbf) ? 2 : 0;
  if (in(first, 0xe0, 0xef)) {
    const int low = first == 0xe0 ? 0xa0 : 0x80;   // no longer than needed
    const int high = first == 0xed ? 0x9f : 0xbf;  // no surrogates
    if (!in(byte(1), low, high) || !in(byte(2), 0x80, 0xbf)) return 0;
    return first == 0xef && byte(1) == 0xbf && byte(2) >= 0xbe ? 0 : 3;
  }
  if (in(first, 0xf0, 0xf4)) {
    const int low = first == 0xf0 ? 0x90 : 0x80;
    const int high = first == 0xf4 ? 0x8f : 0xbf;  // U+10FFFF is the last
    return in(byte(1), low, high) && in(byte(2), 0x80, 0xbf) && in(byte(3), 0x80, 0xbf) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string escape_xml(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t count = character_bytes(text.substr(i));
    const char c = text[i];
    if (count == 0 || (static_cast<uint8_t>(c) < ' ' && c != '\t' && c != '\n')) {
      escaped += kReplacement;
      ++i;
      continue;
    }
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += text.substr(i, count);
    }
    i += count;
  }
  return escaped;
}

}  // namespace pagejit::plot
