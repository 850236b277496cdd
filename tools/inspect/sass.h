// The machine code of a kernel as nvdisasm prints it: instructions, the source lines that they come
// from, and the loops among them. Reads text; runs nothing. Any text is legal input.
// Thread-safety: plain values and free functions.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/inspect/sass_class.h"

namespace pagejit::inspect {

struct SassInstruction {
  uint64_t address = 0;
  std::string text;    // "@P0 BRA `(.L_x_1)"
  std::string opcode;  // "BRA"
  int file = -1;       // index in SassListing::files; -1: not told
  int line = 0;        // in that file, from 1 on
};

// Instructions [begin, end) that a branch at the end leads back to.
struct SassLoop {
  size_t begin = 0;
  size_t end = 0;

  size_t size() const { return end - begin; }
};

struct SassListing {
  std::string symbol;
  std::string target;              // "sm_90a"
  std::vector<std::string> files;  // as the line information names them
  std::vector<SassInstruction> instructions;
  std::vector<SassLoop> loops;  // by their ends
};

// The listing of `symbol` among what `nvdisasm -c -g` has printed; empty where it is not there.
SassListing parse_sass(std::string_view text, std::string_view symbol);

// The loop that the kernel spends its time in: with the most matrix products or, without any, the
// most loads; of several the shortest, so that a loop around it does not count. Null: no loop.
const SassLoop* main_loop(const SassListing& listing);

// How many instructions of each kind.
struct SassMix {
  int total = 0;          // no-operations left out, as in all below
  int no_operations = 0;  // for alignment
  std::array<int, kNumSassClasses> by_class = {};
  // Loads, stores and copies of each class and width in bits.
  std::map<std::pair<SassClass, int>, int> by_width;
  std::map<std::string, int> by_operation;  // "HMMA", "LDGSTS": opcodes without what follows dots

  int of(SassClass c) const { return by_class[static_cast<size_t>(c)]; }
};
SassMix count_mix(const SassListing& listing, SassLoop range);
SassMix count_mix(const SassListing& listing);

}  // namespace pagejit::inspect
