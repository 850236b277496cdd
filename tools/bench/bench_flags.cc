#include "tools/bench/bench_flags.h"

#include <filesystem>
#include <utility>

#include "tools/cli/output_file.h"
#include "tools/models/config_reader.h"

namespace pagejit::cli {

Status bad_usage(const std::string& message) {
  return Status(StatusCode::kInvalidArgument, message);
}

Status check_outputs(const BenchFlags& flags) {
  if (flags.json.empty() || flags.svg.empty()) return Status::ok();
  if (flags.json == "-" && flags.svg == "-") {
    return bad_usage(
        "--json - and --svg - both take the standard output; one of them takes a file");
  }
  if (flags.json == "-" || flags.svg == "-") return Status::ok();
  std::error_code error;
  const auto whole = [&error](const std::string& path) {
    const std::filesystem::path absolute = std::filesystem::absolute(path, error);
    const std::filesystem::path found = std::filesystem::weakly_canonical(absolute, error);
    return error ? absolute.lexically_normal() : found;
  };
  if (whole(flags.json) != whole(flags.svg)) return Status::ok();
  return bad_usage("--json and --svg both write " + models::printable(flags.json) +
                   "; each takes a file of its own");
}

void write_files(const BenchFlags& flags, const std::string& json, const std::string& svg,
                 CommandContext& context) {
  for (const auto& [path, text] : {std::pair(flags.json, json), std::pair(flags.svg, svg)}) {
    if (path.empty()) continue;
    if (const Status written = write_output(path, text, context.out); !written) {
      context.fail(written);
    }
  }
}

}  // namespace pagejit::cli
