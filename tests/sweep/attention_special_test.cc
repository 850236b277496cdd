// What the covering array cannot hold: caches beyond 2^31 elements, captured graphs, split counts
// against each other, lengths that the caller's bound understates, scales of either sign.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "generator/planner.h"
#include "tests/sweep/error_summary.h"
#include "tests/sweep/test_device.h"
#include "tools/reference/random.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;

class AttentionSpecialTest : public DeviceTest {
 protected:
  // Enough for any launch of `args` with its num_splits.
  Workspace make_workspace(const Kernel& kernel, const AttentionArgs& args) {
    const int64_t max_seq_len = int64_t{args.max_blocks_per_seq} * kernel.spec().block_size;
    Result<Workspace> workspace = Workspace::create(
        session(), kernel,
        kernel.workspace_bytes(args.num_seqs, args.num_kv_heads, max_seq_len, args.num_splits));
    EXPECT_TRUE(workspace.is_ok()) << workspace.status().to_string();
    return workspace ? std::move(workspace).value() : Workspace();
  }
  DeviceBatch upload(const AttentionBatch& batch) {
    Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, true);
    EXPECT_TRUE(device_batch.is_ok()) << device_batch.status().to_string();
    return std::move(device_batch).value();
  }
};

// Two times as many splits as a CTA fetches at once, and three more.
TEST_F(AttentionSpecialTest, MoreSplitsThanAreFetchedAtOnce) {
  for (const KernelSpec& spec : {make_spec(kBF16, 16, 16, 4), make_spec(kF16, 128, 16, 8)}) {
    const Kernel kernel = prepare(spec);
    ASSERT_TRUE(kernel);
    const Result<KernelConfig> planned = plan(spec, kernel.info().target);
    ASSERT_TRUE(planned.is_ok());
    const int num_splits = 2 * pagejit_shared::splits_at_once(planned->attention) + 3;
    CheckOptions options;
    options.batch.num_kv_heads = 2;
    options.batch.seq_lens = {num_splits * planned->tile_tokens() - 5, 100};
    options.num_splits = num_splits;
    expect_passes(spec, options);
  }
}

// A block begins at every 2^30th element and some more, so block 2 lies beyond 2^31 elements and
// block 4 beyond 2^32.
TEST_F(AttentionSpecialTest, CachesBeyond32BitOffsets) {
  for (CacheLayout layout : {CacheLayout::kInterleaved, CacheLayout::kPadded}) {
    const KernelSpec spec = make_spec(kBF16, 64, 16, 4);
    const Kernel kernel = prepare(spec);
    ASSERT_TRUE(kernel);
    BatchOptions options;
    options.spec = spec;
    options.num_kv_heads = 2;
    options.seq_lens = {33, 40};
    options.layout = layout;
    options.device_block_stride = (int64_t{1} << 30) + 8;
    const AttentionBatch batch = make_batch(options);
    ASSERT_GE(batch.num_blocks, 9);
    const int32_t* table = batch.block_table.data();
    const int32_t last = *std::max_element(table, table + 3);
    ASSERT_GT(last * options.device_block_stride, int64_t{1} << 31);
    Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, true);
    if (lacks_memory(device_batch.status())) {
      GTEST_SKIP() << "this GPU has too little memory: " << device_batch.status().message();
    }
    ASSERT_TRUE(device_batch.is_ok()) << device_batch.status().to_string();
    AttentionArgs args = device_batch->args();
    args.num_splits = 2;
    const Workspace workspace = make_workspace(kernel, args);
    workspace.put_into(args);
    const CheckReport result =
        launch_and_compare(kernel, *device_batch, args, batch, compute_reference(batch));
    expect_passed(result, std::string(cache_layout_name(layout)));
  }
}

// One captured launch serves changing lengths, as an engine replays its decode step.
TEST_F(AttentionSpecialTest, OneCapturedGraphServesChangingLengths) {
  for (int num_splits : {0, 1, 3}) {
    const KernelSpec spec = make_spec(kF16, 80, 16, 8);
    const Kernel kernel = prepare(spec);
    ASSERT_TRUE(kernel);
    BatchOptions options;
    options.spec = spec;
    options.num_kv_heads = 2;
    options.seq_lens = {700, 300, 90};
    const AttentionBatch batch = make_batch(options);
    DeviceBatch device_batch = upload(batch);
    AttentionArgs args = device_batch.args();
    args.num_splits = num_splits;
    const Workspace workspace = make_workspace(kernel, args);
    workspace.put_into(args);

    CapturedLaunch captured(session().driver(), kernel, args);
    // Nothing may have run during the capture.
    Result<AttentionResults> results = device_batch.download();
    ASSERT_TRUE(results.is_ok());
    EXPECT_EQ(results->out, batch.out);

    const std::vector<std::vector<int>> replays = {{700, 300, 90}, {1, 0, 90},     {0, 0, 0},
                                                   {699, 16, 17},  {256, 257, 31}, {700, 300, 90}};
    for (const std::vector<int>& lens : replays) {
      const Result<AttentionBatch> now = shorten(batch, lens);
      ASSERT_TRUE(now.is_ok());
      ASSERT_TRUE(device_batch.set_seq_lens(now->seq_lens).is_ok());
      ASSERT_TRUE(device_batch.reset_results().is_ok());
      ASSERT_TRUE(captured.replay()) << report();
      results = device_batch.download();
      ASSERT_TRUE(results.is_ok());
      const CheckReport result =
          compare_results(*now, compute_reference(*now), *results, true, num_splits);
      expect_passed(result);
    }
  }
}

