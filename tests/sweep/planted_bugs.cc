#include "tests/sweep/planted_bugs.h"

namespace pagejit {
namespace {

using enum PlantedBug::Kernels;

constexpr const char* kBlockSparseRule = "attention/block_sparse.cuh";
constexpr const char* kFindWork = "attention/find_work.cuh";
constexpr const char* kKernel = "attention/attention.cuh";
constexpr const char* kLoad = "attention/load_kv.cuh";
constexpr const char* kMerge = "attention/merge.cuh";
constexpr const char* kOperands = "attention/operands.cuh";
constexpr const char* kQuerySource = "attention/query_source.cuh";
constexpr const char* kQueryConverted = "attention/query_converted.cuh";
constexpr const char* kRowTiles = "attention/row_tiles.cuh";
constexpr const char* kScores = "attention/scores.cuh";
constexpr const char* kSoftmax = "attention/softmax.cuh";
constexpr const char* kWork = "attention/work.cuh";

}  // namespace

const std::vector<PlantedBug>& planted_bugs() {
  static const std::vector<PlantedBug> kBugs = {
      // Which tokens take part.
      {"MaskIsOffByOne", kScores, "= token < work_.token_end;", "= token <= work_.token_end;"},
      {"MaskIsMissing", kScores, "if (needs_mask(first_token)) mask", "if (false) mask"},
      {"LastTokenIsLost", kFindWork, "work.token_end = work.seq_len;",
       "work.token_end = work.seq_len - 1;"},
      {"TailIsNotCleared", kLoad, "if (has_column && has_row) {",
       "if (has_column && has_row && valid.has(row)) {"},
      {"EmptySequenceIsNotWritten", kFindWork, "return work.split_idx == 0 || work.has_tokens();",
       "return work.has_tokens();"},
      {"PadIsNotCleared", kKernel, "stream.clear_pad();", ""},
      // Where rows lie.
      {"ValuesUseTheKeysBlockStride", kLoad, "static_cast<int64_t>(params_.v_stride_block)",
       "static_cast<int64_t>(params_.k_stride_block)"},
      {"ValuesUseTheKeysTokenStride", kLoad, "token_in_block * params_.v_stride_token};",
       "token_in_block * params_.k_stride_token};"},
      {"ValuesUseTheKeysHeadStride", kLoad, "kv_head_idx * params.v_stride_head",
       "kv_head_idx * params.k_stride_head"},
      {"BlockOffsetsAre32Bit", kLoad, "block_id * static_cast<int64_t>(params_.k_stride_block)",
       "static_cast<int>(static_cast<uint32_t>(block_id) * "
       "static_cast<uint32_t>(params_.k_stride_block))"},
      {"BlockTableRowsArePacked", kLoad, "static_cast<int64_t>(params.block_table_stride)",
       "static_cast<int64_t>(params.max_blocks_per_seq)"},
      {"QueryHeadsArePacked", kQuerySource, "place.head * stride_head", "place.head * C.head_size"},
      {"QueryTokensUseTheOutputStride", kQuerySource, "stride_token(params.q_stride_token)",
       "stride_token(params.out_stride_token)"},
      {"OutputHeadsArePacked", kMerge, "place.head * output.out_stride_head",
       "place.head * C.head_size"},
      {"OutputTokensUseTheQueryStride", kMerge, "out_stride_token = params.out_stride_token;",
       "out_stride_token = params.q_stride_token;"},
      {"LseIgnoresTheHead", kMerge, "output.num_heads + place.head, kLn2",
       "output.num_heads + place.head / 2, kLn2"},
      // Softmax and its merges.
      {"AccumulatorsAreNotRescaled", kSoftmax, "acc[depth][j][e] *= factor[e % 2];", ";"},
      {"SumsAreNotRescaled", kSoftmax, "row_sum[j][h] *= factor[h];", ";"},
      {"MaximumStartsAtMinus5e4", kSoftmax, "row_max[j][h] = kMinusInfinity;",
       "row_max[j][h] = -5.0e4f;"},
      {"LseIsInBase2", kMerge, "kLn2 * lse_log2", "lse_log2"},
      {"LastSplitIsNotMerged", kMerge, "if (first + b < num_splits) {",
       "if (first + b + 1 < num_splits) {"},
      {"CountersDoNotReset", kMerge, "output.counters + unit, limit)",
       "output.counters + unit, 0xffffffffu)"},
      {"CountersLieAmongThePartials", kMerge, "workspace + pagejit_shared::kCountersOffset",
       "workspace + pagejit_shared::partial_stats_offset()"},
      {"FirstSplitMerges", kMerge, "shared_flag = arrived == limit;",
       "shared_flag = arrived == 0;"},
      // Order of events.
      {"NoWaitForKeys", kKernel, "dev::cp_async_wait<2 * (kStages - 1) - 1>();", ""},
      {"NoWaitForValues", kKernel, "dev::cp_async_wait<2 * (kStages - 1)>();", ""},
      {"WaitForKeysIsOneShort", kKernel, "dev::cp_async_wait<2 * (kStages - 1) - 1>();",
       "dev::cp_async_wait<2 * (kStages - 1)>();"},
      {"NoBarrierAfterKeys", kKernel,
       "// K of this tile is there for all warps, and all are done with the tile before.\n      "
       "sync_group<C>(token_group);",
       "", true},
      {"NoBarrierAfterValues", kKernel, "sync_group<C>(token_group);  // V", ";  // V", true},
      {"NoBarrierBeforeTheMerge", kKernel, "dev::sync_cta();  // the unit is", ";  // the unit is",
       true},
      {"NoBarrierBeforeTheRingIsReused", kKernel, "dev::sync_cta();  // the ring", ";  // the ring",
       true},
      // Ragged queries.
      {"CausalMaskIsOffByOne", kWork, "seq_len - at ? at + right + 1 : seq_len",
       "seq_len - at ? at + right + 2 : seq_len", false, kRagged},
      {"CausalMaskIsAlignedToTheStart", kWork, "first_position(work.seq_len - work.query_len)",
       "first_position(0)", false, kRagged},
      {"CausalFlagIsThatOfSequence0", kWork, "params.causal_flags + work.seq_idx",
       "params.causal_flags + work.seq_idx * 0", false, kRagged},
      {"WindowIsOffByOne", kWork, "left < at ? at - left : 0", "left < at ? at - left + 1 : 0",
       false, kRagged},
      {"MaskOfTheWindowIsMissing", kScores, "(!QuerySight<C>::kHasBegin || token >= range.begin)",
       "true", false, kRagged},
      {"WarpsSkipTheTileOfTheDiagonal", kScores, "return num_rows_ > 0 && first_token < sight_",
       "return num_rows_ > 0 && first_token + C.group_tokens < sight_", false, kRagged},
      {"RowTilesIgnoreTheSequence", kFindWork, "work.row_begin = found.tile * kTileRows;",
       "work.row_begin = 0;", false, kRagged},
      {"SequenceSearchStopsEarly", kRowTiles, "int count = params.num_seqs;",
       "int count = params.num_seqs - 1;", false, kRagged},
      {"OrderLosesTheLastTile", kRowTiles, "(rows + kTileRows - 1) / kTileRows",
       "(rows + kTileRows / 2) / kTileRows", false, kRagged},
      {"OrderTakesTheWeightOfSequence0", kRowTiles, "dev::shuffle(weight_[i], found.seq_idx % 32)",
       "dev::shuffle(weight_[i], 0)", false, kRagged},
      {"OrderRepeatsTheFirstTile", kRowTiles, "found.tile = position - count_above(rank);",
       "found.tile = 0;", false, kRagged},
      {"FurtherSplitsOfLongSequencesWrite", kFindWork, "} else if (work.split_idx > 0) {",
       "} else if (false) {", true, kRagged},
      {"LongSequencesAreSplit", kFindWork, "params.num_splits > 1 && may_split<C>(work)",
       "params.num_splits > 1", false, kRagged},
      {"SplitTilesTakeTheSequencesPlace", kMerge, "= work.row_tile * num_kv_heads",
       "= work.seq_idx * num_kv_heads", false, kRagged},
      {"SplitsOfTilesAreShifted", kFindWork, "index % params.num_row_tiles",
       "index % params.num_seqs", false, kRagged},
      {"RowsOfOtherSequencesAreWritten", kFindWork, "rows_left < kTileRows ? rows_left : kTileRows",
       "kTileRows", false, kRagged},
      {"CsrRowsIgnoreTheSequence", kLoad, "params.kv_indptr + work.seq_idx", "params.kv_indptr",
       false, kRagged},
      {"CsrLastBlockIsTakenToBeFull", kWork, "(num_blocks - 1) * C.block_size + in_last",
       "num_blocks * C.block_size", false, kRagged},
      {"ContiguousRowsIgnoreTheSequence", kLoad, "static_cast<int64_t>(first_row_) + token",
       "token", false, kRagged},
      {"ContiguousValuesUseTheKeysStride", kLoad, "row * params_.v_stride_token};",
       "row * params_.k_stride_token};", false, kRagged},
      {"ChunkBeginsOneTooEarly", kWork, "begin = at - in_chunk;",
       "begin = at - in_chunk - (at > in_chunk ? 1 : 0);", false, kRagged},
      {"ChunkEndIsIgnored", kWork, "chunk_size - in_chunk < end - at", "false", false, kRagged},
      {"MaskBitsIgnoreTheQuery", kScores, "const int64_t bit = first_bit + token;",
       "const int64_t bit = token;", false, kRagged},
      {"MaskBitsIgnoreTheSequence", kScores, "params.custom_mask_indptr + work.seq_idx",
       "params.custom_mask_indptr", false, kRagged},
      {"SoftCapIsNotScaled", kScores, "params_.soft_cap * tanh_by_exp2", "tanh_by_exp2", false,
       kRagged},
      {"AlibiIsOffByOnePosition", kScores, "slopes_[j][e % 2] * static_cast<float>(distance)",
       "slopes_[j][e % 2] * static_cast<float>(distance + 1)", false, kRagged},
      {"AlibiUsesTheFirstSlope", kScores, "params.alibi_slopes + head)", "params.alibi_slopes)",
       false, kRagged},
      {"SinksUseTheFirstHead", kMerge, "output.sinks + head)", "output.sinks)", false, kRagged},
      {"SinksTakePartInEachSplit", kMerge, "if (work.num_active_splits <= 1) {",
       "if constexpr (C.has_sinks) add_sink<C>(output, place_of_row<C>(output.row_begin + "
       "row).head, "
       "partial);\n    if (work.num_active_splits <= 1) {",
       false, kRagged},
      // Data types, layouts and head sizes.
      {"KeysScaleIsThatOfHead0", kFindWork, "params.k_scale + scale_offset", "params.k_scale",
       false, kElements},
      {"ValuesScaleIsTheKeys", kFindWork, "params.v_scale + scale_offset",
       "params.k_scale + scale_offset", false, kElements},
      {"ValuesAreNotScaled", kMerge, "result_scale = work.v_scale;", "", false, kElements},
      {"ResultIsNotScaled", kMerge, "result_scale /= dev::load_global_nc(params.out_scale);", "",
       false, kElements},
      {"QueriesScaleIsMissing", kFindWork, "work.qk_scale *= dev::load_global_nc(params.q_scale);",
       "", false, kElements},
      {"ElementsOfKeysAndQueriesDiffer", kOperands, "return depth * 16 + c * 4 + half * 2;",
       "return depth * 16 + half * 8 + c * 2;", false, kElements},
      {"ValuesOfTwoTokensAreSwapped", kOperands, "0x3120", "0x1302", false, kElements},
      {"ResultElementsAreNotInterleaved", kOperands, "return depth * 16 + r * 2 + is_upper;",
       "return depth * 16 + r + is_upper * 8;", false, kElements},
      {"RowsOfQueriesAreNotScaledBack", kScores, "*= query.row_scale(j, e % 2);", "*= 1.0f;", false,
       kElements},
      {"RowScaleIsThatOfAnotherRow", kQueryConverted, "(c * 2 + h) * 4);", "(c * 2) * 4);", false,
       kElements},
      {"NegatedScaleIsForgotten", kQueryConverted, "float factor = sign;", "float factor = 1.0f;",
       false, kElements},
      {"VllmKeysIgnoreTheChunk", kLoad, "from + chunk * (static_cast<int64_t>(C.block_size) * kX)",
       "from + chunk * kX", false, kElements},
      {"VllmValuesBehindTheLastTokenAreRead", kLoad,
       "valid_bytes = valid_bytes < 0 ? 0 : valid_bytes > kCopyBytes ? kCopyBytes : valid_bytes;",
       "valid_bytes = valid_bytes < 0 ? 0 : kCopyBytes;", false, kElements},
      {"VllmWindowsBeginInsideOfACopy", kFindWork, "work.token_begin &= ~15;", "", false,
       kElements},
      {"VllmScoresAreThoseOfOtherTokens", kOperands, "return r / 2 * 4 + r % 2 + half * 2;",
       "return r + is_upper * 8;", false, kElements},
      {"SecondPartOfARowIsNotCopied", kLoad, "part < Copy::kParts", "part < 1", false, kElements},
      // Scales of tokens, int8, V's own head size.
      {"KeysOfTokensAreNotScaled", kScores, "stage.k_scale[i * 16 + score_token(",
       "0.5f + 0.0f * stage.k_scale[i * 16 + score_token(", false, kElements},
      {"KeysScaleIsThatOfAnotherToken", kScores,
       "stage.k_scale[i * 16 + score_token(dev::lane_idx() / 4, half)]",
       "stage.k_scale[i * 16 + score_token(dev::lane_idx() / 4, 0)]", false, kElements},
      {"ValuesOfTokensAreNotScaled", kSoftmax, "scores[i][j][e] *= v_scale[i][e / 2];", "", false,
       kElements},
      {"SumHoldsTheValuesScales", kSoftmax,
       "          row_sum[j][e % 2] += scores[i][j][e];\n#if PAGEJIT_TOKEN_SCALES\n          "
       "scores[i][j][e] *= v_scale[i][e / 2];",
       "#if PAGEJIT_TOKEN_SCALES\n          scores[i][j][e] *= v_scale[i][e / 2];\n#endif\n        "
       "  "
       "row_sum[j][e % 2] += scores[i][j][e];\n#if PAGEJIT_TOKEN_SCALES\n          "
       "scores[i][j][e] *= 1.0f;",
       false, kElements},
      {"ScalesOfTokensUseTheKeysStride", kLoad, "token_in_block * params_.v_scale_stride_token",
       "token_in_block * params_.k_scale_stride_token", false, kElements},
      {"ScalesOfTokensIgnoreTheHead", kLoad,
       "params.k_scale + kv_head_idx * params.k_scale_stride_head", "params.k_scale", false,
       kElements},
      {"ScalesBehindTheLastTokenAreRead", kLoad, "v_scale_ + rows.v_scale, valid.has(lane)",
       "v_scale_ + (valid.has(lane) ? rows.v_scale : lane), true", false, kElements},
      {"Int8IsOffBy1", kOperands, "0xe480e480u", "0xe481e481u", false, kElements},
      {"ValuesHaveTheKeysHeadSize", kMerge, "partial * C.head_size_v;", "partial * C.head_size;",
       false, kElements},
      // Programmatic dependent launch.
      {"PreviousGridIsNotWaitedFor", "elements/early_launch.cuh", "dev::grid_dependency_wait();",
       "", false, kPdl},
      // Block-sparse attention.
      {"LocalBlocksBeginOneTooLate", kBlockSparseRule, "(position) / block_size + 1",
       "(position) / block_size + 2", false, kBlockSparse},
      {"SparseOffsetHasTheOtherSign", kBlockSparseRule, "offset == 0 ? 0 : stride - offset",
       "offset", false, kBlockSparse},
      {"NegativeStepsCountQueryHeads", kBlockSparseRule, "(by_kv_head ? kv_head_idx : head)",
       "(head)", false, kBlockSparse},
      {"HeadsOfTheStepAreIgnored", kBlockSparseRule, "(place * step + ", "(0 * place * step + ",
       false, kBlockSparse},
      {"TilesAreThoseOfTheFirstHead", kBlockSparseRule,
       "params.sparse.head_step > 0 ? group_size : 1", "1", false, kBlockSparse},
      {"TilesAreThoseOfTheirFirstBlock", kBlockSparseRule, "i < num_blocks", "i < 1", false,
       kBlockSparse},
      {"TilesAreThoseOfTheLastRow", kFindWork, "position_of_row<C>(work, work.row_begin));",
       "work.seq_len - 1);", false, kBlockSparse},
      {"LocalTilesAreHidden", kBlockSparseRule, "last_token >= first_local || ", "", false,
       kBlockSparse},
      {"GreatStridesHideAll", kBlockSparseRule, "|| stride > kMaxStride) return true;",
       ") return true;\n    if (stride > kMaxStride) return false;", false, kBlockSparse},
      {"MaskByBlocksIsMissing", kScores, "if (static_cast<uint32_t>(first_token) < all_local_)",
       "if (false)", false, kBlockSparse},
      {"MaskByBlocksEndsWithTheFirstRow", kScores, "first_local_of_row(warp_row_ + num_rows_ - 1)",
       "first_local_of_row(warp_row_)", false, kBlockSparse},
      {"LocalBlocksAreThoseOfTheFirstRow", kScores,
       "first_local_[j][h] = first_local_of_row(lane_row(j, h))",
       "first_local_[j][h] = first_local_of_row(warp_row_)", false, kBlockSparse},
  };
  return kBugs;
}

}  // namespace pagejit
