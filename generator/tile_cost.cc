#include "generator/tile_cost.h"

namespace pagejit {
namespace {

constexpr double kMemoryLatencyUs = 1;  // under load

// One SM's share of the L2 cache's bandwidth.
constexpr double kL2BytesPerClock = 40;

// Of so many elements of K or V.
int row_bytes(const AttentionConfig& c, int num_elements) {
  return pagejit_shared::kv_units(c, num_elements) * pagejit_shared::kv_bytes(c);
}

// Bytes of shared memory that the warps of a CTA read for one token: K by each of the warps that
// have other rows, V and q. Where rows hold K and V, V by one warp, and all rows' probabilities by
// each.
double shared_reads_per_token(const AttentionConfig& c) {
  const double row_tiles = c.row_warps * c.row_tiles;
  const double query_rows =
      c.q_in_registers ? 0
                       : row_tiles * 8 * c.head_size_padded * 2 * pagejit_shared::operand_terms(c);
  const double query = query_rows / c.group_tokens;
  if (!c.is_latent) {
    return row_bytes(c, c.head_size_padded + c.head_size_v_padded) * c.row_warps + query;
  }
  const double probabilities = row_tiles * 8 * 2 * (pagejit_shared::num_warps(c) + 1);
  const int key_bytes = pagejit_shared::padded_key_row_units(c) * pagejit_shared::kv_bytes(c);
  return key_bytes * c.row_warps + row_bytes(c, c.head_size_v_padded) + probabilities + query;
}

// Where copies go through registers: the loads that a lane has under way, and the fragments of the
// further token tiles, which ptxas loads early. As kernels compiled for sm_75 have them.
int registers_of_copies(const AttentionConfig& c) {
  const int depth_tiles = c.head_size_padded / 16;
  const int row_chunks = row_bytes(c, c.head_size) / 16;
  const int chunks_per_lane = c.group_tokens * row_chunks / (32 * c.row_warps);
  constexpr int kChunksAtOnce = 8;
  return 4 * std::min(chunks_per_lane, kChunksAtOnce) + 4 * depth_tiles * (c.group_tokens / 16 - 1);
}

// mma for one product of fragments.
int products_of_terms(const AttentionConfig& c) {
  const int terms = pagejit_shared::operand_terms(c);
  return terms * (terms + 1) / 2;
}

}  // namespace

int kv_token_bytes(const AttentionConfig& c) {
  const int key_bytes = pagejit_shared::key_row_units(c) * pagejit_shared::kv_bytes(c);
  return key_bytes + (c.is_latent ? 0 : row_bytes(c, c.head_size_v));
}

int estimate_registers(const AttentionConfig& c, const Arch& arch) {
  const int depth_tiles = c.head_size_padded / 16;
  const int token_tiles = c.group_tokens / 16;
  // Of a warp that adds up all rows of the tile also the probabilities of 16 tokens.
  const int added_rows = c.is_latent ? c.row_warps * c.row_tiles : c.row_tiles;
  const int accumulators =
      warp_value_tiles(c) * added_rows * 4 + (c.is_latent ? added_rows * 2 : 0);
  // From shared memory: two depth steps ahead, as ptxas schedules them, and their addresses; of
  // more than one term also for each tile of tokens.
  const int terms = pagejit_shared::operand_terms(c);
  const int query = c.q_in_registers ? depth_tiles * c.row_tiles * 2 * terms
                                     : 12 * c.row_tiles * (terms == 1 ? 1 : terms * token_tiles);
  const int scores_and_p = token_tiles * c.row_tiles * (6 + 2 * terms);
  // A fragment of K or V in its terms and values of the next one, for each tile of tokens, and the
  // sums of products.
  const int split_operand =
      pagejit_shared::has_f32_kv(c) ? (4 * terms + 12) * token_tiles + 4 * c.row_tiles : 0;
  // More copies for a row, each with its address.
  const int narrow_copies = pagejit_shared::kv_copy_bytes(c) < 16 ? 8 : 0;
  // The rest, as compiled kernels have it, d 64 to 256, and of the longer ones.
  const int other = depth_tiles <= 16 ? 84 : 68;
  const bool is_q_narrowed = c.q_type == pagejit_shared::Element::kFloat32 && terms == 1;
  // Positions, slopes, limits and constants of what is switched on, as compiled kernels have them.
  const int features = (c.is_ragged ? 3 : 0) + (c.is_batch_invariant ? 6 : 0) +
                       (c.has_alibi ? 2 * c.row_tiles : 0) +
                       (c.has_window || c.has_chunks ? 5 : 0) + (c.has_soft_cap ? 1 : 0) +
                       (c.is_block_sparse ? (c.is_ragged ? 4 : 2) * c.row_tiles + 8 : 0) +
                       (c.has_custom_mask ? 2 * c.row_tiles + 12 : 0) +
                       (pagejit_shared::uses_bidirectional_ranges(c) ? 4 * c.row_tiles + 3 : 0) +
                       (c.has_qq_bias ? 4 * (token_tiles + 1) * c.row_tiles : 0) +
                       (c.has_token_scales ? 4 + 4 * token_tiles : 0) + (is_q_narrowed ? 5 : 0);
  return accumulators + query + scores_and_p + split_operand + narrow_copies + features + other +
         (arch.has_async_copy() ? 0 : registers_of_copies(c));
}

// Whole tiles of 16.
double whole_tiles(int size) {
  const int tiles = size / 16;
  return tiles;
}

double product_clocks_per_token(const AttentionConfig& c) {
  const double depth_tiles = whole_tiles(c.head_size_padded + c.head_size_v_padded);  // of both
  const double row_tiles = c.row_warps * c.row_tiles;
  return 2 * depth_tiles * row_tiles / 16 * products_of_terms(c);
}

TokenCost token_cost(const AttentionConfig& c, const Arch& arch, bool kv_comes_from_l2) {
  const double key_tiles = whole_tiles(c.head_size_padded);
  const double token_tiles = whole_tiles(c.group_tokens);
  const double row_tiles = c.row_warps * c.row_tiles;
  TokenCost cost;
  const double dram_bytes_per_clock = arch.bandwidth_bytes_per_us / (arch.clock_ghz * 1000);
  const double token_bytes = kv_token_bytes(c);
  cost.memory = token_bytes / (kv_comes_from_l2 ? kL2BytesPerClock : dram_bytes_per_clock);
  cost.tensor = product_clocks_per_token(c) * (arch.has_async_copy() ? 1 : 2);
  cost.shared = (shared_reads_per_token(c) + token_bytes) / 128;
  // Barriers and a round of softmax (some 200 clocks for each barrier), a dependent mma every 18
  // clocks along the head, and the other instructions of the tile, which one warp issues one by
  // one.
  const double barriers = c.is_latent ? 3 : 2;
  // Fragments of V that one warp loads, for 16 tokens of its own.
  const double value_loads =
      c.is_latent ? warp_value_tiles(c) * c.token_groups : c.head_size_v_padded / 16;
  const double value_products = value_loads * (c.is_latent ? row_tiles : c.row_tiles * 2);
  const double chain =
      200 * barriers + key_tiles * 18 +
      token_tiles * (key_tiles * (1 + c.row_tiles * 2) + value_loads + value_products);
  // Of 16 tokens and 16 elements of K and V: 2 ldmatrix, 8 cvt, 2 prmt more than 16-bit ones have;
  // of int4 18 of arithmetic more, 1 ldmatrix less. Of f32: 2 loads more, 11 to split each of 4
  // pairs; 5 mma and 4 additions more for each 8 rows.
  const double conversions_each = c.kv_type == pagejit_shared::Element::kInt4 ? 9
                                  : pagejit_shared::kv_bytes(c) == 1          ? 6
                                  : pagejit_shared::has_f32_kv(c)             ? 46 + 9 * c.row_tiles
                                                                              : 0;
  // Of V in rows with scales, beside that: 8 to f32, 8 products, 4 roundings to bf16.
  const double scaling = pagejit_shared::has_ds_mla_rows(c) ? 20 * value_loads : 0;
  const double conversions = token_tiles * (conversions_each * (key_tiles + value_loads) + scaling);
  const double tokens_at_once = c.min_ctas_per_sm * c.token_groups * c.group_tokens;
  // Half of the warps may be waiting for copies. Where these are not asynchronous, each warp waits
  // for its own, one latency of the memory in each tile.
  cost.latency =
      arch.has_async_copy()
          ? 2 * (chain + conversions) / tokens_at_once
          : (chain + conversions + kMemoryLatencyUs * arch.clock_ghz * 1000) / tokens_at_once;
  return cost;
}

int bytes_in_flight(const AttentionConfig& c) {
  return c.min_ctas_per_sm * (c.num_stages - 1) * c.token_groups * c.group_tokens *
         kv_token_bytes(c);
}

int bytes_in_flight_needed(const Arch& arch) {
  return static_cast<int>(2 * kMemoryLatencyUs * arch.bandwidth_bytes_per_us);
}

}  // namespace pagejit
