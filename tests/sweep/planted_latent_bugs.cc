// Bugs of kernels whose K rows hold V.
#include "tests/sweep/planted_bugs.h"

namespace pagejit {
namespace {

using enum PlantedBug::Kernels;

constexpr const char* kFindWork = "attention/find_work.cuh";
constexpr const char* kLatentAttend = "attention/latent_attend.cuh";
constexpr const char* kLatentSoftmax = "attention/latent_softmax.cuh";
constexpr const char* kCopies = "attention/kv_copies.cuh";
constexpr const char* kPlaces = "attention/kv_places.cuh";
constexpr const char* kMerge = "attention/merge.cuh";
constexpr const char* kOperands = "attention/operands.cuh";
constexpr const char* kOperandsDsMla = "attention/operands_ds_mla.cuh";
constexpr const char* kQueryConverted = "attention/query_converted.cuh";
constexpr const char* kScores = "attention/scores.cuh";

}  // namespace

const std::vector<PlantedBug>& planted_latent_bugs() {
  static const std::vector<PlantedBug> kBugs = {
      {"MaximaAreOfOneGroup", kLatentSoftmax,
       "greatest = row_pair(exchange.by_group[group], first_row",
       "greatest = row_pair(exchange.by_group[0], first_row", false, kLatent},
      {"LatentRescalingIsMissing", kLatentSoftmax, "    rescale(exchange);\n", "", false, kLatent},
      {"RescalingIsDecidedByOneWarp", kLatentSoftmax, "exchange.has_factors[warp] == 0",
       "exchange.has_factors[0] == 0", false, kLatent},
      {"LatentSumsAreNotRescaled", kLatentSoftmax, "row_sum[j][h] *= factor[j][h];", "", false,
       kLatent},
      {"SumsAreOfOneGroup", kLatentSoftmax, "row_sum[j][h] += sum.v[h];",
       "row_sum[j][h] = sum.v[h];", false, kLatent},
      {"ProbabilitiesAreOfOneGroup", kLatentSoftmax,
       "&exchange.p[group * kConfig.group_tokens + i * 16]", "&exchange.p[i * 16]", false, kLatent},
      {"ProbabilitiesOfHalvesAreSwapped", kLatentSoftmax,
       "score_token(dev::lane_idx() / 4, half != 0)", "score_token(dev::lane_idx() / 4, half == 0)",
       false, kLatent},
      {"ProbabilitiesOfRowsRepeat", kLatentSoftmax, "[(j + dev::lane_idx() / 16) * 8]", "[j * 8]",
       false, kLatent},
      {"ValuesAreOfOneGroup", kLatentSoftmax, "load_v(a, ring[group][stage]",
       "load_v(a, ring[0][stage]", false, kLatent},
      {"WarpsHaveTheSameValues", kLatentSoftmax, "return dev::thread_idx() / 32 * ", "return 0 * ",
       false, kLatent},
      {"AllWarpsTakeTheSameNumberOfValues", kLatentSoftmax,
       "first_value_tile() + tile < Traits::kValueTiles", "tile >= 0", false, kLatent},
      {"GroupTilesShareAPlace", kMerge, "group_tiles(kConfig) + dev::block_idx_y();",
       "group_tiles(kConfig) + work.kv_head_idx;", false, kLatent},
      {"GroupTilesHaveTheFirstRows", kFindWork, "% kGroupTiles * Traits::kTileRows",
       "% kGroupTiles * 0", false, kLatent},
      {"LastGroupTileHasAllRows", kFindWork,
       "work.num_rows = rows_left < Traits::kTileRows ? rows_left : Traits::kTileRows;\n#else",
       "work.num_rows = Traits::kTileRows;\n#else", false, kLatent},
      {"PaddingEntriesAreSeen", kLatentAttend,
       "      hide_unlisted(scores, shared.u.ring[token_group][stage]);\n", "", false, kLatent},
      {"PaddingEntriesAreCopied", kCopies, "is_valid = row_offset >= 0;", "is_valid = true;", false,
       kLatent},
      {"ListsArePacked", kPlaces, "static_cast<int64_t>(params.token_list_stride)",
       "static_cast<int64_t>(params.max_list_len)", false, kLatent},
      {"QueriesAreTheirOwnSequences", kPlaces, "params.query_seqs == nullptr", "true", false,
       kLatent},
      {"PlacesInBlocksAreThoseOfTheList", kPlaces, "token_in_block = place_in_block(block);",
       "token_in_block = place_in_block(token);", false, kLatent},
      {"HiddenGroupsAreSeen", kLatentAttend, "scores[i][j][e] = kMinusInfinity;",
       "scores[i][j][e] = 0.0f;", false, kLatent},
      {"ScalesAreThoseOfTheFirstGroup", kScores, "row_scales(stage, token).v[group]",
       "row_scales(stage, token).v[0]", false, kLatent},
      {"ScalesAreThoseOfTheOtherHalf", kScores,
       "token = i * 16 + score_token(dev::lane_idx() / 4, half != 0)",
       "token = i * 16 + score_token(dev::lane_idx() / 4, half == 0)", false, kLatent},
      {"RotatedPartIsLeftOut", kScores, "depth = kCodeDepths; depth < Traits::kDepthTiles",
       "depth = kCodeDepths + 1; depth < Traits::kDepthTiles", false, kLatent},
      {"RotatedKeysBeginAtTheScales", kOperandsDsMla, "[pagejit_shared::kDsMlaRope + column]",
       "[pagejit_shared::kDsMlaScales + column]", false, kLatent},
      {"RotatedQueriesLieAsThoseOfCodes", kOperands, "if (depth >= kCodeDepths) return",
       "if (false) return", false, kLatent},
      {"RotatedQueriesAreScaled", kQueryConverted,
       "dev::pack_bf16x2(pairs[pass].low * sign, pairs[pass].high * sign)",
       "dev::pack_bf16x2(pairs[pass].low * factor, pairs[pass].high * factor)", false, kLatent},
      {"ValuesHaveTheScalesOfTheFirstGroup", kOperandsDsMla, "row_scales(stage, token).v[group]",
       "row_scales(stage, token).v[0]", false, kLatent},
      {"ValuesOfBothHalvesHaveTheSameScales", kOperandsDsMla, "token_tile * 16 + half * 8 +",
       "token_tile * 16 +", false, kLatent},
      {"ValuesOfNeighboursHaveTheSameScale", kOperandsDsMla, "scales.v[i / 2][1]",
       "scales.v[i / 2][0]", false, kLatent},
      {"ScalesAreNotCopied", kCopies, "copy_rows<kRest, kCodes>", "copy_rows<kRest, kCodes + 16>",
       false, kLatent},
      {"NoWaitForTheTile", kLatentAttend, "dev::cp_async_wait<kStages - 2>();", "", false, kLatent},
      {"WaitForTheTileIsOneShort", kLatentAttend, "dev::cp_async_wait<kStages - 2>();",
       "dev::cp_async_wait<kStages - 1>();", false, kLatent},
      {"NoBarrierBeforeTheTile", kLatentAttend, "      dev::sync_cta();\n", "", true, kLatent},
      {"NoBarrierAfterMaxima", kLatentSoftmax, "dev::sync_cta();  // the greatest",
       ";  // the greatest", true, kLatent},
      {"NoBarrierAfterProbabilities", kLatentSoftmax, "dev::sync_cta();  // the probabilities",
       ";  // the probabilities", true, kLatent},
      {"NoBarrierAfterSums", kLatentSoftmax, "dev::sync_cta();  // the sums", ";  // the sums",
       true, kLatent},
  };
  return kBugs;
}

}  // namespace pagejit
