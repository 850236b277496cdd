// What the results are compared with: attention in double precision over K and V as the program
// gave them, without blocks, tables or pagejit. Pure; one thread per object.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model.h"

// The same numbers in each run: bf16, evenly between -2 and 2.
class RandomNumbers {
 public:
  std::vector<Bf16> take(int count);

 private:
  uint32_t state_ = 1;
};

// K and V of all tokens of a sequence, [tokens, kNumKvHeads, kHeadSize].
struct History {
  std::vector<Bf16> k;
  std::vector<Bf16> v;

  int num_tokens() const { return static_cast<int>(k.size()) / kKvElements; }
  void append(const Bf16* new_k, const Bf16* new_v, int num_tokens);
};

// Compares `out` with the attention of `q`, both [count, kNumHeads, kHeadSize], the last `count`
// tokens of `history`, each over the tokens up to itself. The worst error over its limit: above 1
// something is wrong. Then `what` says where.
//
// The limit: bf16 has 8 significant bits, so rounding to it changes a value by at most 2^-8 of
// itself. The result is rounded, and so are the weights before they are multiplied with V: together
// at most 2^-7 of the sum of |weight * v|. A hundredth more is for float32, in which all else is
// computed.
double compare_with_dense(const History& history, const Bf16* q, const Bf16* out, int count,
                          std::string& what);
