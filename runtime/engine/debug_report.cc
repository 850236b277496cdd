#include "runtime/engine/debug_report.h"

#include <cstdint>

#include "pagejit/cache_write.h"
#include "runtime/engine/argument_check.h"
#include "runtime/format.h"
#include "runtime/guard.h"
#include "templates/shared/cache_write_params.h"

namespace pagejit {
namespace {

using pagejit_shared::DebugFinding;
using pagejit_shared::DebugReport;

static_assert(kDebugReportBytes == sizeof(DebugReport));

CUdeviceptr address_of(const void* pointer) {
  return static_cast<CUdeviceptr>(reinterpret_cast<uintptr_t>(pointer));
}

Status clear_report(const Driver& driver, void* report, Stream stream) {
  if (Status status = check_pointer("debug_report", report, 16); !status) return status;
  return driver.check(driver.cuMemsetD8Async(address_of(report), 0, sizeof(DebugReport),
                                             static_cast<CUstream>(stream)),
                      "cuMemsetD8Async");
}

Status read_report(
    const Driver& driver, void* report, Stream stream,
    const std::function<std::string(int fault, int index, int64_t value)>& sentence) {
  if (Status status = check_pointer("debug_report", report, 16); !status) return status;
  auto* cuda_stream = static_cast<CUstream>(stream);
  DebugReport found{};
  CUresult result =
      driver.cuMemcpyDtoHAsync(&found, address_of(report), sizeof(found), cuda_stream);
  if (result != CUDA_SUCCESS) return driver.failure(result, "cuMemcpyDtoHAsync");
  result = driver.cuStreamSynchronize(cuda_stream);
  if (result != CUDA_SUCCESS) return driver.failure(result, "cuStreamSynchronize");
  for (int fault = 0; fault < pagejit_shared::kDebugFindings; ++fault) {
    const DebugFinding& finding = found.findings[fault];
    if (finding.index_plus_one == 0) continue;
    if (Status status = clear_report(driver, report, stream); !status) return status;
    return Status(StatusCode::kDeviceCheckFailed,
                  sentence(fault, finding.index_plus_one - 1, finding.value));
  }
  return {};
}

}  // namespace

Status init_debug_report(const LoadedKernel* loaded, void* report, Stream stream) {
  if (loaded == nullptr) return guarded(empty_handle);
  return guarded([&] { return clear_report(*loaded->parts.driver, report, stream); });
}

Status read_debug_report(
    const LoadedKernel* loaded, void* report, Stream stream,
    const std::function<std::string(int fault, int index, int64_t value)>& sentence) {
  if (loaded == nullptr) return guarded(empty_handle);
  return guarded([&] { return read_report(*loaded->parts.driver, report, stream, sentence); });
}

std::string bad_slot_sentence(int, int token, int64_t slot) {
  return format("slot_mapping[{}] is {}: must be -1, or in [0, num_blocks * block_size)", token,
                slot);
}

std::string bad_block_sentence(int, int token, int64_t block) {
  return format("token {}: its block is {}, must be in [0, num_blocks)", token, block);
}

std::string write_sentence(int fault, int index, int64_t value) {
  if (fault == pagejit_shared::kBadPosition) {
    return format("positions[{}] is {}: must be in [0, max_position)", index, value);
  }
  return bad_slot_sentence(fault, index, value);
}

}  // namespace pagejit
