// What debug kernels of the cache operations report: where it lies and what it holds. Plain C++20
// without includes.
#pragma once

namespace pagejit_shared {

// The lowest index at which one kind of fault was found, and the value there.
struct DebugFinding {
  int index_plus_one;  // 0: nothing was found
  int reserved;
  long long value;
};

// Each family numbers its kinds of faults from 0 on. All zero: nothing was found.
constexpr int kDebugFindings = 4;
struct DebugReport {
  DebugFinding findings[kDebugFindings];
};
static_assert(sizeof(DebugReport) == 64);

}  // namespace pagejit_shared
