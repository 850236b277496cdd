#include "tests/runtime/allocation_counter.h"

#include <dlfcn.h>
#include <pthread.h>

#include <cstdlib>
#include <new>

namespace {

thread_local bool counting = false;
thread_local int allocations = 0;
thread_local int locks = 0;

thread_local bool failing_is_on = false;
thread_local bool has_failed = false;
thread_local pagejit::Failing failing = pagejit::Failing::kOne;
thread_local int until_failure = 0;

bool is_to_fail() {
  if (!failing_is_on) return false;
  if (until_failure-- > 0) return false;
  if (has_failed && failing == pagejit::Failing::kOne) return false;
  has_failed = true;
  return true;
}

void* allocate(size_t size) {
  if (counting) ++allocations;
  if (is_to_fail()) throw std::bad_alloc();
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

void start_failing(Failing how, int countdown) {
  failing = how;
  until_failure = countdown;
  has_failed = false;
  failing_is_on = true;
}

bool stop_failing() {
  failing_is_on = false;
  return has_failed;
}

}  // namespace pagejit
