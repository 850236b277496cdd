#include "tools/check/cascade_check.h"

#include <utility>

namespace pagejit {
namespace {

// What all levels share, from the arguments of the flat batch.
CascadeArgs shared_args(const AttentionArgs& flat) {
  CascadeArgs args;
  args.q = flat.q;
  args.q_stride_token = flat.q_stride_token;
  args.q_stride_head = flat.q_stride_head;
  args.k_cache = flat.k_cache;
  args.v_cache = flat.v_cache;
  args.k_strides = flat.k_strides;
  args.v_strides = flat.v_strides;
  args.q_scale = flat.q_scale;
  args.k_scale = flat.k_scale;
  args.v_scale = flat.v_scale;
  args.kv_scale_stride = flat.kv_scale_stride;
  args.num_blocks = flat.num_blocks;
  args.num_query_tokens = flat.num_query_tokens;
  args.num_kv_heads = flat.num_kv_heads;
  args.out = flat.out;
  args.out_stride_token = flat.out_stride_token;
  args.out_stride_head = flat.out_stride_head;
  args.lse = flat.lse;
  args.causal_flags = flat.causal_flags;
  args.soft_cap = flat.soft_cap;
  args.sinks = flat.sinks;
  args.scale = flat.scale;
  return args;
}

// Keeps the first failure.
class Uploader {
 public:
  explicit Uploader(const DeviceSession& session) : session_(session) {}

  template <class T>
  T* copy(DeviceBuffer& to, const std::vector<T>& host) {
    Result<DeviceBuffer> made =
        DeviceBuffer::copy_of(session_, host.data(), host.size() * sizeof(T));
    if (made) {
      to = std::move(made).value();
    } else if (status_) {
      status_ = made.status();
    }
    return to.data<T>();
  }
  const Status& status() const { return status_; }

 private:
  const DeviceSession& session_;
  Status status_;
};

// Garbage where workspace_init leaves it: what it does not set must not matter.
Result<DeviceBuffer> make_workspace(const DeviceSession& session, const CascadeKernel& kernel,
                                    size_t bytes) {
  Result<DeviceBuffer> workspace = DeviceBuffer::allocate(session, bytes);
  if (!workspace || bytes == 0) return workspace;
  const Driver& driver = session.driver();
  Status status = driver.check(driver.cuMemsetD8Async(workspace->address(), 0xff, bytes, nullptr),
                               "cuMemsetD8Async");
  if (status) status = kernel.workspace_init(workspace->data(), bytes, nullptr);
  if (status) status = session.synchronize();
  if (!status) return status;
  return workspace;
}

}  // namespace

Result<DeviceCascade> DeviceCascade::upload(const DeviceSession& session,
                                            const CascadeKernel& kernel, const CascadeBatch& batch,
                                            int num_splits, bool with_lse) {
  DeviceCascade device;
  Result<DeviceBatch> flat = DeviceBatch::upload(session, batch.flat, with_lse);
  if (!flat) return flat.status();
  device.args_ = shared_args(flat->args());
  device.flat_.emplace(std::move(flat).value());
  Uploader uploader(session);
  for (const CascadeBatchLevel& from : batch.levels) {
    Level& to = device.levels_.emplace_back();
    CascadeLevel& args = device.level_args_.emplace_back();
    args.num_seqs = from.num_seqs();
    args.query_start_loc = uploader.copy(to.query_start_loc, from.query_start_loc);
    args.seq_lens = uploader.copy(to.seq_lens, from.seq_lens);
    args.block_table = uploader.copy(to.block_table, from.block_table);
    args.block_table_stride = from.block_table_stride;
    args.max_blocks_per_seq = from.max_blocks_per_seq;
    args.kv_indptr = uploader.copy(to.kv_indptr, from.kv_indptr);
    args.kv_indices = uploader.copy(to.kv_indices, from.kv_indices);
    args.kv_last_block_len = uploader.copy(to.kv_last_block_len, from.kv_last_block_len);
    args.kv_start_loc = uploader.copy(to.kv_start_loc, from.kv_start_loc);
    args.num_splits = num_splits;
  }
  const AttentionBatch& storage = batch.storage;
  if (batch.spec.attention.custom_mask) {
    const auto first = static_cast<size_t>(storage.num_seqs - batch.flat.num_seqs);
    device.args_.custom_mask = uploader.copy(device.custom_mask_, storage.custom_mask);
    device.args_.custom_mask_indptr =
        uploader.copy(device.custom_mask_indptr_, storage.custom_mask_indptr) + first;
  }
  if (!uploader.status()) return uploader.status().with_context("uploading a cascade");
  device.args_.num_levels = static_cast<int32_t>(device.level_args_.size());
  Result<DeviceBuffer> workspace =
      make_workspace(session, kernel, kernel.workspace_bytes(device.args()));
  if (!workspace) return workspace.status();
  device.workspace_ = std::move(workspace).value();
  device.args_.workspace = device.workspace_.data();
  device.args_.workspace_bytes = device.workspace_.size_bytes();
  return device;
}

Status DeviceCascade::set_lengths(const CascadeBatch& batch) {
  Status status;
  const auto write = [&status](DeviceBuffer& to, const std::vector<int32_t>& from) {
    if (status) status = to.upload(0, from.data(), from.size() * sizeof(int32_t));
  };
  for (size_t level = 0; level < levels_.size(); ++level) {
    write(levels_[level].query_start_loc, batch.levels[level].query_start_loc);
    write(levels_[level].seq_lens, batch.levels[level].seq_lens);
  }
  return status;
}

Result<CheckReport> run_cascade_check(Engine& engine, const DeviceSession& session,
                                      const CascadeSpec& spec, const CascadeCheckOptions& options) {
  Result<CascadeKernel> kernel = engine.prepare(spec);
  if (!kernel) return kernel.status();
  CascadeBatchOptions batch_options = options.batch;
  batch_options.spec = spec;
  const Result<CascadeBatch> batch = make_cascade_batch(batch_options);
  if (!batch) return batch.status();
  Result<DeviceCascade> device =
      DeviceCascade::upload(session, *kernel, *batch, options.num_splits, options.with_lse);
  if (!device) return device.status();
  if (Status status = kernel->launch(device->args(), nullptr); !status) return status;
  if (Status status = session.synchronize(); !status) return status;
  if (spec.attention.debug) {
    Status status = kernel->read_debug_report(device->workspace().data(), nullptr);
    if (!status) return status;
  }
  const Result<AttentionResults> results = device->flat().download();
  if (!results) return results.status();
  const int num_splits =
      options.num_splits != 0 ? options.num_splits : kernel->choose_num_splits(device->args(), 0);
  return compare_results(batch->flat, compute_reference(batch->flat), *results, options.with_lse,
                         num_splits);
}

}  // namespace pagejit
