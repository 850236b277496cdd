// Bugs planted in the templates must be found by what the sweeps and `pagejit check` do: proof that
// they can fail. Each bug is one replacement in one template file; an engine renders from the
// changed set, all else is as in the other tests.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "generator/renderer.h"
#include "runtime/engine/dependencies.h"
#include "tests/sweep/test_device.h"

namespace pagejit {
namespace {

struct PlantedBug {
  const char* name;
  const char* file;
  const char* from;  // must occur exactly once
  const char* to;
  // Only the checked build must find it: the values may be right by luck of the schedule.
  bool only_checked = false;
  // In what ragged launches and optional features have.
  bool is_ragged = false;
};

constexpr const char* kKernel = "attention/attention.cuh";
constexpr const char* kLoad = "attention/load_kv.cuh";
constexpr const char* kMerge = "attention/merge.cuh";
constexpr const char* kQuery = "attention/query.cuh";
constexpr const char* kScores = "attention/scores.cuh";
constexpr const char* kSoftmax = "attention/softmax.cuh";
constexpr const char* kWork = "attention/work.cuh";

const PlantedBug kBugs[] = {
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
    {"QueryHeadsArePacked", kQuery, "place.head * stride_head", "place.head * C.head_size"},
    {"QueryTokensUseTheOutputStride", kQuery, "stride_token(params.q_stride_token)",
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
    {"FirstSplitMerges", kMerge, "shared_flag = arrived == limit;", "shared_flag = arrived == 0;"},
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
     "seq_len - at ? at + right + 2 : seq_len", false, true},
    {"CausalMaskIsAlignedToTheStart", kWork, "first_position(work.seq_len - work.query_len)",
     "first_position(0)", false, true},
    {"CausalFlagIsThatOfSequence0", kWork, "params.causal_flags + work.seq_idx",
     "params.causal_flags + work.seq_idx * 0", false, true},
    {"WindowIsOffByOne", kWork, "left < at ? at - left : 0", "left < at ? at - left + 1 : 0", false,
     true},
    {"MaskOfTheWindowIsMissing", kScores, "(!QuerySight<C>::kHasBegin || token >= range.begin)",
     "true", false, true},
    {"WarpsSkipTheTileOfTheDiagonal", kScores, "return num_rows_ > 0 && first_token < sight_",
     "return num_rows_ > 0 && first_token + C.group_tokens < sight_", false, true},
    {"RowTilesIgnoreTheSequence", kWork, "work.row_begin = row_tile * kTileRows;",
     "work.row_begin = 0;", false, true},
    {"SequenceSearchStopsEarly", kWork, "int count = params.num_seqs;",
     "int count = params.num_seqs - 1;", false, true},
    {"FurtherSplitsOfLongSequencesWrite", kWork, "} else if (work.split_idx > 0) {",
     "} else if (false) {", true, true},
    {"LongSequencesAreSplit", kWork, "params.num_splits > 1 && may_split<C>(work)",
     "params.num_splits > 1", false, true},
    {"RowsOfOtherSequencesAreWritten", kWork, "rows_left < kTileRows ? rows_left : kTileRows",
     "kTileRows", false, true},
    {"CsrRowsIgnoreTheSequence", kLoad, "params.kv_indptr + work.seq_idx", "params.kv_indptr",
     false, true},
    {"CsrLastBlockIsTakenToBeFull", kWork, "(num_blocks - 1) * C.block_size + in_last",
     "num_blocks * C.block_size", false, true},
    {"ContiguousRowsIgnoreTheSequence", kLoad, "static_cast<int64_t>(first_row_) + token", "token",
     false, true},
    {"ContiguousValuesUseTheKeysStride", kLoad, "row * params_.v_stride_token",
     "row * params_.k_stride_token", false, true},
    {"ChunkBeginsOneTooEarly", kWork, "begin = at - in_chunk;",
     "begin = at - in_chunk - (at > in_chunk ? 1 : 0);", false, true},
    {"ChunkEndIsIgnored", kWork, "chunk_size - in_chunk < end - at", "false", false, true},
    {"MaskBitsIgnoreTheQuery", kScores, "const int64_t bit = first_bit + token;",
     "const int64_t bit = token;", false, true},
    {"MaskBitsIgnoreTheSequence", kScores, "params.custom_mask_indptr + work.seq_idx",
     "params.custom_mask_indptr", false, true},
    {"SoftCapIsNotScaled", kScores, "params_.soft_cap * tanh_by_exp2", "tanh_by_exp2", false, true},
    {"AlibiIsOffByOnePosition", kScores, "slopes_[j][e % 2] * static_cast<float>(distance)",
     "slopes_[j][e % 2] * static_cast<float>(distance + 1)", false, true},
    {"AlibiUsesTheFirstSlope", kScores, "params.alibi_slopes + head)", "params.alibi_slopes)",
     false, true},
    {"SinksUseTheFirstHead", kMerge, "output.sinks + head)", "output.sinks)", false, true},
    {"SinksTakePartInEachSplit", kMerge, "if (work.num_active_splits <= 1) {",
     "if constexpr (C.has_sinks) add_sink<C>(output, place_of_row<C>(output.row_begin + row).head, "
     "partial);\n    if (work.num_active_splits <= 1) {",
     false, true},
};

class PlantedBugTest : public EmulatorTest {
 protected:
  // An engine whose kernels are rendered with `bug`; null for none.
  std::shared_ptr<Engine> make_engine(const PlantedBug* bug, HostBuild build) {
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
    options.host_build = build;
    options.disk_cache = false;
    EngineDependencies dependencies = default_dependencies(options);
    dependencies.render = [templates](const AnyConfig& config) {
      return render(config, *templates);
    };
    Result<std::shared_ptr<Engine>> made = create_engine(options, dependencies);
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    return made ? *made : nullptr;
  }

