#include "tools/cli/tuned_lines.h"

#include "tools/cli/text_table.h"
#include "tools/models/config_reader.h"

namespace pagejit::cli {

std::string tuned_lines(const std::vector<TunedKernel>& kernels) {
  std::string text;
  for (const TunedKernel& kernel : kernels) {
    const TunedRecord& record = kernel.found.record;
    text += "tuned on " + models::printable(record.device) + ": ";
    if (!record.changes_tile()) {
      text += "the planner's choice was not beaten\n";
      continue;
    }
    // With an image it is one of the planner's, in full; else a text of others.
    const std::string tile = kernel.image ? record.tile : models::printable(record.tile);
    text += tile + ", " + format_number("%.2f", record.speedup()) + " times as fast; ";
    text += kernel.image ? "taken where PAGEJIT_TUNED is on: " + kernel.image->info.key
                         : "not taken: " + models::printable(kernel.why_unused.message());
    text += "\n";
  }
  return text;
}

}  // namespace pagejit::cli
