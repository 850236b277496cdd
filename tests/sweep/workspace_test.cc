// The workspace's contract (templates/shared/attention_workspace.h): counters start at zero and
// reset themselves, lie where no batch ever puts partials, and are not touched by sequences that
// are not split; one workspace serves one stream at a time. Kept, and broken on purpose; that
// splits are merged in their order whatever order they finish in, planted_bug_test shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "templates/shared/attention_params.h"
#include "tests/sweep/error_summary.h"
#include "tests/sweep/test_device.h"
#include "tools/reference/random.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr size_t kPartialsOffset = pagejit_shared::kPartialsOffset;

// One kernel and batch of the mix that shares a workspace.
struct Load {
  Kernel kernel;
  AttentionBatch batch;
  ReferenceResults reference;
  DeviceBatch device_batch;
};

class WorkspaceTest : public DeviceTest {
 protected:
  std::unique_ptr<Load> make_load(const KernelSpec& spec, int num_kv_heads,
                                  const std::vector<int>& seq_lens) {
    BatchOptions options;
    options.spec = spec;
    options.num_kv_heads = num_kv_heads;
    options.seq_lens = seq_lens;
    options.seed = ++seed_;
    AttentionBatch batch = make_batch(options);
    ReferenceResults reference = compute_reference(batch);
    Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, true);
    EXPECT_TRUE(device_batch.is_ok()) << device_batch.status().to_string();
    return std::make_unique<Load>(Load{prepare(spec), std::move(batch), std::move(reference),
                                       std::move(device_batch).value()});
  }

  size_t bytes_of(const Load& load, int num_splits) {
    const AttentionArgs& args = load.device_batch.args();
    return load.kernel.workspace_bytes(
        args.num_seqs, args.num_kv_heads,
        int64_t{args.max_blocks_per_seq} * load.batch.options.spec.block_size, num_splits);
  }

  Workspace make_workspace(const Load& load, size_t bytes) {
    Result<Workspace> workspace = Workspace::create(session(), load.kernel, bytes);
    EXPECT_TRUE(workspace.is_ok()) << workspace.status().to_string();
    return std::move(workspace).value();
  }

  CheckReport run(Load& load, const Workspace& workspace, int num_splits) {
    AttentionArgs args = load.device_batch.args();
    args.num_splits = num_splits;
    workspace.put_into(args);
    return launch_and_compare(load.kernel, load.device_batch, args, load.batch, load.reference);
  }

  // Header and counters.
  std::vector<uint32_t> fixed_part(Workspace& workspace) {
    std::vector<uint32_t> words(kPartialsOffset / 4);
    EXPECT_TRUE(workspace.buffer().download(0, words.data(), kPartialsOffset).is_ok());
    return words;
  }

 private:
  uint64_t seed_ = 0;
};

TEST_F(WorkspaceTest, AThousandLaunchesOfChangingShapesShareOne) {
  std::vector<std::unique_ptr<Load>> loads;
  loads.push_back(make_load(make_spec(kBF16, 16, 16, 1), 1, {200}));
  loads.push_back(make_load(make_spec(kF16, 16, 5, 4), 2, {70, 0, 130}));
  loads.push_back(make_load(make_spec(kBF16, 64, 16, 8), 1, {1, 150}));
  loads.push_back(make_load(make_spec(kF16, 40, 8, 20), 1, {140}));
  loads.push_back(make_load(make_spec(kBF16, 24, 1, 2), 3, {3, 65, 0, 66, 17}));
  loads.push_back(make_load(make_spec(kF16, 128, 32, 3), 1, {97, 33}));
  constexpr int kSplits[] = {1, 2, 3, 5, 9};
  size_t bytes = 0;
  for (const auto& load : loads) {
    for (int num_splits : kSplits) bytes = std::max(bytes, bytes_of(*load, num_splits));
  }
  Workspace workspace = make_workspace(*loads[0], bytes);
  const std::vector<uint32_t> before = fixed_part(workspace);
  SplitMix64 rng(11);
  for (int i = 0; i < 1000; ++i) {
    Load& load = *loads[static_cast<size_t>(rng.below(static_cast<int64_t>(loads.size())))];
    const int num_splits = kSplits[rng.below(std::size(kSplits))];
    const CheckReport result = run(load, workspace, num_splits);
    ASSERT_TRUE(result.passed) << "launch " << i << ": " << result.sentence;
  }
  EXPECT_EQ(fixed_part(workspace), before) << "the counters must be zero again";
}

