// ConfigReader: bounded, typed access to a config.json. A value of the wrong type or outside its
// range becomes the reader's error, one sentence with the key, the value and what is legal; the
// first error is kept and later reads answer nothing, so that callers read all fields and check
// status() once. Knows nothing of models. Thread-safety: one reader (with its sections) belongs to
// one thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pagejit/status.h"

namespace pagejit::models {

// Hostile input cannot cost more than this: real files stay below 200 KB and 6 levels.
constexpr size_t kMaxConfigBytes = size_t{4} << 20;
constexpr int kMaxConfigDepth = 64;

// Inclusive.
struct IntegerRange {
  int64_t min;
  int64_t max;
};

class ConfigReader {
 public:
  // kInvalidArgument where the text is too long, nested too deep, malformed, or no object.
  static Result<ConfigReader> parse(std::string_view text);

  // The first error of this reader or of a section of it.
  const Status& status() const;

  // A section that must be an object. Absent or null: nothing. Shares status() with this reader.
  std::optional<ConfigReader> section(std::string_view key) const;

  bool is_present(std::string_view key) const;  // null counts
  bool is_null(std::string_view key) const;     // present and null
  bool has_value(std::string_view key) const;   // present and not null
  bool is_list(std::string_view key) const;
  bool is_text(std::string_view key) const;
  bool is_object(std::string_view key) const;

  // The first of `keys` that is present and not null. Nothing where there is none, or on error.
  std::optional<int64_t> integer(std::initializer_list<std::string_view> keys,
                                 IntegerRange range) const;
  std::optional<double> real(std::string_view key) const;  // finite
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;  // at most 10,000 bytes
  std::optional<std::vector<std::string>> text_list(std::string_view key) const;
  std::optional<std::vector<int64_t>> integer_list(std::string_view key, IntegerRange range) const;

  // Records an error of the caller's unless there is one already.
  void fail(std::string message) const;

 private:
  struct Document;
  ConfigReader(std::shared_ptr<Document> document, const void* node, std::string prefix);
  std::string name_of(std::string_view key) const;  // "text_config.head_dim"
  void fail_type(std::string_view key, std::string_view legal) const;

  std::shared_ptr<Document> document_;
  const void* node_;  // an object inside the document
  std::string prefix_;
};

// `text` fit to stand in a sentence: control bytes and invalid UTF-8 escaped, cut after 60 bytes.
std::string printable(std::string_view text);

}  // namespace pagejit::models
