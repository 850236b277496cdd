// The driver API on events. An event is complete as soon as it is recorded; its time is the host's
// clock.
#include <chrono>

#include "runtime/emulator/driver_state.h"

namespace pagejit_emulator {
namespace {

double now_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

CUresult check_event(const Guard& guard, CUevent event) {
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  return driver_state().events.contains(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

PAGEJIT_EMULATOR_API CUresult cuEventCreate(CUevent* event, unsigned flags) {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto created = std::make_unique<Event>();
  created->flags = flags;
  *event = created.get();
  driver_state().events.emplace(*event, std::move(created));
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuEventDestroy_v2(CUevent event) {
  const Guard guard(Guard::kInitialised);
  if (CUresult error = check_event(guard, event); error != CUDA_SUCCESS) return error;
  driver_state().events.erase(event);
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuEventRecord(CUevent event, CUstream stream) {
  const Guard guard(Guard::kContext);
  if (CUresult error = check_event(guard, event); error != CUDA_SUCCESS) return error;
  if (!is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (!is_default_stream(stream) && stream->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    // Only a mark within the capture: not replayed, never complete.
    event->captured = true;
    return CUDA_SUCCESS;
  }
  return enqueue(stream, [event] {
    event->captured = false;
    event->recorded = true;
    event->time_ms = now_ms();
    return CUDA_SUCCESS;
  });
}

PAGEJIT_EMULATOR_API CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned) {
  return cuEventRecord(event, stream);
}

PAGEJIT_EMULATOR_API CUresult cuEventSynchronize(CUevent event) {
  const Guard guard(Guard::kInitialised);
  if (CUresult error = check_event(guard, event); error != CUDA_SUCCESS) return error;
  return event->captured ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuEventQuery(CUevent event) { return cuEventSynchronize(event); }

PAGEJIT_EMULATOR_API CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start,
                                                    CUevent end) {
  const Guard guard(Guard::kInitialised);
  if (CUresult error = check_event(guard, start); error != CUDA_SUCCESS) return error;
  if (CUresult error = check_event(guard, end); error != CUDA_SUCCESS) return error;
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!start->recorded || !end->recorded ||
      ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  *milliseconds = static_cast<float>(end->time_ms - start->time_ms);
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}

// Work is done in the order of the calls, so that there is nothing to wait for. Joining streams in
// one capture is not served.
PAGEJIT_EMULATOR_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  const Guard guard(Guard::kContext);
  if (CUresult error = check_event(guard, event); error != CUDA_SUCCESS) return error;
  if (!is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  const bool capturing =
      !is_default_stream(stream) && stream->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return event->captured && !capturing ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

}  // namespace pagejit_emulator
