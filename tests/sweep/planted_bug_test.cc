// Bugs planted in the templates must be found by what the sweeps and `pagejit check` do: proof that
// they can fail. Each bug is one replacement in one template file; an engine renders from the
// changed set, all else is as in the other tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "generator/renderer.h"
#include "runtime/engine/dependencies.h"
#include "tests/sweep/planted_bugs.h"
#include "tests/sweep/test_device.h"

namespace pagejit {
namespace {

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
    csr.queries = QueryLengths::kMany;
    csr.kv_table = KvTable::kCsr;
    csr.causality = Causality::kNone;
    csr.chunked = true;
    KernelSpec contiguous = causal;
    contiguous.kv_table = KvTable::kContiguous;
    contiguous.block_size = 1;
    KernelSpec masked = causal;
    masked.queries = QueryLengths::kMany;
    masked.custom_mask = true;
    KernelSpec shared = causal;
    shared.queries = QueryLengths::kShared;
    shared.group_size = 20;  // more than one tile of 128 rows
    for (const KernelSpec& spec : {causal, window, changed, csr, contiguous, masked, shared}) {
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

  // The same of block-sparse ones.
  std::string find_block_sparse_bug(Engine& bugged) {
    const KernelSpec one = {.head_size = 64, .group_size = 4, .block_sparse = true};
    KernelSpec few = one;
    few.queries = QueryLengths::kFew;
    few.causality = Causality::kCausal;
    const BlockSparseArgs numbers[] = {
        {.local_blocks = 2, .vert_stride = 5, .block_size = 24, .head_sliding_step = 1},
        {.local_blocks = 1, .vert_stride = 3, .block_size = 7, .head_sliding_step = -1},
        {.local_blocks = 1, .vert_stride = 70, .block_size = 2},
    };
    for (const KernelSpec& spec : {one, few}) {
      if (!compiles(bugged, spec)) return "";
      for (const BlockSparseArgs& sparse : numbers) {
        CheckOptions options;
        options.batch.num_kv_heads = 2;
        options.batch.seq_lens = {40, 0, 300, 217, 64};
        if (spec.queries == QueryLengths::kFew) options.batch.query_lens = {3, 2, 1, 37, 4};
        options.batch.block_sparse = sparse;
        const Result<CheckReport> result = run_check(bugged, session(), spec, options);
        if (!result) return result.status().to_string() + report();
        if (!result->passed) return result->sentence;
      }
    }
    return "";
  }

  // The same of custom masks, ranges of positions and the bias between query tokens.
  std::string find_mask_bug(Engine& bugged) {
    KernelSpec causal = make_spec(DataType::kBFloat16, 64, 16, 4);
    causal.queries = QueryLengths::kMany;
    causal.causality = Causality::kCausal;
    KernelSpec masked = causal;
    masked.custom_mask = true;
    masked.causality = Causality::kNone;
    masked.group_size = 3;  // neighbouring rows are of different query tokens
    KernelSpec biased = causal;
    biased.qq_bias = true;
    KernelSpec ranges = causal;
    ranges.bidirectional_ranges = true;
    KernelSpec window = ranges;
    window.queries = QueryLengths::kFew;
    window.causality = Causality::kPerSequence;
    window.window = true;
    for (const KernelSpec& spec : {masked, biased, ranges, window}) {
      if (!compiles(bugged, spec)) return "";
      for (const bool within_window : {false, true}) {
        if (within_window && !spec.window) continue;
        CheckOptions options;
        options.batch.num_kv_heads = 2;
        options.batch.seq_lens = {140, 0, 300, 217, 61};
        options.batch.query_lens = {3, 2, 1, 117, 60};
        options.batch.window_left = 21;
        options.batch.window_right = 5;
        options.batch.ranges_within_window = within_window;
        options.num_splits = 2;
        const Result<CheckReport> result = run_check(bugged, session(), spec, options);
        if (!result) return result.status().to_string() + report();
        if (!result->passed) return result->sentence;
      }
    }
    return find_beside_mask(bugged, masked);
  }

  // The same of kernels of other types, layouts and head sizes.
  std::string find_element_bug(Engine& bugged) {
    KernelSpec fp8 = make_spec(DataType::kFloat8E4m3, 64, 16, 4);
    fp8.out_dtype = DataType::kBFloat16;
    KernelSpec scaled = fp8;  // q is brought into the range of f16
    scaled.q_dtype = DataType::kBFloat16;
    KernelSpec vllm = scaled;
    vllm.kv_layout = KvLayout::kVllm;
    KernelSpec window = make_spec(DataType::kFloat16, 64, 32, 2);
    window.kv_layout = KvLayout::kVllm;
    window.queries = QueryLengths::kFew;
    window.causality = Causality::kCausal;
    window.window = true;
    const KernelSpec large = make_spec(DataType::kBFloat16, 512, 16, 1);
    KernelSpec tokens = scaled;
    tokens.kv_dtype = DataType::kInt8;
    tokens.token_scales = true;
    tokens.out_dtype = DataType::kFloat8E4m3;
    KernelSpec values = make_spec(DataType::kBFloat16, 192, 16, 4);
    values.head_size_v = 128;
    KernelSpec int4 = tokens;
    int4.kv_dtype = DataType::kInt4;
    KernelSpec wide = int4;  // q in shared memory
    wide.head_size = 512;
    wide.group_size = 1;
    for (const KernelSpec& spec : {fp8, scaled, vllm, window, large, tokens, int4, wide, values}) {
      if (!compiles(bugged, spec)) return "";
      for (const float scale : {0.125f, -0.0625f}) {
        CheckOptions options;
        options.batch.num_kv_heads = 3;
        options.batch.seq_lens = {40, 0, 300, 217};
        options.batch.per_head_scales = true;
        options.batch.window_left = 21;
        options.batch.scale = scale;
        options.num_splits = 2;
        const Result<CheckReport> result = run_check(bugged, session(), spec, options);
        if (!result) return result.status().to_string() + report();
        if (!result->passed) return result->sentence;
      }
    }
    return "";
  }

  // The same of kernels whose K and V are f32: decode, with q in registers; vLLM's layout; 128
  // rows, with q in shared memory.
  std::string find_f32_bug(Engine& bugged) {
    const KernelSpec one = make_spec(DataType::kFloat32, 72, 16, 4);
    KernelSpec vllm = one;
    vllm.kv_layout = KvLayout::kVllm;
    KernelSpec shared = make_spec(DataType::kFloat32, 256, 16, 8);
    shared.queries = QueryLengths::kShared;
    for (const KernelSpec& spec : {one, vllm, shared}) {
      if (!compiles(bugged, spec)) return "";
      for (const float scale : {0.125f, -0.0625f}) {
        CheckOptions options;
        options.batch.num_kv_heads = 2;
        options.batch.seq_lens = {40, 0, 300, 217};
        if (spec.queries == QueryLengths::kShared) options.batch.query_lens = {3, 2, 20, 1};
        options.batch.scale = scale;
        options.num_splits = 2;
        const Result<CheckReport> result = run_check(bugged, session(), spec, options);
        if (!result) return result.status().to_string() + report();
        if (!result->passed) return result->sentence;
      }
    }
    return "";
  }

  // The same of kernels whose K rows hold V: one tile of rows per warp, warps with fewer elements
  // of V than others, rows divided among warps, rows that see nothing of a tile's first group,
  // elements of 8 bits.
  std::string find_latent_bug(Engine& bugged) {
    KernelSpec one = make_spec(DataType::kBFloat16, 96, 16, 4);
    one.head_size_v = 80;
    one.latent = true;
    KernelSpec few = one;
    few.group_size = 16;
    few.queries = QueryLengths::kFew;
    few.causality = Causality::kCausal;
    KernelSpec fp8 = few;
    fp8.kv_dtype = DataType::kFloat8E4m3;
    KernelSpec window = few;
    window.queries = QueryLengths::kMany;
    window.group_size = 1;
    window.window = true;
    KernelSpec tall = one;  // two tiles of rows
    tall.group_size = 80;
    KernelSpec lists = one;
    lists.kv_table = KvTable::kPositions;
    for (const KernelSpec& spec : {one, tall, few, fp8, window, lists}) {
      if (!compiles(bugged, spec)) return "";
      for (const LogitRegime logits : {LogitRegime::kNormal, LogitRegime::kMixed}) {
        CheckOptions options;
        options.batch.seq_lens = {33, 0, 300, 217};
        if (spec.queries != QueryLengths::kOne) options.batch.query_lens = {4, 1, 70, 20};
        options.batch.window_left = 21;
        options.batch.logits = logits;
        options.num_splits = 2;
        const Result<CheckReport> result = run_check(bugged, session(), spec, options);
        if (!result) return result.status().to_string() + report();
        if (!result->passed) return result->sentence;
      }
    }
    return find_in_later_launches(*bugged.prepare(tall));
  }

  // The same of a kernel for programmatic dependent launch.
  std::string find_pdl_bug(Engine& bugged) {
    KernelSpec spec = make_spec(DataType::kBFloat16, 64, 16, 4);
    spec.pdl = true;
    if (!compiles(bugged, spec)) return "";
    const Result<CheckReport> result = run_check(bugged, session(), spec, CheckOptions{});
    if (!result) return result.status().to_string() + report();
    return result->passed ? "" : result->sentence;
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
    CheckOptions many_splits = plain;  // more than are fetched at once
    many_splits.batch.seq_lens = {1600};
    many_splits.num_splits = 25;
    for (const KernelSpec& spec :
         {make_spec(DataType::kFloat16, 72, 16, 4), make_spec(DataType::kBFloat16, 128, 32, 40)}) {
      if (!compiles(bugged, spec)) return "";
      for (const CheckOptions* options : {&plain, &padded, &low, &huge, &many_splits}) {
        const Result<CheckReport> result = run_check(bugged, session(), spec, *options);
        if (!result) return result.status().to_string() + report();
        if (!result->passed) return result->sentence;
      }
      const std::string second = find_in_later_launches(*bugged.prepare(spec));
      if (!second.empty()) return second;
    }
    return "";
  }

 private:
  // What a launch reads behind its custom mask, with whose last byte the allocation ends; the mask
  // begins behind a byte of another.
  std::string find_beside_mask(Engine& bugged, const KernelSpec& spec) {
    BatchOptions options;
    options.spec = spec;
    options.seq_lens = {43};
    options.query_lens = {31};  // 167 bytes
    AttentionBatch batch = make_batch(options);
    batch.custom_mask.back() = batch.custom_mask.front();
    std::rotate(batch.custom_mask.begin(), batch.custom_mask.end() - 1, batch.custom_mask.end());
    batch.custom_mask_indptr = {1, static_cast<int32_t>(batch.custom_mask.size())};
    Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, true);
    EXPECT_TRUE(device_batch.is_ok());
    AttentionArgs args = device_batch->args();
    args.num_splits = 1;
    const Kernel kernel = *bugged.prepare(spec);
    Status status = kernel.launch(args, nullptr);
    if (status) status = session().synchronize();
    if (!status) return status.to_string() + report();
    const Result<AttentionResults> results = device_batch->download();
    if (!results) return results.status().to_string();
    const CheckReport result = compare_results(batch, compute_reference(batch), *results, true, 1);
    return result.passed ? "" : result.sentence;
  }

