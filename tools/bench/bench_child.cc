#include "tools/bench/bench_child.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "tools/bench/quartiles.h"

extern char** environ;

namespace pagejit::bench {

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

std::optional<Child> start_child(std::vector<std::string> words) {
  int fds[2];
  if (pipe(fds) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
  posix_spawn_file_actions_addclose(&actions, fds[0]);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  Child child;
  const int error =
      posix_spawn(&child.pid, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(fds[1]);
  if (error != 0) {
    close(fds[0]);
    return std::nullopt;
  }
  child.output = fds[0];
  return child;
}

std::optional<std::string> finish_child(Child child) {
  std::string text;
  char buffer[512];
  for (ssize_t n; (n = read(child.output, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
  }
  close(child.output);
  int status = 1;
  if (waitpid(child.pid, &status, 0) == child.pid && status == 0) return text;
  std::fprintf(stderr, "a child process failed: %s\n", text.c_str());
  return std::nullopt;
}

std::optional<std::string> run_child(std::vector<std::string> words) {
  const std::optional<Child> child = start_child(std::move(words));
  if (!child) return std::nullopt;
  return finish_child(*child);
}

namespace {

std::FILE* g_figures = nullptr;  // of the whole program, open until it ends

void write_figure(const char* what, double value, const char* unit, const char* sign, double limit,
                  double noise) {
  if (g_figures == nullptr) return;
  while (*what == ' ') ++what;  // what belongs to the figure above is indented
  std::fprintf(g_figures, "%s\t%.9g\t%s\t%s\t%.9g\t%.6g\n", what, value, unit, sign, limit, noise);
  std::fflush(g_figures);
}

bool print_limit(const char* what, double value, double limit, const char* unit, const char* sign,
                 bool good, double noise) {
  std::printf("%-62s %10.3f %-3s (%s %g) %s\n", what, value, unit, sign, limit,
              good ? "" : "MISSED");
  std::fflush(stdout);
  write_figure(what, value, unit, sign, limit, noise);
  return good;
}

}  // namespace

bool open_figures_file(const char* path) {
  g_figures = std::fopen(path, "we");
  return g_figures != nullptr;
}

double noise_of(std::vector<double> values) {
  return values.size() < 2 ? kUnknownNoise : relative_spread(std::move(values));
}

bool print_at_most(const char* what, double value, double limit, const char* unit, double noise) {
  return print_limit(what, value, limit, unit, "<=", value >= 0 && value <= limit, noise);
}

bool print_at_least(const char* what, double value, double limit, const char* unit, double noise) {
  return print_limit(what, value, limit, unit, ">=", value >= limit, noise);
}

void print_figure(const char* what, double value, const char* unit, double noise) {
  std::printf("%-62s %10.3f %s\n", what, value, unit);
  std::fflush(stdout);
  write_figure(what, value, unit, "", 0, noise);
}

}  // namespace pagejit::bench
