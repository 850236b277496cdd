#include "tests/runtime/allocation_counter.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

thread_local bool counting = false;
thread_local int allocations = 0;
thread_local int locks = 0;

class Countdown {
 public:
  void start(pagejit::Failing how, int countdown) {
    how_ = how;
    until_failure_ = countdown;
    has_failed_ = false;
    is_on_ = true;
  }
  bool stop() {
    is_on_ = false;
    return has_failed_;
  }
  // Called by each allocation.
  bool ends() {
    if (!is_on_ || until_failure_-- > 0) return false;
    return !has_failed_.exchange(true) || how_ == pagejit::Failing::kAllAfter;
  }

 private:
  std::atomic<bool> is_on_{false};
  std::atomic<bool> has_failed_{false};
  std::atomic<pagejit::Failing> how_{pagejit::Failing::kOne};
  std::atomic<int> until_failure_{0};
};

thread_local Countdown here;
constinit Countdown elsewhere;
thread_local bool is_spared = false;  // started the one elsewhere

void* allocate(size_t size) {
  if (counting) ++allocations;
  if (here.ends() || (!is_spared && elsewhere.ends())) throw std::bad_alloc();
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t size) { return allocate(size); }
void* operator new[](size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int (*)(pthread_mutex_t*);
  static const Lock real = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  if (counting) ++locks;
  return real(mutex);
}

namespace pagejit {

void start_counting() {
  allocations = locks = 0;
  counting = true;
}

std::pair<int, int> stop_counting() {
  counting = false;
  return {allocations, locks};
}

void start_failing(Failing failing, int countdown) { here.start(failing, countdown); }
bool stop_failing() { return here.stop(); }

void start_failing_elsewhere(Failing failing, int countdown) {
  is_spared = true;
  elsewhere.start(failing, countdown);
}

bool stop_failing_elsewhere() {
  is_spared = false;
  return elsewhere.stop();
}

}  // namespace pagejit
