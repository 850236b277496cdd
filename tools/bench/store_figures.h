// The figures of the store that need no compiler: a disk hit, a bundle, eviction. Each prints its
// lines and answers whether its limits were kept. `folder` is an empty one to work in.
// Thread-safety: free functions.
#pragma once

#include <string>

namespace pagejit::bench {

bool bench_disk_hit(const std::string& folder);
// self: this program, which is run as a child that opens the bundle.
bool bench_bundle(const std::string& self, const std::string& folder);
// That child: prints how many MB an open bundle has added to the process.
int child_open(const std::string& bundle);
bool bench_eviction(const std::string& folder);

}  // namespace pagejit::bench
