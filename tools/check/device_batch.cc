#include "tools/check/device_batch.h"

namespace pagejit {
namespace {

template <class T>
Result<DeviceBuffer> copy_vector(const DeviceSession& session, const std::vector<T>& host) {
  return DeviceBuffer::copy_of(session, host.data(), host.size() * sizeof(T));
}

Result<DeviceBuffer> copy_elements(const DeviceSession& session, const ElementBuffer& host) {
  return DeviceBuffer::copy_of(session, host.address(), host.size_bytes());
}

// Blocks are copied one by one where they lie apart on the device.
Result<DeviceBuffer> upload_cache(const DeviceSession& session, const KvAllocation& allocation,
                                  int64_t num_blocks) {
  if (allocation.device_block_stride == allocation.block_extent) {
    return copy_elements(session, allocation.data);
  }
  const auto bytes = [&](int64_t elements) {
    return static_cast<size_t>(allocation.data.offset_bytes(elements));
  };
  Result<DeviceBuffer> buffer = DeviceBuffer::allocate(
      session, bytes((num_blocks - 1) * allocation.device_block_stride + allocation.block_extent));
  if (!buffer) return buffer;
  for (int64_t block = 0; block < num_blocks; ++block) {
    Status status = buffer->upload(bytes(block * allocation.device_block_stride),
                                   allocation.data.address(block * allocation.block_extent),
                                   bytes(allocation.block_extent));
    if (!status) return status;
  }
  return buffer;
}

}  // namespace

Result<DeviceBatch> DeviceBatch::upload(const DeviceSession& session, const AttentionBatch& batch,
                                        bool with_lse) {
  DeviceBatch device;
  device.clean_out_ = batch.out;
  device.clean_lse_ = batch.lse;
  Status status;
  const auto keep = [&status](DeviceBuffer& to, Result<DeviceBuffer> from) {
    if (from) {
      to = std::move(from).value();
    } else if (status) {
      status = from.status();
    }
  };
  keep(device.q_, copy_elements(session, batch.q));
  keep(device.out_, copy_elements(session, batch.out));
  keep(device.lse_, copy_vector(session, batch.lse));
  keep(device.q_scale_, copy_vector(session, batch.q_scale));
  keep(device.k_scale_, copy_vector(session, batch.k_scale));
  keep(device.v_scale_, copy_vector(session, batch.v_scale));
  keep(device.out_scale_, copy_vector(session, batch.out_scale));
  keep(device.block_table_, copy_vector(session, batch.block_table));
  keep(device.seq_lens_, copy_vector(session, batch.seq_lens));
  keep(device.kv_indptr_, copy_vector(session, batch.kv_indptr));
  keep(device.kv_indices_, copy_vector(session, batch.kv_indices));
  keep(device.kv_last_block_len_, copy_vector(session, batch.kv_last_block_len));
  keep(device.kv_start_loc_, copy_vector(session, batch.kv_start_loc));
  keep(device.token_lists_, copy_vector(session, batch.token_lists));
  keep(device.list_lens_, copy_vector(session, batch.list_lens));
  keep(device.query_seqs_, copy_vector(session, batch.query_seqs));
  keep(device.query_start_loc_, copy_vector(session, batch.query_start_loc));
  keep(device.causal_flags_, copy_vector(session, batch.causal_flags));
  keep(device.custom_mask_, copy_vector(session, batch.custom_mask));
  keep(device.custom_mask_indptr_, copy_vector(session, batch.custom_mask_indptr));
  keep(device.bidirectional_ranges_, copy_vector(session, batch.bidirectional_ranges));
  keep(device.qq_bias_, copy_vector(session, batch.qq_bias));
  keep(device.alibi_slopes_, copy_vector(session, batch.alibi_slopes));
  keep(device.sinks_, copy_vector(session, batch.sinks));
  for (const KvAllocation& allocation : batch.allocations) {
    device.caches_.emplace_back();
    keep(device.caches_.back(), upload_cache(session, allocation, batch.num_blocks));
  }
  if (!status) return status.with_context("uploading a batch");

  const auto cache_at = [&](const KvPlace& place) {
    const auto allocation = static_cast<size_t>(place.allocation);
    return device.caches_[allocation].data<uint8_t>() +
           batch.allocations[allocation].data.offset_bytes(place.offset);
  };
  const auto device_strides = [&](const KvPlace& place) {
    KvStrides strides = place.strides;
    strides.block = batch.allocations[static_cast<size_t>(place.allocation)].device_block_stride;
    if (batch.options.spec.kv_table == KvTable::kContiguous) strides.token = strides.block;
    return strides;
  };
  AttentionArgs& args = device.args_;
  args = batch.host_args();
  args.q = device.q_.data<uint8_t>() + AttentionBatch::kGuardBytes;
  args.k_cache = cache_at(batch.k_place);
  args.v_cache = cache_at(batch.v_place);
  args.k_strides = device_strides(batch.k_place);
  args.v_strides = device_strides(batch.v_place);
  args.q_scale = device.q_scale_.data<float>();
  args.out_scale = device.out_scale_.data<float>();
  if (batch.has_inline_scales()) {
    const ElementBuffer& data = batch.allocations[0].data;
    args.k_scale = reinterpret_cast<const float*>(cache_at(batch.k_place) +
                                                  data.offset_bytes(batch.options.spec.head_size));
    args.v_scale = reinterpret_cast<const float*>(cache_at(batch.v_place) +
                                                  data.offset_bytes(batch.head_size_v()));
  } else {
    args.k_scale = device.k_scale_.data<float>();
    args.v_scale = device.v_scale_.data<float>();
  }
  if (batch.options.spec.latent) args.v_cache = nullptr, args.v_scale = nullptr;
  args.block_table = device.block_table_.data<int32_t>();
  args.seq_lens = (batch.is_listed.empty() ? device.seq_lens_ : device.list_lens_).data<int32_t>();
  args.token_lists = device.token_lists_.data<int32_t>();
  args.query_seqs = device.query_seqs_.data<int32_t>();
  args.kv_indptr = device.kv_indptr_.data<int32_t>();
  args.kv_indices = device.kv_indices_.data<int32_t>();
  args.kv_last_block_len = device.kv_last_block_len_.data<int32_t>();
  args.kv_start_loc = device.kv_start_loc_.data<int32_t>();
  args.query_start_loc = device.query_start_loc_.data<int32_t>();
  args.causal_flags = device.causal_flags_.data<uint8_t>();
  args.custom_mask = device.custom_mask_.data<uint8_t>();
  args.custom_mask_indptr = device.custom_mask_indptr_.data<int32_t>();
  args.bidirectional_ranges = device.bidirectional_ranges_.data<int32_t>();
  args.qq_bias = device.qq_bias_.data<float>();
  args.alibi_slopes = device.alibi_slopes_.data<float>();
  args.sinks = device.sinks_.data<float>();
  args.out = device.out_.data<uint8_t>() + AttentionBatch::kGuardBytes;
  args.lse = with_lse ? device.lse_.data<float>() + AttentionBatch::kLseGuard : nullptr;
  return device;
}

Status DeviceBatch::reset_results() {
  Status status = out_.upload(0, clean_out_.address(), out_.size_bytes());
  if (status) status = lse_.upload(0, clean_lse_.data(), lse_.size_bytes());
  return status;
}

Result<AttentionResults> DeviceBatch::download() const {
  AttentionResults results{clean_out_, clean_lse_};
  Status status = out_.download(0, results.out.address(), out_.size_bytes());
  if (status) status = lse_.download(0, results.lse.data(), lse_.size_bytes());
  if (!status) return status.with_context("downloading the results");
  return results;
}

Status DeviceBatch::set_kv_indptr(const std::vector<int32_t>& kv_indptr) {
  return kv_indptr_.upload(0, kv_indptr.data(), kv_indptr.size() * sizeof(int32_t));
}

Status DeviceBatch::set_kv_last_block_len(const std::vector<int32_t>& kv_last_block_len) {
  return kv_last_block_len_.upload(0, kv_last_block_len.data(),
                                   kv_last_block_len.size() * sizeof(int32_t));
}

Status DeviceBatch::set_kv_start_loc(const std::vector<int32_t>& kv_start_loc) {
  return kv_start_loc_.upload(0, kv_start_loc.data(), kv_start_loc.size() * sizeof(int32_t));
}

Status DeviceBatch::set_seq_lens(const std::vector<int32_t>& seq_lens) {
  return seq_lens_.upload(0, seq_lens.data(), seq_lens.size() * sizeof(int32_t));
}

Status DeviceBatch::set_query_start_loc(const std::vector<int32_t>& query_start_loc) {
  return query_start_loc_.upload(0, query_start_loc.data(),
                                 query_start_loc.size() * sizeof(int32_t));
}

Status DeviceBatch::set_block_table(const std::vector<int32_t>& block_table) {
  return block_table_.upload(0, block_table.data(), block_table.size() * sizeof(int32_t));
}

Result<Workspace> Workspace::create(const DeviceSession& session, const Kernel& kernel,
                                    size_t bytes) {
  Workspace workspace;
  Result<DeviceBuffer> buffer = DeviceBuffer::allocate(session, bytes);
  if (!buffer) return buffer.status();
  workspace.buffer_ = std::move(buffer).value();
  if (bytes == 0) return workspace;
  // Garbage first: what init leaves alone must not matter.
  const Driver& driver = session.driver();
  Status status = driver.check(
      driver.cuMemsetD8Async(workspace.buffer_.address(), 0xff, bytes, nullptr), "cuMemsetD8Async");
  if (status) status = kernel.workspace_init(workspace.buffer_.data(), bytes, nullptr);
  if (status) status = session.synchronize();
  if (!status) return status;
  return workspace;
}

}  // namespace pagejit
