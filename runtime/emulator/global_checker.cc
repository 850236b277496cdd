#include "runtime/emulator/global_checker.h"

#include <algorithm>

namespace pagejit_emulator {

void GlobalChecker::reset() {
  lines_.clear();
  released_.clear();
  written_begin_ = UINTPTR_MAX;
  written_end_ = 0;
}

bool GlobalChecker::check(const Clocks& clocks, int thread, const Writer& writer, uintptr_t address,
                          bool is_write, Site site) {
  if (!writer.epoch.exists() || clocks.knows(thread, writer.cta, writer.epoch)) return true;
  finding_ = {address, is_write, clocks.cta(), thread, site, writer};
  return false;
}

bool GlobalChecker::read(const Clocks& clocks, int thread, uintptr_t address, unsigned bytes,
                         Site site) {
  if (address >= written_end_ || address + bytes <= written_begin_) return true;
  for (uintptr_t a = address; a < address + bytes;) {
    const uintptr_t line_end = std::min(address + bytes, (a / kLineBytes + 1) * kLineBytes);
    const auto line = lines_.find(a / kLineBytes);
    if (line == lines_.end()) {
      a = line_end;
      continue;
    }
    for (; a < line_end; ++a) {
      if (!check(clocks, thread, line->second.bytes[a % kLineBytes], a, false, site)) return false;
    }
  }
  return true;
}

bool GlobalChecker::write(const Clocks& clocks, int thread, uintptr_t address, unsigned bytes,
                          Site site) {
  written_begin_ = std::min(written_begin_, address);
  written_end_ = std::max(written_end_, address + bytes);
  for (uintptr_t a = address; a < address + bytes; ++a) {
    Writer& writer = lines_[a / kLineBytes].bytes[a % kLineBytes];
    if (!check(clocks, thread, writer, a, true, site)) return false;
    writer = {clocks.cta(), clocks.now(thread), site};
  }
  return true;
}

void GlobalChecker::atomic_acq_rel(Clocks* clocks, int thread, uintptr_t address) {
  KnowledgePtr& released = released_[address];
  clocks->acquire(thread, released);
  released = unite(released, clocks->release(thread));
}

void GlobalChecker::atomic_relaxed(Clocks* clocks, int thread, uintptr_t address) {
  KnowledgePtr& released = released_[address];
  clocks->relaxed_read(thread, released);
  released = unite(released, clocks->relaxed_write(thread));
}

std::string GlobalChecker::finding(const Image& image) const {
  const Finding& f = finding_;
  return text(
      "race in global memory: %s of 0x%zx by CTA %zu, thread %d at %s and write by CTA %zu, thread "
      "%d "
      "at %s, with nothing that orders them",
      f.is_write ? "write" : "read", static_cast<size_t>(f.address), static_cast<size_t>(f.cta),
      f.thread, f.site.describe(image).c_str(), static_cast<size_t>(f.other.cta),
      f.other.epoch.thread(), f.other.site.describe(image).c_str());
}

}  // namespace pagejit_emulator
