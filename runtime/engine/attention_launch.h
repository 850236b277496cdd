// The launch of an attention kernel and its workspace, in the steps that a Kernel takes at once and
// a cascade one by one. Thread-safety: free functions without state.
#pragma once

#include <cstddef>

#include "pagejit/launch.h"
#include "pagejit/status.h"
#include "runtime/driver/driver.h"
#include "runtime/engine/loaded_attention.h"

namespace pagejit {

// All checks of a launch, and the number of splits that it has. args.num_seqs must not be 0.
Status check_attention(const LoadedAttention& kernel, const AttentionArgs& args, int* num_splits);

// Enqueues what check_attention() passed.
Status launch_checked(const LoadedAttention& kernel, const AttentionArgs& args, int num_splits,
                      Stream stream);

// Kernel::workspace_init() and Kernel::read_debug_report().
Status init_workspace(const Driver& driver, void* workspace, size_t workspace_bytes, Stream stream);
Status read_report(const Driver& driver, void* workspace, Stream stream);

}  // namespace pagejit
