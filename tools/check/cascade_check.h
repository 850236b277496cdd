// DeviceCascade: a CascadeBatch in device memory with its workspace; and run_cascade_check(), one
// launch against the float64 reference over concatenated KV. Thread-safety: one thread.
#pragma once

#include <optional>
#include <vector>

#include "pagejit/engine.h"
#include "tools/check/compare.h"
#include "tools/check/device_batch.h"
#include "tools/reference/cascade_batch.h"

namespace pagejit {

class DeviceCascade {
 public:
  // The session must outlive the result. num_splits: of each level, 0 = chosen by the library.
  static Result<DeviceCascade> upload(const DeviceSession& session, const CascadeKernel& kernel,
                                      const CascadeBatch& batch, int num_splits = 0,
                                      bool with_lse = true);

  // Points into this object, which must not move while they are used.
  const CascadeArgs& args() {
    args_.levels = level_args_.data();
    return args_;
  }
  DeviceBatch& flat() { return *flat_; }
  DeviceBuffer& workspace() { return workspace_; }

  // Overwrites lengths and query ranges with those of a batch of the same shape.
  Status set_lengths(const CascadeBatch& batch);

 private:
  struct Level {
    DeviceBuffer query_start_loc;
    DeviceBuffer seq_lens;
    DeviceBuffer block_table;
    DeviceBuffer kv_indptr;
    DeviceBuffer kv_indices;
    DeviceBuffer kv_last_block_len;
    DeviceBuffer kv_start_loc;
  };

  CascadeArgs args_;
  std::vector<CascadeLevel> level_args_;
  std::vector<Level> levels_;
  std::optional<DeviceBatch> flat_;  // q, the caches, and where the results go
  DeviceBuffer custom_mask_;
  DeviceBuffer custom_mask_indptr_;
  DeviceBuffer workspace_;
};

struct CascadeCheckOptions {
  CascadeBatchOptions batch;  // `spec` is overwritten by run_cascade_check's
  int num_splits = 0;
  bool with_lse = true;
};

// As run_check(). CheckReport::num_splits is that of the first level.
Result<CheckReport> run_cascade_check(Engine& engine, const DeviceSession& session,
                                      const CascadeSpec& spec, const CascadeCheckOptions& options);

}  // namespace pagejit
