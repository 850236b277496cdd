// Kernels for programmatic dependent launch: the same bits as those without it, alone, over one
// workspace without a pause, in a captured graph, and in a chain where each reads what the one
// before has written. On the emulator a kernel that would touch memory too early fails.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/sweep/cache_write_batch.h"
#include "tests/sweep/family_test.h"
#include "tests/sweep/merge_batch.h"
#include "tests/sweep/mla_cache_batch.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;

KernelSpec with_pdl(KernelSpec spec) {
  spec.pdl = true;
  return spec;
}

// One batch, and its kernel without and with.
struct Load {
  Kernel kernels[2];
  AttentionBatch batch;
  DeviceBatch device_batch;
};

class PdlTest : public FamilyTest {
 protected:
  void SetUp() override {
    FamilyTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const Result<Target> target = engine().target_of_device(0);
    ASSERT_TRUE(target.is_ok()) << target.status().to_string();
    if (target->sm < 90) GTEST_SKIP() << target->to_string() << " has no such launches";
    const Status status = supports(KernelSpec{.pdl = true}, *target);
    ASSERT_TRUE(status.is_ok()) << status.to_string();
  }

  std::unique_ptr<Load> make_load(const KernelSpec& spec, const std::vector<int>& seq_lens,
                                  const std::vector<int>& query_lens = {}) {
    BatchOptions options;
    options.spec = spec;
    options.num_kv_heads = 2;
    options.seq_lens = seq_lens;
    options.query_lens = query_lens;
    options.seed = ++seed_;
    AttentionBatch batch = make_batch(options);
    Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, true);
    EXPECT_TRUE(device_batch.is_ok()) << device_batch.status().to_string();
    return std::make_unique<Load>(Load{{prepare(spec), prepare(with_pdl(spec))},
                                       std::move(batch),
                                       std::move(device_batch).value()});
  }

  std::vector<std::unique_ptr<Load>> make_loads() {
    std::vector<std::unique_ptr<Load>> loads;
    loads.push_back(make_load(make_spec(kBF16, 64, 16, 4), {300, 0, 17}));
    loads.push_back(make_load(make_spec(kF16, 128, 5, 20), {140, 33}));
    KernelSpec fp8 = make_spec(DataType::kFloat8E4m3, 64, 16, 4);
    fp8.out_dtype = kBF16;
    loads.push_back(make_load(fp8, {100, 250}));
    KernelSpec few = make_spec(kBF16, 64, 16, 4);
    few.queries = QueryLengths::kFew;
    few.causality = Causality::kCausal;
    few.sinks = few.alibi = true;
    loads.push_back(make_load(few, {200, 31, 0}, {3, 31, 0}));
    KernelSpec many = make_spec(kF16, 80, 16, 2);
    many.queries = QueryLengths::kMany;
    many.causality = Causality::kCausal;
    loads.push_back(make_load(many, {150, 90}, {150, 7}));
    return loads;
  }

  // Enough for each load.
  Workspace make_workspace(const std::vector<std::unique_ptr<Load>>& loads) {
    size_t bytes = 0;
    for (const auto& load : loads) {
      bytes = std::max(bytes, load->kernels[0].workspace_bytes(3, 2, 1024, kMostSplits));
    }
    Result<Workspace> workspace = Workspace::create(session(), loads[0]->kernels[0], bytes);
    EXPECT_TRUE(workspace.is_ok()) << workspace.status().to_string();
    return std::move(workspace).value();
  }

  static AttentionArgs args_of(const Load& load, const Workspace& workspace, int num_splits) {
    AttentionArgs args = load.device_batch.args();
    args.num_splits = num_splits;
    workspace.put_into(args);
    return args;
  }

  // The bytes of out and lse, once all launches are over.
  std::string results(const Load& load) {
    const Status status = session().synchronize();
    EXPECT_TRUE(status.is_ok()) << status.to_string() << report();
    const Result<AttentionResults> downloaded = load.device_batch.download();
    EXPECT_TRUE(downloaded.is_ok()) << downloaded.status().to_string();
    if (!downloaded) return "";
    std::string bytes(reinterpret_cast<const char*>(downloaded->out.address()),
                      downloaded->out.size_bytes());
    bytes.append(reinterpret_cast<const char*>(downloaded->lse.data()),
                 downloaded->lse.size() * sizeof(float));
    return bytes;
  }

  std::string run(Load& load, const Workspace& workspace, int num_splits, bool pdl) {
    Status status = load.device_batch.reset_results();
    if (status) {
      status = load.kernels[pdl ? 1 : 0].launch(args_of(load, workspace, num_splits), nullptr);
    }
    EXPECT_TRUE(status.is_ok()) << status.to_string() << report();
    return results(load);
  }

  static constexpr int kMostSplits = 5;

 private:
  uint64_t seed_ = 0;
};

TEST_F(PdlTest, EachKernelGivesTheBitsOfThePlainOne) {
  const auto loads = make_loads();
  const Workspace workspace = make_workspace(loads);
  for (const auto& load : loads) {
    for (const int num_splits : {1, 3, kMostSplits}) {
      const std::string plain = run(*load, workspace, num_splits, false);
      EXPECT_TRUE(run(*load, workspace, num_splits, true) == plain)
          << canonical_text(load->kernels[1].spec()) << ", " << num_splits << " splits";
    }
  }
}

