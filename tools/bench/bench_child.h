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

double median(std::vector<double> values);  // 0 of none

// A program that runs: words[0] is its path. What it prints comes with finish().
struct Child {
  pid_t pid = 0;
  int output = -1;
};
std::optional<Child> start_child(std::vector<std::string> words);
// Its standard output; nothing, and that output on standard error, where it failed.
std::optional<std::string> finish_child(Child child);
std::optional<std::string> run_child(std::vector<std::string> words);

// Prints a figure and the limit that it is meant to keep; whether it does.
bool print_at_most(const char* what, double value, double limit, const char* unit);
bool print_at_least(const char* what, double value, double limit, const char* unit);

}  // namespace pagejit::bench
