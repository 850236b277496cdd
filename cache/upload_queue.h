// UploadQueue: entries on their way to a remote store: a bounded queue, and one thread of its own
// that is started with the first of them. Nothing that puts entries in ever waits for the network.
// Not for a forked child, which has no such thread (PerProcess makes it a queue of its own).
// Thread-safety: all functions may be called from several threads at once.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "cache/key.h"

namespace pagejit::cache {

struct Upload {
  Key key;
  std::string bytes;
};

struct UploadQueueStats {
  uint64_t dropped = 0;  // for room, for want of a thread, or at the end; each an entry
  size_t waiting = 0;    // the one that is being sent included
};

class UploadQueue {
 public:
  // Sends one entry, on the queue's thread; counts its own failures. It should return soon once
  // `cancelled` is true. It may outlive the queue (see the destructor), so it owns what it uses.
  using Send = std::function<void(const Upload& upload, const std::atomic<bool>& cancelled)>;

  // How long the destructor waits for entries to be sent, and then, for the thread to notice that
  // it is cancelled: the transport looks once a second.
  static constexpr std::chrono::milliseconds kDrainTime{800};
  static constexpr std::chrono::milliseconds kStopTime{1200};

  UploadQueue(size_t max_waiting, Send send);
  // Waits for at most kDrainTime and kStopTime, and drops what is not sent by then. A thread that
  // is still in `send` goes on alone and ends after it.
  ~UploadQueue();
  UploadQueue(const UploadQueue&) = delete;
  UploadQueue& operator=(const UploadQueue&) = delete;

  // A full queue loses its oldest entry: the newest is the likeliest to be wanted elsewhere.
  void push(Upload upload);
  // Waits until nothing is waiting; false where that takes longer.
  bool flush(std::chrono::milliseconds timeout);

  UploadQueueStats stats() const;

 private:
  struct Shared;  // with the thread

  static void run(const std::shared_ptr<Shared>& shared);

  const std::shared_ptr<Shared> shared_;
  std::thread thread_;  // guarded by the mutex of shared_
};

}  // namespace pagejit::cache
