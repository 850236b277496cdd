// expand_manifest on any bytes: a sorted list of planned kernels that a trace can hold, or a
// sentence.
#include <algorithm>

#include "tests/fuzz/fuzz_check.h"
#include "tools/manifest/manifest.h"
#include "tools/manifest/trace.h"

namespace pagejit::manifest {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A hundred thousand, which is the limit, take seconds; the code is the same.
  constexpr size_t kMostKernels = 50;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const Result<Manifest> manifest =
      expand_manifest(json, {.default_targets = {*parse_target("sm_90a")},
                             .folder = PAGEJIT_MODEL_CONFIGS,
                             .max_kernels = kMostKernels});
  if (!manifest) {
    const StatusCode code = manifest.status().code();
    FUZZ_CHECK(code == StatusCode::kInvalidArgument || code == StatusCode::kUnsupported ||
               code == StatusCode::kCacheError);
    FUZZ_CHECK(!manifest.status().message().empty());
    return 0;
  }
  FUZZ_CHECK(manifest->kernels.size() <= kMostKernels);
  FUZZ_CHECK(std::is_sorted(manifest->kernels.begin(), manifest->kernels.end()));
  std::string lines;
  for (const ListedKernel& kernel : manifest->kernels) lines += json_of(kernel) + "\n";
  const Result<Trace> trace = parse_trace(lines);
  FUZZ_CHECK(trace.is_ok() && trace->damaged.empty() && trace->kernels == manifest->kernels);
  return 0;
}

}  // namespace pagejit::manifest
