// guarded(): the edge of the library, where exceptions (in practice: out of memory) become a
// Status. Thread-safety: free functions without state.
#pragma once

#include <utility>

#include "pagejit/status.h"

namespace pagejit {

// What the exception being handled becomes. Only within a catch clause.
[[gnu::cold]] Status status_of_exception() noexcept;

// Calls `function`, which returns a Status or a Result, and never throws.
template <class Function>
auto guarded(Function&& function) noexcept -> decltype(function()) {
  try {
    return std::forward<Function>(function)();
  } catch (...) {
    return status_of_exception();
  }
}

}  // namespace pagejit
