// What a kernel has under way at a time, drawn as text: the ring of stages and the order of a
// round, as templates/attention walks it. Sizes are those of the configuration; no times, since
// nothing is measured. Thread-safety: a free function without state.
#pragma once

#include <string>

#include "generator/config.h"
#include "tools/cli/terminal.h"

namespace pagejit::inspect {

// Of attention kernels a chart of tiles over rounds; of the others, which have no ring, a sentence.
// On a terminal the sentences fit its width; the chart is as wide as its rounds.
std::string draw_pipeline(const AnyConfig& config, const cli::Terminal& terminal = {});

}  // namespace pagejit::inspect
