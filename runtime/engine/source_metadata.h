// What a stored entry must say of the kernel that a source stands for. Thread-safety: free
// functions without state.
#pragma once

#include "generator/config.h"
#include "pagejit/status.h"
#include "runtime/metadata.h"

namespace pagejit {

// The fields that the source alone determines; the others are the compiler's, and empty.
KernelMetadata metadata_of(const KernelSource& source);

// Whether a stored kernel is the one that `source` would give; a launch relies on every field that
// is compared. kDataCorrupt names the first that differs.
Status check_metadata(const KernelMetadata& stored, const KernelSource& source);

}  // namespace pagejit
