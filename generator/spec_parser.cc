#include "generator/spec_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <utility>

#include "generator/families.h"
#include "generator/spec_fields.h"
#include "generator/spec_text.h"
#include "pagejit/cascade.h"
#include "pagejit/sparse_attention.h"

namespace pagejit {
namespace {

constexpr std::string_view kFamilies[] = {"attention",       "merge_states",    "cache_write",
                                          "copy_blocks",     "gather_cache",    "convert_float8",
                                          "mla_cache_write", "index_key_write", "index_key_gather",
                                          "top_k",           "index_logits"};
static_assert(std::size(kFamilies) == std::variant_size_v<AnySpec>);

// Words of a text are shown in messages up to this length: the longest that is legal has 23 bytes.
constexpr size_t kShownBytes = 60;

std::string shown(std::string_view word) {
  std::string text = "\"";
  for (const char c : word.substr(0, kShownBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte < 0x20 || byte > 0x7e ? '?' : c;
  }
  return text + (word.size() > kShownBytes ? "...\"" : "\"");
}

// "rows, vllm or ds_mla".
template <class Names>
std::string alternatives(const Names& names, std::string_view last = " or ") {
  std::string text;
  for (size_t i = 0; i < std::size(names); ++i) {
    if (i > 0) text += i + 1 == std::size(names) ? last : ", ";
    text += names[i];
  }
  return text;
}

template <class Enum, size_t kCount>
Status read_name(std::string_view field, std::string_view text,
                 const std::string_view (&names)[kCount], Enum* value) {
  const auto* name = std::find(std::begin(names), std::end(names), text);
  if (name == std::end(names)) return must_be(field, shown(text), alternatives(names));
  *value = static_cast<Enum>(name - std::begin(names));
  return {};
}

Status read_value(std::string_view field, std::string_view text, int* value) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return must_be(field, shown(text), "a whole number");
  *value = number;
  return {};
}
Status read_value(std::string_view field, std::string_view text, bool* value) {
  if (text != "0" && text != "1") return must_be(field, shown(text), "0 or 1");
  *value = text == "1";
  return {};
}
Status read_value(std::string_view field, std::string_view text, DataType* value) {
  // Its sentence shows the text as it is.
  if (text.size() > kShownBytes || shown(text).substr(1, text.size()) != text) {
    return must_be(field, shown(text), "a data type");
  }
  const Result<DataType> type = parse_data_type(text);
  if (!type) return type.status().with_context(field);
  *value = *type;
  return {};
}
Status read_value(std::string_view field, std::string_view text, QueryLengths* value) {
  if (text == "one") text = kQueriesNames[static_cast<size_t>(QueryLengths::kOne)];
  return read_name(field, text, kQueriesNames, value);
}
Status read_value(std::string_view field, std::string_view text, Causality* value) {
  return read_name(field, text, kCausalityNames, value);
}
Status read_value(std::string_view field, std::string_view text, KvTable* value) {
  return read_name(field, text, kTableNames, value);
}
Status read_value(std::string_view field, std::string_view text, KvLayout* value) {
  return read_name(field, text, kLayoutNames, value);
}
Status read_value(std::string_view field, std::string_view text, KvScale* value) {
  return read_name(field, text, kScaleNames, value);
}
Status read_value(std::string_view field, std::string_view text, RopeStyle* value) {
  return read_name(field, text, kRopeNames, value);
}
Status read_value(std::string_view field, std::string_view text, MlaFormat* value) {
  return read_name(field, text, kMlaFormatNames, value);
}

template <class Spec>
const SpecField<Spec>* find_field(std::string_view name, bool also_members) {
  for (const SpecField<Spec>& field : fields_of<Spec>()) {
    if (!name.empty() && field.name == name) return &field;
    if (also_members && field.member == name) return &field;
  }
  return nullptr;
}

template <class Spec>
std::string field_list(bool with_first_word) {
  std::vector<std::string_view> names;
  for (const SpecField<Spec>& field : fields_of<Spec>()) {
    if (!field.name.empty() || with_first_word)
      names.push_back(field.name.empty() ? field.member : field.name);
  }
  return alternatives(names, " and ");
}

template <class Spec>
Status set_field(Spec& spec, const SpecField<Spec>& field, std::string_view name,
                 std::string_view value) {
  return std::visit([&](auto pointer) { return read_value(name, value, &(spec.*pointer)); },
                    field.pointer);
}

// The words of a text with their places.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  // The next word; "" at the end.
  std::string_view peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return text_.substr(at_, text_.find(' ', at_) - at_);
  }
  void take() { at_ += peek().size(); }
  std::string place() const { return "byte " + std::to_string(at_); }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

// "name=value" words into fields until `is_end(word)`, which the end of the text always is.
template <class Set, class IsEnd>
Status read_fields(Words& words, const Set& set, const IsEnd& is_end) {
  std::vector<std::string_view> seen;
  while (true) {
    const std::string_view word = words.peek();
    if (word.empty() || is_end(word)) return {};
    const size_t equals = word.find('=');
    Status status;
    if (equals == std::string_view::npos) {
      status = invalid_spec("spec word " + shown(word) + ": must be field=value");
    } else {
      const std::string_view name = word.substr(0, equals);
      status = set(name, word.substr(equals + 1));
      if (status && std::find(seen.begin(), seen.end(), name) != seen.end()) {
        status = invalid_spec("spec field " + shown(name) + ": given twice");
      }
      seen.push_back(name);
    }
    if (!status) return status.with_context(words.place());
    words.take();
  }
}

// How a text of the family begins; nothing where no family's does.
Result<AnySpec> begin_spec(std::string_view first) {
  const auto* queries = std::find(std::begin(kQueriesNames), std::end(kQueriesNames), first);
  if (queries != std::end(kQueriesNames)) {
    return AnySpec(
        KernelSpec{.queries = static_cast<QueryLengths>(queries - std::begin(kQueriesNames))});
  }
  if (first != kFamilies[0]) {
    if (Result<AnySpec> spec = default_spec(first); spec) return spec;
  }
  const std::string kinds = alternatives(kQueriesNames, ", ") + ", " +
                            alternatives(std::span(kFamilies).subspan(1), " and ");
  return invalid_spec("spec kind " + shown(first) + ": legal are " + kinds);
}

Result<AnySpec> parse_words(Words words) {
  Result<AnySpec> spec = begin_spec(words.peek());
  if (!spec) return spec.status().with_context(words.place());
  words.take();
  Status status = std::visit(
      [&]<class Spec>(Spec& any) {
        return read_fields(
            words,
            [&](std::string_view name, std::string_view value) {
              const SpecField<Spec>* field = find_field<Spec>(name, false);
              if (field != nullptr) return set_field(any, *field, name, value);
              return invalid_spec("spec field " + shown(name) + ": legal are " +
                                  field_list<Spec>(false));
            },
            [](std::string_view) { return false; });
      },
      *spec);
  if (status) status = validate_any(*spec);
  if (!status) return status;
  return spec;
}

Result<KernelSpec> parse_attention(Words words) {
  const std::string_view first = words.peek();
  if (std::find(std::begin(kQueriesNames), std::end(kQueriesNames), first) ==
      std::end(kQueriesNames)) {
    if (first.empty()) {
      return invalid_spec("spec \"\": must begin with its kind, " + alternatives(kQueriesNames));
    }
    return invalid_spec("spec kind " + shown(first) + ": legal are " +
                        alternatives(kQueriesNames, " and "))
        .with_context(words.place());
  }
  const Result<AnySpec> spec = parse_words(words);
  if (!spec) return spec.status();
  return std::get<KernelSpec>(*spec);
}

Result<std::vector<AnySpec>> parse_cascade(Words words) {
  const Result<KernelSpec> attention = parse_attention(words);
  if (!attention) return attention.status();
  const CascadeSpec spec = {*attention};
  if (Status s = validate(spec); !s) return s;
  const CascadeParts parts = cascade_parts(spec);
  return std::vector<AnySpec>{parts.prefix, parts.suffix, parts.merge};
}

Result<std::vector<AnySpec>> parse_sparse_attention(Words words) {
  SparseAttentionSpec spec;
  const Status status = read_fields(
      words,
      [&](std::string_view name, std::string_view value) {
        if (name == "index_num_heads") return read_value(name, value, &spec.index_num_heads);
        if (name == "index_head_size") return read_value(name, value, &spec.index_head_size);
        if (name == "contiguous_index_keys") {
          return read_value(name, value, &spec.contiguous_index_keys);
        }
        return invalid_spec("spec field " + shown(name) +
                            ": legal before the attention are index_num_heads, index_head_size and "
                            "contiguous_index_keys");
      },
      [](std::string_view word) { return word.find('=') == std::string_view::npos; });
  if (!status) return status;
  const Result<KernelSpec> attention = parse_attention(words);
  if (!attention) return attention.status();
  spec.attention = *attention;
  if (Status s = validate(spec); !s) return s;
  const SparseAttentionParts parts = sparse_attention_parts(spec);
  return std::vector<AnySpec>{parts.logits, parts.top_k, parts.attention};
}

}  // namespace

