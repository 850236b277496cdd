#include "generator/planner.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <tuple>

#include "generator/arch.h"
#include "generator/tile_candidates.h"
#include "generator/tile_cost.h"
#include "generator/tile_text.h"

namespace pagejit {
namespace {

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

// Warps that read each token of K and V. Where rows hold both, the warps that share the rows are
// those that share V's elements too, and more of them are no loss.
int readers_of_token(const AttentionConfig& c) { return c.is_latent ? 1 : c.row_warps; }

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
                      !c.q_in_registers, readers_of_token(c), missing_warps(c), ctas_off(c),
                      has_two_stages(c), c.min_ctas_per_sm * c.shared_bytes,
                      c.token_groups * c.group_tokens, c.group_tokens, c.row_tiles,
                      c.min_ctas_per_sm, c.num_stages);
  };
  return rank(a) < rank(b);
}

// All candidates, best first.
std::vector<Scored> rank_candidates(const KernelSpec& spec, const Target& target,
                                    const Arch& arch) {
  std::vector<Scored> all;
  for (const AttentionConfig& c : tile_candidates(spec, arch)) {
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
    scored.candidate.predicted_slowdown = scored.slowdown;
    all.push_back(std::move(scored));
  }
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
  if (readers_of_token(c) != readers_of_token(best)) {
    return number("each token read by %.0f warps > %.0f", readers_of_token(c),
                  readers_of_token(best));
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
                      ": must be f16 or have 8 bits for " + target.to_string() +
                      ", which has no products of bf16");
  }
  if (spec.latent && !arch.has_async_copy()) {
    return Status(StatusCode::kUnsupported, "latent 1: must be 0 for " + target.to_string() +
                                                ", which has no asynchronous copies");
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
                                                describe_tile(best.config.attention) + ") has " +
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

namespace {

// What a tile of the choice costs by the model, and what limits it.
std::string describe_cost(const KernelConfig& config, const Arch& arch) {
  const AttentionConfig& c = config.attention;
  const int tokens = config.tile_tokens();
  const int rows = pagejit_shared::tile_rows(c);
  const bool comes_from_l2 = config.spec.queries == QueryLengths::kMany;
  const TokenCost cost = token_cost(c, arch, comes_from_l2);
  struct Resource {
    const char* name;
    double clocks;
  };
  const Resource resources[] = {{comes_from_l2 ? "the L2" : "memory", cost.memory},
                                {"the products", cost.tensor},
                                {"shared memory", cost.shared},
                                {"latency", cost.latency}};
  const Resource& limit =
      *std::max_element(std::begin(resources), std::end(resources),
                        [](const Resource& a, const Resource& b) { return a.clocks < b.clocks; });
  char text[500];
  std::snprintf(
      text, sizeof text,
      "A tile of %d rows and %d tokens: %d bytes of K and V, %.2f MFLOP, about %d registers per "
      "thread.\n"
      "By the model, unmeasured (%s), a token takes an SM %.1f clocks of %s, %.1f of the products, "
      "%.1f of shared memory, %.1f of latency: %s is the limit, at %.0f %% of %s's rate and %.0f "
      "%% "
      "of the products'.\n",
      rows, tokens, tokens * kv_token_bytes(c),
      2e-6 * rows * tokens * (c.head_size + c.head_size_v), estimate_registers(c, arch),
      arch.bandwidth_source, cost.memory, resources[0].name, cost.tensor, cost.shared, cost.latency,
      limit.name, 100 * cost.memory / cost.worst(), resources[0].name,
      100 * cost.tensor / cost.worst());
  return text;
}

}  // namespace

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
  if (arch && candidates.front().fits) text += describe_cost(first, *arch);
  for (size_t i = 0; i < candidates.size(); ++i) {
    const PlanCandidate& candidate = candidates[i];
    const bool chosen = i == 0 && candidate.fits;
    text += chosen ? "* " : candidate.fits ? "  " : "x ";
    text += describe_tile(candidate.config.attention);
    char sizes[80];
    std::snprintf(sizes, sizeof sizes, ", %d B shared", candidate.config.attention.shared_bytes);
    text += sizes;
    text += chosen ? ": chosen" : ": " + candidate.reason;
    text += "\n";
  }
  return text;
}

}  // namespace pagejit
