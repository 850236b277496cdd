// What the stub driver's functions and its script share: the state, and each function's count and
// planned failure. Thread-safety: as stub_driver.h.
#pragma once

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/runtime/stub_driver/stub_driver.h"

#define PAGEJIT_STUB_EXPORT extern "C" __attribute__((visibility("default")))

namespace pagejit_stub {

// One function of the driver: its script and its count. Nothing here allocates or locks once made,
// so that tests can measure the caller.
class Function {
 public:
  explicit Function(const char* name) : name_(name) { all().push_back(this); }

  // What the call must return; CUDA_SUCCESS = do the work.
  CUresult enter() {
    calls_.fetch_add(1);
    const int left = failures_.load();
    if (left == 0) return CUDA_SUCCESS;
    if (left > 0) failures_.fetch_sub(1);
    return static_cast<CUresult>(result_.load());
  }

  void reset() {
    calls_ = 0;
    failures_ = 0;
    removed_ = false;
  }
  void fail(CUresult result, int times) {
    result_ = result;
    failures_ = times;
  }
  void remove() { removed_ = true; }
  bool removed() const { return removed_; }
  uint64_t calls() const { return calls_; }
  const char* name() const { return name_; }

  static std::vector<Function*>& all() {
    static std::vector<Function*> functions;
    return functions;
  }
  static Function* find(const char* name) {
    for (Function* function : all()) {
      if (std::strcmp(function->name(), name) == 0) return function;
    }
    std::abort();  // a test names a function that the stub does not have
  }

 private:
  const char* name_;
  std::atomic<uint64_t> calls_{0};
  std::atomic<int> failures_{0};
  std::atomic<int> result_{0};
  std::atomic<bool> removed_{false};
};

struct Context {
  int device = 0;
  unsigned long long id = 0;
  bool alive = true;
};

struct Library {
  int kernel = 0;  // its address is the CUkernel
  bool alive = true;
};

struct State {
  std::mutex mutex;
  int version = 12040;
  int occupancy = 2;
  size_t recorded_bytes = sizeof(pagejit_shared::AttentionParams);
  std::vector<Device> devices{Device{}};
  // Never freed, so that stale handles stay readable.
  std::vector<std::unique_ptr<Context>> contexts;
  std::vector<std::unique_ptr<Library>> libraries;
  std::map<int, Context*> primaries;
  std::map<int, int> primary_counts;
  unsigned long long next_context_id = 1;
  std::atomic<int> live_libraries{0};
  std::atomic<int> max_dynamic_shared{0};
  std::atomic<bool> work_may_run{false};
  std::atomic<bool> unloaded_under_work{false};
  std::atomic<CUstream> capturing_stream{nullptr};
  std::atomic_flag launch_lock;
  LaunchRecord launch;
};

inline State& state() {
  static State instance;
  return instance;
}

inline std::vector<Context*>& context_stack() {
  static thread_local std::vector<Context*> stack;
  return stack;
}

inline Context* new_context(int device) {
  State& s = state();
  s.contexts.push_back(std::make_unique<Context>());
  Context* context = s.contexts.back().get();
  context->device = device;
  context->id = s.next_context_id++;
  return context;
}

}  // namespace pagejit_stub
