// The bugs that planted_bug_test plants into the templates, one at a time. Thread-safety: const
// access.
#pragma once

#include <vector>

namespace pagejit {

struct PlantedBug {
  // Those that the bug is in.
  enum Kernels { kDecode, kRagged, kElements, kF32Caches, kPdl, kBlockSparse, kMasks, kLatent };

  const char* name;
  const char* file;
  const char* from;  // must occur exactly once
  const char* to;
  // Only the checked build must find it: the values may be right by luck of the schedule.
  bool only_checked = false;
  Kernels kernels = kDecode;  // plain ones; ragged and with masks; of other types and layouts; of
                              // f32 K and V; for programmatic dependent launch; block-sparse ones;
                              // with custom masks, ranges or a bias; where K's rows hold V
};

// All but those of kernels whose K rows hold V; and those.
const std::vector<PlantedBug>& planted_bugs();
const std::vector<PlantedBug>& planted_latent_bugs();

}  // namespace pagejit
