// What a tile configuration costs: registers, SM clocks, bytes under way. A model, not
// measurements; templates/attention/README.md explains each figure. It only ranks the planner's
// candidates. Thread-safety: free functions without state.
#pragma once

#include <algorithm>

#include "generator/arch.h"
#include "generator/config.h"

namespace pagejit {

// Registers of one thread: what must live through the main loop, plus addresses, counters and the
// compiler's own.
int estimate_registers(const AttentionConfig& c, const Arch& arch);

// SM clocks that one token of K and V costs, for each resource that could be the limit.
struct TokenCost {
  double memory;   // bytes over the SM's share of the bandwidth
  double tensor;   // mma.sync m16n8k16: 2 clocks each over the SM's four tensor cores, 4 on sm_75
  double shared;   // ldmatrix.x4: 4 clocks each (512 bytes at 128 bytes per clock), cp.async writes
  double latency;  // the serial chain of one tile over the tiles in progress

  double worst() const { return std::max({memory, tensor, shared, latency}); }
};

// kv_comes_from_l2: other tiles of the same sequence have just read it.
TokenCost token_cost(const AttentionConfig& c, const Arch& arch, bool kv_comes_from_l2);

// Of both products alone, with asynchronous copies.
double product_clocks_per_token(const AttentionConfig& c);

// Of K and V of one KV head, as they lie in the cache.
int kv_token_bytes(const AttentionConfig& c);

// Bytes of K and V under way per SM while one stage of each group is being worked on.
int bytes_in_flight(const AttentionConfig& c);

// Little's law, twice, so that one half may be late.
int bytes_in_flight_needed(const Arch& arch);

}  // namespace pagejit
