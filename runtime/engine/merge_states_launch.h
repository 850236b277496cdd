// The launch of a merge, in the steps that a MergeStatesKernel takes at once and a cascade one by
// one. Thread-safety: free functions without state.
#pragma once

#include "pagejit/merge_states.h"
#include "pagejit/status.h"
#include "runtime/engine/loaded_kernel.h"

namespace pagejit {

// All checks of a launch. args.num_tokens must not be 0.
Status check_merge(const LoadedKernel& kernel, const MergeStatesArgs& args);

// Enqueues what check_merge() passed.
Status launch_checked_merge(const LoadedKernel& kernel, const MergeStatesArgs& args, Stream stream);

}  // namespace pagejit
