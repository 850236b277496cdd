// The checks of a launch's arguments: by value only, nothing is dereferenced. The good way is a run
// of comparisons; the sentences are made out of line. Thread-safety: free functions without state.
#pragma once

#include "pagejit/launch.h"
#include "pagejit/status.h"
#include "templates/shared/attention_params.h"

namespace pagejit {

struct LoadedAttention;

// All fields but num_splits and the workspace. num_seqs must not be 0.
Status check_attention_args(const pagejit_shared::AttentionConfig& config,
                            const AttentionArgs& args);

// num_splits is the resolved number, at least 1.
Status check_workspace(const LoadedAttention& kernel, const AttentionArgs& args, int num_splits);

// Why a given (not chosen) args.num_splits cannot be used.
Status check_num_splits(const LoadedAttention& kernel, const AttentionArgs& args);

}  // namespace pagejit
