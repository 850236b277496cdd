#include "tests/sweep/planted_bugs.h"

namespace pagejit {
namespace {

using enum PlantedBug::Kernels;

constexpr const char* kKernel = "attention/attention.cuh";
constexpr const char* kLoad = "attention/load_kv.cuh";
constexpr const char* kMerge = "attention/merge.cuh";
constexpr const char* kOperands = "attention/operands.cuh";
constexpr const char* kQuerySource = "attention/query_source.cuh";
constexpr const char* kQueryConverted = "attention/query_converted.cuh";
constexpr const char* kScores = "attention/scores.cuh";
constexpr const char* kSoftmax = "attention/softmax.cuh";
constexpr const char* kWork = "attention/work.cuh";

}  // namespace

const std::vector<PlantedBug>& planted_bugs() {
  static const std::vector<PlantedBug> kBugs = {
      // Which tokens take part.
      {"MaskIsOffByOne", kScores, "= token < work_.token_end;", "= token <= work_.token_end;"},
      {"MaskIsMissing", kScores, "if (needs_mask(first_token)) mask", "if (false) mask"},
      {"LastTokenIsLost", kWork, "work.token_end = work.seq_len;",
       "work.token_end = work.seq_len - 1;"},
      {"TailIsNotCleared", kLoad, "if (has_column && has_row) {",
       "if (has_column && has_row && row < num_valid) {"},
      {"EmptySequenceIsNotWritten", kWork, "return work.split_idx == 0 || work.has_tokens();",
       "return work.has_tokens();"},
      {"PadIsNotCleared", kKernel, "stream.clear_pad();", ""},
      // Where rows lie.
      {"ValuesUseTheKeysBlockStride", kLoad, "static_cast<int64_t>(params_.v_stride_block)",
       "static_cast<int64_t>(params_.k_stride_block)"},
      {"ValuesUseTheKeysTokenStride", kLoad, "token_in_block * params_.v_stride_token",
       "token_in_block * params_.k_stride_token"},
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
      {"NoBarrierAfterKeys", kKernel, "sync_group<C>(token_group);\n    }", "}", true},
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
      {"RowTilesIgnoreTheSequence", kWork, "work.row_begin = row_tile * kTileRows;",
       "work.row_begin = 0;", false, kRagged},
      {"SequenceSearchStopsEarly", kWork, "int count = params.num_seqs;",
       "int count = params.num_seqs - 1;", false, kRagged},
      {"FurtherSplitsOfLongSequencesWrite", kWork, "} else if (work.split_idx > 0) {",
       "} else if (false) {", true, kRagged},
      {"LongSequencesAreSplit", kWork, "params.num_splits > 1 && may_split<C>(work)",
       "params.num_splits > 1", false, kRagged},
      {"SplitTilesTakeTheSequencesPlace", kMerge, "= work.row_tile * num_kv_heads",
       "= work.seq_idx * num_kv_heads", false, kRagged},
      {"SplitsOfTilesAreShifted", kWork, "index % params.num_row_tiles", "index % params.num_seqs",
       false, kRagged},
      {"RowsOfOtherSequencesAreWritten", kWork, "rows_left < kTileRows ? rows_left : kTileRows",
       "kTileRows", false, kRagged},
      {"CsrRowsIgnoreTheSequence", kLoad, "params.kv_indptr + work.seq_idx", "params.kv_indptr",
       false, kRagged},
      {"CsrLastBlockIsTakenToBeFull", kWork, "(num_blocks - 1) * C.block_size + in_last",
       "num_blocks * C.block_size", false, kRagged},
      {"ContiguousRowsIgnoreTheSequence", kLoad, "static_cast<int64_t>(first_row_) + token",
       "token", false, kRagged},
      {"ContiguousValuesUseTheKeysStride", kLoad, "row * params_.v_stride_token",
       "row * params_.k_stride_token", false, kRagged},
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
      {"KeysScaleIsThatOfHead0", kWork, "params.k_scale + scale_offset", "params.k_scale", false,
       kElements},
      {"ValuesScaleIsTheKeys", kWork, "params.v_scale + scale_offset",
       "params.k_scale + scale_offset", false, kElements},
      {"ValuesAreNotScaled", kMerge, "factor *= output.v_scale;", "", false, kElements},
      {"QueriesScaleIsMissing", kWork, "work.qk_scale *= dev::load_global_nc(params.q_scale);", "",
       false, kElements},
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
      {"VllmWindowsBeginInsideOfACopy", kWork, "work.token_begin &= ~15;", "", false, kElements},
      {"VllmScoresAreThoseOfOtherTokens", kOperands, "return r / 2 * 4 + r % 2 + half * 2;",
       "return r + is_upper * 8;", false, kElements},
      {"SecondPartOfARowIsNotCopied", kLoad, "part < Traits::kRowParts", "part < 1", false,
       kElements},
  };
  return kBugs;
}

}  // namespace pagejit
