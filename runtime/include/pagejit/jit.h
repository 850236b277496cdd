// JitPolicy and JitEvent: whether Engine::prepare() may compile, and what a program is told of
// every kernel that it asks for. Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>

#include "pagejit/kernel_handle.h"
#include "pagejit/status.h"
#include "pagejit/target.h"

namespace pagejit {

// What prepare() does where a kernel is stored nowhere. precompile() always compiles.
enum class JitPolicy : uint8_t {
  kOn = 0,     // compiles it
  kWarn = 1,   // compiles it, and logs a warning with spec, target, key and duration
  kError = 2,  // compiles nothing and opens no NVRTC: kDenied, a log line (error) and an event
  // As kError, but silent: kDenied and a count, neither log line nor event; the same for a refusal
  // during a capture. For programs that have a fallback of their own.
  kOff = 3,
};

enum class JitEventKind : uint8_t {
  kHit = 0,      // there already, or made by another thread while this one waited
  kCompile = 1,  // compiled by this call, in vain where status is an error
  kDenied = 2,   // refused, by the policy or because of a capture; status says which
};

// A call makes no event where it fails otherwise: an invalid spec, no driver, an error that another
// thread's compile left. One call may make several: a stored kernel that the driver refuses is a
// kHit and then a kCompile.
struct JitEvent {
  JitEventKind kind = JitEventKind::kHit;
  std::string spec;  // canonical_text()
  Target target;
  // The name of the cache entry; its part before the dot where no compiler is known, empty of a
  // refusal during a capture.
  std::string key;
  ImageOrigin origin = ImageOrigin::kCompiled;  // of a hit: not kCompiled
  // Wall time: of the compile, queueing included; else of looking it up or waiting for it.
  double duration_ms = 0;
  Status status;              // ok of a hit
  bool precompiling = false;  // by precompile(), not by prepare()
};

}  // namespace pagejit
