// SingleFlight: of all threads that want the value of one key at one time, one computes it and the
// others wait for that result. Within one process only; not a cache of values, unless the
// computation asks for its result to be kept. Thread-safety: all functions may be called from
// several threads at once. Different keys never wait for each other.
//
// Processes exclude each other inside `compute`, by a lock around "look up again, compile, publish"
// (DiskCache::lock). Here a waiter sleeps on a condition variable, there it polls a lock that the
// kernel releases when its holder dies, and after a bounded wait goes on without; neither knows of
// the other.
//
// A caller may leave early. Its thread, where it computes, goes on for those who still wait; when
// all have left, the computation is asked to stop.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "cache/fork_guard.h"
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
  // Results that are kept at a time, the oldest being dropped: a failure with its source and log
  // has some 100 KB.
  size_t max_kept = 256;
};

// How a caller takes part.
struct FlightCaller {
  std::stop_token stop = {};  // when requested, the caller leaves: kCancelled
  int urgency = 0;            // of a computation, the greatest of its callers' counts
  // Where not null, the computation's urgency if this caller computes: it is raised there for other
  // callers, and may be raised by its owner at any time.
  std::shared_ptr<std::atomic<int>> shared_urgency = nullptr;
};

// What a computation may know of its callers, while it runs.
struct FlightDemand {
  std::stop_token stop;                       // requested when all callers have left
  std::shared_ptr<std::atomic<int>> urgency;  // only grows
};

struct SingleFlightStats {
  uint64_t computations = 0;
  uint64_t waits = 0;       // calls that waited for another thread's computation
  uint64_t kept = 0;        // calls answered by a retained result
  uint64_t exceptions = 0;  // computations that threw
  uint64_t left = 0;        // calls that left early
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
  // no lock held, with a FlightDemand if it takes one; an exception out of it becomes kInternal for
  // everyone. It must not call run() for its own key (kInternal). `waited`, if not null, says
  // whether another thread computed. Does not throw, unless memory runs out before the computation
  // starts.
  //
  // A caller that waits and leaves gets kCancelled at once. One that computes and leaves gets what
  // `compute` returns: its thread is needed for that. A computation that ends in kCancelled because
  // all had left is no result for who came later: it computes anew. No kCancelled is ever kept.
  template <class Compute>
  Result<Value> run(const Key& key, Compute&& compute, bool* waited = nullptr,
                    const FlightCaller& caller = {}) {
    if (waited != nullptr) *waited = false;
    while (true) {
      std::optional<Result<Value>> result = run_once(key, compute, waited, caller);
      if (result) return *std::move(result);
    }
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
    std::condition_variable_any finished;
    std::optional<Result<Value>> result;  // empty while computing; set once
    std::optional<std::chrono::steady_clock::time_point> expires_at;
    const std::thread::id owner = std::this_thread::get_id();
    // After a fork the child has the flights but not the threads that compute them: nobody would
    // ever finish them.
    const pid_t process = ::getpid();
    int num_callers = 1;  // who have not left
    std::stop_source stop;
    std::shared_ptr<std::atomic<int>> urgency;
  };

  // Empty where the flight that this call waited for was given up by all others.
  template <class Compute>
  std::optional<Result<Value>> run_once(const Key& key, Compute& compute, bool* waited,
                                        const FlightCaller& caller) {
    std::shared_ptr<Flight> flight;
    {
      std::unique_lock lock(mutex_);
      std::shared_ptr<Flight>& slot = flights_[key];
      if (slot != nullptr && is_useful(*slot)) {
        flight = slot;  // a copy: the slot may be gone when the wait is over
        if (flight->result) {
          ++stats_.kept;
          return flight->result;
        }
        if (flight->owner == std::this_thread::get_id()) {
          return Status(StatusCode::kInternal,
                        "the computation for key " + key.name() + " asks for its own result");
        }
        ++stats_.waits;
        if (waited != nullptr) *waited = true;
        ++flight->num_callers;
        raise(*flight, caller.urgency);
        const auto is_done = [&] { return flight->result.has_value(); };
        if (!flight->finished.wait(lock, caller.stop, is_done)) {
          lock.unlock();
          leave(*flight);
          return Result<Value>(Status(StatusCode::kCancelled, "the request was cancelled"));
        }
        const bool given_up =
            flight->stop.stop_requested() && code_of(*flight->result) == StatusCode::kCancelled;
        if (given_up) return std::nullopt;
        return flight->result;
      }
      flight = std::make_shared<Flight>();
      flight->urgency = caller.shared_urgency;
      if (flight->urgency == nullptr) flight->urgency = std::make_shared<std::atomic<int>>(0);
      slot = flight;
      raise(*flight, caller.urgency);
      ++stats_.computations;
    }
    Outcome outcome = [&] {
      // This thread is busy: whoever requests the stop does the leaving.
      const std::stop_callback on_stop(caller.stop, [&] { leave(*flight); });
      return call(key, compute, {flight->stop.get_token(), flight->urgency});
    }();
    finish(key, flight, std::move(outcome));
    return flight->result;  // written by this thread and never again
  }

