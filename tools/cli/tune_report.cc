#include "tools/cli/tune_report.h"

#include <nlohmann/json.hpp>

#include "generator/tile_text.h"
#include "tools/bench/quartiles.h"
#include "tools/cli/text_table.h"

namespace pagejit::cli {
namespace {

std::string line_of(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

double microseconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

nlohmann::ordered_json candidate_json(const TuneResult& result, size_t place) {
  const TuneCandidate& candidate = result.candidates[place];
  nlohmann::ordered_json json = {{"tile", tile_text(candidate.config.attention)},
                                 {"predicted_slowdown", candidate.predicted_slowdown}};
  if (!candidate.status) {
    json["result"] = "left out";
    json["message"] = candidate.status.message();
    return json;
  }
  json["result"] = place == result.verdict.choice ? "chosen" : "timed";
  json["key"] = candidate.entry->key.name();
  json["registers"] = candidate.info.registers;
  json["shared_bytes"] = candidate.info.shared_bytes;
  json["ratio"] = result.verdict.ratios[place];
  json["noise"] = result.verdict.noise[place];
  json["rounds_us"] = candidate.times;
  return json;
}

}  // namespace

std::string tune_table(const TuneResult& result, const Terminal& terminal) {
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
                                    format_number("%.2fx", candidate.predicted_slowdown)};
    for (size_t p = 0; p < result.record.problems.size(); ++p) {
      row.push_back(candidate.status ? format_number("%.2f", median(candidate.times[p])) : "-");
    }
    row.push_back(candidate.status ? format_number("%.3f", result.verdict.ratios[i]) : "-");
    row.push_back(candidate.status ? format_number("%.1f %%", 100 * result.verdict.noise[i]) : "-");
    row.push_back(!candidate.status            ? "left out: " + candidate.status.message()
                  : i == result.verdict.choice ? "chosen"
                  : i == 0                     ? "the planner's"
                                               : "");
    table.add_row(std::move(row));
  }
  return table.to_string(terminal) + fitted(result.verdict.sentence + "\n", terminal);
}

std::string tune_json(const TuneResult& result) {
  const TunedRecord& record = result.record;
  nlohmann::ordered_json json = {{"spec", record.spec},
                                 {"target", record.target},
                                 {"device", record.device},
                                 {"version", record.version},
                                 {"chosen", record.tile},
                                 {"planned", record.planned_tile},
                                 {"image", record.image},
                                 {"speedup", record.speedup()},
                                 {"sentence", result.verdict.sentence},
                                 {"problems", nlohmann::ordered_json::array()},
                                 {"candidates", nlohmann::ordered_json::array()}};
  for (const TunedRecord::Problem& problem : record.problems) {
    json["problems"].push_back({{"name", problem.name},
                                {"planned_us", microseconds(problem.planned_ns)},
                                {"tuned_us", microseconds(problem.tuned_ns)}});
  }
  for (size_t i = 0; i < result.candidates.size(); ++i) {
    json["candidates"].push_back(candidate_json(result, i));
  }
  return line_of(json);
}

std::string tune_failure_json(const TuneRequest& request, const Status& status) {
  return line_of({{"spec", canonical_text(request.spec)},
                  {"target", request.target.to_string()},
                  {"device", request.device},
                  {"error", status.message()}});
}

}  // namespace pagejit::cli
