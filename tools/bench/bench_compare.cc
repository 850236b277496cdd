#include "tools/bench/bench_compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace pagejit {
namespace {

constexpr double kLeastNoise = 0.01;
constexpr double kUnknownNoise = 0.10;

// Of two files, whose keys may stand in any order.
bool is_same_case(const BenchResult& a, const BenchResult& b) {
  return a.suite == b.suite && a.name == b.name && a.unit == b.unit &&
         nlohmann::json(a.shape) == nlohmann::json(b.shape);
}

double noise_of(const BenchResult& a, const BenchResult& b) {
  if (!a.noise || !b.noise) return kUnknownNoise;
  const double sum = *a.noise + *b.noise;
  return sum == 0 ? 0 : std::max(sum, kLeastNoise);
}

BenchDifference difference_of(const BenchResult& a, const BenchResult& b) {
  BenchDifference difference{.first = a, .second = b, .noise = noise_of(a, b)};
  if (a.value != b.value) {
    difference.ratio = a.value == 0 ? std::numeric_limits<double>::infinity() : b.value / a.value;
  }
  if (std::abs(difference.ratio - 1) > difference.noise) {
    const bool is_higher = difference.ratio > 1;
    difference.verdict =
        is_higher == a.higher_is_better ? BenchVerdict::kBetter : BenchVerdict::kWorse;
  }
  return difference;
}

}  // namespace

double BenchDifference::loss() const {
  if (verdict == BenchVerdict::kOnlyFirst || verdict == BenchVerdict::kOnlySecond) return 0;
  if (!first.higher_is_better) return ratio - 1;
  return ratio > 0 ? 1 / ratio - 1 : std::numeric_limits<double>::infinity();
}

std::vector<BenchDifference> compare_runs(const BenchRun& first, const BenchRun& second) {
  std::vector<BenchDifference> differences;
  std::vector<bool> is_taken(second.results.size(), false);
  for (const BenchResult& result : first.results) {
    size_t i = 0;
    while (i < is_taken.size() && (is_taken[i] || !is_same_case(result, second.results[i]))) ++i;
    if (i == is_taken.size()) {
      differences.push_back({.first = result, .verdict = BenchVerdict::kOnlyFirst});
    } else {
      is_taken[i] = true;
      differences.push_back(difference_of(result, second.results[i]));
    }
  }
  for (size_t i = 0; i < is_taken.size(); ++i) {
    if (is_taken[i]) continue;
    differences.push_back({.second = second.results[i], .verdict = BenchVerdict::kOnlySecond});
  }
  return differences;
}

const char* verdict_name(BenchVerdict verdict) {
  switch (verdict) {
    case BenchVerdict::kSame:
      return "same";
    case BenchVerdict::kBetter:
      return "better";
    case BenchVerdict::kWorse:
      return "worse";
    case BenchVerdict::kOnlyFirst:
      return "only in A";
    case BenchVerdict::kOnlySecond:
      return "only in B";
  }
  return "";
}

std::string comparison_json(const BenchRun& first, const BenchRun& second,
                            const std::vector<BenchDifference>& differences) {
  const auto describe = [](const BenchEnvironment& environment) {
    return BenchJson{
        {"version", environment.version},
        {"date", environment.date},
        {"gpu", environment.gpu.empty() ? BenchJson(nullptr) : BenchJson(environment.gpu)}};
  };
  BenchJson list = BenchJson::array();
  for (const BenchDifference& difference : differences) {
    const bool has_first = difference.verdict != BenchVerdict::kOnlySecond;
    const bool has_second = difference.verdict != BenchVerdict::kOnlyFirst;
    BenchJson json;
    json["suite"] = difference.any().suite;
    json["name"] = difference.any().name;
    json["shape"] = difference.any().shape;
    json["unit"] = difference.any().unit;
    json["a"] = has_first ? BenchJson(difference.first.value) : BenchJson(nullptr);
    json["b"] = has_second ? BenchJson(difference.second.value) : BenchJson(nullptr);
    // An infinite one is null in JSON.
    json["ratio"] = has_first && has_second ? BenchJson(difference.ratio) : BenchJson(nullptr);
    json["noise"] = has_first && has_second ? BenchJson(difference.noise) : BenchJson(nullptr);
    json["verdict"] = verdict_name(difference.verdict);
    list.push_back(std::move(json));
  }
  const BenchJson json = {{"pagejit_bench_comparison", 1},
                          {"a", describe(first.environment)},
                          {"b", describe(second.environment)},
                          {"differences", std::move(list)}};
  return json.dump(2, ' ', false, BenchJson::error_handler_t::replace) + "\n";
}

}  // namespace pagejit
