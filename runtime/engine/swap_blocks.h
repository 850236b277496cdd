// Moving blocks between device and host with the driver's own copies. Thread-safety: a free
// function without state.
#pragma once

#include "pagejit/cache_ops.h"
#include "runtime/driver/driver.h"

namespace pagejit {

// Enqueues one copy per pair on `stream`; in one call of the driver where it has batches of copies
// (12.8 and later) and the stream is not a default one, which takes none.
Status swap_blocks(const Driver& driver, const SwapBlocksArgs& args, Stream stream);

}  // namespace pagejit
