// DoctorReport: what `pagejit doctor` found, finding by finding, as text for people and as JSON for
// programs. It examines nothing (doctor_checks.h). Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/cli/terminal.h"

namespace pagejit::cli {

// kProblem: something that was asked for cannot work. kWarning: it works, but not as well as it
// could, or not for everybody.
enum class FindingLevel : uint8_t { kOk = 0, kWarning = 1, kProblem = 2 };

struct Finding {
  FindingLevel level = FindingLevel::kOk;
  std::string topic;      // e.g. "NVRTC"
  std::string text;       // what was found
  std::string advice;     // what to do about it; "" of ok
  nlohmann::json values;  // the same for programs: an object, or null
};

class DoctorReport {
 public:
  void ok(std::string topic, std::string text, nlohmann::json values = nullptr);
  void warning(std::string topic, std::string text, std::string advice,
               nlohmann::json values = nullptr);
  void problem(std::string topic, std::string text, std::string advice,
               nlohmann::json values = nullptr);

  const std::vector<Finding>& findings() const { return findings_; }
  int count(FindingLevel level) const;

  // A line for each finding, "warning  topic: text", the advice indented below it; then a line with
  // the numbers of warnings and problems.
  std::string to_text(const Terminal& terminal = {}) const;
  // {"version": ..., "can_compile": ..., "warnings": n, "problems": n, "findings": [{"level",
  // "topic", "text", "advice", "values"}]}, and a line feed.
  std::string to_json(const std::string& version, bool can_compile) const;

 private:
  std::vector<Finding> findings_;
};

}  // namespace pagejit::cli