TEST_F(WorkspaceTest, NothingBeyondWorkspaceBytesIsWritten) {
  const auto load = make_load(make_spec(kBF16, 80, 16, 17), 2, {170, 0, 300});
  constexpr size_t kTail = 4096;
  for (int num_splits : {2, 7}) {
    const size_t bytes = bytes_of(*load, num_splits);
    Workspace workspace = make_workspace(*load, bytes + kTail);
    const CheckReport result = run(*load, workspace, num_splits);
    expect_passed(result);
    // Workspace::create() filled it with 0xff.
    std::vector<uint8_t> tail(kTail);
    ASSERT_TRUE(workspace.buffer().download(bytes, tail.data(), kTail).is_ok());
    EXPECT_EQ(std::count(tail.begin(), tail.end(), 0xff), static_cast<ptrdiff_t>(kTail));
    // With two splits of 300 tokens the last partial, the last bytes, was written, so the tail lies
    // where this looks for it.
    std::vector<uint8_t> last(64);
    ASSERT_TRUE(workspace.buffer().download(bytes - last.size(), last.data(), last.size()).is_ok());
    if (num_splits == 2) {
      EXPECT_LT(std::count(last.begin(), last.end(), 0xff), static_cast<ptrdiff_t>(last.size()));
    }
  }
}

TEST_F(WorkspaceTest, SequencesThatAreNotSplitTouchNoCounter) {
  // Lengths 0 and up to one tile: of seven splits one has work, or none.
  const auto load = make_load(make_spec(kF16, 64, 16, 4), 2, {0, 1, 15, 16});
  Workspace workspace = make_workspace(*load, bytes_of(*load, 7));
  std::vector<uint32_t> words = fixed_part(workspace);
  std::fill(words.begin() + pagejit_shared::kCountersOffset / 4, words.end(), 0xdeadbeefu);
  ASSERT_TRUE(workspace.buffer().upload(0, words.data(), kPartialsOffset).is_ok());
  const CheckReport result = run(*load, workspace, 7);
  expect_passed(result);
  EXPECT_EQ(fixed_part(workspace), words);
}

TEST_F(WorkspaceTest, LaunchesThatAreNotSplitNeedNone) {
  const auto load = make_load(make_spec(kBF16, 64, 16, 4), 2, {100, 0});
  EXPECT_EQ(bytes_of(*load, 1), 0u);
  const CheckReport result = run(*load, Workspace(), 1);
  expect_passed(result);
}

TEST_F(WorkspaceTest, MissingSmallOrMisalignedOnesAreRefused) {
  const auto load = make_load(make_spec(kBF16, 64, 16, 4), 2, {100, 40});
  const size_t bytes = bytes_of(*load, 3);
  Workspace workspace = make_workspace(*load, bytes + 256);
  AttentionArgs args = load->device_batch.args();
  args.num_splits = 3;
  EXPECT_EQ(load->kernel.launch(args, nullptr).code(), StatusCode::kWorkspace);
  workspace.put_into(args);
  args.workspace_bytes = bytes - 1;
  EXPECT_EQ(load->kernel.launch(args, nullptr).code(), StatusCode::kWorkspace);
  args.workspace_bytes = bytes;
  args.workspace = workspace.buffer().data<char>() + 128;
  EXPECT_EQ(load->kernel.launch(args, nullptr).code(), StatusCode::kWorkspace);
  // None of the refused launches ran.
  const Result<AttentionResults> results = load->device_batch.download();
  ASSERT_TRUE(results.is_ok());
  EXPECT_EQ(results->out, load->batch.out);
}

// Broken on purpose: this is why workspace_init is needed. The result must not look right.
TEST_F(WorkspaceTest, ACounterThatDoesNotStartAtZeroGivesAWrongResult) {
  const auto load = make_load(make_spec(kF16, 64, 16, 4), 1, {200});
  for (uint32_t start : {1u, 2u, 77u}) {
    Workspace workspace = make_workspace(*load, bytes_of(*load, 3));
    ASSERT_TRUE(
        workspace.buffer().upload(pagejit_shared::kCountersOffset, &start, sizeof start).is_ok());
    const CheckReport result = run(*load, workspace, 3);
    EXPECT_FALSE(result.passed) << "counter " << start << ": " << result.sentence;
  }
}

// Broken on purpose: one workspace serves one stream at a time. When a launch of another stream
// starts, the first split of this one has been counted in; the other's last split but one takes
// itself for the last.
TEST_F(WorkspaceTest, ALaunchOfAnotherStreamBetweenTwoSplitsGetsAWrongResult) {
  const auto load = make_load(make_spec(kF16, 64, 16, 4), 1, {200});
  const auto other = make_load(make_spec(kF16, 64, 16, 4), 1, {170});
  Workspace workspace = make_workspace(*load, bytes_of(*load, 3));
  ASSERT_TRUE(run(*load, workspace, 3).passed);
  const uint32_t arrived = 1;
  ASSERT_TRUE(
      workspace.buffer().upload(pagejit_shared::kCountersOffset, &arrived, sizeof arrived).is_ok());
  EXPECT_FALSE(run(*other, workspace, 3).passed);
  // With a workspace of its own it is right.
  Workspace own = make_workspace(*other, bytes_of(*other, 3));
  EXPECT_TRUE(run(*other, own, 3).passed);
}

