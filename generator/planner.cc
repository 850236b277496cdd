#include "generator/planner.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <tuple>

#include "generator/arch.h"
#include "generator/tile_cost.h"

namespace pagejit {
namespace {

constexpr int kMaxStages = 8;

int round_up(int value, int unit) { return (value + unit - 1) / unit * unit; }

struct Scored {
  PlanCandidate candidate;
  double slowdown = 1;  // predicted time over that of the memory alone; of the products alone where
                        // queries are many; of the greater of the two where they share their keys
  bool is_starved = false;  // because of too few bytes in flight
};

std::string number(const char* format, double a, double b = 0) {
  char text[160];
  std::snprintf(text, sizeof text, format, a, b);
  return text;
}

// Empty if the configuration can run on the architecture.
std::string why_not(const AttentionConfig& c, const Arch& arch) {
  const int threads = c.token_groups * c.row_warps * 32;
  if (c.shared_bytes > arch.shared_bytes_per_cta) {
    return number("shared memory %.0f B per CTA > %.0f B", c.shared_bytes,
                  arch.shared_bytes_per_cta);
  }
  const int per_sm = (c.shared_bytes + Arch::kReservedSharedPerCta) * c.min_ctas_per_sm;
  if (per_sm > arch.shared_bytes_per_sm) {
    return number("shared memory %.0f B per SM > %.0f B", per_sm, arch.shared_bytes_per_sm);
  }
  if (threads / 32 * c.min_ctas_per_sm > arch.max_warps_per_sm) {
    return number("%.0f warps per SM > %.0f", threads / 32.0 * c.min_ctas_per_sm,
                  arch.max_warps_per_sm);
  }
  // The register file lies in four parts, and warps go to them in turn.
  const int warps_per_part = (threads / 32 * c.min_ctas_per_sm + 3) / 4;
  const int allowed = std::min(Arch::kMaxRegistersPerThread,
                               Arch::kRegistersPerSm / 4 / (32 * warps_per_part) / 8 * 8);
  if (estimate_registers(c, arch) > allowed) {
    return number("about %.0f registers per thread > %.0f", estimate_registers(c, arch), allowed);
  }
  return {};
}

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

// With two stages a warp that is late by one tile has nothing left in flight.
bool has_two_stages(const AttentionConfig& c) { return c.num_stages < 3; }

// Query tokens of a sequence that one tile of rows holds where queries are few: those of
// speculative decoding.
constexpr int kFewTokens = 4;
constexpr int kLeastRaggedRows = 16;  // of lone heads, so that a sequence is one tile more often
constexpr int kMostRaggedRows = 128;

// The most rows worth looking at: accumulators of larger heads leave no room for more.
int most_rows(const KernelSpec& spec) { return spec.head_size > 256 ? 64 : kMostRaggedRows; }

// Rows that a tile should have where queries are few or share their keys: fewer mean that keys are
// read again.
int rows_wanted(const KernelSpec& spec) {
  if (spec.queries == QueryLengths::kShared) return most_rows(spec);
  if (spec.queries != QueryLengths::kFew) return 0;
  return std::clamp(round_up(kFewTokens * spec.group_size, 8), kLeastRaggedRows, kMostRaggedRows);
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
template <class Visit>
void for_each_candidate(const KernelSpec& spec, const Arch& arch, int rows, Visit visit) {
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
            visit(c);
            if (has_two_stages(c) && arch.has_async_copy()) {
              c.num_stages = 3;
              c.shared_bytes = pagejit_shared::shared_bytes(c);
              visit(c);
            }
          }
        }
      }
    }
  }
}

// The slowdown in steps of 2 %, from 50 for none; a starved candidate is never equal to one that is
// not.
int slowdown_steps(const Scored& s) {
  const int steps = static_cast<int>(s.slowdown * 50);
  return s.is_starved ? std::max(steps, 51) : steps;
}

// Two warps per scheduler: while one waits at a copy or in a chain of products the other issues.
constexpr int kWarpsWanted = 8;
int missing_warps(const AttentionConfig& c) {
  return std::max(0, kWarpsWanted - c.min_ctas_per_sm * c.token_groups * c.row_warps);
}

// Two CTAs: one starts or merges while the other streams. More CTAs mean more splits of a lone
// sequence to merge.
int ctas_off(const AttentionConfig& c) { return std::abs(c.min_ctas_per_sm - 2); }

int missing_rows(const KernelConfig& config) {
  return std::max(0, rows_wanted(config.spec) - pagejit_shared::tile_rows(config.attention));
}