std::span<const std::string_view> family_names() { return kFamilies; }

std::string_view family_name(const AnySpec& spec) { return kFamilies[spec.index()]; }

Result<AnySpec> default_spec(std::string_view family) {
  static constexpr auto kDefaults = []<size_t... kIndex>(std::index_sequence<kIndex...>) {
    return std::array<AnySpec (*)(), sizeof...(kIndex)>{
        [] { return AnySpec(std::in_place_index<kIndex>); }...};
  }
  (std::make_index_sequence<std::size(kFamilies)>());
  const auto* name = std::find(std::begin(kFamilies), std::end(kFamilies), family);
  if (name != std::end(kFamilies))
    return kDefaults[static_cast<size_t>(name - std::begin(kFamilies))]();
  return invalid_spec("family " + shown(family) + ": legal are " +
                      alternatives(kFamilies, " and "));
}

Status set_spec_field(AnySpec& spec, std::string_view name, std::string_view value) {
  return std::visit(
      [&]<class Spec>(Spec& any) {
        const SpecField<Spec>* field = find_field<Spec>(name, true);
        if (field != nullptr) return set_field(any, *field, name, value);
        return must_be("spec field", shown(name), field_list<Spec>(true));
      },
      spec);
}

bool is_spec_field(const AnySpec& spec, std::string_view name) {
  return is_same_field(spec, name, name);
}

std::string spec_field_list(const AnySpec& spec) {
  return std::visit([]<class Spec>(const Spec&) { return field_list<Spec>(true); }, spec);
}

bool is_same_field(const AnySpec& spec, std::string_view a, std::string_view b) {
  return std::visit(
      [&]<class Spec>(const Spec&) {
        const SpecField<Spec>* field = find_field<Spec>(a, true);
        return field != nullptr && field == find_field<Spec>(b, true);
      },
      spec);
}

Result<AnySpec> parse_any_spec(std::string_view text) { return parse_words(Words(text)); }

Result<KernelSpec> parse_spec(std::string_view text) { return parse_attention(Words(text)); }

Result<std::vector<AnySpec>> parse_kernels(std::string_view text) {
  Words words(text);
  const std::string_view first = words.peek();
  if (first == "cascade" || first == "sparse_attention") {
    words.take();
    return first == "cascade" ? parse_cascade(words) : parse_sparse_attention(words);
  }
  Result<AnySpec> spec = parse_words(words);
  if (!spec) return spec.status();
  return std::vector<AnySpec>{std::move(spec).value()};
}

}  // namespace pagejit
