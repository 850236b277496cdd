// Machine: runs the grid of one launch, one fiber per CUDA thread, on the calling OS thread. The
// device functions (device_*.cc, collectives.cc, barriers.cc, async_copy.cc) act on the machine
// that runs, machine(). Thread-safety: one launch at a time in the process; the caller holds the
// driver's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/emulator/cta.h"
#include "runtime/emulator/cuda_abi.h"
#include "runtime/emulator/emulator.h"
#include "runtime/emulator/global_checker.h"
#include "runtime/emulator/global_memory.h"
#include "runtime/emulator/image.h"

namespace pagejit_emulator {

struct LaunchRequest {
  const Image* image;
  const KernelEntry* kernel;
  int grid[3];
  int num_threads;  // a multiple of 32
  unsigned shared_bytes;
  const void* params;
  // Launched with programmatic stream serialization: on a GPU the grid before it may still run.
  bool pdl = false;
};

struct Fault {
  CUresult code;
  std::string report;
};

class Machine {
 public:
  Machine(GlobalMemory* memory, PagejitEmulatorCounters* counters)
      : memory_(memory), counters_(counters) {}

  // Runs all CTAs; the first fault ends the launch.
  std::optional<Fault> run(const LaunchRequest& request, const PagejitEmulatorOptions& options);

  // Bytes of global memory that each CTA of the last launch read, by number; of a grid's first
  // kMaxCountedCtas. A CTA that did not end has 0.
  const std::vector<uint64_t>& cta_bytes_read() const { return cta_bytes_read_; }
  static constexpr uint64_t kMaxCountedCtas = 1 << 16;

  // ---- For the device functions, on a fiber ----

  Thread& current() { return *current_; }
  const LaunchRequest& request() const { return *request_; }
  const PagejitEmulatorOptions& options() const { return *options_; }
  PagejitEmulatorCounters& counters() { return *counters_; }
  void count_bytes_read(unsigned bytes) {
    counters_->global_bytes_read += bytes;
    current_->cta->bytes_read += bytes;
  }
  GlobalMemory& memory() { return *memory_; }
  GlobalChecker& global_checker() { return global_checker_; }
  bool checked() const { return request_->image->checked(); }
  bool toss_coin() { return random_() & 1; }

  // Suspends the running thread until ready() is called for it.
  void wait(Operation operation, int barrier, Loc loc);
  void ready(Thread* thread);
  // Lets the others run first.
  void yield();
  // Ends the launch if the watchdog wants it; called now and then by whatever a kernel may loop on.
  void poll() {
    if (out_of_time_) fail_out_of_time();
  }

  // Two statements end the launch: fault() keeps the report, with the kernel, the CTA and the
  // thread in front, and leave() abandons the fiber. Apart, because the frame is never unwound:
  // what the report was made of must be gone before.
  void fault(CUresult code, const std::string& report);
  [[noreturn]] void leave();

  // ---- For the signal handlers of fault_signals.cc ----

  void set_out_of_time() { out_of_time_ = true; }
  // Leaves the running fiber for good from a handler that interrupted kernel code at `pc`. signal 0
  // = the watchdog.
  [[noreturn]] void abandon_in_kernel_code(int signal, uintptr_t pc, uintptr_t address);
  // Whether the machine runs kernel code at `pc`.
  bool runs_kernel_code(uintptr_t pc) const {
    return current_ != nullptr && request_->image->contains(pc);
  }

 private:
  struct Interruption {
    int signal;
    uintptr_t pc;
    uintptr_t address;
  };

  static void thread_main();
  bool start_cta(Cta* cta, uint64_t number);
  void finish_thread();
  Thread* take_ready();
  void run_until_event();
  [[noreturn]] void fail_out_of_time();
  std::string where() const;
  std::string interruption_report() const;
  std::string all_ctas_text(const char* what) const;
  uint64_t cta_in_order(uint64_t position) const;
  void shuffle_ctas(uint64_t count);
  std::optional<Fault> loop(uint64_t count);

  GlobalMemory* memory_;
  PagejitEmulatorCounters* counters_;
  const LaunchRequest* request_ = nullptr;
  const PagejitEmulatorOptions* options_ = nullptr;
  StackPool stacks_;
  std::vector<std::unique_ptr<Cta>> ctas_;  // slots, kept from launch to launch
  std::vector<Cta*> live_;
  std::vector<Thread*> ready_;  // fifo: taken from ready_first_, else from the end or anywhere
  size_t ready_first_ = 0;
  FiberContext host_;
  Thread* current_ = nullptr;  // null while the host context runs
  std::mt19937_64 random_;
  std::vector<uint64_t> cta_bytes_read_;
  std::vector<uint32_t> cta_order_;  // order random: a permutation
  GlobalChecker global_checker_;
  std::optional<Fault> fault_;
  std::optional<Interruption> interruption_;
  volatile bool out_of_time_ = false;
};

// The machine whose launch runs now.
Machine& machine();

}  // namespace pagejit_emulator
