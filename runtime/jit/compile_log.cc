#include "runtime/jit/compile_log.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <optional>

namespace pagejit::jit {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Cuts the first line off `text`.
std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The number right before " unit", e.g. 24 for "bytes spill stores" in "0 bytes stack frame, 24
// bytes spill stores". A number that no int holds counts as the largest int.
std::optional<int> number_before(std::string_view line, std::string_view unit) {
  for (size_t at = line.find(unit); at != std::string_view::npos; at = line.find(unit, at + 1)) {
    if (at < 2 || line[at - 1] != ' ' || !is_digit(line[at - 2])) continue;
    // "bytes smem" but not "bytes smemory".
    const size_t after = at + unit.size();
    if (after < line.size() && line[after] != ',' && line[after] != ' ' && line[after] != '\r') {
      continue;
    }
    size_t begin = at - 1;
    while (begin > 0 && is_digit(line[begin - 1])) --begin;
    int value = 0;
    const auto parsed = std::from_chars(line.data() + begin, line.data() + at - 1, value);
    return parsed.ec == std::errc() ? value : INT_MAX;
  }
  return std::nullopt;
}

void raise(int& to, std::optional<int> value) { to = std::max(to, value.value_or(0)); }

void add(int& sum, std::optional<int> value) {
  const int more = value.value_or(0);
  sum = more > INT_MAX - sum ? INT_MAX : sum + more;
}

// ptxas's numbered remarks on lost performance, e.g. "(C7510) Potential Performance Loss".
bool has_performance_code(std::string_view line) {
  const size_t at = line.find("(C75");
  return at != std::string_view::npos && at + 7 <= line.size() && is_digit(line[at + 4]) &&
         is_digit(line[at + 5]) && line[at + 6] == ')';
}

bool is_warning(std::string_view line) {
  return contains(line, "warning #") || contains(line, "warning:") ||
         (line.starts_with("ptxas") && contains(line, "warning :")) || has_performance_code(line);
}

}  // namespace

std::vector<std::string> warning_lines(std::string_view log) {
  std::vector<std::string> lines;
  while (!log.empty()) {
    const std::string_view line = trimmed(take_line(log));
    if (is_warning(line)) lines.emplace_back(line);
  }
  return lines;
}

CompileReport parse_ptxas_log(std::string_view log) {
  CompileReport report;
  report.warnings = warning_lines(log);
  while (!log.empty()) {
    const std::string_view line = take_line(log);
    raise(report.registers, number_before(line, "registers"));
    raise(report.stack_bytes, number_before(line, "bytes stack frame"));
    raise(report.stack_bytes, number_before(line, "bytes cumulative stack size"));
    add(report.spill_store_bytes, number_before(line, "bytes spill stores"));
    add(report.spill_load_bytes, number_before(line, "bytes spill loads"));
    raise(report.static_shared_bytes, number_before(line, "bytes smem"));
  }
  return report;
}

std::string first_error_line(std::string_view log) {
  std::string_view first;
  while (!log.empty()) {
    const std::string_view line = trimmed(take_line(log));
    // NVRTC and C++ compilers "x.cu(1): error: ...", "x.cc:1:2: fatal error: ..."; ptxas "error   :
    // ...", "fatal   : ..."; ld.
    if (contains(line, "error:") || contains(line, "error #") || contains(line, "error   :") ||
        contains(line, "fatal   :") || contains(line, "undefined reference")) {
      return std::string(line);
    }
    if (first.empty()) first = line;
  }
  return std::string(first);
}

std::string numbered_source(std::string_view text) {
  const size_t num_lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  const size_t width = std::max<size_t>(4, std::to_string(num_lines).size());
  std::string result;
  result.reserve(text.size() + num_lines * (width + 4));
  for (size_t line_idx = 1; !text.empty(); ++line_idx) {
    const std::string number = std::to_string(line_idx);
    result.append(width - number.size(), ' ').append(number).append(" | ");
    result.append(take_line(text)).append("\n");
  }
  return result;
}

std::string failure_detail(std::string_view log, std::string_view command_heading,
                           const std::vector<std::string>& command, std::string_view source) {
  std::string text = "log:\n";
  text.append(log);
  if (!text.ends_with('\n')) text += '\n';
  text.append(command_heading).append(":");
  for (const std::string& word : command) text.append(" ").append(word);
  text.append("\nsource:\n").append(numbered_source(source));
  return text;
}

FailureFacts failure_facts(std::string_view log, const std::vector<std::string>& command,
                           std::string_view source) {
  FailureFacts facts;
  facts.log = log;
  for (const std::string& word : command) facts.options.append(word).append("\n");
  facts.source = source;
  return facts;
}

}  // namespace pagejit::jit
