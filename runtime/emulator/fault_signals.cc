#include "runtime/emulator/fault_signals.h"

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include "runtime/emulator/machine.h"

namespace pagejit_emulator {
namespace {

constexpr int kWatchdogSignal = SIGURG;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// The sanitizers' own reports on bad accesses are better.
constexpr int kSignals[] = {kWatchdogSignal};
#else
constexpr int kSignals[] = {kWatchdogSignal, SIGSEGV, SIGBUS, SIGFPE};
#endif

Machine* watched = nullptr;
pid_t watched_thread = 0;
struct sigaction old_actions[std::size(kSignals)];

pid_t this_thread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

uintptr_t interrupted_pc(void* context) {
  [[maybe_unused]] const auto& machine_context = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<uintptr_t>(machine_context.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return machine_context.pc;
#else
  return 0;  // no kernel code is ever recognised: the watchdog still works at device functions
#endif
}

void pass_on(int signal, siginfo_t* info, void* context) {
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    if (kSignals[i] != signal) continue;
    const struct sigaction& old = old_actions[i];
    if ((old.sa_flags & SA_SIGINFO) != 0) {
      old.sa_sigaction(signal, info, context);
    } else if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) {
      old.sa_handler(signal);
    } else if (signal != kWatchdogSignal) {
      sigaction(signal, &old, nullptr);  // the access is repeated and ends as it would have
    }
  }
}

void on_signal(int signal, siginfo_t* info, void* context) {
  Machine* machine = watched;
  const bool ours = machine != nullptr && this_thread() == watched_thread;
  const uintptr_t pc = interrupted_pc(context);
  const bool in_kernel = ours && machine->runs_kernel_code(pc);
  if (signal == kWatchdogSignal && info->si_code == SI_TIMER) {
    // Inside the emulator a lock may be held or a heap half-way changed: there only a note is left.
    if (in_kernel) machine->abandon_in_kernel_code(0, pc, 0);
    if (ours) machine->set_out_of_time();
    return;
  }
  if (in_kernel && signal != kWatchdogSignal) {
    machine->abandon_in_kernel_code(signal, pc, reinterpret_cast<uintptr_t>(info->si_addr));
  }
  pass_on(signal, info, context);
}

}  // namespace

FaultSignals::FaultSignals(Machine* machine, double watchdog_s) : watchdog_s_(watchdog_s) {
  // A fiber whose stack overflows has no room for a handler.
  static std::vector<char> handler_stack(size_t{64} * 1024);
  stack_t stack = {};
  stack.ss_sp = handler_stack.data();
  stack.ss_size = handler_stack.size();
  has_stack_ = sigaltstack(&stack, &old_stack_) == 0;
  watched = machine;
  watched_thread = this_thread();
  struct sigaction action = {};
  action.sa_sigaction = &on_signal;
  // NODEFER: a handler that leaves for the host context must not leave its signal blocked.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], &action, &old_actions[i]);
  }
  if (watchdog_s > 0) {
    struct sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = kWatchdogSignal;
    event._sigev_un._tid = watched_thread;
    has_timer_ = timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
    restart();
  }
}

FaultSignals::~FaultSignals() {
  if (has_timer_) timer_delete(timer_);
  watched = nullptr;
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &old_actions[i], nullptr);
  if (has_stack_) sigaltstack(&old_stack_, nullptr);
}

void FaultSignals::restart() const {
  if (!has_timer_) return;
  const double whole = std::floor(watchdog_s_);
  struct itimerspec time = {};
  time.it_value.tv_sec = static_cast<time_t>(whole);
  time.it_value.tv_nsec = static_cast<long>((watchdog_s_ - whole) * 1e9);
  if (time.it_value.tv_sec == 0 && time.it_value.tv_nsec == 0) time.it_value.tv_nsec = 1;
  time.it_interval.tv_nsec = 100'000'000;  // and again, should the first hit a bad moment
  timer_settime(timer_, 0, &time, nullptr);
}

}  // namespace pagejit_emulator
