// Bugs planted in the templates of the families beside attention: each must be found by the checks
// that the families' tests are made of, and none where there is none.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "generator/families.h"
#include "generator/renderer.h"
#include "runtime/engine/dependencies.h"
#include "tests/sweep/cache_ops_batch.h"
#include "tests/sweep/cache_write_batch.h"
#include "tests/sweep/index_keys_batch.h"
#include "tests/sweep/index_logits_batch.h"
#include "tests/sweep/merge_batch.h"
#include "tests/sweep/test_device.h"
#include "tests/sweep/top_k_batch.h"

namespace pagejit {
namespace {

enum class Family {
  kMergeStates,
  kCacheWrite,
  kCopyBlocks,
  kGatherCache,
  kConvertFloat8,
  kIndexKeys,
  kTopK,
  kIndexLogits,
};
constexpr Family kFamilies[] = {Family::kMergeStates, Family::kCacheWrite,    Family::kCopyBlocks,
                                Family::kGatherCache, Family::kConvertFloat8, Family::kIndexKeys,
                                Family::kTopK,        Family::kIndexLogits};

struct PlantedBug {
  const char* name;
  Family family;
  const char* file;
  const char* from;  // stands once in the file
  const char* to;
};

constexpr const char* kMerge = "merge_states/merge_states.cuh";
constexpr const char* kWrite = "cache_write/cache_write.cuh";
constexpr const char* kCopy = "copy_blocks/copy_blocks.cuh";
constexpr const char* kGather = "gather_cache/gather_cache.cuh";
constexpr const char* kConvert = "convert_float8/convert_float8.cuh";
constexpr const char* kRow = "cache_write/cache_row.cuh";
constexpr const char* kRope = "cache_write/rope.cuh";
constexpr const char* kFloat8 = "elements/float8.cuh";
constexpr const char* kRoundFloat8 = "elements/round_float8.cuh";
constexpr const char* kElements = "elements/elements.cuh";
constexpr const char* kPlace = "elements/token_place.cuh";
constexpr const char* kWriteKeys = "indexer/write_keys.cuh";
constexpr const char* kLogits = "indexer/logits.cuh";
constexpr const char* kF16Quad = "elements/f16_quad.cuh";
constexpr const char* kArrive = "elements/arrive_last.cuh";
constexpr const char* kTopKRows = "indexer/top_k.cuh";
constexpr const char* kRowRange = "indexer/row_range.cuh";
constexpr const char* kGatherKeys = "indexer/gather_keys.cuh";

const PlantedBug kBugs[] = {
    {"PositiveInfinityIsAWeight", Family::kMergeStates, kMerge,
     "value == kInfinity ? -kInfinity : value", "value"},
    {"StatesWithoutKeysAreRead", Family::kMergeStates, kMerge, "if (weight == 0.0f) continue;", ""},
    {"RowsWithoutKeysAreNaN", Family::kMergeStates, kMerge, "sum == 0.0f ? 0.0f : ", ""},
    {"UnmergedTokensAreMerged", Family::kMergeStates, kMerge,
     "token < p.num_merged_tokens ? 0 : p.num_states - 1", "0"},
    {"UnmergedTokensTakeTheFirstState", Family::kMergeStates, kMerge, "state_end(p.num_states)",
     "state_end(token < p.num_merged_tokens ? p.num_states : 1)"},
    {"LastTokenOfTheCtaIsWrittenTwice", Family::kMergeStates, kMerge,
     "row >= kRows || token >= params.num_tokens", "token >= params.num_tokens + 1"},
    {"CountOnTheDeviceIsIgnored", Family::kMergeStates, kMerge,
     "token >= dev::load_global_nc(params.token_count)", "token < 0"},
    {"HeadsShareTheirLse", Family::kMergeStates, kMerge, "+ head * p.lse_stride_head", ""},
    {"LseIsBase2", Family::kMergeStates, kMerge, "dev::log2_approx(sum) * kLn2",
     "dev::log2_approx(sum)"},
    {"OddElementsAreDropped", Family::kMergeStates, kElements,
     "i + 1 < kCount ? values[i + 1 < kCount ? i + 1 : i] : 0.0f", "values[i]"},
    {"UpperHalvesAreTheLower", Family::kMergeStates, kElements, "words[i / 2] >> (i % 2 * 16)",
     "words[i / 2]"},
    {"SkippedTokensAreWritten", Family::kCacheWrite, kWrite, "(is_query || slot >= 0)",
     "(is_query || slot >= -1)"},
    {"SkippedTokensKeepTheirQueries", Family::kCacheWrite, kWrite, "(is_query || slot >= 0)",
     "slot >= 0"},
    {"LastHeadsAreDropped", Family::kCacheWrite, kWrite, "row_idx < num_rows &&",
     "row_idx + 1 < num_rows &&"},
    {"ValuesTakeTheKeysScale", Family::kCacheWrite, kWrite,
     "is_value ? params.v_scale : params.k_scale;\n  return", "params.k_scale;\n  return"},
    {"HeadsShareAScale", Family::kCacheWrite, kWrite, "C.scale == KvScale::kHead ? head : 0", "0"},
    {"ValuesAreRotated", Family::kCacheWrite, kWrite, "is_value ? nullptr : cos_sin", "cos_sin"},
    {"ScalesIgnoreTheHead", Family::kCacheWrite, kWrite, "slot * params.num_kv_heads + head",
     "slot * params.num_kv_heads"},
    {"PositionIsTheToken", Family::kCacheWrite, kWrite,
     "int64_t position = dev::load_global_nc(params.positions + token);",
     "int64_t position = token;"},
    {"ValuesUseTheKeysStride", Family::kCacheWrite, kWrite, "is_value ? params.value_stride_token",
     "is_value ? params.key_stride_token"},
    {"SlotIsTakenModuloItsBlock", Family::kCacheWrite, kRow, "slot - block * C.block_size",
     "slot % C.block_size * 0"},
    {"ValuesLieInChunks", Family::kCacheWrite, kRow, "} else if (is_value) {",
     "} else if (false) {"},
    {"ChunksAreHalfAsLarge", Family::kCacheWrite, kRow, "chunk * kChunk + element % kChunk",
     "chunk * kChunk + element % (kChunk / 2)"},
    {"ScaleIsMultiplied", Family::kCacheWrite, kRow, "values[i] /= scale", "values[i] *= scale"},
    {"NegativeValuesHaveNoScale", Family::kCacheWrite, kRow,
     "values[i] < 0.0f ? -values[i] : values[i]", "values[i]"},
    {"ScaleIsThatOfALane", Family::kCacheWrite, kRow, "C.threads_per_row / 2; mask > 0",
     "C.threads_per_row / 4; mask > 0"},
    {"SineHasTheWrongSign", Family::kCacheWrite, kRope, "x[i] * cos[i] - y[i] * sin[i]",
     "x[i] * cos[i] + y[i] * sin[i]"},
    {"SecondHalfTurnsWithTheFirstResult", Family::kCacheWrite, kRope,
     "y[i] = y[i] * cos[i] + x[i] * sin[i];\n        x[i] = turned;",
     "x[i] = turned;\n        y[i] = y[i] * cos[i] + x[i] * sin[i];"},
    {"RestOfTheRowIsLost", Family::kCacheWrite, kRope,
     "int element = C.rotary_dim + first_element; element < end_element",
     "int element = C.rotary_dim + first_element; element < 0"},
    {"PairsBehindTheRotationTurn", Family::kCacheWrite, kRope,
     "cos_sin != nullptr && element < C.rotary_dim", "cos_sin != nullptr"},
    {"SinesOfPairsAreCosines", Family::kCacheWrite, kRope,
     "load_cos_sin<kPairs>(C.rotary_dim / 2 + element / 2, sin)",
     "load_cos_sin<kPairs>(element / 2, sin)"},
    {"TiesAreRoundedUp", Family::kCacheWrite, kRoundFloat8, "((1u << (kDropped - 1)) - 1)",
     "(1u << (kDropped - 1))"},
    {"NothingSaturates", Family::kCacheWrite, kRoundFloat8, "code < kMaxCode ? code : kMaxCode",
     "code"},
    {"SubnormalsAreFlushed", Family::kCacheWrite, kRoundFloat8,
     "return sign | (__builtin_bit_cast(uint32_t, sum) - kUnits);", "return sign;"},
    {"BytesOfAWordAreSwapped", Family::kCacheWrite, kFloat8, "pair << (i % 4 * 8)",
     "pair << (i % 4 * 8 ^ 16)"},
    {"CodesOfAByteAreSwapped", Family::kCacheWrite, kFloat8,
     "round_to_integer<7>(values[i]) << (i % 8 * 4)",
     "round_to_integer<7>(values[i]) << (i % 8 * 4 ^ 4)"},
    {"FourBitsAreFilledTo8", Family::kCacheWrite, kRow, "return 7.0f;", "return 8.0f;"},
    {"ValuesHaveTheKeysHeadSize", Family::kCacheWrite, kWrite,
     "is_value ? C.head_size_v : C.head_size", "C.head_size"},
    {"PairsAreSwapped", Family::kCopyBlocks, kCopy,
     "load_block(params, pair, 0);\n  const int64_t to",
     "load_block(params, pair, 1);\n  const int64_t to"},
    {"AllCachesAreTheFirst", Family::kCopyBlocks, kCopy, "params.caches + dev::block_idx_y()",
     "params.caches"},
    {"PartsOverlap", Family::kCopyBlocks, kCopy,
     "static_cast<int64_t>(dev::block_idx_z()) * pagejit_shared::part_bytes(C)", "int64_t{0}"},
    {"CopiesRunIntoTheGap", Family::kCopyBlocks, kCopy,
     "if (at < params.block_bytes) bits[i].store",
     "if (at < params.block_bytes + 32) bits[i].store"},
    {"SequenceIsTheOneBefore", Family::kGatherCache, kPlace, "+ middle) <= token",
     "+ middle) < token"},
    {"StartsAreIgnored", Family::kGatherCache, kPlace, "params.seq_starts != nullptr", "false"},
    {"TableRowIsTheFirst", Family::kGatherCache, kPlace, "seq_idx * params.block_table_stride",
     "0"},
    {"TokensBehindTheLastAreWritten", Family::kGatherCache, kGather,
     "if (token >= dev::load_global_nc(params.cu_seq_lens + params.num_seqs)) return;", ""},
    {"ScalesOfAnotherToken", Family::kGatherCache, kGather,
     "(place.block * C.block_size + place.in_block) * params.num_kv_heads",
     "place.block * C.block_size * params.num_kv_heads"},
    {"ValuesAreReadAsChunks", Family::kGatherCache, kGather, "} else if (is_value) {",
     "} else if (false) {"},
    {"ValuesHaveTheKeysScale", Family::kGatherCache, kGather,
     "is_value ? params.v_scale : params.k_scale", "params.k_scale"},
    {"CodesOfAByteAreReadSwapped", Family::kGatherCache, kFloat8,
     "bits.words[i / 8] >> (i % 8 * 4)", "bits.words[i / 8] >> (i % 8 * 4 ^ 4)"},
    {"CodesOf4BitsHaveNoSign", Family::kGatherCache, kFloat8, "static_cast<int>(code << 28) >> 28",
     "static_cast<int>(code)"},
    {"RowsOfValuesAreAsLongAsKeys", Family::kGatherCache, kGather,
     "is_value ? C.head_size_v : C.head_size", "C.head_size"},
    {"ValuesHaveTheKeysStrides", Family::kGatherCache, kGather,
     "token * params.v_out_stride_token + head * params.v_out_stride_head",
     "token * params.k_out_stride_token + head * params.k_out_stride_head"},
    {"E4m3IsE5m2", Family::kGatherCache, kFloat8, "(code & 0x7fu) << 7", "(code & 0x7fu) << 8"},
    {"NaNIsANumber", Family::kConvertFloat8, kFloat8,
     "if ((code & 0x7fu) == 0x7fu) return __builtin_bit_cast(float, 0x7fffffffu);", ""},
    {"ConversionIgnoresTheScale", Family::kConvertFloat8, kConvert, "* params.scale;", ";"},
    {"ConversionMultiplies", Family::kConvertFloat8, kConvert, "values[i] /= params.scale",
     "values[i] *= params.scale"},
    {"KeysWithoutASlotAreWritten", Family::kIndexKeys, kWriteKeys, "if (slot < 0) return;", ""},
    {"KeysHaveNoFloor", Family::kIndexKeys, kWriteKeys, "greatest = 1e-4f", "greatest = 0.0f"},
    {"NegativeKeysHaveNoScale", Family::kIndexKeys, kWriteKeys,
     "values[i] < 0.0f ? -values[i] : values[i]", "values[i]"},
    {"ScaleOfKeysIsThatOfALane", Family::kIndexKeys, kWriteKeys, "C.threads_per_row / 2; mask > 0",
     "C.threads_per_row / 4; mask > 0"},
    {"ScalesOfKeysAreNotRounded", Family::kIndexKeys, kWriteKeys,
     "if constexpr (!C.is_power_of_two_scale) return scale;", "return scale;"},
    {"ScalesOfKeysAreRoundedDown", Family::kIndexKeys, kWriteKeys, "(bits + kDigits)", "bits"},
    {"PowersOfTwoAreRoundedUp", Family::kIndexKeys, kWriteKeys, "(bits + kDigits)",
     "(bits + kDigits + 1)"},
    {"QuantBlocksAreTheFirst", Family::kIndexKeys, kWriteKeys,
     "params.k_stride_token + first_of_row", "params.k_stride_token"},
    {"QuantBlocksShareTheirScale", Family::kIndexKeys, kWriteKeys,
     "in_block * kRowsPerToken + quant_block", "in_block * kRowsPerToken"},
    {"PagesOfKeysAreOneTokenLong", Family::kIndexKeys, kWriteKeys, "slot / C.block_size;", "slot;"},
    {"KeysAreMultiplied", Family::kIndexKeys, kWriteKeys, "values[i] / scale", "values[i] * scale"},
    {"TokensBehindTheLastAreGathered", Family::kIndexKeys, kGatherKeys,
     "if (token >= dev::load_global_nc(params.cu_seq_lens + params.num_seqs)) return;",
     "if (token >= dev::load_global_nc(params.cu_seq_lens + params.num_seqs) + 1) return;"},
    {"GatheredKeysAreTheFirstOfThePage", Family::kIndexKeys, kGatherKeys,
     "static_cast<int64_t>(place.in_block) * C.head_size", "0"},
    {"GatheredScalesAreTheFirstOfThePage", Family::kIndexKeys, kGatherKeys,
     "static_cast<int64_t>(place.in_block) * kScales", "0"},
    {"OneScaleOfATokenIsGathered", Family::kIndexKeys, kGatherKeys, "i < kScales", "i < 1"},
    {"NaNIsTheGreatest", Family::kTopK, kTopKRows, "if (!(value == value)) return 0;", ""},
    {"ZerosDiffer", Family::kTopK, kTopKRows, "value + 0.0f", "value"},
    {"NegativeValuesRiseWithTheirSize", Family::kTopK, kTopKRows, "? 0xffffffffu : 0x80000000u",
     "? 0x80000000u : 0x80000000u"},
    {"ShortRowsAreNotPadded", Family::kTopK, kTopKRows, "i < length ? i : -1", "i"},
    {"VectorsAcrossTheBeginAreSkipped", Family::kTopK, kTopKRows, "range.begin / kVector * kVector",
     "(range.begin + kVector - 1) / kVector * kVector"},
    {"LastVectorIsDropped", Family::kTopK, kTopKRows, "range.end - first + kVector - 1",
     "range.end - first"},
    {"ValuesBehindTheRowCount", Family::kTopK, kTopKRows, "if (!holds(column + i)) continue;", ""},
    {"EqualValuesAreTakenFromAnywhere", Family::kTopK, kTopKRows,
     "!is_tied || tied_before < threshold.num_tied", "!is_tied || counts >> 16 != 0"},
    {"OneMoreOfTheEqualIsTaken", Family::kTopK, kTopKRows,
     "!is_tied || tied_before < threshold.num_tied",
     "!is_tied || tied_before <= threshold.num_tied"},
    {"PlaceCountsTheEqualThatAreLeft", Family::kTopK, kTopKRows,
     "tied_before < threshold.num_tied ? tied_before : threshold.num_tied", "tied_before"},
    {"IndicesCountFromTheFirstColumn", Family::kTopK, kTopKRows,
     "indices + place, column - range.begin", "indices + place, column"},
    {"BinIsOneTooLow", Family::kTopK, kTopKRows, "if (above + count >= num_tied) {",
     "if (above + count > num_tied) {"},
    {"WarpsBeforeAreForgotten", Family::kTopK, kTopKRows,
     "tied = sum_of_warps_before(shared.warp_sums[1])", "tied = 0"},
    {"LastDigitIsIgnored", Family::kTopK, kTopKRows, "digit < pagejit_shared::kTopKDigits",
     "digit < pagejit_shared::kTopKDigits - 1"},
    {"CountsAreNotCleared", Family::kTopK, kTopKRows, "shared.counts[bin] = 0;",
     "if (digit == 0) shared.counts[bin] = 0;"},
    {"OtherPrefixesAreCounted", Family::kTopK, kTopKRows,
     "digit == 0 || key >> prefix_shift == threshold.prefix", "true"},
    {"PartsBeginWithTheRow", Family::kTopK, kTopKRows, "{border(split), border(split + 1)}",
     "{border(0), border(split + 1)}"},
    {"CandidatesOfRowsOverlap", Family::kTopK, kTopKRows,
     "static_cast<int64_t>(row_idx) * params.num_splits * params.k", "0"},
    {"CandidatesOfPartsOverlap", Family::kTopK, kTopKRows, "static_cast<int64_t>(split) * params.k",
     "0"},
    {"CandidatesCountFromThePart", Family::kTopK, kTopKRows,
     "TopKCandidate{key, column - range.begin}", "TopKCandidate{key, column - row.range.begin}"},
    {"RowsShareTheirCounter", Family::kTopK, kTopKRows, "counters + row_idx", "counters"},
    {"FirstPartMerges", Family::kTopK, kArrive, "shared_flag = arrived == limit;",
     "shared_flag = arrived == 0;"},
    {"CountersOfRowsDoNotReset", Family::kTopK, kArrive, "atomic_inc_acq_rel(counter, limit)",
     "atomic_inc_acq_rel(counter, 0xffffffffu)"},
    {"IndicesAreThoseOfTheCandidates", Family::kTopK, kTopKRows,
     "dev::load_global(&candidates[candidate].index)", "candidate"},
    {"FirstTokenSeesTheNext", Family::kTopK, kRowRange, "seq_len - ranges.next_n + row",
     "seq_len - 1 + row"},
    {"TokensAreTheSame", Family::kTopK, kRowRange, "row % ranges.next_n + 1", "ranges.next_n"},
    {"BeginsAreIgnored", Family::kTopK, kRowRange, "ranges.row_begins == nullptr ? 0", "true ? 0"},
    {"KeysAreThoseOfThePageBegin", Family::kIndexLogits, kLogits, "page + in_block * C.head_size",
     "page"},
    {"ScalesOfPagesAreTheFirst", Family::kIndexLogits, kLogits, "scales + in_block}", "scales}"},
    {"SequencesShareTheirTable", Family::kIndexLogits, kLogits,
     "seq_idx * params.block_table_stride", "0"},
    {"KeysThatNoRowHasAreRead", Family::kIndexLogits, kLogits,
     "key = key < work.begin ? work.begin : key < work.end ? key : work.end - 1;", ""},
    {"UpperKeysAreTheLower", Family::kIndexLogits, kLogits, "first_of_lane + i * 8",
     "first_of_lane + i / 2 * 16"},
    {"PairsOfKeysAreSwapped", Family::kIndexLogits, kLogits, "[half + 2] = values.high",
     "[half + 2] = values.low"},
    {"WordsOfAKeyAreInAnotherOrder", Family::kIndexLogits, kLogits,
     "(i * 4 + dev::lane_idx() % 4) * C.vector_bytes",
     "(i * 4 + 3 - dev::lane_idx() % 4) * C.vector_bytes"},
    {"StepsOfQueriesAreSwapped", Family::kIndexLogits, kLogits, ".steps[step % 2]",
     ".steps[1 - step % 2]"},
    {"RowsShareTheirQueries", Family::kIndexLogits, kLogits,
     "(work.first_row + row) * params.q_stride_row", "work.first_row * params.q_stride_row"},
    {"RowsShareTheirWeights", Family::kIndexLogits, kLogits,
     "(work.first_row + row) * params.weights_stride", "work.first_row * params.weights_stride"},
    {"HeadTilesShareTheirWeights", Family::kIndexLogits, kLogits,
     "[head_tile * 4 + dev::lane_idx()", "[dev::lane_idx()"},
    {"NegativeProductsCount", Family::kIndexLogits, kLogits, "dev::max2(products[tile][e], 0.0f)",
     "products[tile][e]"},
    {"ReluComesBehindTheWeight", Family::kIndexLogits, kLogits,
     "weights.v[e % 2] * dev::max2(products[tile][e], 0.0f)",
     "dev::max2(weights.v[e % 2] * products[tile][e], 0.0f)"},
    {"LanesAreNotAdded", Family::kIndexLogits, kLogits, "sum += dev::shuffle_xor(sum, 2);", ""},
    {"LogitsHaveNoScale", Family::kIndexLogits, kLogits, "mine * scale", "mine"},
    {"LogitsAreThoseOfTheGroup", Family::kIndexLogits, kLogits,
     "key >= range.begin && key < range.end) {", "true) {"},
    {"ColumnsBeginAtTheFirstKey", Family::kIndexLogits, kLogits,
     "params.logits_stride + key - params.column_begin,", "params.logits_stride + key,"},
    {"NothingIsCleaned", Family::kIndexLogits, kLogits,
     "dev::store_global(logits + key - params.column_begin, kMinusInfinity);", ""},
    {"LastRowsOfASequenceAreDropped", Family::kIndexLogits, kLogits,
     "if (work.num_rows > C.rows_per_cta) work.num_rows = C.rows_per_cta;",
     "if (work.num_rows > C.rows_per_cta) work.num_rows = C.rows_per_cta; else --work.num_rows;"},
    {"FirstTileIsSkipped", Family::kIndexLogits, kLogits,
     "first_key + Traits::kTileTokens <= work.begin", "first_key < work.begin"},
    {"OneTileOfAWarp", Family::kIndexLogits, kLogits, "tile < C.tiles_per_warp * Traits::kWarps",
     "tile < Traits::kWarps"},
    {"E4m3KeepsItsBias", Family::kIndexLogits, kF16Quad, "0x5c005c00u", "0x58005800u"},
};

class PlantedFamilyBugTest : public EmulatorTest {
 protected:
  // An engine whose kernels are rendered with `bug`; null for none.
  std::shared_ptr<Engine> make_engine(const PlantedBug* bug, HostBuild build = HostBuild::kPlain) {
    auto templates = std::make_shared<TemplateSet>(embedded_templates());
    if (bug != nullptr) {
      const std::string_view original = templates->at(bug->file);
      const size_t at = original.find(bug->from);
      EXPECT_NE(at, std::string_view::npos) << bug->file << " has no \"" << bug->from << "\"";
      if (at == std::string_view::npos) return nullptr;
      EXPECT_EQ(original.find(bug->from, at + 1), std::string_view::npos)
          << bug->file << " has \"" << bug->from << "\" twice";
      changed_ = std::string(original.substr(0, at)) + bug->to +
                 std::string(original.substr(at + std::string_view(bug->from).size()));
      templates->at(bug->file) = changed_;
    }
    EngineOptions options = device().options;
    options.disk_cache = false;
    options.host_build = build;
    EngineDependencies dependencies = default_dependencies(options);
    // Without the instructions for 8 bits, so that the arithmetic in their place is tested.
    dependencies.plan = [](const AnySpec& spec, const Target&) {
      return plan_any(spec, Target::host(80));
    };
    dependencies.render = [templates](const AnyConfig& config) {
      return render(config, *templates);
    };
    Result<std::shared_ptr<Engine>> made = create_engine(options, dependencies);
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    return made ? *made : nullptr;
  }

