// guarded(): the edge of the library, where exceptions (in practice: out of memory) become a
// Status. Thread-safety: a free function without state.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "pagejit/status.h"

namespace pagejit {

// Calls `function`, which returns a Status or a Result, and never throws.
template <class Function>
auto guarded(Function&& function) noexcept -> decltype(function()) {
  try {
    return std::forward<Function>(function)();
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kInternal, "out of memory");
  } catch (const std::exception& error) {
    return Status(StatusCode::kInternal, std::string("unexpected exception: ") + error.what());
  } catch (...) {
    return Status(StatusCode::kInternal, "unexpected exception of an unknown type");
  }
}

}  // namespace pagejit
