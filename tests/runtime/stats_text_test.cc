// The counts as Prometheus' text and as JSON, and that the README names all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "pagejit/stats.h"
#include "runtime/engine/stats_recorder.h"
#include "tests/runtime/prometheus_parser.h"

namespace pagejit {
namespace {

// Every field another number.
EngineStats distinct_stats() {
  EngineStats stats;
  uint64_t next = 100;
  for (uint64_t* field : {&stats.memory_hits,
                          &stats.bundle_hits,
                          &stats.read_only_hits,
                          &stats.disk_hits,
                          &stats.remote_hits,
                          &stats.compiles,
                          &stats.compile_failures,
                          &stats.waits,
                          &stats.process_waits,
                          &stats.process_wait_hits,
                          &stats.process_wait_timeouts,
                          &stats.corrupt_entries,
                          &stats.publish_failures,
                          &stats.evictions,
                          &stats.evicted_bytes,
                          &stats.driver_rejects,
                          &stats.modules_loaded,
                          &stats.misses_denied_by_policy,
                          &stats.misses_denied_in_capture,
                          &stats.remote_failures,
                          &stats.remote_uploads,
                          &stats.remote_upload_failures,
                          &stats.remote_breaker_opens}) {
    *field = next++;
  }
  stats.corrupt_by_kind = {{"checksum", 60}, {"wrong key", 40}};
  stats.publish_failures_by_errno = {{ENOSPC, 7}, {9999, 3}};
  StatsRecorder recorder;
  for (const double ms : {0.5, 3.0, 1500.0, 1e9}) recorder.compile_ms.record(ms);
  recorder.lookup_us.record(40);
  recorder.add_to(stats);
  return stats;
}

std::map<std::string, PrometheusFamily> parsed(const EngineStats& stats) {
  return PrometheusParser::parse(to_prometheus(stats));
}

TEST(StatsTextTest, PrometheusTextIsValidAndHasEveryCount) {
  auto families = parsed(distinct_stats());
  std::multiset<double> values;
  for (const auto& [name, family] : families) {
    EXPECT_TRUE(name.starts_with("pagejit_")) << name;
    if (family.type != "counter") continue;
    for (const auto& [series, value] : family.samples) values.insert(value);
  }
  for (double value = 100; value < 123; ++value) {
    if (value == 111) continue;  // corrupt_entries: the sum of its kinds
    EXPECT_EQ(values.count(value), 1u) << value;
  }
  EXPECT_EQ(families["pagejit_hits_total"].samples["pagejit_hits_total{layer=directory}"], 103);
  EXPECT_EQ(families["pagejit_corrupt_entries_total"].samples["pagejit_corrupt_entries_total{kind="
                                                              "wrong key}"],
            40);
  auto& errors = families["pagejit_publish_failures_by_errno_total"].samples;
  EXPECT_EQ(errors["pagejit_publish_failures_by_errno_total{errno=ENOSPC}"], 7);
  EXPECT_EQ(errors["pagejit_publish_failures_by_errno_total{errno=9999}"], 3);
}

TEST(StatsTextTest, PrometheusHistogramsAreCumulativeAndInSeconds) {
  auto families = parsed(distinct_stats());
  PrometheusFamily& compile = families["pagejit_compile_seconds"];
  EXPECT_DOUBLE_EQ(compile.samples["pagejit_compile_seconds_sum"], (0.5 + 3 + 1500 + 1e9) / 1000);
  EXPECT_EQ(compile.samples["pagejit_compile_seconds_count"], 4);
  EXPECT_EQ(compile.samples["pagejit_compile_seconds_bucket{le=0.001}"], 1);
  EXPECT_EQ(compile.samples["pagejit_compile_seconds_bucket{le=0.002}"], 1);
  EXPECT_EQ(compile.samples["pagejit_compile_seconds_bucket{le=0.005}"], 2);
  EXPECT_EQ(compile.samples["pagejit_compile_seconds_bucket{le=2}"], 3);
  EXPECT_EQ(compile.samples["pagejit_compile_seconds_bucket{le=100}"], 3);
  PrometheusFamily& lookup = families["pagejit_lookup_seconds"];
  EXPECT_EQ(lookup.samples["pagejit_lookup_seconds_bucket{le=2e-05}"], 0);
  EXPECT_EQ(lookup.samples["pagejit_lookup_seconds_bucket{le=5e-05}"], 1);
}

TEST(StatsTextTest, NewEnginesTextIsValidToo) { EXPECT_NO_THROW(parsed(EngineStats())); }

TEST(StatsTextTest, LabelsAreEscaped) {
  EngineStats stats;
  stats.corrupt_by_kind = {{"a \"quoted\\\nname\"", 1}};
  auto families = parsed(stats);
  EXPECT_EQ(families["pagejit_corrupt_entries_total"]
                .samples["pagejit_corrupt_entries_total{kind=a \"quoted\\\nname\"}"],
            1);
}

// What the other tests rely on.
TEST(StatsTextTest, ParserRefusesWhatIsNotTheFormat) {
  const std::string head = "# HELP a_total x\n# TYPE a_total counter\n";
  const std::string histogram = "# HELP h x\n# TYPE h histogram\n";
  EXPECT_NO_THROW(PrometheusParser::parse(head + "a_total{b=\"c\"} 1\na_total{b=\"d\"} 2\n"));
  EXPECT_NO_THROW(PrometheusParser::parse(
      histogram + "h_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n"));
  for (const std::string& text : {
           std::string("a_total 1\n"),
           head + "a_total 1",
           head + "a_total x\n",
           head + "a_total -1\n",
           head + "b_total 1\n",
           head + "a_total 1\na_total 1\n",
           head + "a_total{b=\"c} 1\n",
           head + "a_total{b=\"\\c\"} 1\n",
           head + "a_total{b=c} 1\n",
           head + "a_total{b=\"c\",} 1\n",
           head + "a_total{} 1\n",
           head + head,
           std::string("# HELP a x\n# TYPE a counter\n"),
           histogram + "h_bucket{le=\"1\"} 1\nh_sum 3\nh_count 1\n",
           histogram + "h_bucket{le=\"1\"} 3\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n",
           histogram + "h_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 3\n",
           histogram + "h_bucket{le=\"+Inf\"} 2\nh_count 2\n",
       }) {
    EXPECT_THROW(PrometheusParser::parse(text), std::runtime_error) << text;
  }
}

TEST(StatsTextTest, JsonHasEveryFieldByItsName) {
  const EngineStats stats = distinct_stats();
  const std::string text = to_json(stats);
  EXPECT_EQ(text.back(), '\n');
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["format"], 1);
  EXPECT_EQ(json["memory_hits"], 100);
  EXPECT_EQ(json["remote_breaker_opens"], 122);
  EXPECT_EQ(json["corrupt_by_kind"]["wrong key"], 40);
  EXPECT_EQ(json["publish_failures_by_errno"]["ENOSPC"], 7);
  EXPECT_EQ(json["compile_ms"]["count"], 4);
  EXPECT_EQ(json["compile_ms"]["bounds"].size() + 1, json["compile_ms"]["counts"].size());
  // Every field of the struct, as the header declares them.
  std::ifstream header(PAGEJIT_STATS_HEADER);
  const std::string source{std::istreambuf_iterator<char>(header), {}};
  const size_t begin = source.find("struct EngineStats {");
  ASSERT_NE(begin, std::string::npos);
  const std::string body = source.substr(begin, source.find("\n};", begin) - begin);
  static const std::regex kField(
      "\n  (?:uint64_t|Histogram|std::vector<NamedCount>|std::map<int, uint64_t>) ([a-z_]+)");
  size_t num_fields = 0;
  for (std::sregex_iterator field(body.begin(), body.end(), kField), end; field != end; ++field) {
    EXPECT_TRUE(json.contains((*field)[1].str())) << (*field)[1];
    ++num_fields;
  }
  EXPECT_EQ(json.size(), num_fields + 1);
}

TEST(StatsTextTest, JsonOfHostileNamesIsValid) {
  EngineStats stats;
  stats.corrupt_by_kind = {{"a\"\\\n\x01", 5}};
  EXPECT_EQ(nlohmann::json::parse(to_json(stats))["corrupt_by_kind"]["a\"\\\n\x01"], 5);
}

TEST(StatsTextTest, ReadmeListsEveryMetric) {
  std::ifstream file(PAGEJIT_RUNTIME_README);
  const std::string readme{std::istreambuf_iterator<char>(file), {}};
  const size_t begin = readme.find("\n## Seen from outside\n");
  ASSERT_NE(begin, std::string::npos);
  const std::string section = readme.substr(begin, readme.find("\n## ", begin + 1) - begin);
  std::set<std::string> listed;
  static const std::regex kName("\\| `(pagejit_[a-z_]+)");
  for (std::sregex_iterator name(section.begin(), section.end(), kName), end; name != end; ++name) {
    EXPECT_TRUE(listed.insert((*name)[1]).second) << (*name)[1] << " stands there twice";
  }
  std::set<std::string> exported;
  for (const auto& [name, family] : parsed(distinct_stats())) exported.insert(name);
  EXPECT_EQ(listed, exported);
}

}  // namespace
}  // namespace pagejit
