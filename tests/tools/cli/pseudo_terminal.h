// A terminal that a test holds the other end of, and the command on it.
// Thread-safety: each object has its own.
#pragma once

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace pagejit::cli {

class PseudoTerminal {
 public:
  explicit PseudoTerminal(unsigned short columns) {
    winsize size = {};
    size.ws_col = columns;
    size.ws_row = 24;
    is_open_ = openpty(&master_, &slave_, nullptr, nullptr, &size) == 0;
  }
  ~PseudoTerminal() {
    close(master_);
    close_slave();
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  bool is_open() const { return is_open_; }
  int slave() const { return slave_; }
  void close_slave() {
    if (slave_ >= 0) close(slave_);
    slave_ = -1;
  }
  // Until the last writer has closed the slave.
  std::string read_all() const {
    std::string text;
    char part[4096];
    for (ssize_t count; (count = read(master_, part, sizeof part)) > 0;) {
      text.append(part, static_cast<size_t>(count));
    }
    return text;
  }

 private:
  bool is_open_ = false;
  int master_ = -1;
  int slave_ = -1;
};

// What the command prints to standard output and standard error on such a terminal, whose lines end
// in "\r\n". `variables` are added to those of this process; "" removes one.
inline std::string run_on_terminal(unsigned short columns, std::vector<std::string> words,
                                   const std::map<std::string, std::string>& variables = {}) {
  PseudoTerminal pty(columns);
  if (!pty.is_open()) return "";
  const pid_t child = fork();
  if (child == 0) {
    dup2(pty.slave(), STDOUT_FILENO);
    dup2(pty.slave(), STDERR_FILENO);
    setenv("TERM", "xterm", 1);
    unsetenv("COLUMNS");
    unsetenv("NO_COLOR");
    for (const auto& [name, value] : variables) {
      if (value.empty()) {
        unsetenv(name.c_str());
      } else {
        setenv(name.c_str(), value.c_str(), 1);
      }
    }
    std::vector<char*> argv = {const_cast<char*>("pagejit")};
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    execv(PAGEJIT_COMMAND, argv.data());
    _exit(127);
  }
  pty.close_slave();
  std::string text = pty.read_all();
  waitpid(child, nullptr, 0);
  return text;
}

}  // namespace pagejit::cli