// Order of preference: what runs; enough rows; what streams fastest, in steps of 2 % of the
// memory's time (the model is no better); query fragments in registers; fewer warps that read the
// same tokens; enough warps; two CTAs per SM; three stages; less shared memory.
bool better(const Scored& a, const Scored& b) {
  const auto rank = [](const Scored& s) {
    const AttentionConfig& c = s.candidate.config.attention;
    return std::tuple(!s.candidate.fits, missing_rows(s.candidate.config), slowdown_steps(s),
                      !c.q_in_registers, c.row_warps, missing_warps(c), ctas_off(c),
                      has_two_stages(c), c.min_ctas_per_sm * c.shared_bytes,
                      c.token_groups * c.group_tokens, c.group_tokens, c.row_tiles,
                      c.min_ctas_per_sm, c.num_stages);
  };
  return rank(a) < rank(b);
}

std::string describe(const AttentionConfig& c) {
  char text[200];
  std::snprintf(text, sizeof text,
                "%d x %d warps, %d tokens%s, %d row tiles, %d stages, q in %s, %d CTAs/SM",
                c.token_groups, c.row_warps, c.token_groups * c.group_tokens,
                pagejit_shared::kv_copy_bytes(c) == 16  ? ""
                : pagejit_shared::kv_copy_bytes(c) == 8 ? " by 8-byte copies"
                                                        : " by 4-byte copies",
                c.row_tiles, c.num_stages, c.q_in_registers ? "registers" : "shared memory",
                c.min_ctas_per_sm);
  return text;
}

// All candidates, best first.
std::vector<Scored> rank_candidates(const KernelSpec& spec, const Target& target,
                                    const Arch& arch) {
  std::vector<Scored> all;
  const auto visit = [&](const AttentionConfig& c) {
    Scored scored;
    scored.candidate.config = {spec, target, c};
    scored.candidate.reason = why_not(c, arch);
    scored.candidate.fits = scored.candidate.reason.empty();
    if (spec.queries == QueryLengths::kMany) {
      // Each tile of rows reads the same keys: the products should be the limit.
      const TokenCost cost = token_cost(c, arch, /*kv_comes_from_l2=*/true);
      scored.slowdown = cost.worst() / cost.tensor;
    } else if (spec.queries == QueryLengths::kShared) {
      // A tall tile's products take about as long as its keys: neither should wait for the other.
      const TokenCost cost = token_cost(c, arch, /*kv_comes_from_l2=*/false);
      const double bound = std::max(cost.memory, cost.tensor);
      const double starved = static_cast<double>(bytes_in_flight_needed(arch)) / bytes_in_flight(c);
      scored.slowdown = std::max(starved * cost.memory, cost.worst()) / bound;
      scored.is_starved = scored.slowdown > 1 && starved * cost.memory >= cost.worst();
    } else {
      // Too few bytes in flight stretch the memory's own time.
      const TokenCost cost = token_cost(c, arch, /*kv_comes_from_l2=*/false);
      const double starved =
          arch.has_async_copy()
              ? static_cast<double>(bytes_in_flight_needed(arch)) / bytes_in_flight(c)
              : 1;
      scored.slowdown = std::max(starved, cost.worst() / cost.memory);
      scored.is_starved = starved > 1 && starved >= scored.slowdown;
    }
    all.push_back(std::move(scored));
  };
  for (const int rows : row_choices(spec)) for_each_candidate(spec, arch, rows, visit);
  std::stable_sort(all.begin(), all.end(), better);
  return all;
}

// Why a candidate that could run was not chosen.
std::string why_worse(const Scored& scored, const Scored& chosen, const Arch& arch) {
  const AttentionConfig& c = scored.candidate.config.attention;
  const AttentionConfig& best = chosen.candidate.config.attention;
  if (missing_rows(scored.candidate.config) != missing_rows(chosen.candidate.config)) {
    return number("%.0f rows per tile < %.0f", pagejit_shared::tile_rows(c),
                  pagejit_shared::tile_rows(best));
  }
  if (slowdown_steps(scored) != slowdown_steps(chosen)) {
    if (scored.is_starved) {
      return number("%.0f B in flight per SM < %.0f B", bytes_in_flight(c),
                    bytes_in_flight_needed(arch));
    }
    const QueryLengths queries = scored.candidate.config.spec.queries;
    return number(queries == QueryLengths::kMany ? "predicted %.2fx the products' time > %.2fx"
                  : queries == QueryLengths::kShared
                      ? "predicted %.2fx the memory's or the products' time > %.2fx"
                      : "predicted %.2fx the memory's time > %.2fx",
                  scored.slowdown, chosen.slowdown);
  }
  if (c.q_in_registers != best.q_in_registers) return "reads q from shared memory in each tile";
  if (c.row_warps != best.row_warps) {
    return number("each token read by %.0f warps > %.0f", c.row_warps, best.row_warps);
  }
  if (missing_warps(c) != missing_warps(best)) {
    return number(
        "%.0f warps per SM < %.0f", c.min_ctas_per_sm * c.token_groups * c.row_warps,
        std::min(kWarpsWanted, best.min_ctas_per_sm * best.token_groups * best.row_warps));
  }
  if (ctas_off(c) != ctas_off(best)) {
    return number("%.0f CTAs per SM, %.0f wanted", c.min_ctas_per_sm, 2);
  }
  if (has_two_stages(c) != has_two_stages(best)) return "2 stages < 3";
  return number("shared memory %.0f B per SM >= %.0f B", 1.0 * c.min_ctas_per_sm * c.shared_bytes,
                1.0 * best.min_ctas_per_sm * best.shared_bytes);
}