  // What is wrong with the engine's kernels of a family; empty if nothing was found.
  std::string find_bug(Engine& bugged, Family family) {
    switch (family) {
      case Family::kMergeStates:
        return find_merge_bug(bugged);
      case Family::kCacheWrite:
        return find_write_bug(bugged);
      case Family::kCopyBlocks:
        return check_copy_blocks(bugged, session(), {.block_bytes = 20000, .gap_bytes = 48});
      case Family::kGatherCache:
        return find_gather_bug(bugged);
      case Family::kConvertFloat8:
        return find_convert_bug(bugged);
      case Family::kIndexKeys:
        return find_index_key_bug(bugged);
      case Family::kTopK:
        return find_top_k_bug(bugged);
      case Family::kIndexLogits:
        return find_logits_bug(bugged);
    }
    return "";
  }

 private:
  std::string find_merge_bug(Engine& bugged) {
    const MergeStatesSpec specs[] = {
        {DataType::kBFloat16, DataType::kBFloat16, 72},
        {DataType::kFloat16, DataType::kFloat32, 33, true},
    };
    for (const MergeStatesSpec& spec : specs) {
      // A kernel that does not compile shows nothing; it fails the test.
      EXPECT_TRUE(bugged.prepare(spec).is_ok());
      const std::string fault = check_merge(bugged, session(),
                                            {.spec = spec,
                                             .num_states = 3,
                                             .num_tokens = 50,
                                             .num_heads = 3,
                                             .num_merged_tokens = 40,
                                             .counted_tokens = spec.listed ? 47 : -1,
                                             .padded = true});
      if (!fault.empty()) return fault;
    }
    return "";
  }

