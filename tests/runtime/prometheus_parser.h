// A strict reader of Prometheus' text exposition format 0.0.4, stricter than Prometheus: it wants
// HELP and TYPE before each family, each family once and in one piece, and names as the best
// practices say. For tests. Not thread-safe.
//
// https://prometheus.io/docs/instrumenting/exposition_formats/
#pragma once

#include <cmath>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace pagejit {

struct PrometheusFamily {
  std::string help;
  std::string type;
  // By the series: the name, and the labels as they were written but unescaped, e.g.
  // "x_bucket{le=1}".
  std::map<std::string, double> samples;
  std::vector<std::pair<double, double>> buckets;  // of a histogram: le, count
};

class PrometheusParser {
 public:
  // By name. Throws std::runtime_error with the line.
  static std::map<std::string, PrometheusFamily> parse(const std::string& text) {
    PrometheusParser parser;
    if (text.empty() || text.back() != '\n') throw std::runtime_error("no line feed at the end");
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      try {
        parser.read_line(line);
      } catch (const std::runtime_error& error) {
        throw std::runtime_error(std::string(error.what()) + ": " + line);
      }
    }
    parser.finish_family();
    return parser.families_;
  }

 private:
  static void require(bool condition, const std::string& what) {
    if (!condition) throw std::runtime_error(what);
  }

  void read_line(const std::string& line) {
    static const std::regex kHead("# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)");
    std::smatch match;
    if (line.starts_with("#")) {
      require(std::regex_match(line, match, kHead), "neither HELP nor TYPE");
      if (match[1] == "HELP") {
        finish_family();
        current_ = match[2];
        require(families_.count(current_) == 0, "a family for the second time");
        families_[current_].help = match[3];
      } else {
        require(match[2] == current_, "TYPE of another family than HELP");
        PrometheusFamily& family = families_[current_];
        require(family.type.empty() && family.samples.empty(), "TYPE too late");
        require(match[3] == "counter" || match[3] == "gauge" || match[3] == "histogram",
                "unknown type");
        family.type = match[3];
        const bool is_total = current_.ends_with("_total");
        require(is_total == (family.type == "counter"), "only counters end in _total");
      }
      return;
    }
    read_sample(line);
  }

  void read_sample(const std::string& line) {
    static const std::regex kSample("([a-zA-Z_:][a-zA-Z0-9_:]*)(\\{(.*)\\})? ([^ ]+)");
    std::smatch match;
    require(std::regex_match(line, match, kSample), "no sample");
    const std::string name = match[1];
    const std::map<std::string, std::string> labels = read_labels(match[3]);
    const double value = read_value(match[4]);
    require(!current_.empty(), "a sample without a family");
    PrometheusFamily& family = families_[current_];
    require(!family.type.empty(), "a sample before TYPE");
    require(!match[2].matched || !labels.empty(), "empty braces");
    std::string series = name;
    for (const auto& [label, text] : labels) series += "{" + label + "=" + text + "}";
    require(family.samples.emplace(series, value).second, "a series for the second time");
    if (family.type != "histogram") {
      require(name == current_, "a sample of another family");
      require(family.type != "counter" || value >= 0, "a negative counter");
    } else if (name == current_ + "_bucket") {
      require(labels.size() == 1 && labels.count("le") == 1, "a bucket without le");
      family.buckets.emplace_back(read_value(labels.at("le")), value);
    } else {
      require(name == current_ + "_sum" || name == current_ + "_count", "not of a histogram");
      require(labels.empty(), "labels of a histogram's sum");
    }
  }

  static std::map<std::string, std::string> read_labels(const std::string& text) {
    std::map<std::string, std::string> labels;
    size_t at = 0;
    while (at < text.size()) {
      const size_t equals = text.find("=\"", at);
      require(equals != std::string::npos, "a label without a quoted value");
      const std::string name = text.substr(at, equals - at);
      require(std::regex_match(name, std::regex("[a-zA-Z_][a-zA-Z0-9_]*")), "a label's name");
      std::string value;
      for (at = equals + 2; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] != '\\') {
          value += text[at];
          continue;
        }
        require(++at < text.size(), "a backslash at the end");
        require(text[at] == '\\' || text[at] == '"' || text[at] == 'n', "an unknown escape");
        value += text[at] == 'n' ? '\n' : text[at];
      }
      require(at < text.size(), "a label's value without its closing quote");
      require(labels.emplace(name, value).second, "a label for the second time");
      if (++at < text.size()) {
        require(text[at] == ',', "no comma between labels");
        ++at;
        require(at < text.size(), "a comma behind the last label");
      }
    }
    return labels;
  }

  static double read_value(const std::string& text) {
    if (text == "+Inf") return INFINITY;
    require(std::regex_match(text, std::regex("[-+]?[0-9]+(\\.[0-9]+)?(e[-+]?[0-9]+)?")),
            "no number");
    return std::strtod(text.c_str(), nullptr);
  }

  void finish_family() {
    if (current_.empty()) return;
    const PrometheusFamily& family = families_[current_];
    require(!family.type.empty(), current_ + " without TYPE");
    if (family.type != "histogram") return;
    require(family.samples.count(current_ + "_sum") == 1, current_ + " without a sum");
    require(family.samples.count(current_ + "_count") == 1, current_ + " without a count");
    require(!family.buckets.empty(), current_ + " without buckets");
    for (size_t i = 1; i < family.buckets.size(); ++i) {
      require(family.buckets[i - 1].first < family.buckets[i].first, "bounds do not ascend");
      require(family.buckets[i - 1].second <= family.buckets[i].second, "buckets do not add up");
    }
    require(std::isinf(family.buckets.back().first), "no bucket +Inf");
    require(family.buckets.back().second == family.samples.at(current_ + "_count"),
            "the last bucket is not the count");
  }

  std::map<std::string, PrometheusFamily> families_;
  std::string current_;
};

}  // namespace pagejit
