#include "tools/cli/tune_report.h"

#include <cstdio>

#include "generator/tile_text.h"
#include "tools/bench/quartiles.h"
#include "tools/cli/text_table.h"

namespace pagejit::cli {
namespace {

std::string format(const char* pattern, double value) {
  char text[40];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

}  // namespace

std::string tune_table(const TuneResult& result) {
  std::vector<TableColumn> columns = {{"tile"}, {"predicted", Align::kRight}};
  for (const TunedRecord::Problem& problem : result.record.problems) {
    columns.push_back({"us, " + problem.name, Align::kRight});
  }
  columns.push_back({"of the planner's", Align::kRight});
  columns.push_back({"noise", Align::kRight});
  columns.push_back({""});
  TextTable table(columns);
  for (size_t i = 0; i < result.candidates.size(); ++i) {
    const TuneCandidate& candidate = result.candidates[i];
    std::vector<std::string> row = {describe_tile(candidate.config.attention),
                                    format("%.2fx", candidate.predicted_slowdown)};
    for (size_t p = 0; p < result.record.problems.size(); ++p) {
      row.push_back(candidate.status ? format("%.2f", median(candidate.times[p])) : "-");
    }
    row.push_back(candidate.status ? format("%.3f", result.verdict.ratios[i]) : "-");
    row.push_back(candidate.status ? format("%.1f %%", 100 * result.verdict.noise[i]) : "-");
    row.push_back(!candidate.status            ? "left out: " + candidate.status.message()
                  : i == result.verdict.choice ? "chosen"
                  : i == 0                     ? "the planner's"
                                               : "");
    table.add_row(std::move(row));
  }
  return table.to_string() + result.verdict.sentence + "\n";
}

}  // namespace pagejit::cli
