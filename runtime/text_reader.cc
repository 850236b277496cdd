#include "runtime/text_reader.h"

#include <algorithm>
#include <utility>

#include "runtime/format.h"

namespace pagejit {

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

void TextReader::expect(std::string_view text) {
  if (failed()) return;
  if (!rest_.starts_with(text)) return fail(std::string(text));
  rest_.remove_prefix(text.size());
  behind_ = text;
}

std::string TextReader::read_until(char end) {
  if (failed()) return {};
  const size_t size = rest_.find(end);
  if (size == std::string_view::npos) {
    fail(end == '\n' ? "a line feed" : std::string(1, end));
    return {};
  }
  std::string text(rest_.substr(0, size));
  if (text.find_first_of("\r\n") != std::string::npos) {
    fail("no line break");
    return {};
  }
  rest_.remove_prefix(size + 1);
  return text;
}

std::string TextReader::read_bytes(uint64_t count, uint64_t max) {
  if (failed()) return {};
  if (count > max || count > rest_.size()) {
    fail(format("{} more bytes, at most {}", count, max));
    return {};
  }
  std::string bytes(rest_.substr(0, count));
  rest_.remove_prefix(count);
  return bytes;
}

void TextReader::expect_end() {
  if (!failed() && !rest_.empty()) fail("the end");
}

Status TextReader::status() const {
  return failed() ? Status(StatusCode::kDataCorrupt, fault_) : Status::ok();
}

void TextReader::fail(std::string expected) {
  fault_ = format("{}, byte {} of {}: expected \"{}\" behind \"{}\"", what_, size_ - rest_.size(),
                  size_, one_line(std::move(expected)), one_line(behind_));
}

}  // namespace pagejit
