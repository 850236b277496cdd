// Runs the pagejit command as a user would, and gathers what it prints.
// Thread-safety: each object has its own folder.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace pagejit::cli {

struct CommandResult {
  int exit_code = -1;  // 128 + the signal where one ended it
  std::string out;
  std::string err;
};

class CommandRunner {
 public:
  CommandRunner();
  ~CommandRunner();
  CommandRunner(const CommandRunner&) = delete;
  CommandRunner& operator=(const CommandRunner&) = delete;

  // An own folder, removed at the end. The command's cache lies in cache/ below it.
  const std::string& folder() const { return folder_; }
  std::string write_file(const std::string& name, const std::string& text) const;

  // "" where there is none.
  static std::string read_file(const std::string& path);

  // A program of the folder: a shell script that `text` is the body of.
  std::string write_script(const std::string& name, const std::string& text) const;

  // For the commands run from now on.
  void set_variable(const std::string& name, const std::string& value);

  // Whether it waits for something.
  static bool is_asleep(int pid);

  CommandResult run(const std::vector<std::string>& arguments) const;

  // `prepare` runs in the child, after its output was redirected.
  CommandResult run(const std::vector<std::string>& arguments,
                    const std::function<void()>& prepare) const;

  // Interrupts the command (SIGINT) once `is_time` says so.
  CommandResult run_and_interrupt(const std::vector<std::string>& arguments,
                                  const std::function<bool()>& is_time) const;
  // The same, for what looks at the process.
  CommandResult run_and_interrupt(const std::vector<std::string>& arguments,
                                  const std::function<bool(int pid)>& is_time) const;
  // Interrupts it again as soon as the first interrupt was taken.
  CommandResult run_and_interrupt_twice(const std::vector<std::string>& arguments,
                                        const std::function<bool()>& is_time) const;
  // The same as the first, once standard error has `num_lines` lines.
  CommandResult run_and_interrupt(const std::vector<std::string>& arguments, int num_lines) const;

 private:
  int start(const std::vector<std::string>& arguments,
            const std::function<void()>& prepare = nullptr) const;
  CommandResult finish(int pid) const;
  std::string folder_;
  std::vector<std::pair<std::string, std::string>> variables_;
};

// The config.json of a model of the model tests.
std::string model_file(const std::string& name);

}  // namespace pagejit::cli
