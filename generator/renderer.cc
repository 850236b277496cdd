#include "generator/renderer.h"

#include <set>
#include <string>
#include <utility>

#include "generator/arch.h"
#include "generator/cache_ops.h"
#include "generator/cache_write.h"
#include "generator/entry_text.h"
#include "generator/families.h"
#include "generator/indexer.h"
#include "generator/merge_states.h"
#include "generator/mla_cache_write.h"

namespace pagejit {
namespace {

// The device functions for a target; `pdl`: with those of programmatic dependent launch.
std::string prelude_of(const Target& target, bool pdl) {
  if (target.is_host()) return "device/host/prelude.cuh";
  if (target.sm < kFirstAsyncCopySm) return "device/ptx/sm75/prelude.cuh";
  return pdl ? "device/ptx/prelude_pdl.cuh" : "device/ptx/prelude.cuh";
}

// Replaces each #include "x" by the file's text, once, with #line directives that name the
// template, and leaves out what the switches turn off.
class Inliner {
 public:
  explicit Inliner(const TemplateSet& templates, TextSwitches switches = {})
      : templates_(templates), switches_(std::move(switches)) {
    // More than any source has; growing by doubling would copy it a dozen times.
    out_.reserve(size_t{192} << 10);
  }

  void append_text(std::string_view text) { out_ += text; }

  Status append_device_functions(const Target& target, bool pdl) {
    return include("", 0, prelude_of(target, pdl));
  }

  Status append(const std::string& path, std::string_view text) {
    TextConditions conditions(switches_);
    size_t line_number = 0;
    bool needs_line_directive = true;
    while (!text.empty()) {
      ++line_number;
      const size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (has_switches(path)) {
        const Result<TextConditions::Line> kind = conditions.next(line);
        if (!kind) return failure(path, line_number, kind.status());
        if (*kind != TextConditions::Line::kKept) {
          needs_line_directive = true;
          continue;
        }
      }
      if (needs_line_directive) out_ += line_directive(line_number, path);
      needs_line_directive = false;
      if (line.starts_with("#include")) {
        constexpr std::string_view kOpen = "#include \"";
        if (!line.starts_with(kOpen) || !line.ends_with('"') || line.size() <= kOpen.size()) {
          return missing(path, line_number, line);
        }
        const std::string name(line.substr(kOpen.size(), line.size() - kOpen.size() - 1));
        if (Status s = include(path, line_number, name); !s) return s;
        needs_line_directive = true;
      } else {
        if (line != "#pragma once") out_ += line;  // keeps its line, so that numbers stay right
        out_ += '\n';
      }
    }
    if (Status s = conditions.finish(); !s) return failure(path, line_number, s);
    return Status::ok();
  }

  std::string take() { return std::move(out_); }

 private:
  static std::string line_directive(size_t line, const std::string& path) {
    return "#line " + std::to_string(line) + " \"" + path + "\"\n";
  }

  // Files that the library or nvcc compiles as they are have conditions of C++ only.
  static bool has_switches(const std::string& path) {
    return !path.starts_with("device/") && !path.starts_with("shared/");
  }

  static Status failure(const std::string& path, size_t line, const Status& status) {
    return Status(status.code(),
                  "template " + path + ":" + std::to_string(line) + ": " + status.message());
  }

  static Status missing(const std::string& path, size_t line, std::string_view name) {
    return Status(StatusCode::kInternal, "template " + path + ":" + std::to_string(line) + ": " +
                                             std::string(name) + " is not among the templates");
  }

  // Beside the including file, from the root of the templates, or from the root of the project (for
  // headers that the library includes too).
  Status include(const std::string& from, size_t line, const std::string& name) {
    const size_t slash = from.rfind('/');
    const std::string sibling =
        slash == std::string::npos ? name : from.substr(0, slash + 1) + name;
    auto file = templates_.find(sibling);
    if (file == templates_.end()) file = templates_.find(name);
    constexpr std::string_view kRoot = "templates/";
    if (file == templates_.end() && name.starts_with(kRoot)) {
      file = templates_.find(std::string_view(name).substr(kRoot.size()));
    }
    if (file == templates_.end()) return missing(from, line, name);
    if (!included_.insert(file->first).second) return Status::ok();
    return append(file->first, file->second);
  }

  const TemplateSet& templates_;
  const TextSwitches switches_;
  std::set<std::string> included_;
  std::string out_;
};

}  // namespace

Result<KernelSource> render(const AnyConfig& config, const TemplateSet& templates) {
  EntryText text = std::visit([](const auto& c) { return entry_text(c); }, config);
  const auto entry = templates.find(text.file);
  if (entry == templates.end()) {
    return Status(StatusCode::kInternal, "template " + std::string(text.file) + " is missing");
  }
  Result<std::string> expanded = expand_template(text.file, entry->second, text.values);
  if (!expanded) return expanded.status();
  Inliner inliner(templates, std::move(text.switches));
  if (Status s = inliner.append_device_functions(target_of(config), text.pdl); !s) return s;
  inliner.append_text(std::string(kKernelTextMarker) + "\n" + text.banner + "\n");
  if (Status s = inliner.append(std::string(text.file), *expanded); !s) return s;
  return KernelSource{inliner.take(), std::move(text.kernel_name), target_of(config), config};
}

Result<std::string> with_device_functions(const Target& target, std::string_view kernel_text,
                                          bool pdl, const TemplateSet& templates) {
  Inliner inliner(templates);
  if (Status s = inliner.append_device_functions(target, pdl); !s) return s;
  inliner.append_text(kernel_text);
  return inliner.take();
}

}  // namespace pagejit