  std::string find_write_bug(Engine& bugged) {
    CacheWriteSpec plain{.head_size = 72, .block_size = 5};
    plain.rope = RopeStyle::kNeox;
    plain.rotary_dim = 48;
    CacheWriteSpec chunked{.kv_dtype = DataType::kFloat8E4m3,
                           .scale = KvScale::kHead,
                           .layout = KvLayout::kVllm,
                           .head_size = 64,
                           .block_size = 8};
    CacheWriteSpec small = chunked;
    small.dtype = DataType::kFloat16;
    small.kv_dtype = DataType::kFloat8E5m2;
    CacheWriteSpec found{.kv_dtype = DataType::kInt8,
                         .scale = KvScale::kTokenHead,
                         .head_size = 128,
                         .rope = RopeStyle::kInterleaved,
                         .rotary_dim = 64};
    CacheWriteSpec int4 = found;
    int4.kv_dtype = DataType::kInt4;
    int4.head_size_v = 72;
    for (const CacheWriteSpec& spec : {plain, chunked, small, found, int4}) {
      EXPECT_TRUE(bugged.prepare(spec).is_ok());
      const std::string fault = check_cache_write(
          bugged, session(),
          {.spec = spec,
           .num_tokens = 33,
           .num_kv_heads = 3,
           .num_q_heads = spec.rope == RopeStyle::kNone ? 0 : 5,
           .num_blocks = 20,
           .order = spec.layout == KvLayout::kRows ? RowOrder::kInterleaved : RowOrder::kNhd,
           .source_pad = 8});
      if (!fault.empty()) return fault;
    }
    return "";
  }

