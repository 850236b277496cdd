// A list of kernels to make: pairs of a spec and a target, sorted, each once; its shards, and what
// two lists have apart. Thread-safety: plain values and free functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "generator/config.h"

namespace pagejit::manifest {

struct ListedKernel {
  ListedKernel(const AnySpec& any, const Target& for_target);

  AnySpec spec;
  Target target;
  std::string text;  // canonical, of the spec

  bool operator==(const ListedKernel& other) const {
    return text == other.text && target == other.target;
  }
};

// By text, then by target: capability, then variant, the host's last.
bool operator<(const ListedKernel& a, const ListedKernel& b);

// Of kernels with the same text and target the first is kept.
void sort_unique(std::vector<ListedKernel>* kernels);

// "sm_90a decode q=bf16 ...".
std::string line_of(const ListedKernel& kernel);
// As a line of a trace: {"spec":"...","target":"..."}, without the line's end.
std::string json_of(const ListedKernel& kernel);

// Part `index` of `count`, from 1.
struct Shard {
  int index = 1;
  int count = 1;
};

// "2/8". kInvalidArgument with what is legal.
Result<Shard> parse_shard(std::string_view text);

// Every count-th kernel of a sorted list, beginning with the index-th. The shards of a list are
// disjoint, together the list, and differ by one in length; the same on each machine.
std::vector<ListedKernel> shard_of(const std::vector<ListedKernel>& sorted, const Shard& shard);

struct ListDifference {
  std::vector<ListedKernel> only_first;
  std::vector<ListedKernel> only_second;
};
// Of sorted lists.
ListDifference difference(const std::vector<ListedKernel>& first,
                          const std::vector<ListedKernel>& second);

}  // namespace pagejit::manifest
