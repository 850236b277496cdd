// SharedChecker: finds races, reads of unwritten bytes and early uses of asynchronous copies in the
// shared memory of one CTA. Per byte it keeps the last writer and the readers since (FastTrack);
// atomics are kept with the readers, since they may be as many, but race with these.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/emulator/clocks.h"
#include "runtime/emulator/site.h"

namespace pagejit_emulator {

class SharedChecker {
 public:
  void reset(unsigned bytes);

  // Each returns false after it has found a fault; finding() then tells of it. Offsets and sizes
  // are in bounds.
  bool read(const Clocks& clocks, int thread, unsigned offset, unsigned bytes, Site site);
  bool write(const Clocks& clocks, int thread, unsigned offset, unsigned bytes, Site site);
  // A read and a write that no other atomic races with.
  bool atomic(const Clocks& clocks, int thread, unsigned offset, unsigned bytes, Site site);
  // A copy of 4, 8 or 16 bytes, aligned to their number: between the two nobody may touch them.
  bool begin_copy(const Clocks& clocks, int thread, unsigned offset, unsigned bytes, Site site);
  bool end_copy(const Clocks& clocks, int thread, unsigned offset, unsigned bytes, Site site);

  std::string finding(const Image& image) const;

 private:
  struct Byte {
    Site writer_site;
    Epoch writer;
    int readers = -1;  // list in nodes_
  };
  struct Reader {
    Site site;
    Epoch epoch;
    int next;
    bool is_atomic;
  };
  struct Copy {
    Site site;
    int thread = -1;  // -1 = none in flight
  };
  enum class Fault { kRace, kUnwritten, kInFlight };
  struct Finding {
    Fault fault;
    unsigned offset;
    bool is_write;
    int thread;
    Site site;
    bool other_is_write;
    int other_thread;
    Site other_site;
  };

  // A read, or an atomic.
  bool record_read(const Clocks& clocks, int thread, unsigned offset, unsigned bytes,
                   bool is_atomic, Site site);
  bool check_copies(int thread, unsigned offset, unsigned bytes, bool is_write, Site site);
  // A write without the check for copies in flight.
  bool record_write(const Clocks& clocks, int thread, unsigned offset, unsigned bytes, Site site);
  void add_reader(const Clocks& clocks, int thread, Byte* byte, bool is_atomic, Site site);
  void drop_readers(Byte* byte);

  std::vector<Byte> bytes_;
  static constexpr unsigned kCopyUnit = 4;
  std::vector<Copy> copies_;  // per kCopyUnit bytes
  std::vector<Reader> nodes_;
  int free_nodes_ = -1;
  Finding finding_ = {};
};

}  // namespace pagejit_emulator
