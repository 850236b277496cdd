// What `pagejit tune` measured, as text for people and as JSON for programs. Thread-safety: free
// functions.
#pragma once

#include <string>

#include "tools/cli/terminal.h"
#include "tools/tune/tune_run.h"

namespace pagejit::cli {

// The candidates with what the planner's model predicted and what was measured, the verdict below.
std::string tune_table(const TuneResult& result, const Terminal& terminal = {});

// One line: `spec`, `target`, `device`, `version`; `chosen` and `planned` (tile_text()), `image`
// (the name of the choice's entry), `speedup`, `sentence`; `problems` with `name`, `planned_us` and
// `tuned_us` (medians of a launch); `candidates`, the planner's first: `tile`,
// `predicted_slowdown`, `result` ("chosen", "timed", "left out"), `message` where left out, else
// `key`, `registers`, `shared_bytes`, `ratio` and `noise` (TuneVerdict) and `rounds_us`, of each
// problem the time of each round.
std::string tune_json(const TuneResult& result);
// The line of a spec that could not be tuned: `spec`, `target`, `device`, `error`.
std::string tune_failure_json(const TuneRequest& request, const Status& status);

}  // namespace pagejit::cli
