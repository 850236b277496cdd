// The program that is killed: looks an entry up, takes its lock, publishes it and looks it up
// again, as an engine does around a compile. No GoogleTest, so that nothing else makes calls that
// count.
//
//   store_process DIRECTORY NUMBER IMAGE_BYTES
//
// Exit codes: 0 = the entry is there in the end, 1 = wrong use, 2 = a look-up found a corrupt entry
// or wrong bytes, 3 = not published, 4 = not found afterwards.
#include <cstdlib>

#include "tests/faults/stored_entries.h"

int main(int argc, char** argv) {
  using pagejit::cache::LookupOutcome;
  if (argc != 4) return 1;
  const pagejit::cache::Entry entry =
      pagejit::cache::stored_entry(std::atoi(argv[2]), std::strtoull(argv[3], nullptr, 10));
  pagejit::cache::DiskCacheOptions options;
  options.directory = {argv[1], "", "test"};
  const auto cache = pagejit::cache::DiskCache::open(std::move(options));

  if (pagejit::cache::is_bad(cache->lookup(entry.key))) return 2;
  pagejit::cache::ProcessLock lock;
  cache->lock(
      entry.key, [] { return false; }, &lock);
  if (!cache->publish(entry).is_ok()) return 3;
  lock.release();
  const pagejit::cache::LookupResult result = cache->lookup(entry.key);
  if (pagejit::cache::is_bad(result)) return 2;
  return result.outcome == LookupOutcome::kHit && *result.entry == entry ? 0 : 4;
}
