// FaultSignals: while a launch runs, turns what a kernel can do outside of all device functions
// into a failed launch: an endless loop (a timer's SIGURG, chosen because it is harmless elsewhere)
// and an access to memory that is not there (SIGSEGV, SIGBUS) or a division by zero (SIGFPE).
// Signals that hit anything but kernel code go to the handlers that were there before.
// Thread-safety: one at a time in the process.
#pragma once

#include <csignal>
#include <ctime>

namespace pagejit_emulator {

class Machine;

class FaultSignals {
 public:
  // watchdog_s: 0 = no timer.
  FaultSignals(Machine* machine, double watchdog_s);
  ~FaultSignals();
  FaultSignals(const FaultSignals&) = delete;
  FaultSignals& operator=(const FaultSignals&) = delete;

  // Starts the watchdog's time anew.
  void restart() const;

 private:
  double watchdog_s_;
  bool has_timer_ = false;
  timer_t timer_ = {};
  bool has_stack_ = false;
  stack_t old_stack_ = {};
};

}  // namespace pagejit_emulator