  // A kernel that does not compile shows nothing; it fails the test.
  static bool compiles(Engine& bugged, const KernelSpec& spec) {
    const Result<Kernel> kernel = bugged.prepare(spec);
    EXPECT_TRUE(kernel.is_ok()) << kernel.status().to_string() << kernel.status().detail();
    return kernel.is_ok();
  }

  // What is wrong with the engine's ragged kernels; empty if nothing was found.
  std::string find_ragged_bug(Engine& bugged) {
    KernelSpec causal = make_spec(DataType::kBFloat16, 64, 16, 4);
    causal.queries = QueryLengths::kFew;
    causal.causality = Causality::kCausal;
    KernelSpec window = causal;
    window.causality = Causality::kPerSequence;
    window.window = true;
    KernelSpec changed = causal;
    changed.soft_cap = changed.alibi = changed.sinks = true;
    KernelSpec csr = causal;
    csr.kv_table = KvTable::kCsr;
    csr.causality = Causality::kNone;
    csr.chunked = true;
    KernelSpec contiguous = causal;
    contiguous.kv_table = KvTable::kContiguous;
    contiguous.block_size = 1;
    KernelSpec masked = causal;
    masked.custom_mask = true;
    for (const KernelSpec& spec : {causal, window, changed, csr, contiguous, masked}) {
      if (!compiles(bugged, spec)) return "";
      for (const int num_splits : {1, 3}) {
        CheckOptions options;
        options.batch.num_kv_heads = 2;
        options.batch.seq_lens = {40, 0, 300, 217, 64};
        options.batch.query_lens = {3, 2, 1, 17, 4};
        options.batch.unused_queries = 2;
        options.batch.layout = CacheLayout::kPadded;
        options.batch.window_left = 21;
        options.batch.window_right = 5;
        options.batch.chunk_size = 13;
        options.num_splits = num_splits;
        const Result<CheckReport> result = run_check(bugged, session(), spec, options);
        if (!result) return result.status().to_string() + report();
        if (!result->passed) return result->sentence;
      }
    }
    return "";
  }

