// What tests with several processes share: children that end with the test, memory that all of them
// see, and waiting for a condition. Thread-safety: one thread, but for what lies in the memory.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <new>
#include <thread>

namespace pagejit::cache {

// Longer than anything takes that works, far shorter than the wait for a lock that should be free.
inline constexpr std::chrono::seconds kSoon{10};

// Whether the condition holds soon.
template <class Condition>
bool wait_for(Condition&& condition) {
  const auto until = std::chrono::steady_clock::now() + kSoon;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// A value that this process and the children forked later share; T of lock-free atomics.
template <class T>
class SharedMemory {
 public:
  SharedMemory() {
    void* memory =
        ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    value_ = new (memory) T();
  }
  ~SharedMemory() { ::munmap(value_, sizeof(T)); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  T* operator->() const { return value_; }
  T& operator*() const { return *value_; }

 private:
  T* value_;
};

// A forked child that runs `body`, whose result is its exit code. It is killed with this object.
class ChildProcess {
 public:
  template <class Body>
  explicit ChildProcess(const Body& body) : pid_(::fork()) {
    if (pid_ == 0) {
      ::alarm(60);  // should this process die first
      ::_exit(body());
    }
    EXPECT_GT(pid_, 0);
  }
  ~ChildProcess() {
    if (pid_ > 0) kill();
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void stop() {
    ::kill(pid_, SIGSTOP);
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, WUNTRACED), pid_);
    EXPECT_TRUE(WIFSTOPPED(status));
  }
  void kill() {
    ::kill(pid_, SIGKILL);
    wait();
  }
  // Its exit code, or 128 + the signal that ended it.
  int wait() {
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_;
};

// For a child that waits to be killed.
inline int sleep_for_ever() {
  while (true) ::pause();
}

}  // namespace pagejit::cache
