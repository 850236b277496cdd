#include "runtime/engine/kernel_dump.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <utility>

#include "generator/families.h"
#include "runtime/engine/repro_script.h"
#include "runtime/format.h"
#include "runtime/guard.h"
#include "runtime/jit/file_io.h"
#include "runtime/metadata.h"

namespace pagejit {
namespace {

namespace fs = std::filesystem;

// Enough of S to tell the kernels of a program apart; the whole of it stands in spec.txt.
constexpr size_t kKeyDigits = 12;

Status failure(const std::string& path, std::string_view what, int error) {
  return Status(StatusCode::kCacheError,
                format("{} cannot be {}: {}", path, what, jit::errno_text(error)));
}

// A kernel's name has nothing else in it today; whatever it may have one day stays below the
// folder.
std::string folder_name(const DumpedCompile& compile) {
  std::string name = compile.source.kernel_name;
  for (char& c : name) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '-';
    if (!is_plain) c = '_';
  }
  return name + "-" + compile.key.substr(0, kKeyDigits);
}

Status make_folder(const std::string& path) {
  std::error_code error;
  const bool made = fs::create_directories(path, error);
  if (error) return failure(path, "made", error.value());
  if (made && chmod(path.c_str(), 0700) != 0) return failure(path, "made private", errno);
  return {};
}

std::string lines(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += word + "\n";
  return text;
}

std::string spec_lines(const DumpedCompile& compile) {
  const KernelSource& source = compile.source;
  return format(
      "spec: {}\ntarget: {}\nkernel: {}\nparameter_abi: {}\nkey: {}\ncompiler: {}\nimage: {}\n",
      spec_text(source.config), source.target.to_string(), source.kernel_name,
      parameter_abi(source.config), compile.key,
      compile.compiler_identity.empty() ? "not known" : compile.compiler_identity,
      compile.image == nullptr ? std::string("none, the compile failed")
                               : format("{} bytes", compile.image->size()));
}

Status write_files(const std::string& folder, const DumpedCompile& compile) {
  const CompileRecipe recipe = compile.compiler.recipe(compile.source.target);
  const bool is_host = compile.source.target.is_host();
  std::string log = compile.log;
  if (!log.empty() && log.back() != '\n') log += '\n';
  Status status;
  const auto write = [&](const char* name, std::string_view text) {
    if (status) status = jit::write_new_file(folder + "/" + name, text);
  };
  const bool is_ptx = compile.source.target.variant == TargetVariant::kPtx;
  if (!is_host && !is_ptx && compile.image != nullptr) {
    const Result<std::string> ptx = compile.compiler.compile_to_ptx(compile.source);
    if (ptx) {
      write("kernel.ptx", *ptx);
    } else {
      log += format("kernel.ptx is missing: {}\n", ptx.status().message());
    }
  }
  write("source.cu", compile.source.text);
  write("options.txt", lines(recipe.options));
  write("log.txt", log);
  write("spec.txt", spec_lines(compile));
  if (compile.image != nullptr) {
    write(is_host ? "kernel.so" : is_ptx ? "kernel.ptx" : "kernel.cubin", *compile.image);
  }
  write("repro.sh", repro_script(compile.source, recipe));
  const std::string script = folder + "/repro.sh";
  if (status && chmod(script.c_str(), 0700) != 0) {
    status = failure(script, "made executable", errno);
  }
  return status;
}

}  // namespace

void KernelDump::write(const DumpedCompile& compile) noexcept {
  if (!is_on()) return;
  const Status status = guarded([&] { return write_folder(compile); });
  if (status || warned_.test_and_set()) return;
  static_cast<void>(guarded([&] {
    logger_->warning(
        format("compiles are not dumped (PAGEJIT_DUMP={}): {}", folder_, status.message()));
    return Status();
  }));
}

// Made aside and renamed, so that whoever looks at a folder sees the whole of it.
Status KernelDump::write_folder(const DumpedCompile& compile) const {
  if (Status status = make_folder(folder_); !status) return status;
  const std::string place = folder_ + "/" + folder_name(compile);
  std::string aside = folder_ + "/.new-XXXXXX";
  if (mkdtemp(aside.data()) == nullptr) return failure(aside, "made", errno);
  std::error_code error;
  Status status = write_files(aside, compile);
  if (status) {
    fs::rename(aside, place, error);
    if (error) {  // an earlier one is there
      fs::remove_all(place, error);
      fs::rename(aside, place, error);
    }
    // Somebody else dumps the same kernel at this moment: theirs is as good.
    if (!error) return {};
    if (error != std::errc::directory_not_empty && error != std::errc::file_exists) {
      status = failure(place, "made", error.value());
    }
  }
  fs::remove_all(aside, error);
  return status;
}

}  // namespace pagejit
