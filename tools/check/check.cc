#include "tools/check/check.h"

#include <memory>
#include <utility>

#include "tools/check/device_batch.h"

namespace pagejit {

std::vector<int> default_seq_lens(int block_size) {
  return {0, 1, block_size - 1, block_size, block_size + 1, 600, 2049};
}

Result<CheckReport> run_check(Engine& engine, const DeviceSession& session, const KernelSpec& spec,
                              const CheckOptions& options) {
  Result<Kernel> kernel = engine.prepare(spec);
  if (!kernel) return kernel.status();

  BatchOptions batch_options = options.batch;
  batch_options.spec = spec;
  if (batch_options.seq_lens.empty()) batch_options.seq_lens = default_seq_lens(spec.block_size);
  const Result<AttentionBatch> batch = make_attention_batch(batch_options);
  if (!batch) return batch.status();
  Result<DeviceBatch> device_batch = DeviceBatch::upload(session, *batch, options.with_lse);
  if (!device_batch) return device_batch.status();

  AttentionArgs args = device_batch->args();
  args.num_splits = options.num_splits;
  const int64_t max_seq_len = int64_t{args.max_blocks_per_seq} * spec.block_size;
  args.max_seq_len = static_cast<int32_t>(max_seq_len);
  const Result<Workspace> workspace =
      Workspace::create(session, *kernel, kernel->workspace_bytes(args));
  if (!workspace) return workspace.status();
  workspace->put_into(args);

  if (Status status = kernel->launch(args, nullptr); !status) return status;
  if (Status status = session.synchronize(); !status) return status;
  if (spec.debug) {
    if (Status status = kernel->read_debug_report(args.workspace, nullptr); !status) return status;
  }
  const Result<AttentionResults> results = device_batch->download();
  if (!results) return results.status();

  const int num_splits = args.num_splits != 0 ? args.num_splits : kernel->choose_num_splits(args);
  return compare_results(*batch, compute_reference(*batch), *results, options.with_lse, num_splits);
}

Result<CheckReport> run_check(Engine& engine, const KernelSpec& spec, const CheckOptions& options) {
  Result<EngineOptions> engine_options = EngineOptions::from_environment();
  if (!engine_options) return engine_options.status();
  Result<std::unique_ptr<DeviceSession>> session = DeviceSession::open(*engine_options);
  if (!session) return session.status();
  return run_check(engine, **session, spec, options);
}

}  // namespace pagejit
