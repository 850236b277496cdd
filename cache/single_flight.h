// SingleFlight: of all threads that want the value of one key at one time, one computes it and the
// others wait for that result. Within one process only; not a cache of values, unless the
// computation asks for its result to be kept. Thread-safety: all functions may be called from
// several threads at once. Different keys never wait for each other.
//
// Processes exclude each other inside `compute`, by a lock around "look up again, compile, publish"
// (DiskCache::lock). Here a waiter sleeps on a condition variable, there it polls a lock that the
// kernel releases when its holder dies, and after a bounded wait goes on without; neither knows of
// the other.
#pragma once

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

#include "cache/key.h"
#include "pagejit/status.h"

namespace pagejit::cache {

// For how long the result of a finished computation, value or error, answers further calls. Those
// who were already waiting always get it.
enum class Retention : uint8_t {
  kNone = 0,     // the next call computes again
  kExpires = 1,  // for SingleFlightOptions::lifetime: errors that may pass (out of memory, no file
                 // descriptors)
  kKeep = 2,  // until forget(): errors that the same input always yields (the compiler refuses the
              // source)
};

struct SingleFlightOptions {
  std::chrono::milliseconds lifetime{5000};                      // of Retention::kExpires
  std::function<std::chrono::steady_clock::time_point()> clock;  // null = the real one
};

struct SingleFlightStats {
  uint64_t computations = 0;
  uint64_t waits = 0;       // calls that waited for another thread's computation
  uint64_t kept = 0;        // calls answered by a retained result
  uint64_t exceptions = 0;  // computations that threw
};

// Value is copied to every caller: something cheap to copy, such as a shared_ptr.
template <class Value>
class SingleFlight {
 public:
  struct Outcome {
    Result<Value> result;
    Retention retention = Retention::kNone;
  };

  explicit SingleFlight(SingleFlightOptions options = {}) : options_(std::move(options)) {
    if (!options_.clock) options_.clock = std::chrono::steady_clock::now;
  }
  SingleFlight(const SingleFlight&) = delete;
  SingleFlight& operator=(const SingleFlight&) = delete;

  // The result for `key`, by `compute` if nobody else is at it. `compute` runs on this thread with
  // no lock held; an exception out of it becomes kInternal for everyone. It must not call run() for
  // its own key (kInternal). `waited`, if not null, says whether another thread computed. Does not
  // throw, unless memory runs out before the computation starts.
  template <class Compute>
  Result<Value> run(const Key& key, Compute&& compute, bool* waited = nullptr) {
    if (waited != nullptr) *waited = false;
    std::shared_ptr<Flight> flight;
    {
      std::unique_lock lock(mutex_);
      std::shared_ptr<Flight>& slot = flights_[key];
      if (slot != nullptr && is_useful(*slot)) {
        flight = slot;  // a copy: the slot may be gone when the wait is over
        if (flight->result) {
          ++stats_.kept;
          return *flight->result;
        }
        if (flight->owner == std::this_thread::get_id()) {
          return Status(StatusCode::kInternal,
                        "the computation for key " + key.name() + " asks for its own result");
        }
        ++stats_.waits;
        if (waited != nullptr) *waited = true;
        flight->finished.wait(lock, [&] { return flight->result.has_value(); });
        return *flight->result;
      }
      flight = std::make_shared<Flight>();
      slot = flight;
      ++stats_.computations;
    }
    finish(key, *flight, call(key, std::forward<Compute>(compute)));
    return *flight->result;  // written by this thread and never again
  }

  // Drops a retained result. A computation that is running goes on for those who wait, but a call
  // from now on starts anew.
  void forget(const Key& key) {
    const std::lock_guard lock(mutex_);
    flights_.erase(key);
  }

  SingleFlightStats stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  struct Flight {
    std::condition_variable finished;
    std::optional<Result<Value>> result;  // empty while computing; set once
    std::optional<std::chrono::steady_clock::time_point> expires_at;
    const std::thread::id owner = std::this_thread::get_id();
    // After a fork the child has the flights but not the threads that compute them: nobody would
    // ever finish them.
    const pid_t process = ::getpid();
  };

  bool is_useful(const Flight& flight) const {
    if (!flight.result) return flight.process == ::getpid();
    return !flight.expires_at || options_.clock() < *flight.expires_at;
  }

  template <class Compute>
  Outcome call(const Key& key, Compute&& compute) {
    std::string what = "an unknown exception";
    try {
      return std::forward<Compute>(compute)();
    } catch (const std::exception& e) {
      what = e.what();
    } catch (...) {
    }
    const std::lock_guard lock(mutex_);
    ++stats_.exceptions;
    return {
        Status(StatusCode::kInternal, "the computation for key " + key.name() + " threw: " + what),
        Retention::kNone};
  }

  void finish(const Key& key, Flight& flight, Outcome outcome) {
    const std::lock_guard lock(mutex_);
    flight.result.emplace(std::move(outcome.result));
    if (outcome.retention == Retention::kExpires) {
      flight.expires_at = options_.clock() + options_.lifetime;
    }
    const auto found = flights_.find(key);
    const bool is_current = found != flights_.end() && found->second.get() == &flight;
    if (is_current && outcome.retention == Retention::kNone) flights_.erase(found);
    flight.finished.notify_all();
  }

  SingleFlightOptions options_;
  mutable std::mutex mutex_;  // never held while a computation runs
  std::unordered_map<Key, std::shared_ptr<Flight>, KeyHash> flights_;
  SingleFlightStats stats_;
};

}  // namespace pagejit::cache
