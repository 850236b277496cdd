// The greatest values of rows, on data of several kinds, compared exactly with a stable sort.
// Prepares, launches, waits and compares, twice: "" where all is right, else what went wrong first.
// Thread-safety: free functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pagejit/engine.h"
#include "tools/check/device_buffer.h"

namespace pagejit {

enum class LogitKind {
  kNormal,
  kLowBits,  // values that differ in their last 10 bits only
  kFew,      // five values, the two zeros among them: nearly all are tied
  kSpecial,  // infinities, NaN, subnormals and both signs of all
};

struct TopKOptions {
  TopKSpec spec = {};
  LogitKind kind = LogitKind::kNormal;
  int k = 512;
  // Of each row; of the last one where there are next_n, and the others have one less each.
  std::vector<int> lengths = {5000};
  int next_n = 0;      // 0: the rows have begins and ends
  int last_begin = 0;  // rows begin at any column up to this one
  bool with_begins = true;
  int num_splits = 1;  // 0: chosen; else than 1 with a workspace
  uint64_t seed = 1;
};
std::string check_top_k(Engine& engine, const DeviceSession& session, const TopKOptions& options);

}  // namespace pagejit
