// The custom mask's words: masks that begin at any byte and end at any, rows that begin at any bit,
// tiles of all widths; that nothing behind a mask is read, and how much is.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/sweep/test_device.h"

namespace pagejit {
namespace {

struct MaskCase {
  std::string name;
  KernelSpec spec;
};

class CustomMaskTest : public DeviceTest, public testing::WithParamInterface<MaskCase> {
 protected:
  // The spec's batch with the mask moved by some bytes, and without the byte of slack behind it:
  // what is read beyond its last byte lies outside of the allocation.
  void expect_right(const std::vector<int>& seq_lens, const std::vector<int>& query_lens,
                    size_t shift) {
    BatchOptions options;
    options.spec = GetParam().spec;
    options.num_kv_heads = 2;
    options.seq_lens = seq_lens;
    if (options.spec.queries != QueryLengths::kOne) options.query_lens = query_lens;
    AttentionBatch batch = make_batch(options);
    batch.custom_mask.pop_back();
    batch.custom_mask.insert(batch.custom_mask.begin(), shift, 0xff);
    for (int32_t& start : batch.custom_mask_indptr) start += static_cast<int32_t>(shift);
    --batch.custom_mask_indptr.back();
    Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, true);
    ASSERT_TRUE(device_batch.is_ok()) << device_batch.status().to_string();
    const Kernel kernel = prepare(options.spec);
    AttentionArgs args = device_batch->args();
    // Through the offsets for even shifts, through the pointer for odd ones.
    if (shift % 2 == 1) args.custom_mask += shift;
    std::vector<int32_t> starts = batch.custom_mask_indptr;
    if (shift % 2 == 1) {
      for (int32_t& start : starts) start -= static_cast<int32_t>(shift);
    }
    Result<DeviceBuffer> indptr =
        DeviceBuffer::copy_of(session(), starts.data(), starts.size() * sizeof(int32_t));
    ASSERT_TRUE(indptr.is_ok());
    args.custom_mask_indptr = indptr->data<int32_t>();
    args.num_splits = 1;
    const CheckReport result =
        launch_and_compare(kernel, *device_batch, args, batch, compute_reference(batch));
    EXPECT_TRUE(result.passed) << result.sentence << " (mask moved by " << shift << " bytes)";
  }
};

TEST_P(CustomMaskTest, BeginsAndEndsAtAnyByte) {
  for (const size_t shift : {0, 1, 2, 3}) {
    // 1,333 bits and 57 bits, 8 and 1 bytes; more queries than keys.
    expect_right({43, 19, 2, 0}, {31, 3, 4, 1}, shift);
    expect_right({57}, {1}, shift);
    expect_right({3}, {2}, shift);
  }
  for (const int seq_len : {255, 256, 257, 262, 263, 264, 271}) expect_right({seq_len}, {3}, 0);
}

std::vector<MaskCase> make_cases() {
  std::vector<MaskCase> cases;
  const auto add = [&](std::string name, QueryLengths queries, int head_size, int group_size,
                       DataType type) -> KernelSpec& {
    KernelSpec spec = make_spec(type, head_size, 16, group_size);
    spec.queries = queries;
    spec.custom_mask = true;
    cases.push_back({std::move(name), spec});
    return cases.back().spec;
  };
  // Tiles of 8 to 32 rows per warp and of 16 and 32 tokens, as the planner chooses them.
  add("one", QueryLengths::kOne, 64, 4, DataType::kBFloat16);
  add("one_wide", QueryLengths::kOne, 128, 40, DataType::kFloat16);
  add("few", QueryLengths::kFew, 64, 4, DataType::kBFloat16);
  add("few_small", QueryLengths::kFew, 16, 1, DataType::kBFloat16);
  add("many", QueryLengths::kMany, 128, 4, DataType::kBFloat16);
  add("many_small", QueryLengths::kMany, 32, 3, DataType::kFloat16);
  add("shared", QueryLengths::kShared, 64, 4, DataType::kBFloat16);
  KernelSpec& vllm = add("many_fp8_vllm", QueryLengths::kMany, 64, 4, DataType::kFloat16);
  vllm.kv_dtype = DataType::kFloat8E4m3;
  vllm.kv_layout = KvLayout::kVllm;
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases, CustomMaskTest, testing::ValuesIn(make_cases()),
                         [](const testing::TestParamInfo<MaskCase>& test) {
                           return test.param.name;
                         });

}  // namespace
}  // namespace pagejit
