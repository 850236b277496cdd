#include "tests/tools/cli/command_runner.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace pagejit::cli {
namespace {

void redirect(const std::string& path, int fd) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(file, fd);
}

// Two minutes: a compile takes seconds even on a loaded machine.
void wait_until(const std::function<bool()>& is_time) {
  for (int i = 0; i < 12000 && !is_time(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// A value of /proc/PID/status; "" where there is none.
std::string status_of(int pid, const std::string& name) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word, value; status >> word && std::getline(status >> std::ws, value);) {
    if (word == name) return value;
  }
  return "";
}

// The first interrupt is the last that is caught.
bool catches_interrupts(int pid) {
  const std::string caught = status_of(pid, "SigCgt:");
  constexpr int kHex = 16;
  return !caught.empty() && (std::stoull(caught, nullptr, kHex) >> (SIGINT - 1) & 1) != 0;
}

}  // namespace

CommandRunner::CommandRunner() {
  std::string path = std::filesystem::temp_directory_path().string() + "/pagejit-command-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) std::abort();
  folder_ = path;
}

CommandRunner::~CommandRunner() {
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

std::string CommandRunner::read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

std::string CommandRunner::write_file(const std::string& name, const std::string& text) const {
  std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  return folder_ + "/" + name;
}

std::string CommandRunner::write_script(const std::string& name, const std::string& text) const {
  const std::string path = write_file(name, "#!/bin/sh\n" + text);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

void CommandRunner::set_variable(const std::string& name, const std::string& value) {
  variables_.emplace_back(name, value);
}

int CommandRunner::start(const std::vector<std::string>& arguments,
                         const std::function<void()>& prepare) const {
  const int pid = fork();
  if (pid != 0) return pid;
  redirect(folder_ + "/out", STDOUT_FILENO);
  redirect(folder_ + "/err", STDERR_FILENO);
  setenv("PAGEJIT_CACHE_DIR", (folder_ + "/cache").c_str(), 1);
  for (const char* name :
       {"PAGEJIT_DRIVER", "PAGEJIT_ALLOW_EMULATOR", "PAGEJIT_CACHE", "PAGEJIT_LOG"}) {
    unsetenv(name);
  }
  for (const auto& [name, value] : variables_) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv = {const_cast<char*>("pagejit")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  if (prepare) prepare();
  execv(PAGEJIT_COMMAND, argv.data());
  _exit(127);
}

CommandResult CommandRunner::finish(int pid) const {
  int status = 0;
  waitpid(pid, &status, 0);
  CommandResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read_file(folder_ + "/out");
  result.err = read_file(folder_ + "/err");
  return result;
}

CommandResult CommandRunner::run(const std::vector<std::string>& arguments) const {
  return finish(start(arguments));
}

CommandResult CommandRunner::run(const std::vector<std::string>& arguments,
                                 const std::function<void()>& prepare) const {
  return finish(start(arguments, prepare));
}

CommandResult CommandRunner::run_and_interrupt(const std::vector<std::string>& arguments,
                                               const std::function<bool()>& is_time) const {
  return run_and_interrupt(arguments, [&is_time](int) { return is_time(); });
}

CommandResult CommandRunner::run_and_interrupt(const std::vector<std::string>& arguments,
                                               const std::function<bool(int)>& is_time) const {
  const int pid = start(arguments);
  wait_until([&] { return is_time(pid); });
  kill(pid, SIGINT);
  return finish(pid);
}

CommandResult CommandRunner::run_and_interrupt_twice(const std::vector<std::string>& arguments,
                                                     const std::function<bool()>& is_time) const {
  const int pid = start(arguments);
  wait_until(is_time);
  kill(pid, SIGINT);
  wait_until([pid] { return !catches_interrupts(pid); });
  kill(pid, SIGINT);
  return finish(pid);
}

bool CommandRunner::is_asleep(int pid) { return status_of(pid, "State:").starts_with('S'); }

CommandResult CommandRunner::run_and_interrupt(const std::vector<std::string>& arguments,
                                               int num_lines) const {
  std::filesystem::remove(folder_ + "/err");
  return run_and_interrupt(arguments, [&] {
    const std::string err = read_file(folder_ + "/err");
    return std::count(err.begin(), err.end(), '\n') >= num_lines;
  });
}

std::string model_file(const std::string& name) {
  return std::string(PAGEJIT_MODEL_DATA_DIR) + "/" + name + ".json";
}

}  // namespace pagejit::cli
