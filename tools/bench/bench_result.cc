#include "tools/bench/bench_result.h"

#include <sched.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <utility>

#include "tools/manifest/bounded_json.h"

namespace pagejit {
namespace {

constexpr int kSchema = 1;

BenchJson text_or_null(const std::string& text) {
  return text.empty() ? BenchJson(nullptr) : BenchJson(text);
}

BenchJson json_of(const BenchEnvironment& environment) {
  BenchJson json;
  json["version"] = environment.version;
  json["date"] = environment.date;
  json["cpu"] = text_or_null(environment.cpu);
  json["processors"] = environment.processors;
  json["gpu"] = text_or_null(environment.gpu);
  json["driver_cuda"] = text_or_null(environment.driver_cuda);
  json["compiler"] = text_or_null(environment.compiler);
  json["read_tb_per_s"] = nullptr;
  if (environment.read_tb_per_s > 0) json["read_tb_per_s"] = environment.read_tb_per_s;
  return json;
}

BenchJson json_of(const BenchResult& result) {
  BenchJson json;
  json["suite"] = result.suite;
  json["name"] = result.name;
  json["shape"] = result.shape;
  json["value"] = result.value;
  json["unit"] = result.unit;
  json["better"] = result.higher_is_better ? "higher" : "lower";
  json["noise"] = result.noise ? BenchJson(*result.noise) : BenchJson(nullptr);
  json["figures"] = result.figures;
  json["goal"] = nullptr;
  if (result.goal) {
    json["goal"] = {{"figure", result.goal->figure},
                    {result.goal->at_least ? "at_least" : "at_most", result.goal->limit},
                    {"met", *result.is_goal_met()}};
  }
  return json;
}

// A member of an object that is a string; "" where it is null or absent.
std::string text_of(const manifest::Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Result<BenchResult> parse_result(const std::string& at, const manifest::Json& json) {
  if (!json.is_object()) return manifest::must_be_at(at, json, "an object");
  BenchResult result;
  for (const auto& [key, text] :
       {std::pair("suite", &result.suite), {"name", &result.name}, {"unit", &result.unit}}) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_string()) {
      return manifest::fail_at(at + "." + key, "must be a string");
    }
    *text = found->get<std::string>();
  }
  const auto value = json.find("value");
  if (value == json.end() || !value->is_number()) {
    return manifest::fail_at(at + ".value", "must be a number");
  }
  result.value = value->get<double>();
  result.higher_is_better = text_of(json, "better") == "higher";
  if (const auto noise = json.find("noise"); noise != json.end() && noise->is_number()) {
    result.noise = noise->get<double>();
  }
  // Sorted by their keys, so that the order in a file means nothing.
  if (const auto shape = json.find("shape"); shape != json.end()) result.shape = *shape;
  if (const auto figures = json.find("figures"); figures != json.end()) result.figures = *figures;
  return result;
}

}  // namespace

std::optional<double> BenchResult::figure(const std::string& key) const {
  if (key == "value") return value;
  const auto found = figures.find(key);
  if (found == figures.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::optional<bool> BenchResult::is_goal_met() const {
  if (!goal) return std::nullopt;
  const std::optional<double> reached = figure(goal->figure);
  if (!reached) return false;
  return goal->at_least ? *reached >= goal->limit : *reached <= goal->limit;
}

BenchEnvironment describe_host(const std::string& version) {
  BenchEnvironment environment;
  environment.version = version;
  char date[32] = {};
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
  environment.date = date;
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line);) {
    const size_t colon = line.find(": ");
    if (!line.starts_with("model name") || colon == std::string::npos) continue;
    environment.cpu = line.substr(colon + 2);
    break;
  }
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    environment.processors = CPU_COUNT(&allowed);
  }
  return environment;
}

std::string to_json(const BenchRun& run) {
  BenchJson results = BenchJson::array();
  for (const BenchResult& result : run.results) results.push_back(json_of(result));
  const BenchJson json = {{"pagejit_bench", kSchema},
                          {"environment", json_of(run.environment)},
                          {"results", std::move(results)}};
  return json.dump(2, ' ', false, BenchJson::error_handler_t::replace) + "\n";
}

Result<BenchRun> load_bench_run(const std::string& path) {
  const Result<std::string> text = manifest::read_bounded_file(path);
  if (!text) return text.status();
  const Result<manifest::Json> json = manifest::parse_bounded_json(*text);
  if (!json) return json.status().with_context(path);
  const auto refuse = [&](const Status& status) { return status.with_context(path); };
  if (!json->is_object() || !json->contains("pagejit_bench")) {
    return refuse(manifest::fail_at("pagejit_bench", "missing; this is no file of bench --json"));
  }
  const manifest::Json& schema = (*json)["pagejit_bench"];
  if (schema != kSchema) {
    return refuse(manifest::must_be_at("pagejit_bench", schema, std::to_string(kSchema)));
  }
  BenchRun run;
  if (const auto environment = json->find("environment");
      environment != json->end() && environment->is_object()) {
    run.environment.version = text_of(*environment, "version");
    run.environment.date = text_of(*environment, "date");
    run.environment.cpu = text_of(*environment, "cpu");
    run.environment.gpu = text_of(*environment, "gpu");
    run.environment.driver_cuda = text_of(*environment, "driver_cuda");
    run.environment.compiler = text_of(*environment, "compiler");
  }
  const auto results = json->find("results");
  if (results == json->end() || !results->is_array()) {
    return refuse(manifest::fail_at("results", "must be an array"));
  }
  for (size_t i = 0; i < results->size(); ++i) {
    Result<BenchResult> result = parse_result("results[" + std::to_string(i) + "]", (*results)[i]);
    if (!result) return refuse(result.status());
    run.results.push_back(std::move(result).value());
  }
  return run;
}

}  // namespace pagejit
