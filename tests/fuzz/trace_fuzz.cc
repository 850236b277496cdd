// parse_trace on any bytes: what is not damaged is a sorted list that comes back from its own
// lines, and its shards are the list.
#include <algorithm>

#include "tests/fuzz/fuzz_check.h"
#include "tools/manifest/trace.h"

namespace pagejit::manifest {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<Trace> trace = parse_trace(text);
  FUZZ_CHECK(trace.is_ok());  // the only error is of more kernels than fit into an input
  for (const std::string& sentence : trace->damaged) FUZZ_CHECK(sentence.starts_with("line "));
  FUZZ_CHECK(static_cast<ptrdiff_t>(trace->damaged.size()) <=
             std::count(text.begin(), text.end(), '\n'));
  std::string lines;
  for (const ListedKernel& kernel : trace->kernels) lines += json_of(kernel) + "\n";
  const Result<Trace> again = parse_trace(lines);
  FUZZ_CHECK(again.is_ok() && again->damaged.empty() && again->kernels == trace->kernels);
  std::vector<ListedKernel> together = shard_of(trace->kernels, {1, 2});
  const std::vector<ListedKernel> second = shard_of(trace->kernels, {2, 2});
  together.insert(together.end(), second.begin(), second.end());
  sort_unique(&together);
  FUZZ_CHECK(together == trace->kernels);
  return 0;
}

}  // namespace pagejit::manifest
