#include "runtime/engine/swap_blocks.h"

#include <cstdint>
#include <vector>

#include "runtime/engine/argument_check.h"
#include "runtime/format.h"

namespace pagejit {
namespace {

Status check_args(const SwapBlocksArgs& args) {
  const int direction = static_cast<int>(args.direction);
  if (direction < 0 || direction > static_cast<int>(SwapDirection::kDeviceToDevice)) {
    return invalid(format(
        "direction {}: legal are device to host (0), host to device (1) and device to device (2)",
        direction));
  }
  Status status = check_count("num_pairs", args.num_pairs, 0, INT32_MAX);
  if (status) status = check_count("block_bytes", args.block_bytes, 1, INT64_MAX);
  if (!status) return status;
  if (args.from == nullptr) return invalid("from is null: must be the first block");
  if (args.to == nullptr) return invalid("to is null: must be the first block");
  if (args.pairs == nullptr) return invalid("pairs is null: must point to num_pairs pairs");
  for (int i = 0; i < args.num_pairs; ++i) {
    for (int side = 0; side < 2; ++side) {
      const int64_t block = args.pairs[2 * i + side];
      if (block < 0) {
        return invalid(format("pairs[{}][{}] is {}: must not be negative", i, side, block));
      }
    }
  }
  return {};
}

// One pair's addresses.
struct Copy {
  CUdeviceptr from;
  CUdeviceptr to;
};

Copy copy_of(const SwapBlocksArgs& args, int pair) {
  const auto address = [](const void* base, int64_t block, int64_t stride) {
    return static_cast<CUdeviceptr>(reinterpret_cast<uintptr_t>(base)) +
           static_cast<CUdeviceptr>(block * stride);
  };
  const size_t at = 2 * static_cast<size_t>(pair);
  return {address(args.from, args.pairs[at], args.from_stride_bytes),
          address(args.to, args.pairs[at + 1], args.to_stride_bytes)};
}

// Of the host: it was a pointer before.
void* host_pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

CUresult copy_one(const Driver& driver, const SwapBlocksArgs& args, const Copy& copy,
                  CUstream stream) {
  const auto bytes = static_cast<size_t>(args.block_bytes);
  switch (args.direction) {
    case SwapDirection::kDeviceToHost:
      return driver.cuMemcpyDtoHAsync(host_pointer(copy.to), copy.from, bytes, stream);
    case SwapDirection::kHostToDevice:
      return driver.cuMemcpyHtoDAsync(copy.to, host_pointer(copy.from), bytes, stream);
    case SwapDirection::kDeviceToDevice:
      break;
  }
  return driver.cuMemcpyDtoDAsync(copy.to, copy.from, bytes, stream);
}

bool is_default_stream(Stream stream) {
  const auto value = reinterpret_cast<uintptr_t>(stream);
  return value == 0 || value == reinterpret_cast<uintptr_t>(CU_STREAM_LEGACY) ||
         value == reinterpret_cast<uintptr_t>(CU_STREAM_PER_THREAD);
}

Status swap_in_a_batch(const Driver& driver, const SwapBlocksArgs& args, Stream stream) {
  const auto count = static_cast<size_t>(args.num_pairs);
  std::vector<CUdeviceptr> from, to;
  for (int i = 0; i < args.num_pairs; ++i) {
    const Copy copy = copy_of(args, i);
    from.push_back(copy.from);
    to.push_back(copy.to);
  }
  std::vector<size_t> sizes(count, static_cast<size_t>(args.block_bytes));
  MemcpyBatchAttributes in_stream_order{};
  in_stream_order.source_access_order = MemcpyBatchAttributes::kStreamOrder;
  size_t first_copy = 0;  // of these attributes
  size_t failed = SIZE_MAX;
  const CUresult result =
      driver.cuMemcpyBatchAsync(to.data(), from.data(), sizes.data(), count, &in_stream_order,
                                &first_copy, 1, &failed, static_cast<CUstream>(stream));
  if (result == CUDA_SUCCESS) return {};
  return driver.failure(result, failed < count ? format("cuMemcpyBatchAsync (pairs[{}])", failed)
                                               : "cuMemcpyBatchAsync");
}

}  // namespace

Status swap_blocks(const Driver& driver, const SwapBlocksArgs& args, Stream stream) {
  if (args.num_pairs == 0) return {};
  if (Status status = check_args(args); !status) return status;
  if (driver.cuMemcpyBatchAsync != nullptr && !is_default_stream(stream)) {
    return swap_in_a_batch(driver, args, stream);
  }
  for (int i = 0; i < args.num_pairs; ++i) {
    const CUresult result = copy_one(driver, args, copy_of(args, i), static_cast<CUstream>(stream));
    if (result != CUDA_SUCCESS) {
      return driver.failure(result, format("the copy of pairs[{}]", i));
    }
  }
  return {};
}

}  // namespace pagejit