  static StatusCode code_of(const Result<Value>& result) {
    return result ? StatusCode::kOk : result.status().code();
  }

  static void raise(Flight& flight, int urgency) {
    int now = flight.urgency->load();
    while (urgency > now && !flight.urgency->compare_exchange_weak(now, urgency)) {
    }
  }

  // Takes one caller away. The stop is requested with no lock held, since it calls what others have
  // registered.
  void leave(Flight& flight) {
    bool was_last = false;
    {
      const std::lock_guard lock(mutex_);
      ++stats_.left;
      was_last = --flight.num_callers == 0;
    }
    if (was_last) flight.stop.request_stop();
  }

  bool is_useful(const Flight& flight) const {
    if (!flight.result) return flight.process == ::getpid();
    return !flight.expires_at || options_.clock() < *flight.expires_at;
  }

  template <class Compute>
  Outcome call(const Key& key, Compute& compute, const FlightDemand& demand) {
    try {
      if constexpr (std::is_invocable_v<Compute&, const FlightDemand&>) {
        return compute(demand);
      } else {
        return compute();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      ++stats_.exceptions;
      return {status_of_exception(key), Retention::kNone};
    }
  }

  // Of the exception that is being handled. Whatever happens, those who wait must be told.
  static Status status_of_exception(const Key& key) noexcept {
    try {
      try {
        throw;
      } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
      } catch (const std::exception& e) {
        return exception_status(key, e.what());
      } catch (...) {
        return exception_status(key, "an unknown exception");
      }
    } catch (...) {
      return Status::out_of_memory();
    }
  }

  static Status exception_status(const Key& key, const char* what) {
    return Status(StatusCode::kInternal,
                  "the computation for key " + key.name() + " threw: " + what);
  }

  void finish(const Key& key, const std::shared_ptr<Flight>& flight, Outcome outcome) {
    const std::lock_guard lock(mutex_);
    if (code_of(outcome.result) == StatusCode::kCancelled) outcome.retention = Retention::kNone;
    flight->result.emplace(std::move(outcome.result));
    if (outcome.retention == Retention::kExpires) {
      flight->expires_at = options_.clock() + options_.lifetime;
    }
    if (outcome.retention == Retention::kNone || !keep(key, flight)) erase(key, *flight);
    flight->finished.notify_all();
  }

  // False where there is no memory for that.
  bool keep(const Key& key, const std::shared_ptr<Flight>& flight) {
    try {
      kept_.emplace_back(key, flight);
    } catch (const std::bad_alloc&) {
      return false;
    }
    if (kept_.size() > options_.max_kept) {
      const auto& [oldest_key, oldest] = kept_.front();
      if (const std::shared_ptr<Flight> still_there = oldest.lock()) {
        erase(oldest_key, *still_there);
      }
      kept_.pop_front();
    }
    return true;
  }

  // Where it is still the one of its key.
  void erase(const Key& key, const Flight& flight) {
    const auto found = flights_.find(key);
    if (found != flights_.end() && found->second.get() == &flight) flights_.erase(found);
  }

  SingleFlightOptions options_;
  mutable std::mutex mutex_;  // never held while a computation runs
  const ForkGuard fork_guard_{mutex_};
  std::unordered_map<Key, std::shared_ptr<Flight>, KeyHash> flights_;
  // Those with a result that is kept, the oldest first; some may have been forgotten or replaced.
  std::deque<std::pair<Key, std::weak_ptr<Flight>>> kept_;
  SingleFlightStats stats_;
};

}  // namespace pagejit::cache