  std::string find_gather_bug(Engine& bugged) {
    const GatherCacheSpec wide{.head_size = 72, .block_size = 5};
    const GatherCacheSpec small{.kv_dtype = DataType::kFloat8E4m3,
                                .scale = KvScale::kTokenHead,
                                .layout = KvLayout::kVllm,
                                .head_size = 64,
                                .block_size = 8};
    const GatherCacheSpec int4{.kv_dtype = DataType::kInt4,
                               .scale = KvScale::kTokenHead,
                               .head_size = 64,
                               .head_size_v = 48,
                               .block_size = 5};
    for (const GatherCacheSpec& spec : {wide, small, int4}) {
      EXPECT_TRUE(bugged.prepare(spec).is_ok());
      const std::string fault = check_gather_cache(bugged, session(), {.spec = spec});
      if (!fault.empty()) return fault;
    }
    return "";
  }

  std::string find_convert_bug(Engine& bugged) {
    constexpr DataType kSmall = DataType::kFloat8E4m3;
    constexpr DataType kWide = DataType::kBFloat16;
    for (const ConvertFloat8Spec& spec :
         {ConvertFloat8Spec{kSmall, kWide}, ConvertFloat8Spec{kWide, kSmall}}) {
      EXPECT_TRUE(bugged.prepare(spec).is_ok());
      const std::string fault = check_convert_float8(bugged, session(), spec, 0.75f);
      if (!fault.empty()) return fault;
    }
    return "";
  }

