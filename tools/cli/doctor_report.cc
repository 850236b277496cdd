#include "tools/cli/doctor_report.h"

#include <algorithm>
#include <utility>

namespace pagejit::cli {
namespace {

const char* level_name(FindingLevel level) {
  switch (level) {
    case FindingLevel::kOk:
      return "ok";
    case FindingLevel::kWarning:
      return "warning";
    case FindingLevel::kProblem:
      return "problem";
  }
  return "unknown";
}

std::string counted(int number, const char* noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

}  // namespace

void DoctorReport::ok(std::string topic, std::string text, nlohmann::json values) {
  findings_.push_back(
      {FindingLevel::kOk, std::move(topic), std::move(text), "", std::move(values)});
}

void DoctorReport::warning(std::string topic, std::string text, std::string advice,
                           nlohmann::json values) {
  findings_.push_back({FindingLevel::kWarning, std::move(topic), std::move(text), std::move(advice),
                       std::move(values)});
}

void DoctorReport::problem(std::string topic, std::string text, std::string advice,
                           nlohmann::json values) {
  findings_.push_back({FindingLevel::kProblem, std::move(topic), std::move(text), std::move(advice),
                       std::move(values)});
}

int DoctorReport::count(FindingLevel level) const {
  return static_cast<int>(std::count_if(findings_.begin(), findings_.end(),
                                        [&](const Finding& f) { return f.level == level; }));
}

std::string DoctorReport::to_text(const Terminal& terminal) const {
  constexpr size_t kLevelWidth = 9;  // "warning" and two blanks
  std::string text;
  for (const Finding& finding : findings_) {
    std::string level = level_name(finding.level);
    level.resize(kLevelWidth, ' ');
    const Style style = finding.level == FindingLevel::kOk        ? Style::kGood
                        : finding.level == FindingLevel::kWarning ? Style::kWarning
                                                                  : Style::kBad;
    const std::string line = fitted(level + finding.topic + ": " + finding.text, terminal);
    text += styled(level, style, terminal) + line.substr(kLevelWidth) + "\n";
    if (!finding.advice.empty()) {
      text += fitted(std::string(kLevelWidth + 2, ' ') + finding.advice, terminal) + "\n";
    }
  }
  return text + counted(count(FindingLevel::kWarning), "warning") + ", " +
         counted(count(FindingLevel::kProblem), "problem") + "\n";
}

std::string DoctorReport::to_json(const std::string& version, bool can_compile) const {
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  for (const Finding& finding : findings_) {
    findings.push_back({{"level", level_name(finding.level)},
                        {"topic", finding.topic},
                        {"text", finding.text},
                        {"advice", finding.advice},
                        {"values", finding.values}});
  }
  const nlohmann::ordered_json json = {{"version", version},
                                       {"can_compile", can_compile},
                                       {"warnings", count(FindingLevel::kWarning)},
                                       {"problems", count(FindingLevel::kProblem)},
                                       {"findings", findings}};
  // Paths and variables may hold any bytes.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace pagejit::cli
