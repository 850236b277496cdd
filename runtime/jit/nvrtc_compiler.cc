#include "runtime/jit/nvrtc_compiler.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string_view>
#include <utility>

#include "runtime/jit/compile_log.h"

namespace pagejit::jit {
namespace {

// The first architecture with an architecture-specific ('a') variant, and with a family ('f')
// variant.
constexpr int kFirstExactArch = 90;
constexpr int kFirstFamilyArch = 100;

bool has_exact_variant(int sm) { return sm >= kFirstExactArch; }

bool has_family_variant(int sm, NvrtcVersion version) {
  return sm >= kFirstFamilyArch && version >= kNvrtcWithFamilies;
}

// "75 80 90 90a 100 100a 100f".
std::string served_targets(NvrtcVersion version, const std::vector<int>& archs) {
  std::string text;
  for (int sm : archs) {
    const std::string number = std::to_string(sm);
    text += (text.empty() ? "" : " ") + number;
    if (has_exact_variant(sm)) text += " " + number + "a";
    if (has_family_variant(sm, version)) text += " " + number + "f";
  }
  return text;
}

// An nvrtcProgram that is destroyed with its scope.
class Program {
 public:
  explicit Program(const NvrtcApi& api) : api_(api) {}
  ~Program() {
    if (program_ != nullptr) api_.destroy_program(&program_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  int create(const std::string& source, const std::string& name) {
    return api_.create_program(&program_, source.c_str(), name.c_str(), 0, nullptr, nullptr);
  }

  // `stop` ends it early, where this NVRTC can do that.
  int compile(const std::vector<std::string>& options, const std::stop_token& stop) {
    if (api_.set_flow_callback != nullptr && stop.stop_possible()) {
      const int result = api_.set_flow_callback(program_, &Program::asks_to_stop,
                                                const_cast<std::stop_token*>(&stop));
      if (result != kNvrtcSuccess) return result;
    }
    std::vector<const char*> words;
    words.reserve(options.size());
    for (const std::string& option : options) words.push_back(option.c_str());
    return api_.compile_program(program_, static_cast<int>(words.size()), words.data());
  }

  std::string log() const {
    size_t bytes = 0;  // with the closing null
    if (api_.get_program_log_size(program_, &bytes) != kNvrtcSuccess || bytes <= 1) return {};
    std::string log(bytes, '\0');
    if (api_.get_program_log(program_, log.data()) != kNvrtcSuccess) return {};
    log.resize(log.find('\0'));
    return log;
  }

  int cubin(std::string& image) const { return get(api_.get_cubin_size, api_.get_cubin, image); }
  // With its closing null, by which the driver knows where it ends.
  int ptx(std::string& image) const { return get(api_.get_ptx_size, api_.get_ptx, image); }

 private:
  static int asks_to_stop(void* stop, void*) {
    return static_cast<const std::stop_token*>(stop)->stop_requested() ? 1 : 0;
  }

  template <class GetSize, class Get>
  int get(GetSize get_size, Get get_bytes, std::string& image) const {
    size_t bytes = 0;
    if (const int result = get_size(program_, &bytes); result != kNvrtcSuccess) return result;
    image.resize(bytes);
    return get_bytes(program_, image.data());
  }

  const NvrtcApi& api_;
  NvrtcProgram program_ = nullptr;
};

// What compile() adds changes nothing in the image.
std::vector<std::string> all_options(std::vector<std::string> words, NvrtcVersion version) {
  // NVRTC's own cache would open libcuda and initialise it, which breaks a later fork.
  if (version >= kNvrtcWithCache) words.push_back("--no-cache");
  return words;
}

}  // namespace

Status check_nvrtc_target(const Target& target, NvrtcVersion version,
                          const std::vector<int>& supported_archs) {
  if (target.is_host()) {
    return Status(StatusCode::kUnsupported, "target " + target.to_string() +
                                                ": NVRTC compiles for GPUs, the host's compiler "
                                                "for the host");
  }
  const bool has_arch =
      std::find(supported_archs.begin(), supported_archs.end(), target.sm) != supported_archs.end();
  const bool has_variant =
      target.variant == TargetVariant::kPlain || target.variant == TargetVariant::kPtx ||
      (target.variant == TargetVariant::kExact && has_exact_variant(target.sm)) ||
      (target.variant == TargetVariant::kFamily && has_family_variant(target.sm, version));
  if (has_arch && has_variant) return Status::ok();
  return Status(StatusCode::kUnsupported, "target " + target.to_string() + ": NVRTC " +
                                              version.to_string() + " compiles for sm_ " +
                                              served_targets(version, supported_archs));
}

NvrtcCompiler::NvrtcCompiler(NvrtcSearch search, int threads)
    : finder_(std::move(search)), pool_(threads) {}

std::vector<std::string> NvrtcCompiler::options(const Target& target) const {
  // --minimal (from 12.4 on) leaves out textures, surfaces and the device run-time, which no
  // template uses: the same cubin, some 10 ms sooner. -v makes ptxas report registers and
  // spills; it does not change the code. No -lineinfo: it would put the program's name, and with
  // #line the templates' paths, into the cubin.
  std::vector<std::string> words = {"--gpu-architecture=" + target.to_string(), "--std=c++20",
                                    "--minimal"};
  if (target.variant != TargetVariant::kPtx) words.push_back("--ptxas-options=-v");
  return words;
}

Result<std::string> NvrtcCompiler::identity() {
  if (Result<std::string> known = identity_unopened()) return known;
  // Loading runs NVRTC's initialisers, which are for threads with a large stack.
  Result<NvrtcFiles> files =
      pool_
          .submit<NvrtcFiles>([this] { return finder_.find(/*may_load=*/true); },
                              {.priority = JobPriority::kUrgent})
          .wait();
  if (!files) return files.status();
  return files->identity();
}

Result<std::string> NvrtcCompiler::identity_unopened() {
  Result<NvrtcFiles> files = finder_.find(/*may_load=*/false);
  if (!files) return files.status();
  return files->identity();
}

Result<std::shared_ptr<const NvrtcLibrary>> NvrtcCompiler::open() {
  // Usually it is open, and nobody has to wait for a thread that compiles.
  if (std::shared_ptr<const NvrtcLibrary> library = finder_.opened()) return library;
  return pool_
      .submit<std::shared_ptr<const NvrtcLibrary>>([this] { return finder_.open(); },
                                                   {.priority = JobPriority::kUrgent})
      .wait();
}

Status NvrtcCompiler::check_target(const Target& target) {
  Result<std::shared_ptr<const NvrtcLibrary>> library = open();
  if (!library) return library.status();
  return check_nvrtc_target(target, (*library)->version(), (*library)->supported_archs());
}

Result<CompiledImage> NvrtcCompiler::compile(const KernelSource& source, const JobOptions& job) {
  return pool_
      .submit<CompiledImage>([this, &source, &job] { return compile_on_pool(source, job.stop); },
                             job)
      .wait();
}

Result<std::shared_ptr<const NvrtcLibrary>> NvrtcCompiler::open_on_pool(const Target& target) {
  Result<std::shared_ptr<const NvrtcLibrary>> opened = finder_.open();
  if (!opened) return opened;
  const NvrtcLibrary& library = **opened;
  const Status status = check_nvrtc_target(target, library.version(), library.supported_archs());
  if (!status) return status;
  return opened;
}

Result<CompiledImage> NvrtcCompiler::compile_on_pool(const KernelSource& source,
                                                     const std::stop_token& stop) {
  Result<std::shared_ptr<const NvrtcLibrary>> opened = open_on_pool(source.target);
  if (!opened) return opened.status();
  const NvrtcLibrary& library = **opened;
  const NvrtcApi& api = library.api();
  const std::vector<std::string> words = all_options(options(source.target), library.version());

  CompiledImage compiled;
  compiled.compiler_identity = library.files().identity();
  compiled.compiler = "NVRTC " + library.version().to_string();
  const auto start = std::chrono::steady_clock::now();
  Program program(api);
  int result = program.create(source.text, source.kernel_name + ".cu");
  if (result == kNvrtcSuccess) {
    result = program.compile(words, stop);
    compiled.log = program.log();
    if (result == kNvrtcSuccess) {
      const bool as_ptx = source.target.variant == TargetVariant::kPtx;
      result = as_ptx ? program.ptx(compiled.image) : program.cubin(compiled.image);
    }
  }
  const auto elapsed = std::chrono::steady_clock::now() - start;
  compiled.compile_ms = std::chrono::duration<double, std::milli>(elapsed).count();

  if (result == kNvrtcSuccess && !compiled.image.empty()) {
    compiled.report = parse_ptxas_log(compiled.log);
    return compiled;
  }
  if (result == kNvrtcErrorCancelled) {
    return Status(StatusCode::kCancelled, source.kernel_name + " for " + source.target.to_string() +
                                              ": the compile was cancelled");
  }
  const bool refused = result == kNvrtcErrorCompilation || result == kNvrtcErrorInvalidOption;
  std::string reason = first_error_line(compiled.log);
  if (!refused || reason.empty()) {
    const std::string name =
        result == kNvrtcSuccess ? "an empty image" : api.get_error_string(result);
    reason = name + (reason.empty() ? "" : ": " + reason);
  }
  return Status(refused ? StatusCode::kCompileFailed : StatusCode::kCompilerUnavailable,
                source.kernel_name + " for " + source.target.to_string() + ": NVRTC " +
                    library.version().to_string() + ": " + reason,
                failure_detail(compiled.log, "options", words, source.text),
                failure_facts(compiled.log, words, source.text));
}

CompileRecipe NvrtcCompiler::recipe(const Target& target) {
  const Result<NvrtcFiles> files = finder_.find(/*may_load=*/false);
  if (!files) return {options(target), {}, {}};
  return {all_options(options(target), files->version), files->library, files->builtins};
}

Result<std::string> NvrtcCompiler::compile_to_ptx(const KernelSource& source) {
  return pool_.submit<std::string>([this, &source] { return compile_to_ptx_on_pool(source); })
      .wait();
}

Result<std::string> NvrtcCompiler::compile_to_ptx_on_pool(const KernelSource& source) {
  Result<std::shared_ptr<const NvrtcLibrary>> opened = open_on_pool(source.target);
  if (!opened) return opened.status();
  const NvrtcLibrary& library = **opened;
  const NvrtcApi& api = library.api();
  // "sm_90a" -> "compute_90a": a compile for a real architecture keeps no PTX.
  constexpr std::string_view kRealPrefix = "sm_";
  const std::string arch = "compute_" + source.target.to_string().substr(kRealPrefix.size());
  const std::vector<std::string> words =
      all_options({"--gpu-architecture=" + arch, "--std=c++20", "--minimal"}, library.version());
  Program program(api);
  std::string text;
  int result = program.create(source.text, source.kernel_name + ".cu");
  if (result == kNvrtcSuccess) result = program.compile(words, {});
  if (result == kNvrtcSuccess) result = program.ptx(text);
  if (result == kNvrtcSuccess && text.size() > 1) {
    text.pop_back();  // the closing null
    return text;
  }
  return Status(
      StatusCode::kCompileFailed,
      std::string(result == kNvrtcSuccess ? "an empty PTX" : api.get_error_string(result)) + ": " +
          first_error_line(program.log()));
}

}  // namespace pagejit::jit

namespace pagejit {

std::shared_ptr<Compiler> make_nvrtc_compiler(const std::string& path, int threads,
                                              Environment environment) {
  jit::NvrtcSearch search;
  search.explicit_path = path;
  search.environment = std::move(environment);
  search.library_folder = jit::folder_of_this_library();
  return std::make_shared<jit::NvrtcCompiler>(std::move(search), threads);
}

}  // namespace pagejit