TEST_F(AttentionSpecialTest, SplitCountsAgreeAndRepeatBitForBit) {
  for (DataType type : {kF16, kBF16}) {
    const KernelSpec spec = make_spec(type, 128, 16, 20);  // two merge units, the second not full
    const Kernel kernel = prepare(spec);
    ASSERT_TRUE(kernel);
    BatchOptions options;
    options.spec = spec;
    options.seq_lens = {1030, 64, 65, 1, 0};
    const AttentionBatch batch = make_batch(options);
    const ReferenceResults reference = compute_reference(batch);
    DeviceBatch device_batch = upload(batch);
    ElementBuffer first;
    for (int num_splits : {1, 2, 3, 5, 8, 16, 17, 33}) {
      AttentionArgs args = device_batch.args();
      args.num_splits = num_splits;
      const Workspace workspace = make_workspace(kernel, args);
      workspace.put_into(args);
      const CheckReport result = launch_and_compare(kernel, device_batch, args, batch, reference);
      expect_passed(result);
      const Result<AttentionResults> once = device_batch.download();
      launch_and_compare(kernel, device_batch, args, batch, reference);
      const Result<AttentionResults> again = device_batch.download();
      ASSERT_TRUE(once.is_ok() && again.is_ok());
      EXPECT_EQ(once->out, again->out) << num_splits << " splits";
      EXPECT_EQ(0, std::memcmp(once->lse.data(), again->lse.data(), once->lse.size() * 4));

      // Two results differ by what their two roundings of P and of the result allow.
      if (first.size() == 0) first = once->out;
      for (int seq = 0; seq < batch.num_seqs; ++seq) {
        for (int head = 0; head < batch.num_heads; ++head) {
          const double allowed =
              2 * reference.rounding[static_cast<size_t>(seq * batch.num_heads + head)];
          const int64_t row = batch.out_index(seq, head);
          for (int i = 0; i < spec.head_size; ++i) {
            const double a = first.at(row + i);
            const double b = once->out.at(row + i);
            ASSERT_LE(std::abs(a - b), allowed) << num_splits << " splits, sequence " << seq;
          }
        }
      }
    }
  }
}

// max_seq_len only steers the number of splits.
TEST_F(AttentionSpecialTest, SequencesBeyondTheStatedBoundAreRight) {
  const KernelSpec spec = make_spec(kBF16, 64, 32, 2);
  const Kernel kernel = prepare(spec);
  ASSERT_TRUE(kernel);
  BatchOptions options;
  options.spec = spec;
  options.seq_lens = {1500, 3};
  const AttentionBatch batch = make_batch(options);
  DeviceBatch device_batch = upload(batch);
  for (int bound : {1, 512, 1500, 100000}) {
    AttentionArgs args = device_batch.args();
    args.max_seq_len = bound;
    Result<Workspace> workspace = Workspace::create(
        session(), kernel, kernel.workspace_bytes(args.num_seqs, args.num_kv_heads, bound));
    ASSERT_TRUE(workspace.is_ok()) << workspace.status().to_string();
    workspace->put_into(args);
    const CheckReport result =
        launch_and_compare(kernel, device_batch, args, batch, compute_reference(batch));
    EXPECT_TRUE(result.passed) << bound << ": " << result.sentence;
  }
}

TEST_F(AttentionSpecialTest, ScalesOfEitherSignAndZeroAreRight) {
  const KernelSpec spec = make_spec(kBF16, 72, 16, 3);  // a pad and a tail
  const Kernel kernel = prepare(spec);
  ASSERT_TRUE(kernel);
  // BatchOptions takes 0 for the default, so the least normal float stands in for it: all scores
  // round to 0.
  for (float scale : {0.5f, -0.1f, 1.17549435e-38f, -1.17549435e-38f}) {
    BatchOptions options;
    options.spec = spec;
    options.seq_lens = {37, 100, 0, 1};
    options.scale = scale;
    const AttentionBatch batch = make_batch(options);
    DeviceBatch device_batch = upload(batch);
    const CheckReport result = launch_and_compare(kernel, device_batch, device_batch.args(), batch,
                                                  compute_reference(batch));
    EXPECT_TRUE(result.passed) << scale << ": " << result.sentence;
  }
  BatchOptions options;
  options.spec = spec;
  options.seq_lens = {37, 100, 0, 1};
  options.scale = 1.17549435e-38f;
  const AttentionBatch batch = make_batch(options);
  DeviceBatch device_batch = upload(batch);
  AttentionArgs args = device_batch.args();
  args.scale = 0;
  const CheckReport result =
      launch_and_compare(kernel, device_batch, args, batch, compute_reference(batch));
  EXPECT_TRUE(result.passed) << "0: " << result.sentence;
}

// Each (sequence, KV head) has its own merge units and partials.
TEST_F(AttentionSpecialTest, ManySequencesAndHeads) {
  const KernelSpec spec = make_spec(kF16, 16, 1, 1);
  const Kernel kernel = prepare(spec);
  ASSERT_TRUE(kernel);
  BatchOptions options;
  options.spec = spec;
  options.num_kv_heads = 9;
  SplitMix64 rng(5);
  for (int seq = 0; seq < 150; ++seq) options.seq_lens.push_back(static_cast<int>(rng.below(40)));
  const AttentionBatch batch = make_batch(options);
  DeviceBatch device_batch = upload(batch);
  for (int num_splits : {0, 2}) {
    AttentionArgs args = device_batch.args();
    args.num_splits = num_splits;
    const Workspace workspace = make_workspace(kernel, args);
    workspace.put_into(args);
    const CheckReport result =
        launch_and_compare(kernel, device_batch, args, batch, compute_reference(batch));
    expect_passed(result);
  }
}

}  // namespace
}  // namespace pagejit
