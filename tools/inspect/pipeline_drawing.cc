#include "tools/inspect/pipeline_drawing.h"

#include <algorithm>
#include <vector>

#include "generator/tile_cost.h"
#include "tools/inspect/number_text.h"

namespace pagejit::inspect {
namespace {

constexpr int kMaxDrawnStages = 8;  // a longer ring is drawn as one of these, and said so
constexpr int kDrawnRounds = 4;     // in which tiles are computed
constexpr int kCellWidth = 6;

std::string cell(const std::string& text) {
  return text + std::string(kCellWidth - std::min<size_t>(kCellWidth, text.size()), ' ');
}

std::string count_of(int64_t count, const std::string& one, const std::string& several) {
  return with_commas(count) + " " + (count == 1 ? one : several);
}

// Who does what, and what lies in shared memory.
std::string describe_cta(const KernelConfig& config) {
  const AttentionConfig& c = config.attention;
  const int stage = pagejit_shared::kv_stage_bytes(c);
  std::string text = count_of(config.num_warps(), "warp", "warps") + ": " +
                     count_of(c.token_groups, "group", "groups") + " of " +
                     count_of(c.row_warps, "warp", "warps") + "; a round of the CTA is " +
                     with_commas(config.tile_tokens()) + " tokens (" +
                     std::to_string(c.group_tokens) + " by each group) for up to " +
                     with_commas(pagejit_shared::tile_rows(c)) + " rows\n";
  text += "ring of each group: " + count_of(c.num_stages, "stage", "stages") + " of " +
          with_commas(stage) + " B, " + with_commas(pagejit_shared::kv_ring_bytes(c)) +
          " B in all; dynamic shared memory " + with_commas(c.shared_bytes) + " B\n";
  return text;
}

// Tile t is asked for in round t - (stages - 1) and computed in round t.
std::string draw_ring(int num_stages) {
  const int first_round = 1 - num_stages;
  std::string text = cell("round") + "  ";
  for (int round = first_round; round < kDrawnRounds; ++round) text += cell(std::to_string(round));
  text.erase(text.find_last_not_of(' ') + 1);
  text += "\n";
  for (int tile = 0; tile < kDrawnRounds; ++tile) {
    std::string line = cell("tile " + std::to_string(tile)) + "  ";
    for (int round = first_round; round <= tile; ++round) {
      const int issued = tile - (num_stages - 1);
      const bool is_last = round == tile;
      line += round < issued    ? cell("")
              : round == issued ? cell(is_last ? "CQSP" : "C")
              : is_last         ? cell("QSP")
                                : cell("~");
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string legend(const AttentionConfig& c) {
  std::string text =
      "C copies asked for (cp.async), ~ under way, Q scores = K q^T, S softmax, P result += V^T "
      "P\n";
  if (c.num_stages > kMaxDrawnStages) {
    text += "drawn with " + std::to_string(kMaxDrawnStages) + " stages instead of " +
            std::to_string(c.num_stages) + "\n";
  }
  return text;
}

// The order of one round, as attend() has it.
std::string draw_round(const AttentionConfig& c) {
  const std::string ahead = c.num_stages > 1 ? "t+" + std::to_string(c.num_stages - 1) : "t";
  const std::string meeting = c.row_warps == 1      ? "the warp alone; no barrier of the CTA"
                              : c.token_groups == 1 ? "barrier of the CTA"
                                                    : "named barrier of the group";
  std::string text = "one round, of tile t, in each group:\n";
  const auto step = [&](const std::string& what, const std::string& note) {
    text += "  " + what + std::string(what.size() < 34 ? 34 - what.size() : 1, ' ') + note + "\n";
  };
  if (c.is_latent) {
    step("wait for K(t)", "barrier of the CTA: all are done with t-1");
    step("ask for K(" + ahead + ")", "K's rows hold V: one group of copies");
    step("find the block of t+" + std::to_string(c.num_stages), "a load of the block table");
    step("Q  scores(t) = K(t) q^T", "rows split among the warps of a group");
    step("S  softmax(t)", "groups agree on maxima; probabilities to shared memory, 2 barriers");
    step("P  result += V(t)^T P(t)", "each warp all rows, for its share of V's elements");
    return text;
  }
  if (c.num_stages == 1) {
    step("meet", meeting + ": all are done with t-1");
    step("load K(t), V(t)", "through registers, since there is no cp.async");
    step("wait for K(t)", meeting);
  } else {
    step("wait for K(t)", meeting);
    step("ask for K(" + ahead + "), V(" + ahead + ")", "two groups of copies");
    step("find the block of t+" + std::to_string(c.num_stages), "a load of the block table");
  }
  step("Q  scores(t) = K(t) q^T", c.q_in_registers ? "q in registers" : "q in shared memory");
  step("S  softmax(t)", "in registers");
  step("wait for V(t)", meeting);
  step("P  result += V(t)^T P(t)", "P in registers");
  return text;
}

std::string draw_attention(const KernelConfig& config, const cli::Terminal& terminal) {
  const AttentionConfig& c = config.attention;
  const std::string drawing = draw_ring(std::min(c.num_stages, kMaxDrawnStages));
  std::string text = legend(c);
  if (c.num_stages > 1) {
    const int tiles = c.num_stages - 1;
    const int64_t cta_bytes = int64_t{tiles} * config.tile_tokens() * kv_token_bytes(c);
    text += "while a tile is computed " + count_of(tiles, "tile", "tiles") + " of each group " +
            (tiles == 1 ? "is" : "are") + " under way: " + with_commas(cta_bytes) +
            " B of K and V per CTA, " + with_commas(bytes_in_flight(c)) + " B per SM with the " +
            count_of(c.min_ctas_per_sm, "CTA", "CTAs") + " that it is compiled for\n";
    text +=
        "Q, S and P of one warp follow each other; other warps and CTAs of the SM compute "
        "meanwhile\n";
  } else {
    text += "nothing is under way while a tile is computed; other warps hide the loads\n";
  }
  text += "\n" + draw_round(c);
  return cli::fitted(describe_cta(config) + "\n", terminal) + drawing + cli::fitted(text, terminal);
}

}  // namespace

std::string draw_pipeline(const AnyConfig& config, const cli::Terminal& terminal) {
  if (const auto* attention = std::get_if<KernelConfig>(&config)) {
    return draw_attention(*attention, terminal);
  }
  return cli::fitted(
      "no ring of stages: each thread loads what it needs into registers, all loads of a round "
      "before the first is used, and the other warps of the SM hide their latency\n",
      terminal);
}

}  // namespace pagejit::inspect
