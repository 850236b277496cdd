// CheckSession: an engine and a device that agree on the driver, for commands that launch kernels.
// Thread-safety: one thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tools/check/cascade_check.h"
#include "tools/check/check.h"
#include "tools/cli/engine_flags.h"
#include "tools/cli/work_flags.h"

namespace pagejit::cli {

struct CheckSessionFlags {
  EngineFlags engine;
  std::string arch;             // "": the device's own
  bool allow_emulator = false;  // where no GPU is found and --driver does not insist on one
};

class CheckSession {
 public:
  // kDriverUnavailable where there is neither; kInvalidArgument where the device cannot take
  // `arch`: a GPU takes what its ladder says, the emulator stands for any.
  static Result<std::unique_ptr<CheckSession>> open(const CheckSessionFlags& flags,
                                                    std::function<void(const std::string&)> on_log);

  Engine& engine() const { return *engine_; }
  const DeviceSession& device() const { return *device_; }
  const EngineOptions& options() const { return options_; }
  bool is_emulator() const { return device_->is_emulator(); }
  // "NVIDIA H200 (sm_90a), driver 13.0"; "the CPU emulator (host)".
  std::string describe_device() const;

 private:
  CheckSession() = default;
  EngineOptions options_;
  // Before the engine, whose kernels live in its context.
  std::unique_ptr<DeviceSession> device_;
  std::shared_ptr<Engine> engine_;
  Target target_;
};

// A batch of random data for `item`, with at most max_kv_heads KV heads (0: all of them).
// `batch_idx` 0: lengths at the borders of blocks and tiles; others: random lengths with at least
// one of 2,048 tokens, another cache layout each. The same arguments give the same data.
CheckOptions make_check(const WorkItem& item, int max_kv_heads, uint64_t seed, int batch_idx);

// The same as a cascade of num_levels >= 1 levels: make_check()'s sequences are the suffixes, and
// groups of them share prefixes.
CascadeCheckOptions make_cascade_check(const WorkItem& item, int num_levels, int max_kv_heads,
                                       uint64_t seed, int batch_idx);

}  // namespace pagejit::cli