  std::string find_index_key_bug(Engine& bugged) {
    const IndexKeyWriteSpec wide{.dtype = DataType::kFloat32, .block_size = 4};
    const IndexKeyWriteSpec small{
        .head_size = 96, .quant_block_size = 32, .block_size = 5, .power_of_two_scale = true};
    for (const IndexKeyWriteSpec& spec : {wide, small}) {
      EXPECT_TRUE(bugged.prepare(spec).is_ok());
      const std::string fault =
          check_index_key_write(bugged, session(), {.spec = spec, .num_blocks = 13});
      if (!fault.empty()) return fault;
    }
    const IndexKeyGatherSpec gather{.head_size = 96, .quant_block_size = 32, .block_size = 5};
    EXPECT_TRUE(bugged.prepare(gather).is_ok());
    return check_index_key_gather(bugged, session(), {.spec = gather, .page_gap = 16});
  }

  std::string find_top_k_bug(Engine& bugged) {
    const TopKOptions cases[] = {
        {.k = 100, .lengths = {99, 100, 101, 700}, .last_begin = 9},
        {.kind = LogitKind::kLowBits, .k = 100, .lengths = {3000, 150}, .next_n = 2},
        {.kind = LogitKind::kFew, .k = 100, .lengths = {3000, 170}},
        {.k = 40, .lengths = {1000, 90, 700}, .last_begin = 9, .num_splits = 4},
        {.kind = LogitKind::kSpecial, .k = 290, .lengths = {300, 291, 10}},
    };
    for (const TopKOptions& options : cases) {
      EXPECT_TRUE(bugged.prepare(options.spec).is_ok());
      const std::string fault = check_top_k(bugged, session(), options);
      if (!fault.empty()) return fault;
    }
    return "";
  }

