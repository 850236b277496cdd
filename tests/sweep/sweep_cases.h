// The cases of the sweep: a covering array in which every pair of values of any two factors occurs
// (covering_decode.inc, written by make_covering_array.py), and the full product of the spec's
// fields with the other factors drawn for each case. Thread-safety: free functions without state.
#pragma once

#include <string>
#include <vector>

#include "runtime/emulator/emulator.h"
#include "tools/check/check.h"

namespace pagejit {

enum class Lengths : uint8_t {
  kEmptyAndOne = 0,   // 0, 1, 0, 2
  kBlockBorders = 1,  // block_size - 1, block_size, block_size + 1
  kMedium = 2,        // 600, 0, block_size
  kLong = 3,          // 2049
  kAll = 4,           // default_seq_lens()
};

// The order of the fields is that of make_covering_array.py.
struct SweepCase {
  int head_size;
  int block_size;
  int group_size;
  DataType type;
  Lengths lengths;
  int num_splits;  // 0: chosen by the library
  CacheLayout layout;
  LogitRegime logits;
  int num_kv_heads;
  bool with_lse;
  bool share_prefix;
  bool padded_rows;
  // The emulator's schedule; without meaning on a GPU.
  PagejitEmulatorOrder order;
  PagejitEmulatorCompletion completion;

  KernelSpec spec() const;
  CheckOptions check_options() const;
  std::vector<int> seq_lens() const;
  // Letters, digits and underscores only; unique among the cases of one list.
  std::string name() const;
};

const std::vector<SweepCase>& pairwise_cases();
// 12 head sizes x 8 block sizes x 9 groups x 2 types.
std::vector<SweepCase> all_cases();

// A few short sequences, one of them empty, with sizes for whatever mask the spec has.
CheckOptions small_check(const KernelSpec& spec);

}  // namespace pagejit