  // Launches over a workspace that others before have used, each with splits that finish in another
  // order: the results must be right, and the same to the bit.
  std::string find_in_later_launches(const Kernel& kernel) {
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
    const PagejitEmulatorOptions usual = emulator().options();
    AttentionResults first;
    std::string found;
    for (uint64_t launch = 0; launch < 5 && found.empty(); ++launch) {
      PagejitEmulatorOptions schedule = usual;
      if (launch > 0) schedule.order = kPagejitEmulatorRandom;
      if (launch > 0) schedule.resident = 3;
      schedule.seed = launch;
      emulator().configure(schedule);
      Status status = device_batch->reset_results();
      if (status) status = kernel.launch(args, nullptr);
      if (status) status = session().synchronize();
      if (!status) return status.to_string() + report();
      const Result<AttentionResults> results = device_batch->download();
      if (!results) return results.status().to_string();
      const CheckReport result = compare_results(batch, reference, *results, true, 3);
      if (!result.passed) found = result.sentence;
      if (launch == 0) first = *results;
      const bool same_lse =
          std::equal(first.lse.begin(), first.lse.end(), results->lse.begin(), results->lse.end(),
                     [](float a, float b) {
                       return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
                     });
      if (found.empty() && !(results->out == first.out && same_lse)) {
        found = "launch " + std::to_string(launch) + " gives other bits than the first";
      }
    }
    emulator().configure(usual);
    return found;
  }

