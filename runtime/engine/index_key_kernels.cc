// Writing and gathering the keys of an indexer: the launches.
#include <algorithm>

#include "pagejit/indexer.h"
#include "runtime/engine/argument_check.h"
#include "runtime/engine/debug_report.h"
#include "runtime/engine/loaded_kernel.h"
#include "runtime/guard.h"

namespace pagejit {
namespace {

// Scales of f32 lie behind the codes.
int block_alignment(int vector_bytes) {
  return std::max(vector_bytes, static_cast<int>(alignof(float)));
}

Status check_blocks(const void* cache, int64_t block_stride_bytes, int vector_bytes) {
  const int alignment = block_alignment(vector_bytes);
  Status status = check_pointer("cache", cache, static_cast<uintptr_t>(alignment));
  if (status) status = check_multiple("block_stride_bytes", block_stride_bytes, alignment);
  return status;
}

// CTAs for so many rows.
unsigned ctas_for(int64_t rows, int rows_per_cta) {
  return static_cast<unsigned>((rows + rows_per_cta - 1) / rows_per_cta);
}

Status launch_write(const LoadedKernel& kernel, const IndexKeyWriteArgs& args, Stream stream) {
  if (args.num_tokens == 0) return {};
  const pagejit_shared::IndexKeyWriteConfig& c = constants_of<IndexKeyWriteConfig>(kernel);
  const int rows_per_cta = c.num_threads / c.threads_per_row;
  const int rows_per_token = c.head_size / c.quant_block_size;
  Status status = check_count("num_tokens", args.num_tokens, 0, kMaxGridX / rows_per_token);
  if (status) {
    const auto bytes = pagejit_shared::elements_bytes(c.dtype, c.vector_elements);
    status = check_pointer("k", args.k, static_cast<uintptr_t>(bytes));
  }
  if (status) status = check_stride("k_stride_token", args.k_stride_token, c.vector_elements);
  if (status) status = check_blocks(args.cache, args.block_stride_bytes, c.vector_elements);
  if (status) status = check_pointer("slot_mapping", args.slot_mapping, alignof(int64_t));
  if (status && c.debug) status = check_pointer("debug_report", args.debug_report, 16);
  if (!status) return status;
  pagejit_shared::IndexKeyWriteParams params{
      .k = args.k,
      .cache = args.cache,
      .slot_mapping = reinterpret_cast<const long long*>(args.slot_mapping),
      .report = static_cast<pagejit_shared::DebugReport*>(args.debug_report),
      .k_stride_token = args.k_stride_token,
      .block_stride_bytes = args.block_stride_bytes,
      .num_blocks = args.num_blocks,
      .num_tokens = args.num_tokens};
  const Grid grid{.x = ctas_for(int64_t{args.num_tokens} * rows_per_token, rows_per_cta)};
  return kernel.launch(grid, &params, stream);
}

Status launch_gather(const LoadedKernel& kernel, const IndexKeyGatherArgs& args, Stream stream) {
  if (args.num_tokens == 0 || args.num_seqs == 0) return {};
  const pagejit_shared::IndexKeyGatherConfig& c = constants_of<IndexKeyGatherConfig>(kernel);
  Status status = check_count("num_tokens", args.num_tokens, 0, kMaxGridX);
  if (status) status = check_count("num_seqs", args.num_seqs, 1, INT32_MAX);
  if (status) status = check_blocks(args.cache, args.block_stride_bytes, c.vector_bytes);
  if (status) status = check_pointer("block_table", args.block_table, alignof(int32_t));
  if (status) status = check_pointer("cu_seq_lens", args.cu_seq_lens, alignof(int32_t));
  if (status && misaligned(args.seq_starts, alignof(int32_t))) {
    status = bad_pointer("seq_starts", args.seq_starts, alignof(int32_t));
  }
  if (status) status = check_pointer("k_out", args.k_out, static_cast<uintptr_t>(c.vector_bytes));
  if (status)
    status = check_multiple("k_out_stride_token", args.k_out_stride_token, c.vector_bytes);
  if (status) status = check_pointer("scale_out", args.scale_out, alignof(float));
  if (status && c.debug) status = check_pointer("debug_report", args.debug_report, 16);
  if (!status) return status;
  pagejit_shared::IndexKeyGatherParams params{
      .cache = args.cache,
      .k_out = args.k_out,
      .scale_out = args.scale_out,
      .block_table = args.block_table,
      .cu_seq_lens = args.cu_seq_lens,
      .seq_starts = args.seq_starts,
      .report = static_cast<pagejit_shared::DebugReport*>(args.debug_report),
      .block_stride_bytes = args.block_stride_bytes,
      .block_table_stride = args.block_table_stride,
      .k_out_stride_token = args.k_out_stride_token,
      .scale_out_stride_token = args.scale_out_stride_token,
      .num_blocks = args.num_blocks,
      .num_seqs = args.num_seqs};
  const Grid grid{.x = ctas_for(args.num_tokens, c.num_threads / c.threads_per_token)};
  return kernel.launch(grid, &params, stream);
}

}  // namespace

Status IndexKeyWriteKernel::launch(const IndexKeyWriteArgs& args, Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_handle);
  return guarded([&] { return launch_write(*loaded_, args, stream); });
}
Status IndexKeyWriteKernel::init_debug_report(void* report, Stream stream) const {
  return pagejit::init_debug_report(loaded_.get(), report, stream);
}
Status IndexKeyWriteKernel::read_debug_report(void* report, Stream stream) const {
  return pagejit::read_debug_report(loaded_.get(), report, stream, bad_slot_sentence);
}

Status IndexKeyGatherKernel::launch(const IndexKeyGatherArgs& args, Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_handle);
  return guarded([&] { return launch_gather(*loaded_, args, stream); });
}
Status IndexKeyGatherKernel::init_debug_report(void* report, Stream stream) const {
  return pagejit::init_debug_report(loaded_.get(), report, stream);
}
Status IndexKeyGatherKernel::read_debug_report(void* report, Stream stream) const {
  return pagejit::read_debug_report(loaded_.get(), report, stream, bad_block_sentence);
}

}  // namespace pagejit
