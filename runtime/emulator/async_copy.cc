// cp.async. The data of a copy arrive when the options say; a kernel may rely on them only after
// its wait.
#include <cstring>

#include "runtime/emulator/device_functions.h"
#include "runtime/emulator/machine.h"
#include "runtime/emulator/text.h"

namespace pagejit_emulator {
namespace {

void transfer(PendingCopy* copy) {
  if (copy->done) return;
  copy->done = true;
  std::memset(copy->shared, 0, copy->bytes);
  if (copy->valid_bytes > 0) std::memcpy(copy->shared, copy->global, copy->valid_bytes);
}

void complete(Thread* thread, PendingCopy* copy) {
  transfer(copy);
  Machine& m = machine();
  if (!m.checked()) return;
  Cta& cta = *thread->cta;
  const auto offset = static_cast<unsigned>(cta.arena.offset(copy->shared));
  if (!cta.checker.end_copy(cta.clocks, thread->idx, offset, copy->bytes, Site(copy->loc))) {
    m.fault(CUDA_ERROR_LAUNCH_FAILED, cta.checker.finding(*m.request().image));
    m.leave();
  }
}

bool arrives_at_issue() {
  Machine& m = machine();
  switch (m.options().completion) {
    case kPagejitEmulatorEarly:
      return true;
    case kPagejitEmulatorLate:
      return false;
    default:
      return m.toss_coin();
  }
}

}  // namespace

void cp_async(void* shared, const void* global, unsigned bytes, unsigned valid_bytes, Loc loc) {
  Machine& m = machine();
  m.poll();
  check_shared(shared, bytes, bytes, "cp.async to shared memory", loc);
  if (valid_bytes > bytes) {
    m.fault(CUDA_ERROR_LAUNCH_FAILED, "cp.async of more valid bytes than bytes");
    m.leave();
  }
  if (valid_bytes > 0) {
    check_global(global, valid_bytes, bytes, "cp.async from global memory", loc);
    m.count_bytes_read(valid_bytes);
    note_global_read(global, valid_bytes, loc);
  }
  Thread& thread = m.current();
  if (m.checked()) {
    ++m.counters().checked_shared_accesses;
    Cta& cta = *thread.cta;
    const auto offset = static_cast<unsigned>(cta.arena.offset(shared));
    if (!cta.checker.begin_copy(cta.clocks, thread.idx, offset, bytes, Site(loc))) {
      m.fault(CUDA_ERROR_LAUNCH_FAILED, cta.checker.finding(*m.request().image));
      m.leave();
    }
  }
  thread.async.copies.push_back({shared, global, bytes, valid_bytes, false, loc});
  if (arrives_at_issue()) transfer(&thread.async.copies.back());
}

void cp_async_commit(Loc) {
  AsyncCopies& async = machine().current().async;
  async.groups.push_back(async.copies.size());
}

void cp_async_wait(int pending, Loc) {
  Machine& m = machine();
  m.poll();
  Thread& thread = m.current();
  AsyncCopies& async = thread.async;
  while (async.groups.size() - async.first_group > static_cast<size_t>(pending)) {
    const size_t end = async.groups[async.first_group++];
    for (; async.first < end; ++async.first) complete(&thread, &async.copies[async.first]);
  }
  if (async.first == async.copies.size() && async.first_group == async.groups.size()) {
    async.clear();
  } else if (async.first > 1024) {
    // A ring is never empty: what is done is dropped now and then.
    async.copies.erase(async.copies.begin(), async.copies.begin() + static_cast<long>(async.first));
    async.groups.erase(async.groups.begin(),
                       async.groups.begin() + static_cast<long>(async.first_group));
    for (size_t& end : async.groups) end -= async.first;
    async.first = async.first_group = 0;
  }
}

}  // namespace pagejit_emulator
