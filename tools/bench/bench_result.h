// The results of a benchmark, of a GPU or of the host side alike: what `pagejit bench --json`
// writes, --svg draws and --compare reads. The JSON is described in tools/bench/README.md. It
// measures nothing. Thread-safety: plain values and free functions without state.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pagejit/status.h"

namespace pagejit {

using BenchJson = nlohmann::ordered_json;

// What a figure is meant to keep.
struct BenchGoal {
  std::string figure = "value";  // or a key of BenchResult::figures
  double limit = 0;
  bool at_least = false;  // else at most
};

struct BenchResult {
  std::string suite;
  std::string name;
  // What was measured: spec, batch, lengths. With suite and name it tells results apart.
  BenchJson shape = BenchJson::object();
  double value = 0;  // the median where there are several measurements
  std::string unit;  // "us", "ms", "s", "x", "MB", ...; "" of counts
  bool higher_is_better = false;
  // Distance of the quartiles over the median; 0 of counts and sizes; nothing where there was one
  // measurement.
  std::optional<double> noise;
  // Further numbers by their names: min_us, kv_bytes, tb_per_s, flops, ...
  BenchJson figures = BenchJson::object();
  std::optional<BenchGoal> goal;

  // A number of `figures`, or `value`; nothing where there is none.
  std::optional<double> figure(const std::string& key) const;
  // Nothing without a goal.
  std::optional<bool> is_goal_met() const;
};

// Where and with what it was measured; what is not known or not used is "".
struct BenchEnvironment {
  std::string version;       // "pagejit 0.1.0"
  std::string date;          // UTC, "2026-11-22T21:30:00Z"
  std::string cpu;           // as the kernel names it
  int processors = 0;        // that this process may run on
  std::string gpu;           // "NVIDIA H200"
  std::string driver_cuda;   // the newest CUDA that the driver serves: "13.0"
  std::string compiler;      // NVRTC, its version and build
  double read_tb_per_s = 0;  // of a kernel that only reads; 0: not measured
};

// Version, date and processors of this machine, now.
BenchEnvironment describe_host(const std::string& version);

struct BenchRun {
  BenchEnvironment environment;
  std::vector<BenchResult> results;
};

// A JSON object of several lines, ending in a line break.
std::string to_json(const BenchRun& run);

// kNotFound or kInvalidArgument, with the file's name and what is wrong with it.
Result<BenchRun> load_bench_run(const std::string& path);

}  // namespace pagejit
