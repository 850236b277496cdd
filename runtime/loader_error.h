// loader_error(): why the last dlopen() or dlsym() of this thread failed; it is told once, and
// cleared. Thread-safety: as dlerror(), which keeps a text for each thread.
#pragma once

#include <dlfcn.h>

#include <string>

namespace pagejit {

inline std::string loader_error() {
  const char* text = dlerror();
  return text == nullptr ? "unknown loader error" : text;
}

}  // namespace pagejit