TEST_F(PdlTest, LaunchesWithoutAPauseShareAWorkspace) {
  const auto loads = make_loads();
  const Workspace workspace = make_workspace(loads);
  std::vector<std::string> plain;
  for (const auto& load : loads) plain.push_back(run(*load, workspace, 3, false));
  for (const auto& load : loads) ASSERT_TRUE(load->device_batch.reset_results().is_ok());
  // The counters and the partial results of each launch lie where the one before has its own.
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& load : loads) {
      const Status status = load->kernels[1].launch(args_of(*load, workspace, 3), nullptr);
      ASSERT_TRUE(status.is_ok()) << status.to_string() << report();
    }
  }
  for (size_t i = 0; i < loads.size(); ++i) EXPECT_TRUE(results(*loads[i]) == plain[i]) << i;
}

TEST_F(PdlTest, CapturedGraphsGiveTheSameBits) {
  const auto load = make_load(make_spec(kBF16, 64, 16, 4), {300, 0, 17});
  Result<Workspace> workspace = Workspace::create(session(), load->kernels[0],
                                                  load->kernels[0].workspace_bytes(3, 2, 300, 3));
  ASSERT_TRUE(workspace.is_ok()) << workspace.status().to_string();
  const std::string plain = run(*load, *workspace, 3, false);
  CapturedLaunch captured(session().driver(), load->kernels[1], args_of(*load, *workspace, 3));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(load->device_batch.reset_results().is_ok());
    ASSERT_TRUE(session().synchronize().is_ok());
    ASSERT_TRUE(captured.replay()) << report();
    EXPECT_TRUE(results(*load) == plain) << i;
  }
}

// Attention in two launches, then the merge of their results, again and again.
TEST_F(PdlTest, AChainOfKernelsGivesTheSameBits) {
  const auto first = make_load(make_spec(kBF16, 64, 16, 4), {300, 5, 17});
  const auto second = make_load(make_spec(kBF16, 64, 16, 4), {40, 211, 1});
  const AttentionArgs& a = first->device_batch.args();
  const AttentionArgs& b = second->device_batch.args();
  const int num_heads = a.num_kv_heads * 4;
  const MergeStatesKernel merges[] = {
      prepare_family(MergeStatesSpec{.head_size = 64, .listed = true}),
      prepare_family(MergeStatesSpec{.head_size = 64, .listed = true, .pdl = true})};
  const MergeState states[] = {{a.out, a.lse}, {b.out, b.lse}};
  MergeStatesArgs merge;
  merge.states = states;
  merge.num_states = 2;
  merge.num_tokens = a.num_seqs;
  merge.num_heads = num_heads;
  merge.v_stride_token = a.out_stride_token;
  merge.v_stride_head = a.out_stride_head;
  merge.lse_stride_token = num_heads;
  merge.lse_stride_head = 1;
  merge.out_stride_token = num_heads * 64;
  merge.out_stride_head = 64;
  std::vector<uint16_t> merged[2];
  for (const int pdl : {0, 1}) {
    DeviceBuffer out = upload(std::vector<uint16_t>(static_cast<size_t>(3 * num_heads * 64)));
    merge.out = out.data();
    for (int round = 0; round < 10; ++round) {
      AttentionArgs args = a;
      args.num_splits = 1;
      ASSERT_TRUE(first->kernels[pdl].launch(args, nullptr)) << report();
      args = b;
      args.num_splits = 1;
      ASSERT_TRUE(second->kernels[pdl].launch(args, nullptr)) << report();
      const Status status = merges[pdl].launch(merge, nullptr);
      ASSERT_TRUE(status) << status.to_string() << report();
    }
    ASSERT_TRUE(session().synchronize().is_ok()) << report();
    merged[pdl] = download_all<uint16_t>(out);
  }
  EXPECT_EQ(merged[0], merged[1]);
  EXPECT_NE(merged[0], std::vector<uint16_t>(merged[0].size())) << "something was written";
}

TEST_F(PdlTest, MergesAndCacheWritesAreRight) {
  EXPECT_EQ(check_merge(engine(), session(), {.spec = {.head_size = 72, .pdl = true}}), "")
      << report();
  for (const bool debug : {false, true}) {
    CacheWriteSpec spec{.kv_dtype = DataType::kFloat8E4m3,
                        .scale = KvScale::kTokenHead,
                        .rope = RopeStyle::kNeox,
                        .rotary_dim = 64,
                        .debug = debug,
                        .pdl = true};
    EXPECT_EQ(check_cache_write(engine(), session(), {.spec = spec, .num_q_heads = 3}), "")
        << report();
    const MlaCacheWriteSpec latent{
        .format = MlaFormat::kDsMla, .rope = RopeStyle::kNeox, .debug = debug, .pdl = true};
    EXPECT_EQ(check_mla_cache_write(engine(), session(), {.spec = latent, .num_q_heads = 3}), "")
        << report();
  }
}

}  // namespace
}  // namespace pagejit
