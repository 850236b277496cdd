#include "tools/models/config_reader.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

namespace pagejit::models {
namespace {

using Json = nlohmann::json;

// No field that is read holds a longer text or list; layer lists have one item per layer.
constexpr size_t kMaxTextBytes = 10000;
constexpr size_t kMaxListItems = 10000;

const Json& json_of(const void* node) { return *static_cast<const Json*>(node); }

// The parser itself does not recurse, but readers of the tree might: the depth is bounded before
// anything is built.
bool is_nested_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxConfigDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

std::string describe(const Json& value) {
  return printable(value.dump(-1, ' ', true, Json::error_handler_t::replace));
}

}  // namespace

struct ConfigReader::Document {
  Json root;
  Status status;
};

ConfigReader::ConfigReader(std::shared_ptr<Document> document, const void* node, std::string prefix)
    : document_(std::move(document)), node_(node), prefix_(std::move(prefix)) {}

Result<ConfigReader> ConfigReader::parse(std::string_view text) {
  if (text.size() > kMaxConfigBytes) {
    return Status(StatusCode::kInvalidArgument, "the file has " + std::to_string(text.size()) +
                                                    " bytes: a config.json has at most " +
                                                    std::to_string(kMaxConfigBytes));
  }
  if (is_nested_too_deep(text)) {
    return Status(StatusCode::kInvalidArgument, "the file nests more than " +
                                                    std::to_string(kMaxConfigDepth) +
                                                    " levels deep: a config.json does not");
  }
  auto document = std::make_shared<Document>();
  try {
    document->root = Json::parse(text);
  } catch (const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..." without the bracket.
    std::string_view what = error.what();
    if (const size_t end = what.find("] "); end != std::string_view::npos)
      what.remove_prefix(end + 2);
    std::string reason;
    for (const char c : what) reason += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    return Status(StatusCode::kInvalidArgument, "not valid JSON: " + reason.substr(0, 300));
  }
  if (!document->root.is_object()) {
    return Status(StatusCode::kInvalidArgument, "the file holds a JSON " +
                                                    std::string(document->root.type_name()) +
                                                    ": a config.json holds an object");
  }
  const void* node = &document->root;
  return ConfigReader(std::move(document), node, "");
}

const Status& ConfigReader::status() const { return document_->status; }

void ConfigReader::fail(std::string message) const {
  if (document_->status) {
    document_->status = Status(StatusCode::kInvalidArgument, std::move(message));
  }
}

std::string ConfigReader::name_of(std::string_view key) const { return prefix_ + std::string(key); }

void ConfigReader::fail_type(std::string_view key, std::string_view legal) const {
  fail(name_of(key) + " " + describe(*json_of(node_).find(key)) + ": must be " +
       std::string(legal));
}

std::optional<ConfigReader> ConfigReader::section(std::string_view key) const {
  if (!has_value(key)) return std::nullopt;
  const Json& value = *json_of(node_).find(key);
  if (!value.is_object()) {
    fail_type(key, "an object");
    return std::nullopt;
  }
  return ConfigReader(document_, &value, name_of(key) + ".");
}

bool ConfigReader::is_present(std::string_view key) const {
  return json_of(node_).find(key) != json_of(node_).end();
}

bool ConfigReader::is_null(std::string_view key) const {
  const auto it = json_of(node_).find(key);
  return it != json_of(node_).end() && it->is_null();
}

bool ConfigReader::has_value(std::string_view key) const {
  return is_present(key) && !is_null(key);
}

bool ConfigReader::is_list(std::string_view key) const {
  const auto it = json_of(node_).find(key);
  return it != json_of(node_).end() && it->is_array();
}

bool ConfigReader::is_text(std::string_view key) const {
  const auto it = json_of(node_).find(key);
  return it != json_of(node_).end() && it->is_string();
}

bool ConfigReader::is_object(std::string_view key) const {
  const auto it = json_of(node_).find(key);
  return it != json_of(node_).end() && it->is_object();
}

namespace {

std::string range_text(IntegerRange range) {
  return "an integer in [" + std::to_string(range.min) + ", " + std::to_string(range.max) + "]";
}

bool integer_in_range(const Json& value, IntegerRange range, int64_t* out) {
  if (!value.is_number_integer()) return false;
  // Above INT64_MAX the parser keeps an unsigned number, which a signed read would wrap.
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    return false;
  }
  *out = value.get<int64_t>();
  return *out >= range.min && *out <= range.max;
}

}  // namespace

std::optional<int64_t> ConfigReader::integer(std::initializer_list<std::string_view> keys,
                                             IntegerRange range) const {
  for (const std::string_view key : keys) {
    if (!has_value(key)) continue;
    int64_t value = 0;
    if (integer_in_range(*json_of(node_).find(key), range, &value)) return value;
    fail_type(key, range_text(range));
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> ConfigReader::real(std::string_view key) const {
  if (!has_value(key)) return std::nullopt;
  const Json& value = *json_of(node_).find(key);
  if (value.is_number() && std::isfinite(value.get<double>())) return value.get<double>();
  fail_type(key, "a finite number");
  return std::nullopt;
}

std::optional<bool> ConfigReader::boolean(std::string_view key) const {
  if (!has_value(key)) return std::nullopt;
  const Json& value = *json_of(node_).find(key);
  if (value.is_boolean()) return value.get<bool>();
  fail_type(key, "true or false");
  return std::nullopt;
}

std::optional<std::string> ConfigReader::text(std::string_view key) const {
  if (!has_value(key)) return std::nullopt;
  const Json& value = *json_of(node_).find(key);
  if (value.is_string() && value.get_ref<const std::string&>().size() <= kMaxTextBytes) {
    return value.get<std::string>();
  }
  fail_type(key, "a string of at most " + std::to_string(kMaxTextBytes) + " bytes");
  return std::nullopt;
}

std::optional<std::vector<std::string>> ConfigReader::text_list(std::string_view key) const {
  if (!has_value(key)) return std::nullopt;
  const Json& value = *json_of(node_).find(key);
  bool legal = value.is_array() && value.size() <= kMaxListItems;
  std::vector<std::string> items;
  for (size_t i = 0; legal && i < value.size(); ++i) {
    legal = value[i].is_string();
    if (legal) items.push_back(value[i].get<std::string>());
  }
  if (legal) return items;
  fail_type(key, "a list of at most " + std::to_string(kMaxListItems) + " strings");
  return std::nullopt;
}

std::optional<std::vector<int64_t>> ConfigReader::integer_list(std::string_view key,
                                                               IntegerRange range) const {
  if (!has_value(key)) return std::nullopt;
  const Json& value = *json_of(node_).find(key);
  bool legal = value.is_array() && value.size() <= kMaxListItems;
  std::vector<int64_t> items;
  for (size_t i = 0; legal && i < value.size(); ++i) {
    items.push_back(0);
    legal = integer_in_range(value[i], range, &items.back());
  }
  if (legal) return items;
  fail_type(key,
            "a list of at most " + std::to_string(kMaxListItems) + " times " + range_text(range));
  return std::nullopt;
}

std::string printable(std::string_view text) {
  constexpr size_t kShown = 60;
  std::string out;
  for (size_t i = 0; i < text.size() && i < kShown; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte < 0x7f) {
      out += static_cast<char>(byte);
    } else {
      char escaped[5];
      std::snprintf(escaped, sizeof(escaped), "\\x%02x", byte);
      out += escaped;
    }
  }
  if (text.size() > kShown) out += "...";
  return out;
}

}  // namespace pagejit::models
