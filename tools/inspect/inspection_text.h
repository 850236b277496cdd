// An inspection for people: text in sections, each with a heading. Thread-safety: a free function.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/terminal.h"
#include "tools/inspect/inspection.h"

namespace pagejit::inspect {

// On a terminal fitted to its width, but for what is drawn.
std::string to_text(const Inspection& inspection, const cli::Terminal& terminal = {});

// The rows of its tables, for the page too: cells of text, the first row being titles.
using Table = std::vector<std::vector<std::string>>;
Table resource_table(const Inspection& inspection);   // what, how much, where it was read
Table occupancy_table(const Inspection& inspection);  // a row for each GPU
Table mix_table(const Inspection& inspection);        // classes, of the kernel and its main loop
// The formulas of its roofline, a line each; "" where there is none.
std::string explained_roofline(const Inspection& inspection);
// "279 instructions and 9 no-operations, 0x0c50 to 0x1e40; ..."; "" where it has no loop.
std::string describe_main_loop(const Inspection& inspection);

}  // namespace pagejit::inspect
