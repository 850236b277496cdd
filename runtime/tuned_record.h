// TunedRecord: which tile configuration was measured to be the fastest for a spec on a kind of GPU,
// as `pagejit tune` keeps it: a cache entry of its own without an image, whose metadata is the text
// below, so that bundles, checksums, signatures and the size limit hold for it as for kernels. Not
// a kernel: the image lies in the cache under its own key, or the record is not used. Grammar:
// lines "name=value\n" in exactly the order of the fields, after the line "pagejit-tuned 1\n"; then
// "problems=<count>\n", for each "problem=<planned_ns> <tuned_ns> <name>\n", and "end\n". Decimal
// numbers without sign, space or leading zero. Thread-safety: free functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cache/entry.h"
#include "pagejit/status.h"

namespace pagejit {

struct TunedRecord {
  std::string spec;          // canonical_text
  std::string target;        // Target::to_string
  std::string device;        // the driver's name of the GPU that it was measured on
  std::string tile;          // tile_text() of the choice
  std::string planned_tile;  // and of what the planner chose; the same where nothing was better
  std::string image;         // Key::name() of the choice's image
  std::string version;       // of pagejit, for people
  // What was measured: a launch of the planner's choice and of this one.
  struct Problem {
    std::string name;  // "batch=32 seq_len=8192 kv_heads=8"
    uint64_t planned_ns = 0;
    uint64_t tuned_ns = 0;

    bool operator==(const Problem&) const = default;
  };
  std::vector<Problem> problems;

  bool operator==(const TunedRecord&) const = default;

  // Whether it says something else than the planner.
  bool changes_tile() const { return tile != planned_tile; }
  // The geometric mean of planned_ns over tuned_ns; 1 without problems.
  double speedup() const;
};

// Far more than `pagejit tune` measures at once; it bounds what a foreign text makes a reader
// allocate.
inline constexpr size_t kMaxTunedProblems = 256;

// The name of the entry: S of spec and target, C of the device, so that the records of all devices
// for one spec and target lie side by side, and a second measurement replaces the first.
cache::Key tuned_record_key(std::string_view spec, std::string_view target,
                            std::string_view device);

// Line breaks in fields are replaced by spaces.
cache::Entry encode_tuned_record(const TunedRecord& record);

// Whether an entry's metadata claims to be a record, of whatever version: for tools that list.
bool is_tuned_record(std::string_view metadata);

// kDataCorrupt says where the grammar is not met. Any byte string is legal input.
Result<TunedRecord> parse_tuned_record(std::string_view metadata);
// The same of a whole entry, which must lie under the key of what the record says.
Result<TunedRecord> parse_tuned_record(const cache::Entry& entry);

}  // namespace pagejit
