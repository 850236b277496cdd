// TextReader: reads what the library has written of itself (metadata of kernels, tuned records)
// from front to back. It remembers the first fault and then does nothing, so that its user asks
// once, at the end. Any bytes are legal input. Thread-safety: one thread at a time.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "pagejit/status.h"

namespace pagejit {

// Line breaks become blanks, so that a text is one line.
std::string one_line(std::string text);

class TextReader {
 public:
  // what: as it stands in the fault, "kernel metadata". Both must outlive this.
  TextReader(const char* what, std::string_view rest)
      : what_(what), size_(rest.size()), rest_(rest) {}

  void expect(std::string_view text);
  // Up to `end`, which is taken too, without line breaks before it. Empty where it fails.
  std::string read_until(char end);
  // The same as a decimal number without leading zeros, at most `max`. 0 where it fails.
  template <class Value>
  Value read_number(char end, Value max = std::numeric_limits<Value>::max()) {
    const std::string text = read_until(end);
    if (failed()) return 0;
    Value value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_canonical = text.size() == 1 || !text.starts_with('0');
    if (error != std::errc() || stop != text.data() + text.size() || !is_canonical || value > max) {
      fail("a number up to " + std::to_string(max));
      return 0;
    }
    return value;
  }
  // Exactly `count` bytes, which must be at most `max`.
  std::string read_bytes(uint64_t count, uint64_t max);
  void expect_end();

  bool failed() const { return !fault_.empty(); }
  // kDataCorrupt with the place and what was expected there.
  Status status() const;

 private:
  void fail(std::string expected);

  const char* what_;
  size_t size_;
  std::string_view rest_;
  std::string behind_;  // what was expected last, and was there
  std::string fault_;
};

}  // namespace pagejit
