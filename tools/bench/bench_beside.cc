#include "tools/bench/bench_beside.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

extern char** environ;

namespace pagejit::cli {
namespace {

// How soon an interrupt reaches the program.
constexpr std::chrono::milliseconds kLookForInterrupt{20};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    std::string path =
        std::filesystem::temp_directory_path(error).string() + "/pagejit-bench-XXXXXX";
    if (mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~TemporaryFolder() {
    // A process that is just dying may still add a file.
    constexpr int kTries = 50;
    std::error_code error;
    for (int i = 0; i < kTries && !path_.empty(); ++i) {
      std::filesystem::remove_all(path_, error);
      if (!std::filesystem::exists(path_, error)) return;
      std::this_thread::sleep_for(kLookForInterrupt);
    }
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// In a process group of its own, which can be ended as a whole. errno, or 0.
int spawn_group(const std::vector<std::string>& words, bool lines_to_err, pid_t* child) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (lines_to_err) posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int error =
      posix_spawn(child, words[0].c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

// The status of waitpid(). An interrupt ends the child's group; grandchildren are not waited for.
int wait_for_group(pid_t child, const std::atomic<bool>& interrupted) {
  int status = 0;
  bool is_told = false;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (interrupted.load() && !is_told) is_told = kill(-child, SIGTERM) == 0;
    std::this_thread::sleep_for(kLookForInterrupt);
  }
  return status;
}

std::optional<BenchResult> parse_figure(const std::string& suite, const std::string& line) {
  std::array<std::string, 6> fields;  // name, value, unit, sign, limit, noise
  std::istringstream stream(line);
  for (std::string& field : fields) {
    if (!std::getline(stream, field, '\t')) return std::nullopt;
  }
  BenchResult result;
  result.suite = suite;
  result.name = fields[0];
  result.value = std::strtod(fields[1].c_str(), nullptr);
  result.unit = fields[2];
  result.higher_is_better = fields[3] == ">=";
  if (!fields[3].empty()) {
    result.goal = BenchGoal{.limit = std::strtod(fields[4].c_str(), nullptr),
                            .at_least = result.higher_is_better};
  }
  const double noise = std::strtod(fields[5].c_str(), nullptr);
  if (noise >= 0) result.noise = noise;
  return result;
}

}  // namespace

std::vector<BenchResult> parse_figures(const std::string& suite, const std::string& text) {
  std::vector<BenchResult> results;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    std::optional<BenchResult> result = parse_figure(suite, line);
    if (result) results.push_back(std::move(*result));
  }
  return results;
}

std::vector<BenchResult> run_beside(const std::string& suite, const std::string& name,
                                    const std::vector<std::string>& files, const std::string& nvrtc,
                                    bool lines_to_err, CommandContext& context) {
  std::error_code error;
  const std::filesystem::path here =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const std::string program = here / name;
  const TemporaryFolder folder;
  if (folder.path().empty()) {
    context.fail(Status(StatusCode::kCacheError, "no temporary directory could be made: " +
                                                     std::string(std::strerror(errno))));
    return {};
  }
  const std::string figures = folder.path() + "/figures";
  const std::string work = folder.path() + "/work";
  std::filesystem::create_directory(work, error);
  std::vector<std::string> words = {program, program, figures, work};
  for (const std::string& file : files) words.push_back(here / file);
  for (size_t i = 0; i < words.size(); ++i) {
    if (i == 2 || std::filesystem::exists(words[i], error)) continue;
    context.fail(Status(StatusCode::kNotFound,
                        std::filesystem::path(words[i]).filename().string() +
                            " is not beside this command; this needs a build with tests"),
                 ExitCode::kEnvironment);
    return {};
  }
  words.push_back(nvrtc);
  context.out.flush();
  pid_t child = 0;
  if (const int failure = spawn_group(words, lines_to_err, &child); failure != 0) {
    context.fail(
        Status(StatusCode::kInternal, name + " could not be run: " + std::strerror(failure)));
    return {};
  }
  const int status = wait_for_group(child, context.interrupted);
  if (WIFEXITED(status)) {
    context.exit_code = worse(context.exit_code, static_cast<ExitCode>(WEXITSTATUS(status)));
  } else if (!context.interrupted.load()) {
    context.fail(Status(StatusCode::kInternal,
                        name + " was ended by signal " + std::to_string(WTERMSIG(status))));
  }
  std::ifstream stream(figures);
  return parse_figures(suite, std::string(std::istreambuf_iterator<char>(stream), {}));
}

}  // namespace pagejit::cli
