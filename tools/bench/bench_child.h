// Child processes of the benchmarks, and how their figures are printed. Thread-safety: free
// functions without state.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace pagejit::bench {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point begin);

// A program that runs: words[0] is its path. What it prints comes with finish().
struct Child {
  pid_t pid = 0;
  int output = -1;
};
std::optional<Child> start_child(std::vector<std::string> words);
// Its standard output; nothing, and that output on standard error, where it failed.
std::optional<std::string> finish_child(Child child);
std::optional<std::string> run_child(std::vector<std::string> words);

// Figures are written to this file too, a line each: name, value, unit, sign ("<=", ">=" or ""),
// limit, noise, separated by tabs. Before the first figure; false where it cannot be made.
bool open_figures_file(const char* path);

// What is not known of a single measurement; counts and sizes have 0 (bench_result.h).
inline constexpr double kUnknownNoise = -1;
// Distance of the quartiles over the median.
double noise_of(std::vector<double> values);

// Prints a figure and the limit that it is meant to keep; whether it does.
bool print_at_most(const char* what, double value, double limit, const char* unit,
                   double noise = kUnknownNoise);
bool print_at_least(const char* what, double value, double limit, const char* unit,
                    double noise = kUnknownNoise);
// A figure without a limit.
void print_figure(const char* what, double value, const char* unit, double noise = kUnknownNoise);

}  // namespace pagejit::bench
