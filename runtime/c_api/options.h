// Conversions of an engine's options. Thread-safety: free functions.
#pragma once

#include <string>
#include <vector>

#include "pagejit/options.h"
#include "runtime/c_api/types.h"

namespace pagejit::c_api {

Status to_cpp(const pagejit_engine_options* from, EngineOptions* to);

// What the options of from_environment() point to.
struct EnvironmentObject {
  EngineOptions options;
  std::vector<const char*> bundles;
  std::vector<const char*> read_only_dirs;
  std::vector<const char*> trusted_keys;
};
// Its texts are those of `from`, which must not move.
pagejit_engine_options to_c(EnvironmentObject& from);

}  // namespace pagejit::c_api
