#include "generator/text_conditions.h"

#include <algorithm>

namespace pagejit {
namespace {

Status bad(std::string what) { return Status(StatusCode::kInternal, std::move(what)); }

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// "#elif A" -> "A"; false if the line is another one.
bool take_word(std::string_view line, std::string_view word, std::string_view& rest) {
  if (!line.starts_with(word)) return false;
  rest = line.substr(word.size());
  if (!rest.empty() && rest.front() != ' ') return false;
  rest = trimmed(rest);
  return true;
}

}  // namespace

Result<TextConditions::Line> TextConditions::next(std::string_view line) {
  if (!line.starts_with('#')) return keeps() ? Line::kKept : Line::kDropped;  // nearly all lines
  std::string_view rest;
  if (take_word(line, "#if", rest)) {
    const Result<bool> value = evaluate(rest);
    if (!value) return value.status();
    open_.push_back({*value, *value, false});
    return Line::kDirective;
  }
  const bool is_elif = take_word(line, "#elif", rest);
  if (is_elif || line == "#else") {
    if (open_.empty() || open_.back().is_last) return bad(std::string(line) + " without #if");
    const Result<bool> value = is_elif ? evaluate(rest) : Result<bool>(true);
    if (!value) return value.status();
    Branch& branch = open_.back();
    branch.is_taken = *value && !branch.was_taken;
    branch.was_taken |= *value;
    branch.is_last = !is_elif;
    return Line::kDirective;
  }
  if (line == "#endif") {
    if (open_.empty()) return bad("#endif without #if");
    open_.pop_back();
    return Line::kDirective;
  }
  if (line.starts_with("#if") || line.starts_with("#el") || line.starts_with("#end")) {
    return bad(std::string(line) + ": conditions are #if, #elif, #else and #endif of switches");
  }
  return keeps() ? Line::kKept : Line::kDropped;
}

Status TextConditions::finish() const {
  if (open_.empty()) return Status::ok();
  return bad(std::to_string(open_.size()) + " #if without #endif");
}

bool TextConditions::keeps() const {
  return std::all_of(open_.begin(), open_.end(), [](const Branch& b) { return b.is_taken; });
}

Result<bool> TextConditions::evaluate(std::string_view condition) const {
  const bool is_any = condition.find("||") != std::string_view::npos;
  if (is_any && condition.find("&&") != std::string_view::npos) {
    return bad("condition \"" + std::string(condition) + "\": either || or &&, not both");
  }
  const std::string_view separator = is_any ? "||" : "&&";
  bool result = !is_any;
  while (true) {
    const size_t end = condition.find(separator);
    std::string_view term = trimmed(condition.substr(0, end));
    const bool is_negated = term.starts_with('!');
    if (is_negated) term.remove_prefix(1);
    const Result<bool> value = value_of(term);
    if (!value) return value.status();
    const bool holds = *value != is_negated;
    result = is_any ? result || holds : result && holds;
    if (end == std::string_view::npos) return result;
    condition.remove_prefix(end + separator.size());
  }
}

Result<bool> TextConditions::value_of(std::string_view name) const {
  const auto found = std::find_if(switches_.begin(), switches_.end(),
                                  [&](const TextSwitch& s) { return s.name == name; });
  if (found == switches_.end()) return bad("no switch \"" + std::string(name) + "\"");
  return found->is_on;
}

}  // namespace pagejit
