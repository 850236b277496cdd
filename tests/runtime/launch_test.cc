// What launch() passes to the driver, what it refuses and with which words.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "runtime/split_policy.h"
#include "tests/runtime/launch_fixture.h"

namespace pagejit {
namespace {

using ::testing::HasSubstr;

constexpr KernelSpec kDebugSpec{.group_size = 4, .debug = true};

TEST_F(LaunchTest, OneLaunchIsOneCallOfTheDriver) {
  const uint64_t before = script->total_calls();
  ASSERT_TRUE(kernel.launch(legal_args(), nullptr));
  EXPECT_EQ(script->calls("cuLaunchKernelEx"), 1u);
  EXPECT_EQ(script->total_calls(), before + 1);
}

TEST_F(LaunchTest, GridBlockAndParametersReachTheDriver) {
  AttentionArgs args = legal_args();
  args.num_splits = 3;
  args.workspace = reinterpret_cast<void*>(0x100000);
  args.workspace_bytes = 1 << 30;
  args.lse = reinterpret_cast<float*>(0x7000);
  const auto stream = reinterpret_cast<Stream>(0x1234);
  ASSERT_TRUE(kernel.launch(args, stream));

  const pagejit_stub::LaunchRecord record = script->last_launch();
  EXPECT_EQ(record.config.gridDimX, 3u);
  EXPECT_EQ(record.config.gridDimY, 8u);
  EXPECT_EQ(record.config.gridDimZ, 2u);
  EXPECT_EQ(record.config.blockDimX, 128u);
  EXPECT_EQ(record.config.blockDimY, 1u);
  EXPECT_EQ(record.config.sharedMemBytes, 64u * 1024);
  EXPECT_EQ(record.config.hStream, stream);
  EXPECT_EQ(record.config.numAttrs, 0u);

  const pagejit_shared::AttentionParams& params = record.params;
  EXPECT_EQ(params.q, args.q);
  EXPECT_EQ(params.k_cache, args.k_cache);
  EXPECT_EQ(params.v_cache, args.v_cache);
  EXPECT_EQ(params.out, args.out);
  EXPECT_EQ(params.lse, args.lse);
  EXPECT_EQ(params.block_table, args.block_table);
  EXPECT_EQ(params.seq_lens, args.seq_lens);
  EXPECT_EQ(params.workspace, args.workspace);
  EXPECT_EQ(params.q_stride_token, args.q_stride_token);
  EXPECT_EQ(params.q_stride_head, args.q_stride_head);
  EXPECT_EQ(params.k_stride_block, args.k_strides.block);
  EXPECT_EQ(params.k_stride_token, args.k_strides.token);
  EXPECT_EQ(params.k_stride_head, args.k_strides.head);
  EXPECT_EQ(params.v_stride_block, args.v_strides.block);
  EXPECT_EQ(params.v_stride_token, args.v_strides.token);
  EXPECT_EQ(params.v_stride_head, args.v_strides.head);
  EXPECT_EQ(params.out_stride_token, args.out_stride_token);
  EXPECT_EQ(params.out_stride_head, args.out_stride_head);
  EXPECT_EQ(params.block_table_stride, args.block_table_stride);
  EXPECT_EQ(params.num_blocks, args.num_blocks);
  EXPECT_EQ(params.max_blocks_per_seq, args.max_blocks_per_seq);
  EXPECT_EQ(params.num_kv_heads, args.num_kv_heads);
  EXPECT_EQ(params.num_splits, 3);
  EXPECT_EQ(params.min_split_tokens, 64) << "asked for by the caller: down to one tile";
  EXPECT_EQ(params.score_scale, args.scale * pagejit_shared::kLog2E);
}

TEST_F(LaunchTest, OnlyKernelsForItAreLaunchedWithStreamSerialization) {
  const Kernel early = prepare(*engine, {.group_size = 4, .pdl = true});
  EXPECT_TRUE(early.info().pdl);
  EXPECT_FALSE(kernel.info().pdl);
  for (const bool pdl : {true, false, true}) {
    ASSERT_TRUE((pdl ? early : kernel).launch(legal_args(), nullptr));
    const pagejit_stub::LaunchRecord record = script->last_launch();
    ASSERT_EQ(record.config.numAttrs, pdl ? 1u : 0u);
    if (!pdl) continue;
    EXPECT_EQ(record.attribute.id, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
    EXPECT_EQ(record.attribute.value.programmaticStreamSerializationAllowed, 1);
  }
  EXPECT_EQ(script->calls("cuLaunchKernelEx"), 3u);
}

// Another engine, which compiles nothing, knows it from the entry.
TEST_F(LaunchTest, TheStoredEntrySaysHowItsKernelIsLaunched) {
  for (const bool pdl : {false, true}) {
    const KernelSpec spec{.group_size = 4, .pdl = pdl};
    prepare(*engine, spec);
    const Kernel stored = prepare(*make_engine(), spec);
    EXPECT_EQ(stored.info().origin, ImageOrigin::kDisk);
    EXPECT_EQ(stored.info().pdl, pdl);
    ASSERT_TRUE(stored.launch(legal_args(), nullptr));
    EXPECT_EQ(script->last_launch().config.numAttrs, pdl ? 1u : 0u);
  }
}

TEST_F(LaunchTest, NoSequencesLaunchNothingAndCheckNothing) {
  EXPECT_TRUE(kernel.launch(AttentionArgs{}, nullptr));
  EXPECT_EQ(script->calls("cuLaunchKernelEx"), 0u);
}

TEST_F(LaunchTest, EmptyHandleSaysSo) {
  const Kernel empty;
  EXPECT_FALSE(static_cast<bool>(empty));
  EXPECT_THAT(empty.launch(legal_args(), nullptr).message(), HasSubstr("Engine::prepare()"));
  EXPECT_EQ(empty.workspace_bytes(1, 1, 100000, 4), 0u);
  EXPECT_EQ(empty.choose_num_splits(1, 1, 100000), 1);
  EXPECT_EQ(empty.max_workspace_bytes(), 0u);
  EXPECT_EQ(empty.info().key, "");
  EXPECT_EQ(empty.spec(), KernelSpec{});
  EXPECT_FALSE(empty.workspace_init(nullptr, 0, nullptr));
  EXPECT_FALSE(empty.read_debug_report(nullptr, nullptr));
}

TEST_F(LaunchTest, NullPointersAreNamed) {
  expect_invalid([](AttentionArgs& a) { a.q = nullptr; }, "q is null");
  expect_invalid([](AttentionArgs& a) { a.k_cache = nullptr; }, "k_cache is null");
  expect_invalid([](AttentionArgs& a) { a.v_cache = nullptr; }, "v_cache is null");
  expect_invalid([](AttentionArgs& a) { a.out = nullptr; }, "out is null");
  expect_invalid([](AttentionArgs& a) { a.block_table = nullptr; }, "block_table is null");
  expect_invalid([](AttentionArgs& a) { a.seq_lens = nullptr; }, "seq_lens is null");
}

TEST_F(LaunchTest, LatentRowsAreGivenAsKeysAlone) {
  const Kernel latent = prepare(*engine, {.group_size = 80, .latent = true});
  AttentionArgs args = legal_args();
  EXPECT_THAT(latent.launch(args, nullptr).message(),
              HasSubstr("v_cache: must be null where latent is 1"));
  args.v_cache = nullptr;
  EXPECT_TRUE(latent.launch(args, nullptr));
  EXPECT_EQ(script->last_launch().config.gridDimY, static_cast<unsigned>(args.num_kv_heads * 5))
      << "a tile of this plan has 16 of the 80 rows";
  args.k_cache = nullptr;
  EXPECT_THAT(latent.launch(args, nullptr).message(), HasSubstr("k_cache is null"));
  args = legal_args();
  args.v_cache = nullptr;
  args.num_kv_heads = 40000;
  EXPECT_THAT(latent.launch(args, nullptr).message(),
              HasSubstr("num_kv_heads 40000: must be in [1, 13107]"));

  const Kernel fp8 =
      prepare(*engine, {.kv_dtype = DataType::kFloat8E4m3, .group_size = 16, .latent = true});
  args = legal_args();
  args.v_cache = nullptr;
  EXPECT_THAT(fp8.launch(args, nullptr).message(), HasSubstr("k_scale is null"));
  const auto* scale = reinterpret_cast<const float*>(0x9000);
  args.k_scale = scale;
  EXPECT_TRUE(fp8.launch(args, nullptr));
  EXPECT_EQ(script->last_launch().params.v_scale, scale);
  args.v_scale = scale;
  EXPECT_THAT(fp8.launch(args, nullptr).message(),
              HasSubstr("v_scale: must be null where latent is 1"));
}

TEST_F(LaunchTest, RowsThatHoldTheirScalesTakeNoOthers) {
  const Kernel ds_mla = prepare(*engine, {.kv_dtype = DataType::kFloat8E4m3,
                                          .head_size = 576,
                                          .head_size_v = 512,
                                          .group_size = 16,
                                          .kv_layout = KvLayout::kDsMla,
                                          .latent = true});
  AttentionArgs args = legal_args();
  args.v_cache = nullptr;
  EXPECT_TRUE(ds_mla.launch(args, nullptr));
  args.k_scale = reinterpret_cast<const float*>(0x9000);
  EXPECT_THAT(ds_mla.launch(args, nullptr).message(),
              HasSubstr("k_scale: must be null where kv_layout is DS-MLA's"));
  args.k_scale = nullptr;
  args.k_strides.token = kDsMlaRowBytes + 8;
  EXPECT_THAT(ds_mla.launch(args, nullptr).message(),
              HasSubstr("k_strides.token 664: must be a multiple of 16"));
}

TEST_F(LaunchTest, TokenListsAreChecked) {
  const Kernel slots =
      prepare(*engine, {.group_size = 16, .kv_table = KvTable::kSlots, .latent = true});
  const Kernel positions =
      prepare(*engine, {.group_size = 16, .kv_table = KvTable::kPositions, .latent = true});
  AttentionArgs args = legal_args();
  args.v_cache = nullptr;
  EXPECT_THAT(slots.launch(args, nullptr).message(), HasSubstr("token_lists is null"));
  args.token_lists = reinterpret_cast<const int32_t*>(0xa000);
  args.max_list_len = 2048;
  EXPECT_THAT(slots.launch(args, nullptr).message(),
              HasSubstr("token_list_stride 0: must be at least max_list_len (2048)"));
  args.token_list_stride = 2048;
  args.block_table = args.seq_lens = nullptr;
  EXPECT_TRUE(slots.launch(args, nullptr));
  EXPECT_THAT(positions.launch(args, nullptr).message(), HasSubstr("block_table is null"));
  args.block_table = legal_args().block_table;
  EXPECT_TRUE(positions.launch(args, nullptr)) << "each list is full, each query a sequence";
  args.query_seqs = reinterpret_cast<const int32_t*>(0xb002);
  EXPECT_THAT(positions.launch(args, nullptr).message(), HasSubstr("query_seqs is 0xb002"));
  args.query_seqs = nullptr;
  args.max_list_len = -1;
  EXPECT_THAT(positions.launch(args, nullptr).message(),
              HasSubstr("max_list_len -1: must not be negative"));
}

TEST_F(LaunchTest, MisalignedPointersAreNamed) {
  auto at = [](uintptr_t address) { return reinterpret_cast<void*>(address); };
  expect_invalid([&](AttentionArgs& a) { a.q = at(0x1008); }, "q is 0x1008: must be aligned to 16");
  expect_invalid([&](AttentionArgs& a) { a.k_cache = at(0x1002); }, "k_cache is 0x1002");
  expect_invalid([&](AttentionArgs& a) { a.v_cache = at(0x1001); }, "v_cache is 0x1001");
  expect_invalid([&](AttentionArgs& a) { a.out = at(0x1004); }, "out is 0x1004");
  expect_invalid([&](AttentionArgs& a) { a.block_table = static_cast<int32_t*>(at(0x1002)); },
                 "block_table is 0x1002: must be aligned to 4");
  expect_invalid([&](AttentionArgs& a) { a.seq_lens = static_cast<int32_t*>(at(0x1001)); },
                 "seq_lens is 0x1001");
  expect_invalid([&](AttentionArgs& a) { a.lse = static_cast<float*>(at(0x1002)); },
                 "lse is 0x1002");
}

TEST_F(LaunchTest, StridesMustBeMultiplesOfEight) {
  expect_invalid([](AttentionArgs& a) { a.q_stride_token = 1023; }, "q_stride_token 1023");
  expect_invalid([](AttentionArgs& a) { a.q_stride_head = 4; }, "q_stride_head 4");
  expect_invalid([](AttentionArgs& a) { a.k_strides.block = 1; }, "k_strides.block 1");
  expect_invalid([](AttentionArgs& a) { a.k_strides.token = 2; }, "k_strides.token 2");
  expect_invalid([](AttentionArgs& a) { a.k_strides.head = 7; }, "k_strides.head 7");
  expect_invalid([](AttentionArgs& a) { a.v_strides.block = 9; }, "v_strides.block 9");
  expect_invalid([](AttentionArgs& a) { a.v_strides.token = 12; }, "v_strides.token 12");
  expect_invalid([](AttentionArgs& a) { a.v_strides.head = -1; }, "v_strides.head -1");
  expect_invalid([](AttentionArgs& a) { a.out_stride_token = 20; }, "out_stride_token 20");
  expect_invalid([](AttentionArgs& a) { a.out_stride_head = 130; },
                 "out_stride_head 130: must be a multiple of 8 elements");
}

// Every kind of K and V that has scales, apart and per head; q and the result of 8 bits.
TEST_F(LaunchTest, ScalesThatAreMissingAreNamed) {
  AttentionArgs good = legal_args();
  const auto floats = [](uintptr_t address) { return reinterpret_cast<float*>(address); };
  good.q_scale = good.k_scale = good.v_scale = floats(0x7000);
  good.out_scale = floats(0x8000);
  for (const DataType kv :
       {DataType::kFloat8E4m3, DataType::kFloat8E5m2, DataType::kInt8, DataType::kInt4}) {
    for (const bool token_scales : {false, true}) {
      const KernelSpec spec{.q_dtype = DataType::kFloat8E4m3,
                            .kv_dtype = kv,
                            .out_dtype = DataType::kFloat8E4m3,
                            .group_size = 4,
                            .token_scales = token_scales};
      if (!validate(spec)) continue;
      const Kernel quantised = prepare(*engine, spec);
      EXPECT_TRUE(quantised.launch(good, nullptr));
      const auto message = [&](auto change) {
        AttentionArgs args = good;
        change(args);
        return quantised.launch(args, nullptr).message();
      };
      SCOPED_TRACE(canonical_text(spec));
      EXPECT_THAT(message([](auto& a) { a.q_scale = nullptr; }), HasSubstr("q_scale is null"));
      EXPECT_THAT(message([](auto& a) { a.k_scale = nullptr; }), HasSubstr("k_scale is null"));
      EXPECT_THAT(message([](auto& a) { a.v_scale = nullptr; }), HasSubstr("v_scale is null"));
      EXPECT_THAT(message([](auto& a) { a.out_scale = nullptr; }), HasSubstr("out_scale is null"));
      EXPECT_THAT(message([&](auto& a) { a.v_scale = floats(0x7002); }),
                  HasSubstr("v_scale is 0x7002: must be aligned to 4"));
    }
  }
}

// Elements on the host, bytes of two on the device; copies of 16, 8 and 4 bytes.
TEST_F(LaunchTest, StridesOfInt4AreElementsOfWholeCopies) {
  struct Case {
    int head_size;
    int alignment;
    int unit;
  };
  for (const auto& [head_size, alignment, unit] :
       {Case{128, 16, 32}, {96, 16, 32}, {80, 16, 16}, {72, 16, 8}, {128, 8, 16}, {128, 4, 8}}) {
    const KernelSpec spec{.kv_dtype = DataType::kInt4,
                          .head_size = head_size,
                          .group_size = 4,
                          .token_scales = true,
                          .kv_alignment = alignment};
    const Kernel int4 = prepare(*engine, spec);
    AttentionArgs args = legal_args();
    args.k_scale = args.v_scale = reinterpret_cast<float*>(0x7000);
    args.k_strides = {40 * unit, 3 * unit, 5 * unit};
    args.v_strides = {64 * unit, 4 * unit, -2 * unit};
    ASSERT_TRUE(int4.launch(args, nullptr));
    const pagejit_shared::AttentionParams params = script->last_launch().params;
    EXPECT_EQ(params.k_stride_block, 20 * unit);
    EXPECT_EQ(params.k_stride_token * 2, 3 * unit);
    EXPECT_EQ(params.k_stride_head * 2, 5 * unit);
    EXPECT_EQ(params.v_stride_block, 32 * unit);
    EXPECT_EQ(params.v_stride_token, 2 * unit);
    EXPECT_EQ(params.v_stride_head, -unit);
    args.v_strides.token = 4 * unit + unit / 2;
    EXPECT_THAT(int4.launch(args, nullptr).message(),
                HasSubstr("v_strides.token " + std::to_string(args.v_strides.token) +
                          ": must be a multiple of " + std::to_string(unit) + " elements"));
  }
}

TEST_F(LaunchTest, CountsAndScaleAreChecked) {
  expect_invalid([](AttentionArgs& a) { a.num_seqs = -1; }, "num_seqs -1: must be in [0, 65535]");
  expect_invalid([](AttentionArgs& a) { a.num_seqs = 65536; }, "num_seqs 65536");
  expect_invalid([](AttentionArgs& a) { a.num_kv_heads = 0; }, "num_kv_heads 0: must be in [1,");
  expect_invalid([](AttentionArgs& a) { a.num_kv_heads = 65536; }, "num_kv_heads 65536");
  expect_invalid([](AttentionArgs& a) { a.max_blocks_per_seq = -1; }, "max_blocks_per_seq -1");
  expect_invalid([](AttentionArgs& a) { a.block_table_stride = 63; },
                 "block_table_stride 63: must be at least max_blocks_per_seq (64)");
  expect_invalid([](AttentionArgs& a) { a.scale = std::nanf(""); }, "scale nan: must be finite");
  expect_invalid([](AttentionArgs& a) { a.scale = std::numeric_limits<float>::infinity(); },
                 "scale inf");
  expect_invalid([](AttentionArgs& a) { a.max_seq_len = -5; }, "max_seq_len -5");
  expect_invalid([](AttentionArgs& a) { a.num_blocks = -1; }, "num_blocks -1");
  expect_invalid([](AttentionArgs& a) { a.num_splits = -1; }, "num_splits -1: must be in [0, 512]");
  expect_invalid([](AttentionArgs& a) { a.num_splits = 513; }, "num_splits 513");
  expect_invalid(
      [](AttentionArgs& a) {
        a.num_splits = 2;
        a.num_seqs = 65535;
      },
      "which are 524280 merge units");
}

TEST_F(LaunchTest, WrongWorkspacesAreRefusedWithTheBytesNeeded) {
  AttentionArgs args = legal_args();
  args.num_splits = 4;
  const size_t needed = kernel.workspace_bytes(2, 8, 1024, 4);
  const std::string sentence = "needs " + std::to_string(needed) + " bytes";
  expect_refused(StatusCode::kWorkspace, args, "workspace is null");
  expect_refused(StatusCode::kWorkspace, args, sentence);
  args.workspace = reinterpret_cast<void*>(0x100000);
  args.workspace_bytes = needed - 1;
  expect_refused(StatusCode::kWorkspace, args, "too small");
  args.workspace = reinterpret_cast<void*>(0x100080);
  args.workspace_bytes = needed;
  expect_refused(StatusCode::kWorkspace, args, "must be aligned to 256 bytes");
  args.workspace = reinterpret_cast<void*>(0x100100);
  EXPECT_TRUE(kernel.launch(args, nullptr));
}

TEST_F(LaunchTest, OneSplitNeedsNoWorkspaceUnlessItIsADebugKernel) {
  EXPECT_EQ(kernel.workspace_bytes(2, 8, 1024, 1), 0u);
  EXPECT_TRUE(kernel.launch(legal_args(), nullptr));
  const Kernel debug = prepare(*engine, kDebugSpec);
  EXPECT_EQ(debug.workspace_bytes(2, 8, 1024, 1), size_t{pagejit_shared::kPartialsOffset});
  EXPECT_EQ(debug.launch(legal_args(), nullptr).code(), StatusCode::kWorkspace);
}

TEST_F(LaunchTest, ChosenSplitsAreThoseThatAreLaunched) {
  std::vector<std::byte> space(kernel.max_workspace_bytes() + 256);
  AttentionArgs args = legal_args();
  args.num_splits = 0;
  args.num_seqs = 1;
  args.max_blocks_per_seq = 2048;
  args.block_table_stride = 2048;
  args.workspace =
      reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(space.data()) + 255) & ~uintptr_t{255});
  args.workspace_bytes = kernel.max_workspace_bytes();
  for (int max_seq_len : {0, 100, 1000, 10000, 32768, 1000000}) {
    args.max_seq_len = max_seq_len;
    const int64_t bound = max_seq_len == 0 ? 32768 : std::min(max_seq_len, 32768);
    ASSERT_TRUE(kernel.launch(args, nullptr));
    EXPECT_EQ(script->last_launch().params.num_splits, kernel.choose_num_splits(1, 8, bound));
    EXPECT_EQ(script->last_launch().params.min_split_tokens, kMinSplitTokens);
  }
}

TEST_F(LaunchTest, MaxWorkspaceIsEnoughForEveryChoice) {
  for (int num_seqs : {1, 2, 3, 5, 8, 13, 33, 64, 132, 500, 4000}) {
    for (int num_kv_heads : {1, 2, 8, 32}) {
      for (int64_t tokens : {1, 500, 5000, 50000, 500000}) {
        EXPECT_LE(kernel.workspace_bytes(num_seqs, num_kv_heads, tokens),
                  kernel.max_workspace_bytes());
      }
    }
  }
}

TEST_F(LaunchTest, EveryLaunchFailureSurfaces) {
  script->fail("cuLaunchKernelEx", CUDA_ERROR_INVALID_VALUE);
  const Status status = kernel.launch(legal_args(), nullptr);
  EXPECT_EQ(status.code(), StatusCode::kDriverError);
  EXPECT_THAT(status.message(), HasSubstr("cuLaunchKernelEx failed: CUDA_ERROR_INVALID_VALUE (1)"));
}

TEST_F(LaunchTest, FailureInAnotherDevicesContextSaysSo) {
  const pagejit_stub::Device devices[] = {{}, {}};
  script->set_devices(devices, 2);
  auto driver = *Driver::open(PAGEJIT_STUB_DRIVER);
  driver->cuCtxPushCurrent(script->make_context(1));
  script->fail("cuLaunchKernelEx", CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(kernel.launch(legal_args(), nullptr).message(),
              HasSubstr("prepared for device 0, but the current context belongs to device 1"));
  CUcontext popped = nullptr;
  driver->cuCtxPopCurrent(&popped);
}

}  // namespace
}  // namespace pagejit