// As a launch leaves them that was aborted between its splits.
TEST_F(WorkspaceTest, CountersLeftHalfWayByAnAbortedLaunchAreRepairedByInit) {
  const auto load = make_load(make_spec(kF16, 64, 16, 4), 1, {200});
  const size_t bytes = bytes_of(*load, 3);
  Workspace workspace = make_workspace(*load, bytes);
  const uint32_t left = 2;
  ASSERT_TRUE(
      workspace.buffer().upload(pagejit_shared::kCountersOffset, &left, sizeof left).is_ok());
  EXPECT_FALSE(run(*load, workspace, 3).passed);
  ASSERT_TRUE(load->kernel.workspace_init(workspace.buffer().data(), bytes, nullptr).is_ok());
  EXPECT_TRUE(run(*load, workspace, 3).passed);
}

class DebugKernelTest : public WorkspaceTest {
 protected:
  // What a debug kernel says of a launch that must succeed as a call.
  Status run_debug(Load& load, Workspace& workspace, int num_splits) {
    AttentionArgs args = load.device_batch.args();
    args.num_splits = num_splits;
    workspace.put_into(args);
    EXPECT_TRUE(load.device_batch.reset_results().is_ok());
    const Status launched = load.kernel.launch(args, nullptr);
    EXPECT_TRUE(launched.is_ok()) << launched.to_string() << report();
    return load.kernel.read_debug_report(workspace.buffer().data(), nullptr);
  }

  static void expect_report(const Status& status, const std::vector<std::string>& parts) {
    EXPECT_EQ(status.code(), StatusCode::kDeviceCheckFailed) << status.to_string();
    for (const std::string& part : parts) {
      EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    }
  }
};

TEST_F(DebugKernelTest, GoodLaunchesReportNothingAndAreRight) {
  const auto load = make_load(make_spec(kBF16, 64, 16, 4, true), 2, {100, 0, 33});
  for (int num_splits : {1, 3}) {
    Workspace workspace = make_workspace(*load, bytes_of(*load, num_splits));
    const CheckReport result = run(*load, workspace, num_splits);
    expect_passed(result);
    const Status status = load->kernel.read_debug_report(workspace.buffer().data(), nullptr);
    EXPECT_TRUE(status.is_ok()) << status.to_string();
  }
}

TEST_F(DebugKernelTest, ABadBlockIdIsReportedOnceWithItsPlace) {
  const auto load = make_load(make_spec(kBF16, 64, 16, 4, true), 2, {100, 0, 133});
  Workspace workspace = make_workspace(*load, bytes_of(*load, 3));
  const std::vector<int32_t> good = load->batch.block_table;
  for (int32_t bad : {-1, static_cast<int32_t>(load->batch.num_blocks), 0x7fffffff}) {
    std::vector<int32_t> table = good;
    table[static_cast<size_t>(2 * load->batch.block_table_stride + 7)] = bad;
    ASSERT_TRUE(load->device_batch.set_block_table(table).is_ok());
    expect_report(run_debug(*load, workspace, 3),
                  {"sequence 2", "entry 7", "is " + std::to_string(bad)});
    // Reading clears it.
    EXPECT_TRUE(load->kernel.read_debug_report(workspace.buffer().data(), nullptr).is_ok());
  }
  ASSERT_TRUE(load->device_batch.set_block_table(good).is_ok());
  EXPECT_TRUE(run_debug(*load, workspace, 3).is_ok());
  EXPECT_TRUE(run(*load, workspace, 3).passed) << "the kernel must work again after a report";
}

TEST_F(DebugKernelTest, ABadLengthIsReported) {
  const auto load = make_load(make_spec(kF16, 40, 8, 1, true), 1, {30, 20});
  Workspace workspace = make_workspace(*load, bytes_of(*load, 2));
  const int32_t capacity = load->batch.max_blocks_per_seq * 8;
  for (int32_t bad : {-1, capacity + 1, 0x7fffffff}) {
    ASSERT_TRUE(load->device_batch.set_seq_lens({30, bad}).is_ok());
    expect_report(run_debug(*load, workspace, 2),
                  {"sequence 1", "seq_len is " + std::to_string(bad)});
  }
}

TEST_F(DebugKernelTest, AWorkspaceThatWasNotInitialisedIsReported) {
  const auto load = make_load(make_spec(kF16, 64, 16, 2, true), 1, {100});
  for (int num_splits : {1, 3}) {
    Workspace workspace = make_workspace(*load, bytes_of(*load, num_splits));
    const std::vector<uint8_t> zeros(kPartialsOffset, 0);
    ASSERT_TRUE(workspace.buffer().upload(0, zeros.data(), zeros.size()).is_ok());
    expect_report(run_debug(*load, workspace, num_splits), {"first word is 0x0", "workspace_init"});
  }
}

TEST_F(DebugKernelTest, ACounterThatCannotBeIsReported) {
  const auto load = make_load(make_spec(kF16, 64, 16, 40, true), 1, {200});
  Workspace workspace = make_workspace(*load, bytes_of(*load, 3));
  const uint32_t bad = 1000;
  ASSERT_TRUE(
      workspace.buffer().upload(pagejit_shared::kCountersOffset + 4, &bad, sizeof bad).is_ok());
  expect_report(run_debug(*load, workspace, 3), {"merge unit 1", "is 1000"});
}

}  // namespace
}  // namespace pagejit