  std::string find_logits_bug(Engine& bugged) {
    const IndexLogitsOptions cases[] = {
        {.spec = {.num_heads = 16, .clean = true}, .lengths = {40, 0, 17}, .last_begin = 50},
        {.spec = {.num_heads = 8, .head_size = 96, .block_size = 5},
         .lengths = {71, 3, 60},
         .next_n = 5,
         .column_begin = 7},
        {.spec = {.num_heads = 8, .head_size = 160, .clean = true},
         .lengths = {20, 600},
         .num_keys = 620,
         .last_begin = 20},
    };
    for (const IndexLogitsOptions& options : cases) {
      EXPECT_TRUE(bugged.prepare(options.spec).is_ok());
      const std::string fault = check_index_logits(bugged, session(), options);
      if (!fault.empty()) return fault;
    }
    return "";
  }

  std::string changed_;
};

TEST_F(PlantedFamilyBugTest, NothingIsFoundInTheRealTemplates) {
  for (const HostBuild build : {HostBuild::kPlain, HostBuild::kChecked}) {
    const std::shared_ptr<Engine> engine = make_engine(nullptr, build);
    for (const Family family : kFamilies) {
      EXPECT_EQ(find_bug(*engine, family), "") << static_cast<int>(family) << report();
    }
  }
}

class EachPlantedFamilyBugTest : public PlantedFamilyBugTest,
                                 public testing::WithParamInterface<PlantedBug> {};

TEST_P(EachPlantedFamilyBugTest, IsFound) {
  const std::shared_ptr<Engine> engine = make_engine(&GetParam());
  ASSERT_NE(engine, nullptr);
  const std::string found = find_bug(*engine, GetParam().family);
  EXPECT_NE(found, "");
  RecordProperty("found", found);
}

INSTANTIATE_TEST_SUITE_P(Bugs, EachPlantedFamilyBugTest, testing::ValuesIn(kBugs),
                         [](const testing::TestParamInfo<PlantedBug>& test) {
                           return std::string(test.param.name);
                         });

}  // namespace
}  // namespace pagejit
