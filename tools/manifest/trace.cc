#include "tools/manifest/trace.h"

#include <algorithm>
#include <set>

#include "generator/spec_parser.h"
#include "tools/manifest/bounded_json.h"
#include "tools/manifest/manifest.h"
#include "tools/models/config_reader.h"

namespace pagejit::manifest {
namespace {

Result<std::string> text_member(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) {
    return Status(StatusCode::kInvalidArgument, std::string(key) + ": missing");
  }
  if (!found->is_string()) return must_be_at(key, *found, "a text");
  return found->get<std::string>();
}

// The kernels of a line: several where its spec is one of several kernels.
Status read_line(std::string_view line, std::vector<ListedKernel>* kernels) {
  const Result<Json> object = parse_bounded_json(line);
  if (!object) return object.status();
  if (!object->is_object()) {
    return Status(StatusCode::kInvalidArgument, "must be an object with spec and target");
  }
  const Result<std::string> spec_text = text_member(*object, "spec");
  if (!spec_text) return spec_text.status();
  const Result<std::string> target_text = text_member(*object, "target");
  if (!target_text) return target_text.status();
  const Result<std::vector<AnySpec>> specs = parse_kernels(*spec_text);
  if (!specs) return specs.status().with_context("spec");
  const Result<Target> target = parse_target(models::printable(*target_text));
  if (!target) return target.status();
  for (const AnySpec& spec : *specs) kernels->emplace_back(spec, *target);
  return {};
}

}  // namespace

Result<Trace> parse_trace(std::string_view text) {
  Trace trace;
  std::set<std::string_view> seen;  // most lines of a long trace are repeated
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const bool is_whole = end != std::string_view::npos;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(is_whole ? end + 1 : text.size());
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || !seen.insert(line).second) continue;
    if (const Status status = read_line(line, &trace.kernels); !status && is_whole) {
      trace.damaged.push_back("line " + std::to_string(number) + ": " + status.message());
    }
    if (trace.kernels.size() > 2 * kMaxKernels) sort_unique(&trace.kernels);
    if (trace.kernels.size() > 2 * kMaxKernels) break;
  }
  sort_unique(&trace.kernels);
  if (trace.kernels.size() > kMaxKernels) {
    return Status(StatusCode::kInvalidArgument, "more than " + std::to_string(kMaxKernels) +
                                                    " different kernels: a list has no more");
  }
  return trace;
}

Result<Trace> load_trace(const std::string& path) {
  const Result<std::string> text = read_bounded_file(path);
  if (!text) return text.status();
  Result<Trace> trace = parse_trace(*text);
  if (!trace) return trace.status().with_context(path);
  for (std::string& sentence : trace->damaged) sentence = path + ": " + sentence;
  return trace;
}

}  // namespace pagejit::manifest
