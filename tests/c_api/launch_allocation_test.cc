// Launches through C neither allocate nor lock, like those of C++.
#include "tests/c_api/launch_fixture.h"
#include "tests/runtime/allocation_counter.h"

namespace pagejit {
namespace {

class CApiAllocationTest : public CApiLaunchTest {
 protected:
  static constexpr uint64_t kLaunches = 100;

  // `launch` is called so many times; its status.
  template <class Launch>
  void expect_nothing(const char* what, uint64_t driver_launches, Launch&& launch) {
    SCOPED_TRACE(what);
    const uint64_t before = script->calls("cuLaunchKernelEx");
    pagejit_status status = PAGEJIT_OK;
    const auto counted = count([&] {
      for (uint64_t i = 0; i < kLaunches && status == PAGEJIT_OK; ++i) {
        status = launch(static_cast<int>(i));
      }
    });
    EXPECT_EQ(outcome(status), "");
    EXPECT_EQ(counted, std::make_pair(0, 0));
    EXPECT_EQ(script->calls("cuLaunchKernelEx") - before, driver_launches);
  }
};

TEST_F(CApiAllocationTest, TheCountersCount) {
  const auto counted = count([&] {
    pagejit_error* one = nullptr;
    pagejit_error_create(&one);
    pagejit_error_destroy(one);
  });
  EXPECT_GT(counted.first, 0) << "an error object is allocated";
  pagejit_stats* stats = nullptr;
  const auto locked = count([&] { pagejit_engine_stats(handles.engine, &stats, error); });
  EXPECT_GT(locked.second, 0) << "counts are read under a lock";
  EXPECT_EQ(outcome(pagejit_stats_destroy(stats, error)), "");
}

TEST_F(CApiAllocationTest, Attention) {
  pagejit_attention_args args = legal_c_args();
  args.max_blocks_per_seq = 4096;
  args.block_table_stride = 4096;
  args.workspace = reinterpret_cast<void*>(0x100000);
  ASSERT_EQ(
      outcome(pagejit_kernel_max_workspace_bytes(handles.kernel, &args.workspace_bytes, error)),
      "");
  expect_nothing("with an error object", kLaunches, [&](int i) {
    args.num_splits = i % 2;  // chosen by the library, and given
    args.num_seqs = 1 + i;
    return pagejit_kernel_launch(handles.kernel, &args, nullptr, error);
  });
  expect_nothing("without", kLaunches, [&](int) {
    return pagejit_kernel_launch(handles.kernel, &args, nullptr, nullptr);
  });
}

// A struct of an older or newer version is converted on the stack, too.
TEST_F(CApiAllocationTest, AStructOfANewerVersion) {
  struct Newer {
    pagejit_attention_args args;
    char tail[8];
  } newer = {legal_c_args(), {}};
  newer.args.struct_size = sizeof newer;
  expect_nothing("attention", kLaunches, [&](int) {
    return pagejit_kernel_launch(handles.kernel, &newer.args, nullptr, error);
  });
}

TEST_F(CApiAllocationTest, CacheWritesAndConversions) {
  const pagejit_cache_write_args write = legal_c_write_args();
  expect_nothing("cache write", kLaunches, [&](int) {
    return pagejit_cache_write_kernel_launch(handles.cache_write, &write, nullptr, error);
  });
  pagejit_convert_float8_args convert;
  pagejit_convert_float8_args_init(&convert, sizeof convert);
  convert.from = reinterpret_cast<const void*>(0x1000);
  convert.to = reinterpret_cast<void*>(0x2000);
  convert.count = 16;
  expect_nothing("conversion", kLaunches, [&](int) {
    return pagejit_convert_float8_kernel_launch(handles.convert_float8, &convert, nullptr, error);
  });
}

// Its levels are an array, which is converted element by element.
TEST_F(CApiAllocationTest, Cascades) {
  const pagejit_attention_args from = legal_c_args();
  pagejit_cascade_level levels[3];
  for (auto& level : levels) {
    pagejit_cascade_level_init(&level, sizeof level);
    level.query_start_loc = reinterpret_cast<const int32_t*>(0x8000);
    level.num_seqs = 64;
    level.block_table = from.block_table;
    level.block_table_stride = level.max_blocks_per_seq = 4096;
    level.seq_lens = from.seq_lens;
  }
  pagejit_cascade_args args;
  pagejit_cascade_args_init(&args, sizeof args);
  args.levels = levels;
  args.num_levels = 3;
  args.q = from.q;
  args.q_stride_token = args.out_stride_token = 8 * 128;
  args.q_stride_head = args.out_stride_head = 128;
  args.k_cache = from.k_cache;
  args.v_cache = from.v_cache;
  args.k_strides = args.v_strides = from.k_strides;
  args.num_query_tokens = 64;
  args.num_kv_heads = 8;
  args.out = from.out;
  args.scale = from.scale;
  args.workspace = reinterpret_cast<void*>(0x100000);
  args.workspace_bytes = size_t{1} << 40;
  expect_nothing("cascade", 4 * kLaunches, [&](int) {
    return pagejit_cascade_kernel_launch(handles.cascade, &args, nullptr, error);
  });
}

TEST_F(CApiAllocationTest, VllmsEntryPoints) {
  const PagedAttentionArgs from = legal_paged_args();
  pagejit_paged_attention_args args;
  pagejit_paged_attention_args_init(&args, sizeof args);
  args.out = from.out;
  args.query = from.query;
  args.key_cache = from.key_cache;
  args.value_cache = from.value_cache;
  args.num_kv_heads = from.num_kv_heads;
  args.scale = from.scale;
  args.block_tables = from.block_tables;
  args.seq_lens = from.seq_lens;
  args.block_size = from.block_size;
  args.max_seq_len = from.max_seq_len;
  args.num_seqs = from.num_seqs;
  args.num_heads = from.num_heads;
  args.head_size = from.head_size;
  args.max_num_blocks_per_seq = from.max_num_blocks_per_seq;
  args.workspace = reinterpret_cast<void*>(0x100000);
  args.workspace_bytes = size_t{1} << 40;
  ASSERT_EQ(outcome(pagejit_paged_attention_prepare(handles.paged_attention, &args, error)), "");
  expect_nothing("v1", kLaunches, [&](int) {
    return pagejit_paged_attention_v1(handles.paged_attention, &args, nullptr, error);
  });
  expect_nothing("v2", kLaunches, [&](int) {
    return pagejit_paged_attention_v2(handles.paged_attention, &args, nullptr, error);
  });
}

}  // namespace
}  // namespace pagejit
