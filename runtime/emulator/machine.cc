#include "runtime/emulator/machine.h"

#include <csignal>
#include <numeric>
#include <utility>

#include "runtime/emulator/fault_signals.h"
#include "runtime/emulator/text.h"

namespace pagejit_emulator {
namespace {

Machine* running_machine = nullptr;

}  // namespace

Machine& machine() { return *running_machine; }

std::optional<Fault> Machine::run(const LaunchRequest& request,
                                  const PagejitEmulatorOptions& options) {
  request_ = &request;
  options_ = &options;
  random_.seed(options.seed);
  ready_.clear();
  ready_first_ = 0;
  live_.clear();
  fault_.reset();
  interruption_.reset();
  out_of_time_ = false;
  host_ = FiberContext();  // of this OS thread, which may be another than last time
  if (checked()) global_checker_.reset();

  const uint64_t count =
      uint64_t(request.grid[0]) * uint64_t(request.grid[1]) * uint64_t(request.grid[2]);
  cta_bytes_read_.assign(std::min(count, kMaxCountedCtas), 0);
  cta_order_.clear();
  if (options.order == kPagejitEmulatorRandom) shuffle_ctas(count);

  running_machine = this;
  std::optional<Fault> fault = loop(count);
  running_machine = nullptr;
  current_ = nullptr;
  ++counters_->launches;
  return fault;
}

std::optional<Fault> Machine::loop(uint64_t count) {
  const FaultSignals signals(this, options_->watchdog_s);
  const auto slots = static_cast<uint64_t>(options_->resident);
  while (ctas_.size() < slots) ctas_.push_back(std::make_unique<Cta>());
  uint64_t next = 0;
  for (uint64_t slot = 0; slot < slots && next < count; ++slot) {
    if (!start_cta(ctas_[slot].get(), cta_in_order(next++))) {
      return Fault{CUDA_ERROR_OUT_OF_MEMORY,
                   "no memory for the stacks or the shared memory of a CTA"};
    }
  }
  while (!live_.empty()) {
    run_until_event();
    if (interruption_) {
      fault_ = {interruption_->signal == 0 ? CUDA_ERROR_LAUNCH_TIMEOUT : CUDA_ERROR_ILLEGAL_ADDRESS,
                interruption_report()};
    }
    if (fault_) return std::exchange(fault_, std::nullopt);
    bool retired = false;
    for (size_t i = 0; i < live_.size();) {
      Cta* cta = live_[i];
      if (cta->live_threads > 0) {
        ++i;
        continue;
      }
      retired = true;
      ++counters_->ctas;
      if (cta->number < cta_bytes_read_.size()) cta_bytes_read_[cta->number] = cta->bytes_read;
      live_.erase(live_.begin() + static_cast<long>(i));
      // The new one goes to the end of live_ and is not looked at again here: it has live threads.
      if (next < count && !start_cta(cta, cta_in_order(next++))) {
        return Fault{CUDA_ERROR_OUT_OF_MEMORY, "no memory for the stacks of a CTA"};
      }
    }
    if (retired) {
      signals.restart();
    } else {
      return Fault{CUDA_ERROR_LAUNCH_FAILED, all_ctas_text("deadlock")};
    }
  }
  return std::nullopt;
}

void Machine::shuffle_ctas(uint64_t count) {
  // A permutation of more CTAs than this would cost more than the disorder is worth.
  constexpr uint64_t kMaxShuffled = 1 << 20;
  if (count > kMaxShuffled) return;
  cta_order_.resize(count);
  std::iota(cta_order_.begin(), cta_order_.end(), 0u);
  for (uint64_t i = count; i > 1; --i) std::swap(cta_order_[i - 1], cta_order_[random_() % i]);
}

uint64_t Machine::cta_in_order(uint64_t position) const {
  if (!cta_order_.empty()) return cta_order_[position];
  const uint64_t count =
      uint64_t(request_->grid[0]) * uint64_t(request_->grid[1]) * uint64_t(request_->grid[2]);
  return options_->order == kPagejitEmulatorLifo ? count - 1 - position : position;
}

bool Machine::start_cta(Cta* cta, uint64_t number) {
  const auto width = static_cast<uint64_t>(request_->grid[0]);
  const auto height = static_cast<uint64_t>(request_->grid[1]);
  cta->number = number;
  cta->bytes_read = 0;
  cta->x = static_cast<int>(number % width);
  cta->y = static_cast<int>(number / width % height);
  cta->z = static_cast<int>(number / width / height);
  if (!cta->arena.valid()) return false;
  cta->arena.reset(request_->shared_bytes);
  for (Barrier& barrier : cta->barriers) barrier = {};
  const int num_threads = request_->num_threads;
  while (cta->threads.size() > static_cast<size_t>(num_threads)) {
    stacks_.give_back(cta->threads.back()->stack);
    cta->threads.pop_back();
  }
  while (cta->threads.size() < static_cast<size_t>(num_threads)) {
    auto thread = std::make_unique<Thread>();
    thread->stack = stacks_.take();
    if (thread->stack == nullptr) return false;
    thread->cta = cta;
    thread->idx = static_cast<int>(cta->threads.size());
    cta->threads.push_back(std::move(thread));
  }
  cta->warps.assign(static_cast<size_t>(num_threads / kWarpSize), Warp{});
  for (size_t i = 0; i < cta->warps.size(); ++i) {
    cta->warps[i].cta = cta;
    cta->warps[i].idx = static_cast<int>(i);
  }
  if (checked()) {
    cta->clocks.reset(number, num_threads);
    cta->checker.reset(request_->shared_bytes);
  }
  for (auto& thread : cta->threads) {
    thread->warp = &cta->warps[static_cast<size_t>(thread->idx / kWarpSize)];
    thread->exited = false;
    thread->waited_for_grids = false;
    thread->async.clear();
    prepare_fiber(&thread->context, thread->stack, &Machine::thread_main);
    ready(thread.get());
  }
  cta->live_threads = num_threads;
  live_.push_back(cta);
  return true;
}

void Machine::thread_main() {
  Machine* self = running_machine;
  enter_fiber(&self->current_->context);
  self->request_->kernel->run(self->request_->params);
  self->finish_thread();
}

void Machine::finish_thread() {
  Thread* thread = current_;
  Warp& warp = *thread->warp;
  if (request_->pdl && !thread->waited_for_grids) {
    // Else this grid could end before the one ahead of it, and the next one would not know.
    fault(CUDA_ERROR_LAUNCH_FAILED,
          "exits without grid_dependency_wait(), in a launch with programmatic stream "
          "serialization");
    leave();
  }
  thread->exited = true;
  warp.exited |= 1u << thread->lane();
  if (warp.arrived != 0) {
    fault(CUDA_ERROR_LAUNCH_FAILED,
          text("lane %d exits while other lanes of its warp wait in %s at %s", thread->lane(),
               operation_name(warp.operation), line_text(warp.loc).c_str()));
    leave();
  }
  --thread->cta->live_threads;
  Thread* next = thread->cta->live_threads > 0 ? take_ready() : nullptr;
  current_ = next;
  if (next != nullptr) ++counters_->switches;
  switch_fiber(&thread->context, next != nullptr ? &next->context : &host_, true);
  __builtin_unreachable();
}

void Machine::ready(Thread* thread) {
  thread->waits_in = Operation::kNone;
  ready_.push_back(thread);
}

Thread* Machine::take_ready() {
  if (ready_first_ == ready_.size()) return nullptr;
  Thread* thread = nullptr;
  switch (options_->order) {
    case kPagejitEmulatorFifo:
      thread = ready_[ready_first_++];
      // Moves the rest to the front once the used part is the larger one.
      if (ready_first_ == ready_.size()) {
        ready_.clear();
        ready_first_ = 0;
      } else if (ready_first_ >= 1024 && ready_first_ * 2 > ready_.size()) {
        ready_.erase(ready_.begin(), ready_.begin() + static_cast<long>(ready_first_));
        ready_first_ = 0;
      }
      break;
    case kPagejitEmulatorLifo:
      thread = ready_.back();
      ready_.pop_back();
      break;
    default:
      std::swap(ready_[random_() % ready_.size()], ready_.back());
      thread = ready_.back();
      ready_.pop_back();
      break;
  }
  return thread;
}

// Returns when a CTA has ended, a fault was found or nobody can run.
void Machine::run_until_event() {
  Thread* next = take_ready();
  if (next == nullptr) return;
  current_ = next;
  ++counters_->switches;
  switch_fiber(&host_, &next->context);
  current_ = nullptr;
}

void Machine::wait(Operation operation, int barrier, Loc loc) {
  poll();
  Thread* thread = current_;
  thread->waits_in = operation;
  thread->barrier = barrier;
  thread->loc = loc;
  thread->loads_since_switch = 0;
  Thread* next = take_ready();
  current_ = next;
  ++counters_->switches;
  switch_fiber(&thread->context, next != nullptr ? &next->context : &host_);
}

void Machine::yield() {
  poll();
  Thread* thread = current_;
  thread->loads_since_switch = 0;
  Thread* next = nullptr;
  if (options_->order == kPagejitEmulatorLifo) {
    // The last in would be this one again.
    next = take_ready();
    if (next == nullptr) return;
    ready_.insert(ready_.begin(), thread);
  } else {
    ready(thread);
    next = take_ready();
  }
  if (next == thread) return;
  current_ = next;
  ++counters_->switches;
  switch_fiber(&thread->context, &next->context);
}

std::string Machine::where() const {
  std::string result = request_->kernel->name;
  if (current_ == nullptr) return result;
  const Cta& cta = *current_->cta;
  return result + text(", CTA (%d,%d,%d), thread %d", cta.x, cta.y, cta.z, current_->idx);
}

std::string Machine::all_ctas_text(const char* what) const {
  std::string result = text("%s: %s", request_->kernel->name, what);
  for (const Cta* cta : live_) {
    result += text("\n CTA (%d,%d,%d)", cta->x, cta->y, cta->z) + waiting_threads_text(*cta);
  }
  return result;
}

void Machine::fault(CUresult code, const std::string& report) {
  fault_ = {code, where() + ": " + report};
}

void Machine::leave() {
  Thread* thread = current_;
  current_ = nullptr;
  switch_fiber(&thread->context, &host_, true);
  __builtin_unreachable();
}

void Machine::fail_out_of_time() {
  fault_ = {CUDA_ERROR_LAUNCH_TIMEOUT,
            all_ctas_text(text("no CTA ended for %g s", options_->watchdog_s).c_str())};
  leave();
}

void Machine::abandon_in_kernel_code(int signal, uintptr_t pc, uintptr_t address) {
  interruption_ = {signal, pc, address};
  // current_ stays for the report.
  switch_fiber(&current_->context, &host_, true);
  __builtin_unreachable();
}

std::string Machine::interruption_report() const {
  const Interruption& at = *interruption_;
  const std::string line = request_->image->source_line(at.pc);
  if (at.signal == 0) {
    return all_ctas_text(
        text("no CTA ended for %g s; a thread loops at %s", options_->watchdog_s, line.c_str())
            .c_str());
  }
  if (at.signal == SIGFPE)
    return text("%s: arithmetic fault at %s", request_->kernel->name, line.c_str());
  return text("%s: load or store at 0x%zx at %s; %s", request_->kernel->name,
              static_cast<size_t>(at.address), line.c_str(), memory_->describe(at.address).c_str());
}

}  // namespace pagejit_emulator
