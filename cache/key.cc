#include "cache/key.h"

#include <cstring>
#include <string_view>

#include "cache/little_endian.h"

namespace pagejit::cache {
namespace {

void append_string(std::string* out, std::string_view text) {
  append_little_endian(out, text.size(), 8);
  out->append(text);
}

// In double quotes, with everything that is not printable ASCII as \xNN, so that a line stays one
// line.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c < 0x20 || c > 0x7e) {
      out += "\\x" + to_hex(std::string_view(&c, 1));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string size_and_hash(std::string_view text) {
  return std::to_string(text.size()) + " bytes, sha256 " + to_hex(sha256({text}));
}

}  // namespace

std::string Key::name() const {
  static constexpr size_t kCompilerHexDigits =
      8;  // enough to tell the few compilers of one site apart
  return to_hex(source) + "." + to_hex(compiler).substr(0, kCompilerHexDigits);
}

std::string Key::file_name() const { return name() + ".pjk"; }

size_t KeyHash::operator()(const Key& key) const {
  // Both are digests, so any of their bytes are well mixed.
  size_t source_bits;
  size_t compiler_bits;
  std::memcpy(&source_bits, key.source.data(), sizeof source_bits);
  std::memcpy(&compiler_bits, key.compiler.data(), sizeof compiler_bits);
  return source_bits ^ compiler_bits;
}

Key make_key(const KeyIngredients& ingredients) {
  std::string bytes;
  bytes.reserve(ingredients.text.size() +
                1024);  // 1024: room for options and ABI without a second allocation
  append_little_endian(&bytes, ingredients.format_version, 8);
  append_string(&bytes, ingredients.text);
  append_little_endian(&bytes, ingredients.options.size(), 8);
  for (const std::string& option : ingredients.options) append_string(&bytes, option);
  append_string(&bytes, ingredients.target);
  append_string(&bytes, ingredients.parameter_abi);
  return Key{.source = sha256({bytes}), .compiler = sha256({ingredients.compiler_identity})};
}

std::string explain(const KeyIngredients& ingredients) {
  const Key key = make_key(ingredients);
  std::string out;
  out += "format version     " + std::to_string(ingredients.format_version) + "\n";
  out += "text               " + size_and_hash(ingredients.text) + "\n";
  out += "options            " + std::to_string(ingredients.options.size()) + "\n";
  for (size_t i = 0; i < ingredients.options.size(); ++i) {
    out += "  option " + std::to_string(i) + "         " + quoted(ingredients.options[i]) + "\n";
  }
  out += "target             " + quoted(ingredients.target) + "\n";
  out += "parameter ABI      " + quoted(ingredients.parameter_abi) + "\n";
  out += "compiler identity  " + quoted(ingredients.compiler_identity) + "\n";
  out += "S                  " + to_hex(key.source) + "\n";
  out += "C                  " + to_hex(key.compiler) + "\n";
  out += "entry              " + key.file_name() + "\n";
  return out;
}

}  // namespace pagejit::cache
