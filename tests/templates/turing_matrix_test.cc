// NVRTC compiles the attention kernels that sm_75 is served, without spills. Needs NVRTC, no GPU.
#include <gtest/gtest.h>

#include "tests/templates/attention_matrix.h"

namespace pagejit {
namespace {

class TuringMatrixTest : public AttentionMatrixTest {
 protected:
  static KernelSpec make_spec(int head_size, int group_size) {
    constexpr DataType kF16 = DataType::kFloat16;
    return {.q_dtype = kF16,
            .kv_dtype = kF16,
            .out_dtype = kF16,
            .head_size = head_size,
            .group_size = group_size};
  }
};

TEST_P(TuringMatrixTest, EveryHeadSizeCompilesWithoutSpills) {
  constexpr int kGroups[] = {1, 5, 7, 16, 64};
  int cell = 0;
  for (const int head_size : {8, 16, 40, 64, 72, 80, 96, 112, 120, 128, 160, 192, 256}) {
    expect_clean(make_spec(head_size, kGroups[cell++ % 5]));
  }
  for (const int head_size : {64, 128, 256}) expect_clean(make_spec(head_size, 4));
}

TEST_P(TuringMatrixTest, RaggedKernelsCompileWithoutSpills) {
  for (const QueryLengths queries : {QueryLengths::kFew, QueryLengths::kMany}) {
    for (const Shape& shape : {Shape{16, 3}, {64, 8}, {72, 5}, {128, 4}, {256, 2}}) {
      KernelSpec spec = make_spec(shape.head_size, shape.group_size);
      spec.queries = queries;
      spec.causality = Causality::kCausal;
      expect_clean(spec);
      if (shape.head_size != 72 && shape.head_size != 128) continue;
      spec.causality = Causality::kPerSequence;
      spec.window = spec.custom_mask = spec.soft_cap = spec.alibi = spec.sinks = true;
      expect_clean(spec);
    }
  }
}

TEST_P(TuringMatrixTest, OtherTypesAndLayoutsCompileWithoutSpills) {
  int cell = 0;
  for (const DataType q : {DataType::kFloat16, DataType::kBFloat16, DataType::kFloat32}) {
    for (const DataType kv : {DataType::kFloat8E4m3, DataType::kFloat8E5m2}) {
      KernelSpec spec = make_spec(128, 4);
      spec.q_dtype = q;
      spec.kv_dtype = kv;
      spec.out_dtype = cell++ % 2 == 0 ? DataType::kBFloat16 : DataType::kFloat32;
      expect_clean(spec);
    }
  }
  for (const int block_size : {8, 32}) {
    KernelSpec spec = make_spec(128, 4);
    spec.block_size = block_size;
    spec.kv_layout = KvLayout::kVllm;
    expect_clean(spec);
    spec.kv_dtype = DataType::kFloat8E4m3;
    expect_clean(spec);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, TuringMatrixTest, ::testing::Values(*parse_target("sm_75")),
                         name_of_target);

}  // namespace
}  // namespace pagejit
