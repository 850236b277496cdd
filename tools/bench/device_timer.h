// DeviceTimer: time of work on a stream by events, directly or as a captured graph that is
// replayed. Thread-safety: one thread.
#pragma once

#include <functional>

#include "tools/check/device_buffer.h"

namespace pagejit {

class DeviceTimer {
 public:
  using Work = std::function<Status(CUstream)>;

  static Result<DeviceTimer> create(const DeviceSession& session);
  DeviceTimer(DeviceTimer&& other) noexcept;
  DeviceTimer& operator=(DeviceTimer&&) = delete;
  ~DeviceTimer();

  // Microseconds from before to after the work, launched directly.
  Result<double> time_us(const Work& work);

  // The work is captured once; after one replay that is not counted, the time of each of `replays`.
  Result<std::vector<double>> time_graph_us(const Work& work, int replays);

  CUstream stream() const { return stream_; }

 private:
  explicit DeviceTimer(const Driver& driver) : driver_(&driver) {}
  Result<double> between(const Work& work);

  const Driver* driver_;
  CUstream stream_ = nullptr;
  CUevent begin_ = nullptr;
  CUevent end_ = nullptr;
};

}  // namespace pagejit
