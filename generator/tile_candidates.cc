#include "generator/tile_candidates.h"

#include <algorithm>

#include "generator/tile_cost.h"

namespace pagejit {
namespace {

constexpr int kMaxStages = 8;

int round_up(int value, int unit) { return (value + unit - 1) / unit * unit; }

// cvt.rn.f16x2.e4m3x2 (PTX ISA).
constexpr int kFp8ConvertSm = 89;

AttentionConfig base_config(const KernelSpec& spec, const Arch& arch) {
  AttentionConfig c = {};
  c.q_type = static_cast<pagejit_shared::Element>(spec.q_dtype);
  c.kv_type = static_cast<pagejit_shared::Element>(spec.kv_dtype);
  c.out_type = static_cast<pagejit_shared::Element>(spec.out_dtype);
  c.has_fp8_convert = arch.sm >= kFp8ConvertSm;
  c.is_ragged = spec.queries != QueryLengths::kOne;
  c.splits_row_tiles = spec.queries == QueryLengths::kShared;
  c.causality = static_cast<pagejit_shared::Causality>(spec.causality);
  c.kv_table = static_cast<pagejit_shared::KvTable>(spec.kv_table);
  c.kv_layout = static_cast<pagejit_shared::KvLayout>(spec.kv_layout);
  c.has_window = spec.window;
  c.has_chunks = spec.chunked;
  c.has_custom_mask = spec.custom_mask;
  c.has_bidirectional_ranges = spec.bidirectional_ranges;
  c.is_block_sparse = spec.block_sparse;
  c.has_soft_cap = spec.soft_cap;
  c.has_alibi = spec.alibi;
  c.has_qq_bias = spec.qq_bias;
  c.has_sinks = spec.sinks;
  c.head_size = spec.head_size;
  const int depth = 16 * pagejit_shared::elements_per_unit(c.kv_type);
  c.head_size_padded = round_up(spec.head_size, depth);
  c.head_size_v = value_head_size(spec);
  c.head_size_v_padded = round_up(c.head_size_v, depth);
  c.is_latent = spec.latent;
  c.has_token_scales = spec.token_scales;
  c.kv_alignment = spec.kv_alignment;
  c.block_size = spec.block_size;
  c.group_size = spec.group_size;
  c.is_batch_invariant = spec.batch_invariant;
  c.debug = spec.debug;
  return c;
}

// The smallest ring that keeps enough bytes in flight, or the largest that fits.
void choose_stages(AttentionConfig& c, const Arch& arch) {
  if (!arch.has_async_copy()) {
    // Nothing is in flight while a warp works, so more stages would only keep other warps out.
    c.num_stages = 1;
    c.shared_bytes = pagejit_shared::shared_bytes(c);
    return;
  }
  for (c.num_stages = 2; c.num_stages < kMaxStages; ++c.num_stages) {
    c.shared_bytes = pagejit_shared::shared_bytes(c);
    if (bytes_in_flight(c) >= bytes_in_flight_needed(arch)) return;
    AttentionConfig larger = c;
    ++larger.num_stages;
    const int per_sm =
        (pagejit_shared::shared_bytes(larger) + Arch::kReservedSharedPerCta) * c.min_ctas_per_sm;
    if (pagejit_shared::shared_bytes(larger) > arch.shared_bytes_per_cta ||
        per_sm > arch.shared_bytes_per_sm) {
      return;
    }
  }
  c.shared_bytes = pagejit_shared::shared_bytes(c);
}

// Query tokens of a sequence that one tile of rows holds where queries are few: those of
// speculative decoding.
constexpr int kFewTokens = 4;
constexpr int kLeastRaggedRows = 16;  // of lone heads, so that a sequence is one tile more often
constexpr int kMostRaggedRows = 128;
// Of rows that hold K and V: a warp has an eighth of V's elements of each row, 128 registers for
// these.
constexpr int kMostLatentRows = 64;

// The most rows worth looking at: accumulators of larger heads leave no room for more.
int most_rows(const KernelSpec& spec) {
  return spec.latent ? kMostLatentRows : spec.head_size > 256 ? 64 : kMostRaggedRows;
}

// Rows that take much: accumulators of the largest heads, or q in three terms in shared memory.
bool has_large_rows(const KernelSpec& spec) {
  return spec.head_size > (spec.kv_dtype == DataType::kFloat32 ? 192 : 256);
}

// Rows of a CTA that are worth looking at.
std::vector<int> row_choices(const KernelSpec& spec) {
  switch (spec.queries) {
    case QueryLengths::kOne:
      return {spec.group_size};
    case QueryLengths::kFew: {
      // The smaller ones for large heads with many options, of which not all fit the registers.
      std::vector<int> choices = {rows_wanted(spec)};
      for (const int rows : {64, 32, 16}) {
        if (rows == 16 && spec.kv_dtype != DataType::kFloat32) continue;
        if (rows < choices.front()) choices.push_back(rows);
      }
      return choices;
    }
    case QueryLengths::kShared:
      // The smaller ones, again, for what leaves few registers.
      return has_large_rows(spec) ? std::vector<int>{64, 32, 16} : std::vector<int>{128, 64, 32};
    case QueryLengths::kMany:
      break;
  }
  if (has_large_rows(spec)) return {16, 32, 64};
  return {64, kMostRaggedRows};
}

// Tiles are all full but for the last of a sequence.
bool has_full_tiles(const KernelSpec& spec) {
  return spec.queries == QueryLengths::kMany || spec.queries == QueryLengths::kShared;
}

// Each combination of warps and tiles for that many rows. More warps than 16 or more row tiles than
// 4 never fit the registers.
void add_candidates(const KernelSpec& spec, const Arch& arch, int rows,
                    std::vector<AttentionConfig>& all) {
  const int tiles = (rows + 7) / 8;
  int last_row_warps = 0;
  for (int row_tiles = 1; row_tiles <= 4; ++row_tiles) {
    const int row_warps = (tiles + row_tiles - 1) / row_tiles;
    if (row_warps > 16 || row_warps == last_row_warps) continue;  // same warps, more idle tiles
    if (has_full_tiles(spec) && row_warps * row_tiles != tiles) continue;
    last_row_warps = row_warps;
    for (int token_groups = 1; token_groups * row_warps <= 16 && token_groups <= 8;
         token_groups *= 2) {
      for (const int group_tokens : {16, 32}) {
        for (int ctas = 1; ctas <= 4; ++ctas) {
          for (const bool q_in_registers : {true, false}) {
            AttentionConfig c = base_config(spec, arch);
            c.row_tiles = row_tiles;
            c.row_warps = row_warps;
            c.token_groups = token_groups;
            c.group_tokens = group_tokens;
            c.min_ctas_per_sm = ctas;
            c.q_in_registers = q_in_registers;
            choose_stages(c, arch);
            all.push_back(c);
            if (has_two_stages(c) && arch.has_async_copy()) {
              c.num_stages = 3;
              c.shared_bytes = pagejit_shared::shared_bytes(c);
              all.push_back(c);
            }
          }
        }
      }
    }
  }
}

// Where rows hold K and V each warp adds up all rows of the tile, so that tiles grow in rows by
// powers of two, up to what the registers hold, and the warps are those that the scores need: 8, or
// fewer where shared memory is short.
void add_latent_candidates(const KernelSpec& spec, const Arch& arch,
                           std::vector<AttentionConfig>& all) {
  const int least =
      spec.queries == QueryLengths::kOne ? std::min(spec.group_size, 16) : kLeastRaggedRows;
  for (int tiles = 1; tiles * 8 <= kMostLatentRows; tiles *= 2) {
    const int wanted = rows_wanted(spec);
    const bool half_would_do = tiles > 1 && wanted != 0 && tiles * 4 >= wanted;
    if (tiles * 8 < least || half_would_do) continue;
    for (int row_warps = 1; row_warps <= std::min(tiles, 4); row_warps *= 2) {
      for (const int warps : {2, 4, 8}) {
        if (warps < row_warps) continue;
        for (int ctas = 1; ctas <= 2; ++ctas) {
          AttentionConfig c = base_config(spec, arch);
          c.row_warps = row_warps;
          c.row_tiles = tiles / row_warps;
          c.token_groups = warps / row_warps;
          c.group_tokens = 16;
          c.min_ctas_per_sm = ctas;
          choose_stages(c, arch);
          all.push_back(c);
        }
      }
    }
  }
}

}  // namespace

int rows_wanted(const KernelSpec& spec) {
  if (spec.queries == QueryLengths::kShared) return most_rows(spec);
  // Of one query token all: where rows hold K and V too, else there are no other candidates.
  if (spec.queries == QueryLengths::kOne && spec.latent)
    return std::min(spec.group_size, kMostLatentRows);
  if (spec.queries != QueryLengths::kFew) return 0;
  return std::clamp(round_up(kFewTokens * spec.group_size, 8), kLeastRaggedRows,
                    spec.latent ? kMostLatentRows : kMostRaggedRows);
}

bool has_two_stages(const AttentionConfig& c) { return c.num_stages < 3; }

std::vector<AttentionConfig> tile_candidates(const KernelSpec& spec, const Arch& arch) {
  std::vector<AttentionConfig> all;
  if (spec.latent) {
    add_latent_candidates(spec, arch, all);
    return all;
  }
  for (const int rows : row_choices(spec)) add_candidates(spec, arch, rows, all);
  return all;
}

}  // namespace pagejit
