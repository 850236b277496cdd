// The debug report of the cache operations, from the host's side: a few words of device memory that
// debug kernels write into. Thread-safety: free functions without state.
#pragma once

#include <functional>
#include <string>

#include "pagejit/kernel_handle.h"
#include "pagejit/status.h"
#include "runtime/driver/driver.h"
#include "templates/shared/debug_report.h"

namespace pagejit {

// Enqueues zeros.
Status init_debug_report(const Driver& driver, void* report, Stream stream);

// Synchronises the stream and reads. Where something was found: kDeviceCheckFailed with the
// sentence of the first kind of fault that was, and the report is cleared.
Status read_debug_report(
    const Driver& driver, void* report, Stream stream,
    const std::function<std::string(int fault, int index, int64_t value)>& sentence);

// The sentence of a pagejit_shared::CacheWriteFault.
std::string write_sentence(int fault, int index, int64_t value);

}  // namespace pagejit
