// Batches of all data types in device memory: the arguments of a launch lead to the same elements
// and scales as on the host. The emulator's device memory is host memory, so the reference can read
// it.
#include <gtest/gtest.h>

#include <vector>

#include "tests/reference/element_types.h"
#include "tests/sweep/test_device.h"
#include "tools/reference/attention_reference.h"

namespace pagejit {
namespace {

class DeviceBatchTest : public EmulatorTest, public testing::WithParamInterface<ElementTypes> {};

TEST_P(DeviceBatchTest, ArgumentsLeadToTheElementsAndScales) {
  for (const bool blocks_lie_apart : {false, true}) {
    BatchOptions options;
    options.spec = {.head_size = 24, .block_size = 5, .group_size = 2};
    GetParam().put_into(options.spec);
    options.num_kv_heads = 2;
    options.seq_lens = {6, 0, 11};
    options.layout = blocks_lie_apart ? CacheLayout::kPadded : CacheLayout::kInterleaved;
    options.device_block_stride = blocks_lie_apart ? 4096 : 0;
    options.per_head_scales = blocks_lie_apart;
    const AttentionBatch batch = make_batch(options);
    Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, true);
    ASSERT_TRUE(device_batch.is_ok()) << device_batch.status().to_string();
    const AttentionArgs& args = device_batch->args();
    EXPECT_EQ(args.k_strides.block == 4096, blocks_lie_apart);
    for (const void* start :
         {args.q, args.k_cache, args.v_cache, const_cast<const void*>(args.out)}) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(start) % 16, 0u);
    }

    const size_t num_rows = 3 * 4;
    std::vector<double> want(num_rows * 24);
    std::vector<double> got(want.size());
    std::vector<double> want_lse(num_rows);
    std::vector<double> got_lse(num_rows);
    paged_attention(options.spec, batch.host_args(), want.data(), want_lse.data());
    paged_attention(options.spec, args, got.data(), got_lse.data());
    EXPECT_EQ(got, want);
    EXPECT_EQ(got_lse, want_lse);

    const Result<AttentionResults> results = device_batch->download();
    ASSERT_TRUE(results.is_ok());
    EXPECT_EQ(results->out, batch.out);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DeviceBatchTest, testing::ValuesIn(legal_types()),
                         element_types_name);

}  // namespace
}  // namespace pagejit
