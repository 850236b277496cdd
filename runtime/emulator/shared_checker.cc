#include "runtime/emulator/shared_checker.h"

namespace pagejit_emulator {
namespace {

const char* verb(bool is_write) { return is_write ? "write" : "read"; }

}  // namespace

void SharedChecker::reset(unsigned bytes) {
  bytes_.assign(bytes, Byte{});
  copies_.assign((bytes + kCopyUnit - 1) / kCopyUnit, Copy{});
  nodes_.clear();
  free_nodes_ = -1;
}

bool SharedChecker::read(const Clocks& clocks, int thread, unsigned offset, unsigned bytes,
                         Site site) {
  return record_read(clocks, thread, offset, bytes, false, site);
}

bool SharedChecker::atomic(const Clocks& clocks, int thread, unsigned offset, unsigned bytes,
                           Site site) {
  return record_read(clocks, thread, offset, bytes, true, site);
}

bool SharedChecker::record_read(const Clocks& clocks, int thread, unsigned offset, unsigned bytes,
                                bool is_atomic, Site site) {
  if (!check_copies(thread, offset, bytes, is_atomic, site)) return false;
  for (unsigned i = offset; i < offset + bytes; ++i) {
    Byte& byte = bytes_[i];
    if (!byte.writer.exists()) {
      finding_ = {Fault::kUnwritten, i, is_atomic, thread, site, false, 0, Site()};
      return false;
    }
    if (!clocks.knows(thread, byte.writer)) {
      finding_ = {Fault::kRace,    i, is_atomic, thread, site, true, byte.writer.thread(),
                  byte.writer_site};
      return false;
    }
    for (int node = byte.readers; node >= 0; node = nodes_[node].next) {
      const Reader& reader = nodes_[node];
      if (reader.is_atomic == is_atomic || clocks.knows(thread, reader.epoch)) continue;
      finding_ = {Fault::kRace,          i,          is_atomic, thread, site, reader.is_atomic,
                  reader.epoch.thread(), reader.site};
      return false;
    }
    add_reader(clocks, thread, &byte, is_atomic, site);
  }
  return true;
}

bool SharedChecker::write(const Clocks& clocks, int thread, unsigned offset, unsigned bytes,
                          Site site) {
  return check_copies(thread, offset, bytes, true, site) &&
         record_write(clocks, thread, offset, bytes, site);
}

bool SharedChecker::begin_copy(const Clocks& clocks, int thread, unsigned offset, unsigned bytes,
                               Site site) {
  if (!write(clocks, thread, offset, bytes, site)) return false;
  for (unsigned i = 0; i < bytes; i += kCopyUnit)
    copies_[(offset + i) / kCopyUnit] = {site, thread};
  return true;
}

bool SharedChecker::end_copy(const Clocks& clocks, int thread, unsigned offset, unsigned bytes,
                             Site site) {
  for (unsigned i = 0; i < bytes; i += kCopyUnit) copies_[(offset + i) / kCopyUnit] = Copy{};
  return record_write(clocks, thread, offset, bytes, site);
}

bool SharedChecker::check_copies(int thread, unsigned offset, unsigned bytes, bool is_write,
                                 Site site) {
  for (unsigned unit = offset / kCopyUnit; unit <= (offset + bytes - 1) / kCopyUnit; ++unit) {
    const Copy& copy = copies_[unit];
    if (copy.thread < 0) continue;
    finding_ = {Fault::kInFlight, unit * kCopyUnit, is_write, thread, site, true,
                copy.thread,      copy.site};
    return false;
  }
  return true;
}

bool SharedChecker::record_write(const Clocks& clocks, int thread, unsigned offset, unsigned bytes,
                                 Site site) {
  const Epoch now = clocks.now(thread);
  for (unsigned i = offset; i < offset + bytes; ++i) {
    Byte& byte = bytes_[i];
    if (byte.writer.exists() && !clocks.knows(thread, byte.writer)) {
      finding_ = {Fault::kRace,    i, true, thread, site, true, byte.writer.thread(),
                  byte.writer_site};
      return false;
    }
    for (int node = byte.readers; node >= 0; node = nodes_[node].next) {
      const Reader& reader = nodes_[node];
      if (clocks.knows(thread, reader.epoch)) continue;
      finding_ = {Fault::kRace,          i,          true, thread, site, reader.is_atomic,
                  reader.epoch.thread(), reader.site};
      return false;
    }
    drop_readers(&byte);
    byte.writer = now;
    byte.writer_site = site;
  }
  return true;
}

// A reader that the new one knows of need not be kept: a write that knows the new one knows it too.
// But an atomic is kept for other readers, which need not know of this one.
void SharedChecker::add_reader(const Clocks& clocks, int thread, Byte* byte, bool is_atomic,
                               Site site) {
  int* link = &byte->readers;
  while (*link >= 0) {
    const int node = *link;
    if (clocks.knows(thread, nodes_[node].epoch) && (is_atomic || !nodes_[node].is_atomic)) {
      *link = nodes_[node].next;
      nodes_[node].next = free_nodes_;
      free_nodes_ = node;
    } else {
      link = &nodes_[node].next;
    }
  }
  int node = free_nodes_;
  if (node >= 0) {
    free_nodes_ = nodes_[node].next;
  } else {
    node = static_cast<int>(nodes_.size());
    nodes_.emplace_back();
  }
  nodes_[node] = {site, clocks.now(thread), byte->readers, is_atomic};
  byte->readers = node;
}

void SharedChecker::drop_readers(Byte* byte) {
  while (byte->readers >= 0) {
    const int node = byte->readers;
    byte->readers = nodes_[node].next;
    nodes_[node].next = free_nodes_;
    free_nodes_ = node;
  }
}

std::string SharedChecker::finding(const Image& image) const {
  const Finding& f = finding_;
  const std::string here = text("%s of shared+0x%x by thread %d at %s", verb(f.is_write), f.offset,
                                f.thread, f.site.describe(image).c_str());
  if (f.fault == Fault::kUnwritten) return "uninitialised shared memory: " + here;
  const std::string there = text("%s by thread %d at %s", verb(f.other_is_write), f.other_thread,
                                 f.other_site.describe(image).c_str());
  if (f.fault == Fault::kInFlight) {
    return "copy in flight: " + here + " before the wait for the cp.async " + there;
  }
  return "race in shared memory: " + here + " and " + there + ", with no barrier between them";
}

}  // namespace pagejit_emulator
