// The figures of the store that need no compiler: a disk hit, a bundle, eviction. Each prints its
// lines and answers whether its limits were kept. `folder` is an empty one to work in.
// Thread-safety: free functions.
#pragma once

#include <string>

namespace pagejit::bench {

bool bench_disk_hit(const std::string& folder);
bool bench_bundle(const std::string& folder);
bool bench_eviction(const std::string& folder);

}  // namespace pagejit::bench
