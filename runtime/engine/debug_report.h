// The debug report of the cache operations, from the host's side: a few words of device memory that
// debug kernels write into. Thread-safety: free functions without state.
#pragma once

#include <functional>
#include <string>

#include "pagejit/kernel_handle.h"
#include "pagejit/status.h"
#include "runtime/engine/loaded_kernel.h"
#include "templates/shared/debug_report.h"

namespace pagejit {

// What handles do with a report; `loaded` is null where the handle is empty. No exception leaves
// these.

// Enqueues zeros.
Status init_debug_report(const LoadedKernel* loaded, void* report, Stream stream);

// Synchronises the stream and reads. Where something was found: kDeviceCheckFailed with the
// sentence of the first kind of fault that was, and the report is cleared.
Status read_debug_report(
    const LoadedKernel* loaded, void* report, Stream stream,
    const std::function<std::string(int fault, int index, int64_t value)>& sentence);

// The sentence of a pagejit_shared::CacheWriteFault.
std::string write_sentence(int fault, int index, int64_t value);
// Sentences that several families have.
std::string bad_slot_sentence(int fault, int token, int64_t slot);
std::string bad_block_sentence(int fault, int token, int64_t block);

}  // namespace pagejit
