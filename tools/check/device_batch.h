// DeviceBatch and Workspace: an AttentionBatch in device memory, and the memory that split launches
// need. run_check() uses them once; tests use them piece by piece. Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "pagejit/engine.h"
#include "tools/check/compare.h"
#include "tools/check/device_buffer.h"
#include "tools/reference/attention_batch.h"

namespace pagejit {

class DeviceBatch {
 public:
  // The session must outlive the result; the batch is copied as far as it is needed later.
  static Result<DeviceBatch> upload(const DeviceSession& session, const AttentionBatch& batch,
                                    bool with_lse);

  // Device pointers and strides; num_splits, max_seq_len and the workspace are left to the caller.
  const AttentionArgs& args() const { return args_; }

  // Puts the sentinels back into out and lse.
  Status reset_results();
  // Blocking; the work must have been waited for.
  Result<AttentionResults> download() const;

  // Overwrite what is on the device, in the shape that it has.
  Status set_seq_lens(const std::vector<int32_t>& seq_lens);
  Status set_query_start_loc(const std::vector<int32_t>& query_start_loc);
  Status set_block_table(const std::vector<int32_t>& block_table);
  Status set_kv_indptr(const std::vector<int32_t>& kv_indptr);
  Status set_kv_last_block_len(const std::vector<int32_t>& kv_last_block_len);
  Status set_kv_start_loc(const std::vector<int32_t>& kv_start_loc);

 private:
  DeviceBatch() = default;

  AttentionArgs args_;
  ElementBuffer clean_out_;
  std::vector<float> clean_lse_;
  DeviceBuffer q_;
  DeviceBuffer out_;
  DeviceBuffer lse_;
  DeviceBuffer q_scale_;
  DeviceBuffer k_scale_;
  DeviceBuffer v_scale_;
  DeviceBuffer out_scale_;
  DeviceBuffer block_table_;
  DeviceBuffer seq_lens_;
  DeviceBuffer kv_indptr_;
  DeviceBuffer kv_indices_;
  DeviceBuffer kv_last_block_len_;
  DeviceBuffer kv_start_loc_;
  DeviceBuffer token_lists_;
  DeviceBuffer list_lens_;
  DeviceBuffer query_seqs_;
  DeviceBuffer query_start_loc_;
  DeviceBuffer causal_flags_;
  DeviceBuffer custom_mask_;
  DeviceBuffer custom_mask_indptr_;
  DeviceBuffer bidirectional_ranges_;
  DeviceBuffer qq_bias_;
  DeviceBuffer alibi_slopes_;
  DeviceBuffer sinks_;
  std::vector<DeviceBuffer> caches_;
};

class Workspace {
 public:
  // `bytes` as Kernel::workspace_bytes() says, initialised by `kernel` and waited for. 0 bytes:
  // nothing is allocated.
  static Result<Workspace> create(const DeviceSession& session, const Kernel& kernel, size_t bytes);

  void put_into(AttentionArgs& args) const {
    args.workspace = buffer_.data();
    args.workspace_bytes = buffer_.size_bytes();
  }
  DeviceBuffer& buffer() { return buffer_; }

 private:
  DeviceBuffer buffer_;
};

}  // namespace pagejit
