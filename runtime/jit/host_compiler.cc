#include "runtime/jit/host_compiler.h"

#include <string.h>
#include <unistd.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "runtime/emulator/host_build_flags.h"
#include "runtime/jit/compile_log.h"
#include "runtime/jit/elf_build_id.h"
#include "runtime/jit/file_io.h"
#include "runtime/jit/subprocess.h"
#include "templates/device/host/emulator_abi.cuh"  // layering: images are bound to this number

namespace pagejit::jit {
namespace {

const char* const kDefaultCommands[] = {"c++", "g++", "clang++"};

// PATH and HOME find the compiler's parts (wrappers such as ccache need them), LD_LIBRARY_PATH its
// libraries. Nothing that could change what it makes (CPATH, CCC_OVERRIDE_OPTIONS, ...).
const char* const kInheritedVariables[] = {"PATH", "HOME", "LD_LIBRARY_PATH"};

// An image has some 50 KB, a checked one some 300 KB.
constexpr size_t kMaxImageBytes = 256 << 20;
// A driver that is a script, e.g. a wrapper.
constexpr size_t kMaxScriptBytes = 1 << 20;

constexpr const char* kImageName = "image.so";

bool is_program(const std::string& path) {
  return is_file(path) && access(path.c_str(), X_OK) == 0;
}

// FNV-1a: tells two wrapper scripts apart; guards against nothing.
std::string content_hash(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  }
  std::string hex;
  for (int shift = 60; shift >= 0; shift -= 4) hex += "0123456789abcdef"[hash >> shift & 15];
  return hex;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Failures that are the machine's and not the source's; "" where it is the source's.
std::string machine_failure(const SubprocessResult& run, std::chrono::milliseconds timeout) {
  using End = SubprocessResult::End;
  if (run.end == End::kTimedOut) {
    return "was stopped after " + std::to_string(timeout.count()) + " ms";
  }
  if (run.end == End::kSignalled) {
    return std::string("was killed by signal ") + std::to_string(run.signal) + " (" +
           strsignal(run.signal) + ")";
  }
  // The driver survives when its own child is killed, and says so; the words are GCC's and clang's.
  if (contains(run.output, "signal terminated program") || contains(run.output, "due to signal")) {
    return "lost its compiling process: " + first_error_line(run.output);
  }
  // Of errno, in the locale C that it is run in, and GCC's own.
  for (const char* words :
       {"Cannot allocate memory", "out of memory", "virtual memory exhausted",
        "Resource temporarily unavailable", "Too many open files", "Disk quota exceeded"}) {
    if (contains(run.output, words)) return "ran out of resources: " + first_error_line(run.output);
  }
  if (contains(run.output, "No space left on device")) {
    return "found no space left on the device of its temporary folder: set TMPDIR to another one";
  }
  return {};
}

}  // namespace

HostCompiler::HostCompiler(HostCompilerOptions options)
    : options_(std::move(options)), pool_(options_.threads) {}

std::vector<std::string> HostCompiler::options(const Target&) const {
  return host_build_flags(options_.build);
}

Status HostCompiler::check_target(const Target& target) {
  if (target.is_host()) return Status::ok();
  return Status(StatusCode::kUnsupported,
                "target " + target.to_string() +
                    ": the host's C++ compiler serves only \"host\" and \"host_<sm>\"");
}

Result<std::string> HostCompiler::find_program() const {
  const std::string& command = options_.command;
  if (contains(command, "/")) {
    // Absolute, because the child has another working folder. Its links stay: ccache and clang look
    // at their own name.
    const std::string path = command.front() == '/' ? command : resolved_path(".") + "/" + command;
    if (is_program(path)) return path;
    return Status(StatusCode::kCompilerUnavailable,
                  "the C++ compiler " + command + " is not there or cannot be run");
  }
  const std::string path_list =
      options_.environment("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  std::vector<std::string> names;
  if (command.empty()) {
    names.assign(std::begin(kDefaultCommands), std::end(kDefaultCommands));
  } else {
    names.push_back(command);
  }
  for (const std::string& name : names) {
    for (const std::string& folder : split_path_list(path_list)) {
      if (folder.front() != '/') continue;  // what "." is depends on the caller
      const std::string path = folder + "/" + name;
      if (is_program(path)) return path;
    }
  }
  return Status(StatusCode::kCompilerUnavailable,
                "no C++ compiler for the target \"host\": " +
                    (command.empty() ? std::string("c++, g++ or clang++") : command) +
                    " is not on PATH; install one or set PAGEJIT_HOST_CXX");
}

std::vector<std::string> HostCompiler::child_environment(const std::string& folder) const {
  std::vector<std::string> variables = {"LC_ALL=C", "TMPDIR=" + folder, "PWD=" + folder};
  for (const char* name : kInheritedVariables) {
    if (auto value = options_.environment(name))
      variables.push_back(std::string(name) + "=" + *value);
  }
  return variables;
}

Result<std::string> HostCompiler::identity() {
  std::lock_guard lock(mutex_);
  if (!identity_.empty()) return identity_;
  Result<std::string> text = identify();
  if (text) identity_ = *text;
  return text;
}

Result<std::string> HostCompiler::identify() {
  Result<std::string> program = find_program();
  if (!program) return program.status();
  Result<SubprocessResult> run = run_subprocess({.command = {*program, "--version"},
                                                 .environment = child_environment("/tmp"),
                                                 .folder = "/",
                                                 .timeout = options_.timeout});
  if (!run) return run.status();
  const std::string version = run->output.substr(0, run->output.find('\n'));
  const bool ended_well = (run->end == SubprocessResult::End::kExited && run->exit_code == 0) ||
                          run->end == SubprocessResult::End::kUnknown;
  if (!ended_well || version.empty()) {
    const std::string reason = machine_failure(*run, options_.timeout);
    return Status(StatusCode::kCompilerUnavailable,
                  *program + " --version " + (reason.empty() ? "failed" : reason), run->output);
  }
  version_ = version;
  std::string driver;
  if (Result<std::string> build_id = read_elf_build_id(*program)) {
    driver = *build_id;
  } else if (Result<std::string> script = read_file(*program, kMaxScriptBytes)) {
    driver = "script " + content_hash(*script);
  } else {
    driver = "unknown";  // the version's text has to do
  }
  return "c++ " + version + " driver " + driver + " emulator-abi " +
         std::to_string(pagejit_emulator::kEmulatorAbi);
}

Result<CompiledImage> HostCompiler::compile(const KernelSource& source, const JobOptions& job) {
  if (Status status = check_target(source.target); !status) return status;
  return pool_
      .submit<CompiledImage>([this, &source, &job] { return compile_on_pool(source, job.stop); },
                             job)
      .wait();
}

CompileRecipe HostCompiler::recipe(const Target& target) {
  const Result<std::string> program = find_program();
  return {options(target), program ? *program : std::string(), {}};
}

Result<CompiledImage> HostCompiler::compile_on_pool(const KernelSource& source,
                                                    const std::stop_token& stop) {
  CompiledImage compiled;
  Result<std::string> compiler_identity = identity();
  if (!compiler_identity) return compiler_identity.status();
  compiled.compiler_identity = std::move(*compiler_identity);
  {
    const std::lock_guard lock(mutex_);
    compiled.compiler = version_;
  }
  Result<std::string> program = find_program();
  if (!program) return program.status();
  Result<PrivateFolder> created =
      PrivateFolder::create(options_.environment("TMPDIR").value_or(""));
  if (!created) return created.status();
  const std::string folder = resolved_path(created->path());
  const std::string source_name = source.kernel_name + ".cc";
  if (Status status = write_new_file(folder + "/" + source_name, source.text); !status) {
    return status;
  }

  SubprocessRequest request{.command = {*program},
                            .environment = child_environment(folder),
                            .folder = folder,
                            .timeout = options_.timeout,
                            .stop = stop};
  for (std::string& flag : options(source.target)) request.command.push_back(std::move(flag));
  // The debug information names the working folder, which is another one each time.
  request.command.push_back("-ffile-prefix-map=" + folder + "=.");
  for (const char* word : {"-o", kImageName}) request.command.emplace_back(word);
  request.command.push_back(source_name);

  const auto start = std::chrono::steady_clock::now();
  Result<SubprocessResult> run = run_subprocess(request);
  if (!run) return run.status();
  const auto elapsed = std::chrono::steady_clock::now() - start;
  compiled.compile_ms = std::chrono::duration<double, std::milli>(elapsed).count();
  compiled.log = run->output;

  if (run->end == SubprocessResult::End::kCancelled) {
    return Status(StatusCode::kCancelled, source.kernel_name + " for " + source.target.to_string() +
                                              ": the compile was cancelled");
  }
  const bool may_have_succeeded =
      (run->end == SubprocessResult::End::kExited && run->exit_code == 0) ||
      run->end == SubprocessResult::End::kUnknown;
  if (may_have_succeeded) {
    Result<std::string> image = read_file(folder + "/" + kImageName, kMaxImageBytes);
    if (image && !image->empty()) {
      compiled.image = std::move(*image);
      compiled.report.warnings = warning_lines(compiled.log);
      return compiled;
    }
  }
  const std::string context =
      source.kernel_name + " for " + source.target.to_string() + ": " + *program + " ";
  std::string detail = failure_detail(compiled.log, "command", request.command, source.text);
  FailureFacts facts = failure_facts(compiled.log, request.command, source.text);
  if (const std::string reason = machine_failure(*run, options_.timeout); !reason.empty()) {
    return Status(StatusCode::kCompilerUnavailable, context + reason, std::move(detail),
                  std::move(facts));
  }
  if (may_have_succeeded) {
    return Status(StatusCode::kCompilerUnavailable, context + "ended without writing an image",
                  std::move(detail), std::move(facts));
  }
  std::string reason = first_error_line(compiled.log);
  if (reason.empty()) reason = "exit code " + std::to_string(run->exit_code);
  return Status(StatusCode::kCompileFailed, context + "failed: " + reason, std::move(detail),
                std::move(facts));
}

}  // namespace pagejit::jit

namespace pagejit {

std::shared_ptr<Compiler> make_host_compiler(const std::string& command, HostBuild build,
                                             int threads, Environment environment) {
  return std::make_shared<jit::HostCompiler>(
      jit::HostCompilerOptions{.command = command,
                               .build = build,
                               .threads = threads,
                               .environment = std::move(environment)});
}

}  // namespace pagejit