  // What is wrong with the engine's kernels; empty if nothing was found.
  std::string find_bug(Engine& bugged) {
    CheckOptions plain;
    plain.batch.num_kv_heads = 2;
    CheckOptions padded = plain;
    padded.batch.layout = CacheLayout::kPadded;
    padded.batch.seq_lens = {40, 0, 300, 17};
    padded.num_splits = 3;
    CheckOptions low = plain;
    low.batch.logits = LogitRegime::kLow;
    low.batch.seq_lens = {100, 5};
    CheckOptions huge = plain;
    huge.batch.layout = CacheLayout::kInterleaved;
    huge.batch.device_block_stride = (int64_t{1} << 30) + 8;
    huge.batch.seq_lens = {70};
    for (const KernelSpec& spec :
         {make_spec(DataType::kFloat16, 72, 16, 4), make_spec(DataType::kBFloat16, 128, 16, 40)}) {
      if (!compiles(bugged, spec)) return "";
      for (const CheckOptions* options : {&plain, &padded, &low, &huge}) {
        const Result<CheckReport> result = run_check(bugged, session(), spec, *options);
        if (!result) return result.status().to_string() + report();
        if (!result->passed) return result->sentence;
      }
      const std::string second = find_in_second_launch(*bugged.prepare(spec));
      if (!second.empty()) return second;
    }
    return "";
  }

 private:
  // A launch over a workspace that one before has used.
  std::string find_in_second_launch(const Kernel& kernel) {
    BatchOptions options;
    options.spec = kernel.spec();
    options.seq_lens = {300};
    const AttentionBatch batch = make_batch(options);
    Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, true);
    Result<Workspace> workspace =
        Workspace::create(session(), kernel, kernel.workspace_bytes(1, 1, 300, 3));
    EXPECT_TRUE(device_batch.is_ok() && workspace.is_ok());
    AttentionArgs args = device_batch->args();
    args.num_splits = 3;
    workspace->put_into(args);
    const ReferenceResults reference = compute_reference(batch);
    for (int i = 0; i < 2; ++i) {
      Status status = device_batch->reset_results();
      if (status) status = kernel.launch(args, nullptr);
      if (status) status = session().synchronize();
      if (!status) return status.to_string() + report();
      const Result<AttentionResults> results = device_batch->download();
      if (!results) return results.status().to_string();
      const CheckReport result = compare_results(batch, reference, *results, true, 3);
      if (!result.passed) return result.sentence;
    }
    return "";
  }

  std::string changed_;
};

TEST_F(PlantedBugTest, NothingIsFoundInTheRealTemplates) {
  for (HostBuild build : {HostBuild::kPlain, HostBuild::kChecked}) {
    const std::shared_ptr<Engine> engine = make_engine(nullptr, build);
    EXPECT_EQ(find_bug(*engine), "");
    EXPECT_EQ(find_ragged_bug(*engine), "");
  }
}

class EachPlantedBugTest : public PlantedBugTest, public testing::WithParamInterface<PlantedBug> {};

TEST_P(EachPlantedBugTest, IsFound) {
  const PlantedBug& bug = GetParam();
  const HostBuild build = bug.only_checked ? HostBuild::kChecked : HostBuild::kPlain;
  const std::shared_ptr<Engine> engine = make_engine(&bug, build);
  ASSERT_NE(engine, nullptr);
  const std::string found = bug.is_ragged ? find_ragged_bug(*engine) : find_bug(*engine);
  EXPECT_NE(found, "");
  RecordProperty("found", found);
}

INSTANTIATE_TEST_SUITE_P(Bugs, EachPlantedBugTest, testing::ValuesIn(kBugs),
                         [](const testing::TestParamInfo<PlantedBug>& test) {
                           return std::string(test.param.name);
                         });

}  // namespace
}  // namespace pagejit
