// launch() neither allocates nor locks.
#include <ctime>

#include "tests/runtime/allocation_counter.h"
#include "tests/runtime/engine_fixture.h"
#include "tests/runtime/paged_attention_fixture.h"

namespace pagejit {
namespace {

class LaunchAllocationTest : public EngineTest {};

TEST_F(LaunchAllocationTest, TheCountersCount) {
  std::mutex mutex;
  const auto counted = count([&] {
    std::lock_guard lock(mutex);
    std::string text(1000, 'x');
    asm volatile("" : : "r"(text.data()) : "memory");
  });
  EXPECT_EQ(counted, std::make_pair(1, 1));
}

TEST_F(LaunchAllocationTest, SuccessfulLaunchesNeitherAllocateNorLock) {
  auto engine = make_engine();
  const Kernel kernel = prepare(*engine, {.group_size = 4});
  const Kernel early = prepare(*engine, {.group_size = 4, .pdl = true});
  AttentionArgs args = legal_args();
  args.max_blocks_per_seq = 4096;
  args.block_table_stride = 4096;
  args.workspace = reinterpret_cast<void*>(0x100000);
  args.workspace_bytes = kernel.max_workspace_bytes();
  bool ok = true;
  const auto counted = count([&] {
    for (int i = 0; i < 100; ++i) {
      args.num_splits = i % 2;  // chosen by the library, and given
      args.num_seqs = 1 + i;
      ok = ok && (i % 4 < 2 ? kernel : early).launch(args, nullptr);
    }
  });
  EXPECT_TRUE(ok);
  EXPECT_EQ(counted, std::make_pair(0, 0));
  EXPECT_EQ(script->calls("cuLaunchKernelEx"), 100u);
}

class PagedAttentionAllocationTest : public PagedAttentionTest {};

TEST_F(PagedAttentionAllocationTest, CallsOfPreparedKernelsNeitherAllocatesNorLocks) {
  PagedAttention attention(make_engine());
  PagedAttentionArgs args = legal_paged_args();
  const auto workspace_bytes = attention.workspace_bytes(args);
  ASSERT_TRUE(workspace_bytes) << workspace_bytes.status().to_string();
  args.workspace = reinterpret_cast<void*>(0x100000);
  args.workspace_bytes = *workspace_bytes;
  bool ok = true;
  const auto counted = count([&] {
    for (int i = 0; i < 100; ++i) {
      args.num_seqs = 1 + i;
      ok = ok && paged_attention_v1(attention, args, nullptr);
      ok = ok && paged_attention_v2(attention, args, nullptr);
    }
  });
  EXPECT_TRUE(ok);
  EXPECT_EQ(counted, std::make_pair(0, 0));
  EXPECT_EQ(script->calls("cuLaunchKernelEx"), 200u);
}

TEST_F(LaunchAllocationTest, CascadesNeitherAllocateNorLock) {
  EngineDependencies with = dependencies();
  with.plan = plan_any;  // a merge has no fake plan
  const Result<std::shared_ptr<Engine>> engine = create_engine(options(), with);
  ASSERT_TRUE(engine);
  const Result<CascadeKernel> kernel =
      (*engine)->prepare(CascadeSpec{.attention = {.group_size = 4}}, 0);
  ASSERT_TRUE(kernel) << kernel.status().to_string();
  const AttentionArgs from = legal_args();
  CascadeLevel level;
  level.query_start_loc = reinterpret_cast<const int32_t*>(0x8000);
  level.num_seqs = 64;
  level.block_table = from.block_table;
  level.block_table_stride = level.max_blocks_per_seq = 4096;
  level.seq_lens = from.seq_lens;
  const CascadeLevel levels[] = {level, level, level};
  CascadeArgs args;
  args.levels = levels;
  args.q = from.q;
  args.q_stride_token = args.out_stride_token = 32 * 128;
  args.q_stride_head = args.out_stride_head = 128;
  args.k_cache = from.k_cache;
  args.v_cache = from.v_cache;
  args.k_strides = args.v_strides = from.k_strides;
  args.num_query_tokens = 64;
  args.num_kv_heads = 8;
  args.out = from.out;
  args.scale = from.scale;
  args.workspace = reinterpret_cast<void*>(0x100000);
  args.workspace_bytes = kernel->max_workspace_bytes(3, 64, 8);
  bool ok = true;
  const auto counted = count([&] {
    for (int i = 0; i < 30; ++i) {
      args.num_levels = 1 + i % 3;
      ok = ok && kernel->launch(args, nullptr);
      ok = ok && kernel->workspace_bytes(args) > 0;
    }
  });
  EXPECT_TRUE(ok);
  EXPECT_EQ(counted, std::make_pair(0, 0));
  // One per level and one to merge: of 1, 2 and 3 levels ten times each.
  EXPECT_EQ(script->calls("cuLaunchKernelEx"), 10u * (2 + 3 + 4));
}

TEST_F(LaunchAllocationTest, SparseAttentionNeitherAllocatesNorLocks) {
  EngineDependencies with = dependencies();
  with.plan = plan_any;  // the indexer's kernels have no fake plan
  const Result<std::shared_ptr<Engine>> engine = create_engine(options(), with);
  ASSERT_TRUE(engine);
  SparseAttentionSpec spec;
  spec.attention.latent = true;
  spec.attention.kv_table = KvTable::kPositions;
  const Result<SparseAttentionKernel> kernel = (*engine)->prepare(spec, 0);
  ASSERT_TRUE(kernel) << kernel.status().to_string();
  const AttentionArgs from = legal_args();
  SparseAttentionArgs args;
  args.num_rows = 64;
  args.top_k = 512;
  args.index_q = from.q;
  args.index_q_stride_row = 64 * 128;
  args.index_q_stride_head = 128;
  args.index_weights = reinterpret_cast<const float*>(0x7000);
  args.index_k = from.k_cache;
  args.index_k_stride = index_page_bytes(16, 128, 128);
  args.ranges.seq_lens = from.seq_lens;
  args.q = from.q;
  args.k_cache = from.k_cache;
  args.k_strides = from.k_strides;
  args.block_table = from.block_table;
  args.block_table_stride = args.max_blocks_per_seq = 4096;
  args.out = from.out;
  args.scale = from.scale;
  constexpr int64_t kRowBytes = 4096 * 16 * 4;
  args.workspace = reinterpret_cast<void*>(0x100000);
  args.workspace_bytes = kernel->max_workspace_bytes(64, 512, 64 * kRowBytes);
  bool ok = true;
  const auto counted = count([&] {
    for (int i = 0; i < 30; ++i) {
      args.logits_bytes = (64 >> i % 3) * kRowBytes;
      ok = ok && kernel->launch(args, nullptr);
      ok = ok && kernel->workspace_bytes(args) > 0;
    }
  });
  EXPECT_TRUE(ok);
  EXPECT_EQ(counted, std::make_pair(0, 0));
  // Of 1, 2 and 4 chunks ten times each.
  EXPECT_EQ(script->calls("cuLaunchKernelEx"), 10u * (3 + 5 + 9));
}

// Of this thread: other programs on the machine do not count.
double cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// For people: the host's share of a launch. No limit is asserted, machines differ.
TEST_F(LaunchAllocationTest, ReportsTheTimeOfALaunch) {
  auto engine = make_engine();
  const Kernel kernel = prepare(*engine, {.group_size = 4});
  AttentionArgs args = legal_args();
  args.max_blocks_per_seq = 4096;
  args.block_table_stride = 4096;
  args.workspace = reinterpret_cast<void*>(0x100000);
  args.workspace_bytes = kernel.max_workspace_bytes();
  constexpr int kLaunches = 200000;
  for (int num_splits : {1, 0}) {
    args.num_splits = num_splits;
    const double start = cpu_ns();
    for (int i = 0; i < kLaunches; ++i) ASSERT_TRUE(kernel.launch(args, nullptr));
    const double elapsed = cpu_ns() - start;
    RecordProperty(num_splits == 0 ? "ns_chosen_splits" : "ns_given_splits",
                   std::to_string(elapsed / kLaunches));
    std::cout << "num_splits " << num_splits << ": " << elapsed / kLaunches
              << " ns per launch, the stub driver included\n";
  }
}

}  // namespace
}  // namespace pagejit
