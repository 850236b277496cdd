// What `pagejit tune` leaves behind beside its tables: failures of candidates, and files.
// Thread-safety: free functions.
#pragma once

#include <string>

#include "cache/bundle_writer.h"
#include "tools/cli/command_context.h"
#include "tools/tune/tune_run.h"

namespace pagejit::cli {

// Each candidate that was left out is a failure of the command, with the exit code of its status: a
// kernel that does not compile (2), wrong results (5), a device that refuses it (3).
void fail_left_out(const TuneResult& result, CommandContext& context);

struct TuneFiles {
  std::string json_path;    // "": none, "-": the standard output
  std::string bundle_path;  // "": none
};

// Writes the JSON, then the bundle if it has entries; one that cannot be written does not keep the
// other from being tried. Each failure is the command's. Whether there was none.
bool write_tune_files(const TuneFiles& files, const std::string& json,
                      const cache::BundleWriter& bundle, CommandContext& context);

}  // namespace pagejit::cli
