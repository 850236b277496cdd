// DriverState: everything behind the driver API: contexts, libraries, streams, graphs, memory, the
// machine. As in a real driver there is one per process; handles are addresses of the records below
// and are looked up before use, so that a stale one is an error and not a crash. Thread-safety:
// functions of the API take the lock (Guard) for their whole time; nothing else is synchronised. So
// a launch, which is over when its call returns, never overlaps another call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/emulator/cuda_abi.h"
#include "runtime/emulator/device_limits.h"
#include "runtime/emulator/driver_api.h"
#include "runtime/emulator/global_memory.h"
#include "runtime/emulator/image.h"
#include "runtime/emulator/machine.h"
#include "runtime/emulator/options.h"

namespace pagejit_emulator {

struct Context {
  unsigned long long id = 0;
  bool is_primary = false;
};

struct Library {
  std::shared_ptr<Image> image;
  std::map<std::string, std::unique_ptr<Function>> functions;
};

// A kernel of a library; serves as CUkernel and as CUfunction.
struct Function {
  std::shared_ptr<Image> image;
  const KernelEntry* kernel = nullptr;
  int max_dynamic_shared = kSharedDefaultLimit;
};

// One operation of a stream: done at once, or kept in a graph. Owns copies of all its arguments.
using Work = std::function<CUresult()>;

struct Graph {
  std::vector<Work> nodes;
};

struct GraphExec {
  std::vector<Work> nodes;
};

struct Stream {
  Context* context = nullptr;
  unsigned flags = 0;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  uint64_t capturing_thread = 0;
  std::unique_ptr<Graph> graph;
};

struct Event {
  unsigned flags = 0;
  bool recorded = false;
  bool captured = false;  // last recorded in a capture: it has no time
  double time_ms = 0;
};

template <class T>
using Handles = std::map<T*, std::unique_ptr<T>>;

struct DriverState {
  DriverState();

  std::mutex mutex;
  Options options;
  PagejitEmulatorCounters counters = {};
  std::string last_report;
  bool initialised = false;  // cuInit was called

  GlobalMemory memory;
  Machine machine;
  Context primary;
  int primary_retains = 0;
  unsigned primary_flags = 0;
  unsigned long long next_context_id = 1;
  Handles<Context> contexts;  // without the primary one
  Handles<Library> libraries;
  Handles<Stream> streams;
  Handles<Event> events;
  Handles<Graph> graphs;
  Handles<GraphExec> graph_execs;
};

DriverState& driver_state();

// The lock, and what a function may expect: CUDA_SUCCESS, or the error to return at once.
class Guard {
 public:
  enum Need { kNothing, kInitialised, kContext };
  explicit Guard(Need need);
  CUresult error() const { return error_; }

 private:
  std::lock_guard<std::mutex> lock_;
  CUresult error_ = CUDA_SUCCESS;
};

const DeviceLimits& device_limits();

// Keeps `report` for pagejit_emulator_last_report and PAGEJIT_EMULATOR_REPORT, and returns `code`.
CUresult reported(CUresult code, const std::string& report);

// ---- Contexts ----

Context* current_context();
bool is_context(const Context* context);

// ---- Streams ----

// Handles 0, 1 and 2 are the default streams: they cannot capture and have no record.
bool is_default_stream(CUstream stream);
bool is_stream(CUstream stream);

// Does `work` now, or adds it to the graph that `stream` captures.
CUresult enqueue(CUstream stream, Work work);

// For calls that may not happen while some stream captures (allocation, synchronous copies): an
// error, which also spoils the capture, unless the capture or the thread is relaxed about it.
CUresult forbid_during_capture();

// ---- Functions and memory ----

// Null where `function` is no handle.
Function* find_function(CUfunction function);

// The end of [address, address + bytes) lies in the same device or page-locked allocation.
bool is_device_range(CUdeviceptr address, size_t bytes);

}  // namespace pagejit_emulator
