#include "tools/cli/tune_outcome.h"

#include "generator/tile_text.h"
#include "tools/cli/output_file.h"

namespace pagejit::cli {

void fail_left_out(const TuneResult& result, CommandContext& context) {
  for (const TuneCandidate& candidate : result.candidates) {
    if (candidate.status) continue;
    context.fail(candidate.status.with_context(describe_tile(candidate.config.attention)));
  }
}

bool write_tune_files(const TuneFiles& files, const std::string& json,
                      const cache::BundleWriter& bundle, CommandContext& context) {
  Status json_status;
  if (!files.json_path.empty()) json_status = write_output(files.json_path, json, context.out);
  if (!json_status) context.fail(json_status);
  if (files.bundle_path.empty() || bundle.num_entries() == 0) return json_status.is_ok();
  if (const Status status = bundle.write_file(files.bundle_path); !status) {
    context.fail(status);
    return false;
  }
  // For people: where JSON takes the standard output, nothing.
  if (files.json_path != "-") {
    context.out << files.bundle_path << ": " << bundle.num_entries()
                << " entries, records and their kernels\n"
                << std::flush;
  }
  return json_status.is_ok();
}

}  // namespace pagejit::cli
