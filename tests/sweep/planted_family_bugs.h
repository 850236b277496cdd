// The bugs that planted_family_bug_test plants into the templates of the families beside attention,
// one at a time. Thread-safety: const access.
#pragma once

#include <vector>

namespace pagejit {

enum class Family {
  kMergeStates,
  kCacheWrite,
  kCopyBlocks,
  kGatherCache,
  kConvertFloat8,
  kMlaCacheWrite,
  kIndexKeys,
  kTopK,
  kIndexLogits,
};
inline constexpr Family kFamilies[] = {
    Family::kMergeStates, Family::kCacheWrite,    Family::kCopyBlocks,
    Family::kGatherCache, Family::kConvertFloat8, Family::kMlaCacheWrite,
    Family::kIndexKeys,   Family::kTopK,          Family::kIndexLogits};

struct PlantedFamilyBug {
  const char* name;
  Family family;  // whose checks must find it
  const char* file;
  const char* from;  // stands once in the file
  const char* to;
};

const std::vector<PlantedFamilyBug>& planted_family_bugs();

}  // namespace pagejit
