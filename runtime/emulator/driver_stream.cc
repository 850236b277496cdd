// The driver API on streams and their capture. Streams are always empty: what is enqueued is done
// before the call returns, or added to the graph that the stream captures.
#include <atomic>

#include "runtime/emulator/driver_state.h"

namespace pagejit_emulator {
namespace {

thread_local CUstreamCaptureMode thread_capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

uint64_t this_thread_number() {
  static std::atomic<uint64_t> next = 1;
  thread_local const uint64_t number = next++;
  return number;
}

bool is_capturing(CUstream stream) {
  return !is_default_stream(stream) && stream->capture != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace

bool is_default_stream(CUstream stream) { return reinterpret_cast<uintptr_t>(stream) <= 2; }

bool is_stream(CUstream stream) {
  return is_default_stream(stream) || driver_state().streams.contains(stream);
}

CUresult enqueue(CUstream stream, Work work) {
  if (!is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (is_default_stream(stream)) {
    // The legacy stream waits for all blocking streams, so it may not be used while one of them
    // captures.
    for (const auto& [handle, other] : driver_state().streams) {
      constexpr unsigned kNonBlocking = 1;
      if (other->capture != CU_STREAM_CAPTURE_STATUS_ACTIVE || (other->flags & kNonBlocking) != 0) {
        continue;
      }
      other->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    return work();
  }
  switch (stream->capture) {
    case CU_STREAM_CAPTURE_STATUS_NONE:
      return work();
    case CU_STREAM_CAPTURE_STATUS_INVALIDATED:
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    case CU_STREAM_CAPTURE_STATUS_ACTIVE:
      break;
  }
  stream->graph->nodes.push_back(std::move(work));
  return CUDA_SUCCESS;
}

CUresult forbid_during_capture() {
  if (thread_capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  for (const auto& [handle, stream] : driver_state().streams) {
    if (stream->capture != CU_STREAM_CAPTURE_STATUS_ACTIVE ||
        stream->mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
      continue;
    }
    const bool here = stream->capturing_thread == this_thread_number();
    const bool everywhere = stream->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                            thread_capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!here && !everywhere) continue;
    stream->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (stream == nullptr || flags > 1) return CUDA_ERROR_INVALID_VALUE;
  auto created = std::make_unique<Stream>();
  created->context = current_context();
  created->flags = flags;
  *stream = created.get();
  driver_state().streams.emplace(*stream, std::move(created));
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  return cuStreamCreate(stream, flags);
}

PAGEJIT_EMULATOR_API CUresult cuStreamDestroy_v2(CUstream stream) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  return driver_state().streams.erase(stream) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

PAGEJIT_EMULATOR_API CUresult cuStreamSynchronize(CUstream stream) {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (!is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (is_default_stream(stream)) return forbid_during_capture();
  if (!is_capturing(stream)) return CUDA_SUCCESS;
  stream->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

PAGEJIT_EMULATOR_API CUresult cuStreamQuery(CUstream stream) { return cuStreamSynchronize(stream); }

PAGEJIT_EMULATOR_API CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  *context = is_default_stream(stream) ? current_context() : stream->context;
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (!is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (is_default_stream(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (is_capturing(stream)) return CUDA_ERROR_ILLEGAL_STATE;
  stream->capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  stream->mode = mode;
  stream->capturing_thread = this_thread_number();
  stream->graph = std::make_unique<Graph>();
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (!is_capturing(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  *graph = nullptr;
  const bool spoilt = stream->capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  stream->capture = CU_STREAM_CAPTURE_STATUS_NONE;
  std::unique_ptr<Graph> captured = std::move(stream->graph);
  if (spoilt) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *graph = captured.get();
  driver_state().graphs.emplace(*graph, std::move(captured));
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  *status = is_default_stream(stream) ? CU_STREAM_CAPTURE_STATUS_NONE : stream->capture;
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, thread_capture_mode);
  return CUDA_SUCCESS;
}

}  // namespace pagejit_emulator
