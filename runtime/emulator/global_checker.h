// GlobalChecker: finds races in global memory during one launch: a byte written by two threads, or
// read by one after another wrote it, with nothing that orders them (barriers within a CTA;
// acquiring and releasing atomics between CTAs). It knows only what is written in the launch, in
// the order in which the emulator happened to run; other orders show the other races.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "runtime/emulator/clocks.h"
#include "runtime/emulator/site.h"

namespace pagejit_emulator {

class GlobalChecker {
 public:
  void reset();

  // Each returns false after it has found a race; finding() then tells of it.
  bool read(const Clocks& clocks, int thread, uintptr_t address, unsigned bytes, Site site);
  bool write(const Clocks& clocks, int thread, uintptr_t address, unsigned bytes, Site site);

  void atomic_acq_rel(Clocks* clocks, int thread, uintptr_t address);
  void atomic_relaxed(Clocks* clocks, int thread, uintptr_t address);

  std::string finding(const Image& image) const;

 private:
  struct Writer {
    uint64_t cta = 0;
    Epoch epoch;
    Site site;
  };
  static constexpr unsigned kLineBytes = 16;
  struct Line {
    Writer bytes[kLineBytes];
  };
  struct Finding {
    uintptr_t address;
    bool is_write;
    uint64_t cta;
    int thread;
    Site site;
    Writer other;
  };

  bool check(const Clocks& clocks, int thread, const Writer& writer, uintptr_t address,
             bool is_write, Site site);

  std::unordered_map<uintptr_t, Line> lines_;
  // Everything written lies in between: most reads are of memory that nobody writes.
  uintptr_t written_begin_ = UINTPTR_MAX;
  uintptr_t written_end_ = 0;
  std::unordered_map<uintptr_t, KnowledgePtr> released_;  // per address of an atomic
  Finding finding_ = {};
};

}  // namespace pagejit_emulator
