#include "tools/bench/device_timer.h"

#include <utility>

namespace pagejit {

Result<DeviceTimer> DeviceTimer::create(const DeviceSession& session) {
  const Driver& driver = session.driver();
  DeviceTimer timer(driver);
  if (Status s = driver.check(driver.cuStreamCreate(&timer.stream_, CU_STREAM_NON_BLOCKING),
                              "cuStreamCreate");
      !s)
    return s;
  if (Status s =
          driver.check(driver.cuEventCreate(&timer.begin_, CU_EVENT_DEFAULT), "cuEventCreate");
      !s)
    return s;
  if (Status s = driver.check(driver.cuEventCreate(&timer.end_, CU_EVENT_DEFAULT), "cuEventCreate");
      !s)
    return s;
  return timer;
}

DeviceTimer::DeviceTimer(DeviceTimer&& other) noexcept
    : driver_(other.driver_),
      stream_(std::exchange(other.stream_, nullptr)),
      begin_(std::exchange(other.begin_, nullptr)),
      end_(std::exchange(other.end_, nullptr)) {}

DeviceTimer::~DeviceTimer() {
  if (begin_ != nullptr) driver_->cuEventDestroy(begin_);
  if (end_ != nullptr) driver_->cuEventDestroy(end_);
  if (stream_ != nullptr) driver_->cuStreamDestroy(stream_);
}

Result<double> DeviceTimer::between(const Work& work) {
  if (Status s = driver_->check(driver_->cuEventRecord(begin_, stream_), "cuEventRecord"); !s)
    return s;
  if (Status s = work(stream_); !s) return s;
  if (Status s = driver_->check(driver_->cuEventRecord(end_, stream_), "cuEventRecord"); !s)
    return s;
  if (Status s = driver_->check(driver_->cuEventSynchronize(end_), "cuEventSynchronize"); !s)
    return s;
  float ms = 0;
  if (Status s =
          driver_->check(driver_->cuEventElapsedTime(&ms, begin_, end_), "cuEventElapsedTime");
      !s)
    return s;
  return static_cast<double>(ms) * 1000;
}

Result<double> DeviceTimer::time_us(const Work& work) { return between(work); }

Result<std::vector<double>> DeviceTimer::time_graph_us(const Work& work, int replays) {
  if (Status s = driver_->check(
          driver_->cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
          "cuStreamBeginCapture");
      !s) {
    return s;
  }
  const Status captured = work(stream_);
  CUgraph graph = nullptr;
  const Status ended =
      driver_->check(driver_->cuStreamEndCapture(stream_, &graph), "cuStreamEndCapture");
  CUgraphExec executable = nullptr;
  Status status = captured ? ended : captured;
  if (status) {
    status = driver_->check(driver_->cuGraphInstantiateWithFlags(&executable, graph, 0),
                            "cuGraphInstantiateWithFlags");
  }
  std::vector<double> times;
  for (int i = 0; i <= replays && status; ++i) {
    const Result<double> us = between([&](CUstream stream) {
      return driver_->check(driver_->cuGraphLaunch(executable, stream), "cuGraphLaunch");
    });
    status = us.status();
    if (us && i > 0) times.push_back(*us);
  }
  if (executable != nullptr) driver_->cuGraphExecDestroy(executable);
  if (graph != nullptr) driver_->cuGraphDestroy(graph);
  if (!status) return status;
  return times;
}

}  // namespace pagejit