  std::string changed_;
};

TEST_F(PlantedBugTest, NothingIsFoundInTheRealTemplates) {
  for (HostBuild build : {HostBuild::kPlain, HostBuild::kChecked}) {
    const std::shared_ptr<Engine> engine = make_engine(nullptr, build);
    EXPECT_EQ(find_bug(*engine), "");
    EXPECT_EQ(find_ragged_bug(*engine), "");
    EXPECT_EQ(find_element_bug(*engine), "");
    EXPECT_EQ(find_f32_bug(*engine), "");
    EXPECT_EQ(find_pdl_bug(*engine), "");
    EXPECT_EQ(find_block_sparse_bug(*engine), "");
    EXPECT_EQ(find_mask_bug(*engine), "");
    EXPECT_EQ(find_latent_bug(*engine), "");
  }
}

class EachPlantedBugTest : public PlantedBugTest, public testing::WithParamInterface<PlantedBug> {};

TEST_P(EachPlantedBugTest, IsFound) {
  const PlantedBug& bug = GetParam();
  const HostBuild build = bug.only_checked ? HostBuild::kChecked : HostBuild::kPlain;
  const std::shared_ptr<Engine> engine = make_engine(&bug, build);
  ASSERT_NE(engine, nullptr);
  const std::string found = bug.kernels == PlantedBug::kRagged      ? find_ragged_bug(*engine)
                            : bug.kernels == PlantedBug::kElements  ? find_element_bug(*engine)
                            : bug.kernels == PlantedBug::kF32Caches ? find_f32_bug(*engine)
                            : bug.kernels == PlantedBug::kPdl       ? find_pdl_bug(*engine)
                            : bug.kernels == PlantedBug::kMasks     ? find_mask_bug(*engine)
                            : bug.kernels == PlantedBug::kLatent    ? find_latent_bug(*engine)
                            : bug.kernels == PlantedBug::kBlockSparse
                                ? find_block_sparse_bug(*engine)
                                : find_bug(*engine);
  EXPECT_NE(found, "");
  RecordProperty("found", found);
}

INSTANTIATE_TEST_SUITE_P(Bugs, EachPlantedBugTest, testing::ValuesIn(planted_bugs()),
                         [](const testing::TestParamInfo<PlantedBug>& test) {
                           return std::string(test.param.name);
                         });

}  // namespace
}  // namespace pagejit