// What the target lacks for the spec.
Status check_target(const KernelSpec& spec, const Target& target, const Arch& arch) {
  const bool needs_bf16 =
      spec.kv_dtype == DataType::kBFloat16 || spec.kv_dtype == DataType::kFloat32;
  if (needs_bf16 && !arch.has_bf16_products()) {
    return Status(StatusCode::kUnsupported,
                  "kv_dtype " + std::string(data_type_name(spec.kv_dtype)) +
                      ": must be f16, fp8_e4m3 or fp8_e5m2 for " + target.to_string() +
                      ", which has no products of bf16");
  }
  if (spec.kv_dtype == DataType::kInt4 && !arch.has_async_copy()) {
    return Status(StatusCode::kUnsupported,
                  "kv_dtype int4: must be f16 or have 8 bits for " + target.to_string());
  }
  return check_pdl(spec.pdl, target);
}

// What does fit, where decode does not: it keeps all rows of a group in one CTA.
std::string what_fits(KernelSpec spec, const Target& target) {
  if (spec.queries != QueryLengths::kOne) return {};
  spec.queries = QueryLengths::kFew;
  spec.causality = Causality::kCausal;
  return plan(spec, target) ? "; queries few, which divides a group's rows among CTAs, fits" : "";
}

}  // namespace

Result<KernelConfig> plan(const KernelSpec& spec, const Target& target) {
  if (Status s = validate(spec); !s) return s;
  Result<Arch> arch = arch_of(target);
  if (!arch) return arch.status();
  if (Status s = check_target(spec, target, *arch); !s) return s;
  const std::vector<Scored> ranked = rank_candidates(spec, target, *arch);
  const PlanCandidate& best = ranked.front().candidate;
  if (!best.fits) {
    return Status(StatusCode::kUnsupported, "no tile configuration of " + canonical_text(spec) +
                                                " fits " + target.to_string() + "; the nearest (" +
                                                describe(best.config.attention) + ") has " +
                                                best.reason + what_fits(spec, target));
  }
  return best.config;
}

double product_ns_per_token(const KernelConfig& config) {
  const Result<Arch> arch = arch_of(config.target);
  return arch ? product_clocks_per_token(config.attention) / arch->clock_ghz : 0;
}

Result<PlanExplanation> explain(const KernelSpec& spec, const Target& target) {
  if (Status s = validate(spec); !s) return s;
  Result<Arch> arch = arch_of(target);
  if (!arch) return arch.status();
  if (Status s = check_target(spec, target, *arch); !s) return s;
  std::vector<Scored> ranked = rank_candidates(spec, target, *arch);
  PlanExplanation explanation;
  for (Scored& scored : ranked) {
    if (&scored != &ranked.front() && scored.candidate.fits) {
      scored.candidate.reason = why_worse(scored, ranked.front(), *arch);
    }
    explanation.candidates.push_back(scored.candidate);
  }
  return explanation;
}

std::string PlanExplanation::to_string() const {
  if (candidates.empty()) return {};
  const KernelConfig& first = candidates.front().config;
  std::string text = canonical_text(first.spec) + " for " + first.target.to_string() + "\n";
  const Result<Arch> arch = arch_of(first.target);
  if (arch && !arch->has_async_copy()) {
    text +=
        "No asynchronous copies: a warp waits for the K and V that it loads, and only other warps "
        "hide that.\nNo speed was ever measured on this target.\n";
  }
  for (size_t i = 0; i < candidates.size(); ++i) {
    const PlanCandidate& candidate = candidates[i];
    const bool chosen = i == 0 && candidate.fits;
    text += chosen ? "* " : candidate.fits ? "  " : "x ";
    text += describe(candidate.config.attention);
    char sizes[80];
    std::snprintf(sizes, sizeof sizes, ", %d B shared", candidate.config.attention.shared_bytes);
    text += sizes;
    text += chosen ? ": chosen" : ": " + candidate.reason;
    text += "\n";
  }
  return text;
}

}  // namespace pagejit
