// An engine that renders from the library's templates with one edit, for tests that plant a bug.
// Thread-safety: the main thread of a test program.
#pragma once

#include <memory>
#include <string>

#include "runtime/engine/dependencies.h"

namespace pagejit {

struct TemplateEdit {
  std::string file;  // "": no edit
  std::string from;  // must occur exactly once; fails the test otherwise
  std::string to;
};

// Without the cache on disk. `plan` as EngineDependencies has it; null for the library's own. Null
// where the engine or the edit cannot be made; that fails the test.
std::shared_ptr<Engine> make_edited_engine(EngineOptions options, const TemplateEdit& edit,
                                           decltype(EngineDependencies::plan) plan = nullptr);

}  // namespace pagejit
