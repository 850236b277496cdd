// vLLM's entry points: which kernel a call takes, what reaches the driver, and what is refused.
#include "pagejit/paged_attention.h"

#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/paged_attention_fixture.h"

namespace pagejit {
namespace {

using ::testing::HasSubstr;

const auto kFloats = reinterpret_cast<const float*>(0x7000);

std::string spec_text_of(const PagedAttentionArgs& args) {
  const Result<KernelSpec> spec = paged_attention_spec(args);
  return spec ? canonical_text(*spec) : spec.status().message();
}

TEST_F(PagedAttentionTest, TheKernelIsThatOfTheArguments) {
  PagedAttentionArgs args = legal_paged_args();
  EXPECT_EQ(spec_text_of(args),
            "decode q=bf16 kv=bf16 out=bf16 head_size=128 block_size=16 group_size=4 layout=vllm");
  args.alibi_slopes = kFloats;
  args.blocksparse_vert_stride = 8;
  args.kv_cache_dtype = "fp8";
  args.dtype = DataType::kFloat16;
  args.num_heads = 8;
  args.block_size = 8;
  EXPECT_EQ(spec_text_of(args),
            "decode q=f16 kv=fp8_e4m3 out=f16 head_size=128 block_size=8 group_size=1 layout=vllm "
            "block_sparse=1 alibi=1");
  // As in vLLM, 1 is dense.
  args.blocksparse_vert_stride = 1;
  EXPECT_FALSE(paged_attention_spec(args)->block_sparse);
}

TEST_F(PagedAttentionTest, EveryNameOfACacheTypeIsKnown) {
  struct Case {
    std::string_view name;
    DataType dtype;
    std::string kv;  // or the sentence
  };
  constexpr auto kF16 = DataType::kFloat16;
  constexpr auto kBF16 = DataType::kBFloat16;
  constexpr auto kF32 = DataType::kFloat32;
  const Case cases[] = {
      {"auto", kF16, "kv=f16"},
      {"auto", kBF16, "kv=bf16"},
      {"float16", kF16, "kv=f16"},
      {"float16", kF32, "kv=f16"},
      {"bfloat16", kBF16, "kv=bf16"},
      {"bfloat16", kF32, "kv=bf16"},
      {"fp8", kBF16, "kv=fp8_e4m3"},
      {"fp8_e4m3", kF32, "kv=fp8_e4m3"},
      {"fp8_e5m2", kF16, "kv=fp8_e5m2"},
      {"auto", kF32, "kv=f32"},
      {"float16", kBF16, "kv_cache_dtype float16 with dtype bf16: must be auto"},
      {"bfloat16", kF16, "kv_cache_dtype bfloat16 with dtype f16: must be auto"},
      {"int8", kBF16, "kv_cache_dtype \"int8\": legal are auto, float16, bfloat16, fp8, fp8_e4m3"},
      {"fp8_ds_mla", kBF16, "kv_cache_dtype \"fp8_ds_mla\": legal are"},
      {"", kBF16, "kv_cache_dtype \"\": legal are"},
      {"auto", DataType::kFloat8E4m3, "dtype fp8_e4m3: must be f16, bf16 or f32"},
      {"fp8", DataType::kInt8, "dtype int8: must be f16, bf16 or f32"},
  };
  for (const Case& c : cases) {
    PagedAttentionArgs args = legal_paged_args();
    args.kv_cache_dtype = c.name;
    args.dtype = c.dtype;
    EXPECT_THAT(spec_text_of(args), HasSubstr(c.kv)) << c.name;
  }
}

TEST_F(PagedAttentionTest, ParametersReachTheDriver) {
  PagedAttention attention(make_engine());
  PagedAttentionArgs args = legal_paged_args();
  ASSERT_TRUE(paged_attention_v1(attention, args, nullptr));
  pagejit_stub::LaunchRecord record = script->last_launch();
  EXPECT_EQ(record.config.gridDimX, 1u);
  EXPECT_EQ(record.config.gridDimY, 8u);
  EXPECT_EQ(record.config.gridDimZ, 2u);
  EXPECT_EQ(record.params.q, args.query);
  EXPECT_EQ(record.params.k_cache, args.key_cache);
  EXPECT_EQ(record.params.v_cache, args.value_cache);
  EXPECT_EQ(record.params.out, args.out);
  EXPECT_EQ(record.params.lse, nullptr);
  EXPECT_EQ(record.params.block_table, args.block_tables);
  EXPECT_EQ(record.params.seq_lens, args.seq_lens);
  EXPECT_EQ(record.params.block_table_stride, 4096);
  EXPECT_EQ(record.params.max_blocks_per_seq, 4096);
  EXPECT_EQ(record.params.score_scale, args.scale * pagejit_shared::kLog2E);
  // As if contiguous.
  EXPECT_EQ(record.params.q_stride_token, 32 * 128);
  EXPECT_EQ(record.params.q_stride_head, 128);
  EXPECT_EQ(record.params.out_stride_token, 32 * 128);
  EXPECT_EQ(record.params.out_stride_head, 128);
  for (const auto& [block, head] :
       {std::pair(record.params.k_stride_block, record.params.k_stride_head),
        std::pair(record.params.v_stride_block, record.params.v_stride_head)}) {
    EXPECT_EQ(block, 8 * 16 * 128);
    EXPECT_EQ(head, 16 * 128);
  }
  args.q_stride = 48 * 128;
  args.kv_block_stride = 1 << 20;
  args.kv_head_stride = 4096;
  args.alibi_slopes = kFloats;
  args.blocksparse_vert_stride = 8;
  args.blocksparse_local_blocks = 16;
  args.blocksparse_block_size = 32;
  args.blocksparse_head_sliding_step = 2;
  args.tp_rank = 1;
  ASSERT_TRUE(paged_attention_v1(attention, args, nullptr));
  record = script->last_launch();
  EXPECT_EQ(record.params.q_stride_token, 48 * 128);
  EXPECT_EQ(record.params.out_stride_token, 32 * 128);
  EXPECT_EQ(record.params.k_stride_block, 1 << 20);
  EXPECT_EQ(record.params.v_stride_block, 1 << 20);
  EXPECT_EQ(record.params.k_stride_head, 4096);
  EXPECT_EQ(record.params.v_stride_head, 4096);
  EXPECT_EQ(record.params.alibi_slopes, kFloats);
  EXPECT_EQ(record.params.sparse.local_blocks, 16);
  EXPECT_EQ(record.params.sparse.vert_stride, 8);
  EXPECT_EQ(record.params.sparse.block_size, 32);
  EXPECT_EQ(record.params.sparse.offset, (32 * 2 + 1) % 8);
  EXPECT_EQ(record.params.sparse.head_step, 2);
}

TEST_F(PagedAttentionTest, ScalesAreUsedWhereKAndVHaveThem) {
  PagedAttention attention(make_engine());
  PagedAttentionArgs args = legal_paged_args();
  args.k_scale = kFloats;
  args.v_scale = kFloats + 1;
  ASSERT_TRUE(paged_attention_v1(attention, args, nullptr));
  EXPECT_EQ(script->last_launch().params.k_scale, nullptr);
  args.kv_cache_dtype = "fp8";
  ASSERT_TRUE(paged_attention_v1(attention, args, nullptr));
  EXPECT_EQ(script->last_launch().params.k_scale, kFloats);
  EXPECT_EQ(script->last_launch().params.v_scale, kFloats + 1);
  EXPECT_EQ(script->last_launch().params.kv_scale_stride, 0);
}

TEST_F(PagedAttentionTest, OnlyV2SplitsAndNeedsAWorkspace) {
  PagedAttention attention(make_engine());
  PagedAttentionArgs args = legal_paged_args();
  args.num_seqs = 1;
  ASSERT_TRUE(paged_attention_v1(attention, args, nullptr));
  EXPECT_EQ(script->last_launch().config.gridDimX, 1u);
  Status status = paged_attention_v2(attention, args, nullptr);
  EXPECT_EQ(status.code(), StatusCode::kWorkspace);
  EXPECT_THAT(status.message(), HasSubstr("workspace is null; this launch (1 sequences"));

  const Result<size_t> bytes = attention.workspace_bytes(args);
  ASSERT_TRUE(bytes) << bytes.status().to_string();
  std::vector<char> memory(*bytes + 256);
  args.workspace = memory.data() + (256 - reinterpret_cast<uintptr_t>(memory.data()) % 256);
  args.workspace_bytes = *bytes;
  ASSERT_TRUE(attention.init_workspace(args.workspace, args.workspace_bytes, nullptr));
  ASSERT_TRUE(paged_attention_v2(attention, args, nullptr));
  EXPECT_GT(script->last_launch().config.gridDimX, 1u);
  EXPECT_EQ(script->last_launch().params.workspace, args.workspace);
  // v1 leaves it alone.
  ASSERT_TRUE(paged_attention_v1(attention, args, nullptr));
  EXPECT_EQ(script->last_launch().params.workspace, nullptr);
  // Enough for all shapes.
  for (const int num_seqs : {1, 2, 3, 7, 20, 300, 65535}) {
    args.num_seqs = num_seqs;
    for (const int max_seq_len : {0, 1, 600, 65536}) {
      args.max_seq_len = max_seq_len;
      status = paged_attention_v2(attention, args, nullptr);
      EXPECT_TRUE(status) << status.to_string();
    }
  }
  args.workspace_bytes = 1000;
  args.num_seqs = 1;
  args.max_seq_len = 50000;
  status = paged_attention_v2(attention, args, nullptr);
  EXPECT_THAT(status.message(), HasSubstr("workspace_bytes 1000: too small"));
}

TEST_F(PagedAttentionTest, KernelsArePreparedOnceAndAhead) {
  PagedAttention attention(make_engine());
  const PagedAttentionArgs args = legal_paged_args();
  EXPECT_THAT(
      attention.init_workspace(reinterpret_cast<void*>(0x100000), 1 << 20, nullptr).message(),
      HasSubstr("init_workspace before any kernel was prepared"));
  ASSERT_TRUE(attention.prepare(args));
  EXPECT_EQ(nvrtc->compiles, 1);
  nvrtc->failure = Status(StatusCode::kCompileFailed, "compiled after all");
  const uint64_t loads = script->calls("cuLibraryLoadData");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(paged_attention_v1(attention, args, nullptr));
  EXPECT_EQ(script->calls("cuLibraryLoadData"), loads);
  PagedAttentionArgs other = args;
  other.head_size = 64;
  EXPECT_EQ(paged_attention_v1(attention, other, nullptr).message(), "compiled after all");
}

TEST_F(PagedAttentionTest, ThreadsMayShareIt) {
  const auto engine = make_engine();
  PagedAttention attention(engine);
  const CUcontext context = script->make_context(0);
  const auto driver = *Driver::open(PAGEJIT_STUB_DRIVER);
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      driver->cuCtxPushCurrent(context);
      for (int j = 0; j < 40; ++j) {
        PagedAttentionArgs args = legal_paged_args();
        args.head_size = 32 + 16 * ((i + j) % 8);
        if (!paged_attention_v1(attention, args, nullptr)) ++failures;
      }
      CUcontext popped = nullptr;
      driver->cuCtxPopCurrent(&popped);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(nvrtc->compiles, 8);
}

TEST_F(PagedAttentionTest, EachBadArgumentHasItsSentence) {
  PagedAttention attention(make_engine());
  struct Case {
    std::function<void(PagedAttentionArgs&)> change;
    std::string part;
  };
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const auto ints = [](uintptr_t address) { return reinterpret_cast<const int32_t*>(address); };
  const auto floats = [](uintptr_t address) { return reinterpret_cast<const float*>(address); };
  const Case cases[] = {
      {[](auto& a) { a.out = nullptr; }, "out is null: must be a device pointer"},
      {[](auto& a) { a.query = nullptr; }, "query is null"},
      {[](auto& a) { a.key_cache = nullptr; }, "key_cache is null"},
      {[](auto& a) { a.value_cache = nullptr; }, "value_cache is null"},
      {[](auto& a) { a.block_tables = nullptr; }, "block_tables is null"},
      {[](auto& a) { a.seq_lens = nullptr; }, "seq_lens is null"},
      {[](auto& a) { a.out = reinterpret_cast<void*>(0x6008); },
       "out is 0x6008: must be aligned to 16 bytes"},
      {[](auto& a) { a.query = reinterpret_cast<void*>(0x1002); }, "query is 0x1002"},
      {[](auto& a) { a.key_cache = reinterpret_cast<void*>(0x2008); }, "key_cache is 0x2008"},
      {[](auto& a) { a.value_cache = reinterpret_cast<void*>(0x3004); }, "value_cache is 0x3004"},
      {[&](auto& a) { a.block_tables = ints(0x4002); },
       "block_tables is 0x4002: must be aligned to 4 bytes"},
      {[&](auto& a) { a.seq_lens = ints(0x5001); }, "seq_lens is 0x5001"},
      {[&](auto& a) { a.alibi_slopes = floats(0x7002); }, "alibi_slopes is 0x7002"},
      {[](auto& a) { a.kv_cache_dtype = "fp8"; }, "k_scale is null"},
      {[&](auto& a) {
         a.kv_cache_dtype = "fp8";
         a.k_scale = floats(0x7000);
       },
       "v_scale is null"},
      {[&](auto& a) {
         a.kv_cache_dtype = "fp8";
         a.k_scale = floats(0x7000);
         a.v_scale = floats(0x7001);
       },
       "v_scale is 0x7001: must be aligned to 4 bytes"},
      {[](auto& a) { a.kv_cache_dtype = "fp16"; }, "kv_cache_dtype \"fp16\": legal are"},
      {[](auto& a) { a.dtype = DataType::kInt8; }, "dtype int8: must be f16, bf16 or f32"},
      {[](auto& a) { a.num_kv_heads = 0; }, "num_kv_heads 0: must be in [1, 65535]"},
      {[](auto& a) { a.num_heads = 0; }, "num_heads 0: must be a multiple of num_kv_heads (8)"},
      {[](auto& a) { a.num_heads = 33; }, "num_heads 33: must be a multiple of num_kv_heads (8)"},
      {[](auto& a) { a.num_heads = 8 * 129; }, "num_heads 1032: must be a multiple"},
      {[](auto& a) { a.head_size = 0; },
       "head_size 0: must be a multiple of 8 in [8, 256], or 512"},
      {[](auto& a) { a.head_size = 100; }, "head_size 100"},
      {[](auto& a) {
         a.head_size = 120;
         a.kv_cache_dtype = "fp8";
       },
       "head_size 120: must be a multiple of 16 where kv_layout is vLLM's"},
      {[](auto& a) { a.block_size = 4; }, "block_size 4: must be a multiple of 8"},
      {[](auto& a) { a.block_size = 0; }, "block_size 0: must be in [1, 65536]"},
      {[](auto& a) { a.scale = kNan; }, "scale nan: must be finite"},
      {[](auto& a) { a.max_seq_len = -1; }, "max_seq_len -1"},
      {[](auto& a) { a.num_seqs = -1; }, "num_seqs -1: must be in [0, 65535]"},
      {[](auto& a) { a.num_seqs = 65536; }, "num_seqs 65536"},
      {[](auto& a) { a.max_num_blocks_per_seq = -1; },
       "max_num_blocks_per_seq -1: must not be negative"},
      {[](auto& a) { a.q_stride = 4100; }, "q_stride 4100: must be a multiple of 8 elements"},
      {[](auto& a) { a.kv_block_stride = 12; }, "kv_block_stride 12: must be a multiple of 8"},
      {[](auto& a) {
         a.kv_cache_dtype = "fp8";
         a.kv_head_stride = 24;
       },
       "kv_head_stride 24: must be a multiple of 16 elements"},
      {[](auto& a) {
         a.blocksparse_vert_stride = 8;
         a.blocksparse_local_blocks = -1;
       },
       "blocksparse_local_blocks -1: must be in [0, 2147483647]"},
      {[](auto& a) { a.blocksparse_vert_stride = 65537; },
       "blocksparse_vert_stride 65537: must be in [0, 65536]"},
      {[](auto& a) {
         a.blocksparse_vert_stride = 8;
         a.blocksparse_block_size = 0;
       },
       "blocksparse_block_size 0: must be in [1, 65536]"},
      {[](auto& a) {
         a.blocksparse_vert_stride = 8;
         a.tp_rank = -1;
       },
       "tp_rank -1: must be in [0, 2147483647]"},
  };
  for (const Case& c : cases) {
    PagedAttentionArgs args = legal_paged_args();
    c.change(args);
    for (const auto& call : {paged_attention_v1, paged_attention_v2}) {
      const Status status = call(attention, args, nullptr);
      EXPECT_THAT(status.message(), HasSubstr(c.part));
      EXPECT_TRUE(status.code() == StatusCode::kInvalidArgument ||
                  status.code() == StatusCode::kUnsupported)
          << status.to_string();
    }
  }
  EXPECT_EQ(script->calls("cuLaunchKernelEx"), 0u);
  PagedAttention without_engine(nullptr);
  EXPECT_THAT(without_engine.prepare(legal_paged_args()).message(), HasSubstr("engine is null"));
}

TEST_F(PagedAttentionTest, WhatIsNotUsedIsIgnored) {
  PagedAttention attention(make_engine());
  PagedAttentionArgs args = legal_paged_args();
  args.k_scale = reinterpret_cast<const float*>(0x7001);
  args.blocksparse_vert_stride = -3;
  args.blocksparse_local_blocks = -1;
  args.blocksparse_block_size = 0;
  args.tp_rank = -1;
  Status status = paged_attention_v1(attention, args, nullptr);
  EXPECT_TRUE(status) << status.to_string();
  args = {.num_kv_heads = 8, .num_heads = 32, .head_size = 128};  // no sequences, no pointers
  status = paged_attention_v2(attention, args, nullptr);
  EXPECT_TRUE(status) << status.to_string();
  EXPECT_EQ(script->calls("cuLaunchKernelEx"), 1u);
}

TEST_F(PagedAttentionTest, ACallDuringACapturePreparesNothing) {
  const Stream stream = reinterpret_cast<Stream>(0x9000);
  PagedAttention attention(make_engine());
  const PagedAttentionArgs args = legal_paged_args();
  script->set_capturing_stream(static_cast<CUstream>(stream));
  EXPECT_EQ(paged_attention_v1(attention, args, stream).code(), StatusCode::kDenied);
  EXPECT_EQ(script->calls("cuLibraryLoadData"), 0u);
  ASSERT_TRUE(attention.prepare(args));
  EXPECT_TRUE(paged_attention_v1(attention, args, stream));
}

}  // namespace
}  // namespace pagejit
