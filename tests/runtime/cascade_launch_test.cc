// What a cascade passes to the driver, launch by launch, what it refuses, and what its workspace
// takes, on the stub driver.
#include <functional>
#include <string>
#include <vector>

#include "generator/families.h"
#include "tests/runtime/engine_fixture.h"

namespace pagejit {
namespace {

using ::testing::HasSubstr;

class CascadeLaunchTest : public EngineTest {
 protected:
  static constexpr CascadeSpec kDecode{.attention = {.group_size = 4}};

  CascadeLaunchTest() {
    EngineDependencies with = dependencies();
    with.plan = plan_any;  // the other families have no fake
    Result<std::shared_ptr<Engine>> made = create_engine(options(), with);
    EXPECT_TRUE(made) << made.status().to_string();
    engine = *made;
    kernel = prepare_cascade(kDecode);
    for (int level = 0; level < 2; ++level) {
      CascadeLevel& at = levels.emplace_back();
      at.query_start_loc = reinterpret_cast<const int32_t*>(0x8000);
      at.num_seqs = level == 0 ? 1 : 64;
      at.block_table = reinterpret_cast<const int32_t*>(0x4000);
      at.block_table_stride = 512;
      at.max_blocks_per_seq = level == 0 ? 512 : 32;
      at.seq_lens = reinterpret_cast<const int32_t*>(0x5000);
    }
  }

  CascadeKernel prepare_cascade(const CascadeSpec& spec) {
    Result<CascadeKernel> prepared = engine->prepare(spec, 0);
    EXPECT_TRUE(prepared) << prepared.status().to_string();
    return prepared ? *prepared : CascadeKernel();
  }

  // A prefix of at most 8,192 tokens, 64 suffixes of at most 512.
  CascadeArgs legal_cascade() {
    const AttentionArgs from = legal_args();
    CascadeArgs args;
    args.levels = levels.data();
    args.num_levels = static_cast<int>(levels.size());
    args.q = from.q;
    args.q_stride_token = 32 * 128;
    args.q_stride_head = 128;
    args.k_cache = from.k_cache;
    args.v_cache = from.v_cache;
    args.k_strides = args.v_strides = from.k_strides;
    args.num_query_tokens = 64;
    args.num_kv_heads = 8;
    args.out = from.out;
    args.out_stride_token = 32 * 128;
    args.out_stride_head = 128;
    args.lse = reinterpret_cast<float*>(0x7000);
    args.scale = from.scale;
    args.workspace = reinterpret_cast<void*>(0x100000);
    args.workspace_bytes = size_t{1} << 30;
    return args;
  }

  void expect_refused(StatusCode code, const std::function<void(CascadeArgs&)>& change,
                      const std::string& sentence) {
    const std::vector<CascadeLevel> before = levels;
    CascadeArgs args = legal_cascade();
    change(args);
    const uint64_t launches = script->calls("cuLaunchKernelEx");
    const Status status = kernel.launch(args, nullptr);
    EXPECT_EQ(status.code(), code) << sentence;
    EXPECT_EQ(status.message(), sentence);
    EXPECT_EQ(script->calls("cuLaunchKernelEx"), launches) << sentence;
    levels = before;
  }
  void expect_invalid(const std::function<void(CascadeArgs&)>& change,
                      const std::string& sentence) {
    expect_refused(StatusCode::kInvalidArgument, change, sentence);
  }

  std::shared_ptr<Engine> engine;
  CascadeKernel kernel;
  std::vector<CascadeLevel> levels;
};

// ---- Specs ----

TEST_F(CascadeLaunchTest, WhatLevelsCannotKnowIsRefused) {
  const auto message = [](auto change) {
    CascadeSpec spec = kDecode;
    change(spec.attention);
    const Status status = validate(spec);
    return status.message();
  };
  EXPECT_EQ(message([](auto&) {}), "");
  EXPECT_EQ(message([](auto& a) { a.soft_cap = a.sinks = a.custom_mask = a.debug = true; }), "");
  EXPECT_EQ(message([](auto& a) { a.window = true; }),
            "window 1: must be 0 in a cascade, whose levels do not know how far a query token is "
            "from their keys");
  EXPECT_EQ(message([](auto& a) { a.chunked = true; }),
            "chunked 1: must be 0 in a cascade, whose levels do not know in which chunk their keys "
            "are");
  EXPECT_EQ(message([](auto& a) { a.alibi = true; }),
            "alibi 1: must be 0 in a cascade, whose levels do not know how far a query token is "
            "from their keys");
  EXPECT_EQ(
      message([](auto& a) { a.head_size = 100; }),
      "head_size 100: must be a multiple of 8 in [8, 256], or 512, or 576 with head_size_v 512");
  EXPECT_EQ(message([](auto& a) { a.block_sparse = true; }),
            "block_sparse 1: must be 0 in a cascade, whose levels do not know in which block a "
            "query token is");
  EXPECT_EQ(message([](auto& a) { a.bidirectional_ranges = true; }),
            "bidirectional_ranges 1: must be 0 in a cascade, whose levels do not know at which "
            "positions their keys are");
  EXPECT_EQ(message([](auto& a) { a.latent = true; }),
            "latent 1: must be 0 in a cascade, which was not tried over rows that hold K and V");
  EXPECT_EQ(message([](auto& a) { a.qq_bias = true; }),
            "qq_bias 1: must be 0 in a cascade, whose arguments have none; a custom mask of the "
            "suffixes hides the branches of a tree");
  EXPECT_EQ(message([](auto& a) { a.pdl = true; }),
            "pdl 1: must be 0 in a cascade, whose kernels follow each other as usual");
  EXPECT_EQ(
      message([](auto& a) {
        a.queries = QueryLengths::kFew;
        a.batch_invariant = true;
      }),
      "batch_invariant 1: must be 0 in a cascade, whose results depend on what is taken for a "
      "prefix");
  EXPECT_EQ(message([](auto& a) { a.out_dtype = DataType::kFloat8E4m3; }),
            "out_dtype fp8_e4m3: must be f16, bf16 or f32 in a cascade, whose merge has no scales");
  CascadeSpec window = kDecode;
  window.attention.window = true;
  EXPECT_EQ(engine->prepare(window, 0).status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(engine->precompile(window, *parse_target("sm_90a")).status().code(),
            StatusCode::kUnsupported);
  EXPECT_EQ(supports(window, *parse_target("sm_90a")).code(), StatusCode::kUnsupported);
  EXPECT_TRUE(supports(kDecode, *parse_target("sm_90a")));
  EXPECT_EQ(supports(kDecode, Target{TargetKind::kCuda, 70}).code(), StatusCode::kUnsupported);
}

TEST_F(CascadeLaunchTest, ItsPartsAreOtherFamiliesKernels) {
  CascadeSpec spec{.attention = {.queries = QueryLengths::kFew,
                                 .group_size = 4,
                                 .causality = Causality::kCausal,
                                 .custom_mask = true,
                                 .soft_cap = true,
                                 .sinks = true}};
  EXPECT_EQ(canonical_text(spec), "cascade " + canonical_text(spec.attention));
  const CascadeParts parts = cascade_parts(spec);
  EXPECT_EQ(canonical_text(parts.prefix),
            "shared q=bf16 kv=bf16 out=f32 head_size=128 block_size=16 group_size=4 soft_cap=1");
  EXPECT_EQ(canonical_text(parts.suffix),
            "few q=bf16 kv=bf16 out=f32 head_size=128 block_size=16 group_size=4 causal=1 "
            "custom_mask=1 soft_cap=1 sinks=1");
  EXPECT_EQ(canonical_text(parts.merge), "merge_states in=f32 out=bf16 head_size=128");
  const CascadeKernel prepared = prepare_cascade(spec);
  EXPECT_EQ(prepared.spec(), spec);
  EXPECT_TRUE(prepared);
  EXPECT_EQ(prepared.info().merge.origin, ImageOrigin::kMemory) << "the decode cascade has it too";
  EXPECT_EQ(prepared.info().prefix.origin, ImageOrigin::kCompiled);
  const Result<CascadeInfo> stored = engine->precompile(spec, *parse_target("sm_90a"));
  ASSERT_TRUE(stored) << stored.status().to_string();
  EXPECT_EQ(stored->suffix.key, prepared.info().suffix.key);
  EXPECT_NE(stored->suffix.key, stored->prefix.key);
}

// ---- Launches ----

TEST_F(CascadeLaunchTest, IsOneLaunchPerLevelAndTheMerge) {
  for (const int num_levels : {1, 2, 3, kMaxCascadeLevels}) {
    levels.resize(1);
    levels.front().num_seqs = 64;
    levels.front().max_blocks_per_seq = 32;
    levels.insert(levels.begin(), static_cast<size_t>(num_levels - 1), levels.front());
    const uint64_t before = script->calls("cuLaunchKernelEx");
    const uint64_t all_before = script->total_calls();
    const Status status = kernel.launch(legal_cascade(), nullptr);
    ASSERT_TRUE(status) << status.to_string();
    EXPECT_EQ(script->calls("cuLaunchKernelEx") - before, static_cast<uint64_t>(num_levels) + 1);
    // Of the other calls each launch has the same few, none of them a copy or an allocation.
    EXPECT_LE(script->total_calls() - all_before, 4u * (static_cast<uint64_t>(num_levels) + 1));
    // The merge comes last: a token and head per row, 4 rows of 32 vectors per CTA.
    const pagejit_stub::LaunchRecord merge = script->last_launch();
    EXPECT_EQ(merge.config.gridDimX, 64u / 4);
    EXPECT_EQ(merge.config.gridDimY, 32u);
  }
}

TEST_F(CascadeLaunchTest, NoQueryTokensLaunchNothing) {
  CascadeArgs args = legal_cascade();
  args.num_query_tokens = 0;
  EXPECT_TRUE(kernel.launch(args, nullptr));
  EXPECT_EQ(script->calls("cuLaunchKernelEx"), 0u);
  EXPECT_EQ(kernel.workspace_bytes(args), 0u);
}

// 64 sequences of 4 heads are two tiles of 128 rows: 16 units of 8 KV heads, which alone would
// leave most of 132 SMs idle. 64 suffixes of 8 KV heads fill them.
TEST_F(CascadeLaunchTest, APrefixIsSplitToFillTheGpuAndManySuffixesAreNot) {
  const CascadeArgs args = legal_cascade();
  const int prefix = kernel.choose_num_splits(args, 0);
  EXPECT_GT(16 * (prefix + 1), 132);
  EXPECT_LE(16 * prefix, 4 * 132);
  EXPECT_EQ(kernel.choose_num_splits(args, 1), 1);
  EXPECT_EQ(kernel.choose_num_splits(args, 2), 1) << "there is no such level";
  // One sequence of one head: a tile per KV head.
  const CascadeKernel lone = prepare_cascade({.attention = {.group_size = 1}});
  CascadeArgs one = args;
  one.num_kv_heads = 1;
  one.num_query_tokens = levels[1].num_seqs = 1;
  EXPECT_GE(lone.choose_num_splits(one, 0), 16);
  one.num_query_tokens = levels[1].num_seqs = 64;
  EXPECT_GE(lone.choose_num_splits(one, 0), 16) << "64 rows are one tile";
  // A bound of the prefix's length that the table does not show.
  levels[0].max_seq_len = 256;
  EXPECT_EQ(lone.choose_num_splits(one, 0), 1);
}

TEST_F(CascadeLaunchTest, TheWorkspaceHoldsStatesBehindTheGreatestLevel) {
  CascadeArgs args = legal_cascade();
  levels[0].num_splits = 4;
  const size_t states = 2 * 64 * 32 * (128 + 1) * sizeof(float);  // f32 results and lse
  // Partial results of the prefix's 2 row tiles.
  const auto attention =
      static_cast<size_t>(pagejit_shared::workspace_bytes(2, 8, 4, 128, 128) + 255) / 256 * 256;
  EXPECT_EQ(kernel.workspace_bytes(args), attention + states);
  levels[1].num_splits = 32;  // 64 sequences of 4 rows
  const auto suffixes =
      static_cast<size_t>(pagejit_shared::workspace_bytes(64, 8, 32, 4, 128) + 255) / 256 * 256;
  ASSERT_GT(suffixes, attention);
  EXPECT_EQ(kernel.workspace_bytes(args), suffixes + states);
  levels[0].num_splits = levels[1].num_splits = 1;
  EXPECT_EQ(kernel.workspace_bytes(args),
            static_cast<size_t>(pagejit_shared::kPartialsOffset + 255) / 256 * 256 + states);
  // Enough for whatever the library chooses.
  levels[0].num_splits = levels[1].num_splits = 0;
  const size_t most = kernel.max_workspace_bytes(2, 64, 8);
  EXPECT_LE(kernel.workspace_bytes(args), most);
  for (const int num_seqs : {1, 2, 7, 33}) {
    for (const int blocks : {10, 300, 20000}) {
      levels[0].max_blocks_per_seq = levels[1].max_blocks_per_seq = blocks;
      args.num_query_tokens = levels[1].num_seqs = num_seqs;
      EXPECT_LE(kernel.workspace_bytes(args), most) << num_seqs << ", " << blocks;
    }
  }
  // No pointer but that of the levels is looked at.
  CascadeArgs counts;
  counts.levels = levels.data();
  counts.num_levels = 2;
  counts.num_query_tokens = 33;
  counts.num_kv_heads = 8;
  EXPECT_EQ(kernel.workspace_bytes(counts), kernel.workspace_bytes(args));
  EXPECT_EQ(kernel.workspace_bytes({}), 0u);
}

TEST_F(CascadeLaunchTest, EachBadArgumentIsNamed) {
  expect_invalid([](auto& a) { a.num_levels = 0; }, "num_levels 0: must be in [1, 32]");
  expect_invalid([](auto& a) { a.num_levels = 33; }, "num_levels 33: must be in [1, 32]");
  expect_invalid([](auto& a) { a.levels = nullptr; },
                 "levels is null: must point to num_levels levels");
  expect_invalid([](auto& a) { a.num_kv_heads = 0; }, "num_kv_heads 0: must be in [1, 16383]");
  expect_invalid([](auto& a) { a.num_query_tokens = -1; },
                 "num_query_tokens -1: must be in [0, 536870911]");
  expect_invalid([](auto& a) { a.num_query_tokens = 63; },
                 "num_query_tokens 63: must be the num_seqs of the last level (64), whose "
                 "sequences have one query token each");
  expect_invalid([this](auto&) { levels[0].num_seqs = 0; },
                 "levels[0]: num_seqs 0: must be in [1, 65535]");
  expect_invalid([this](auto&) { levels[1].num_splits = 513; },
                 "levels[1]: num_splits 513: must be in [0, 512]");
  expect_invalid([this](auto&) { levels[0].max_blocks_per_seq = -1; },
                 "levels[0]: max_blocks_per_seq -1: must be in [0, 2147483647]");
  expect_invalid([this](auto&) { levels[0].query_start_loc = nullptr; },
                 "levels[0]: query_start_loc is null: must be a device pointer");
  expect_invalid([this](auto&) { levels[1].block_table = nullptr; },
                 "levels[1]: block_table is null: must be a device pointer");
  expect_invalid([this](auto&) { levels[0].seq_lens = nullptr; },
                 "levels[0]: seq_lens is null: must be a device pointer");
  expect_invalid([this](auto&) { levels[0].block_table_stride = 511; },
                 "levels[0]: block_table_stride 511: must be at least max_blocks_per_seq (512)");
  expect_invalid([this](auto&) { levels[1].max_seq_len = -1; },
                 "levels[1]: max_seq_len -1: must be 0 (not known) or positive");
  expect_invalid([](auto& a) { a.q = nullptr; }, "levels[0]: q is null: must be a device pointer");
  expect_invalid([](auto& a) { a.k_strides.token = 4; },
                 "levels[0]: k_strides.token 4: must be a multiple of 8 elements");
  expect_invalid([](auto& a) { a.scale = INFINITY; }, "levels[0]: scale inf: must be finite");
  expect_invalid([](auto& a) { a.out = nullptr; }, "out is null: must be a device pointer");
  expect_invalid([](auto& a) { a.out_stride_token = 3; },
                 "out_stride_token 3: must be a multiple of 4 elements");
  expect_invalid([](auto& a) { a.lse = reinterpret_cast<float*>(0x7002); },
                 "lse is 0x7002: must be aligned to 4 bytes");
  const std::string needs = "; this cascade (2 levels, 64 query tokens, 8 KV heads) needs " +
                            std::to_string(kernel.workspace_bytes(legal_cascade())) + " bytes";
  expect_refused(
      StatusCode::kWorkspace, [](auto& a) { a.workspace = nullptr; }, "workspace is null" + needs);
  expect_refused(
      StatusCode::kWorkspace, [](auto& a) { a.workspace_bytes = 100; },
      "workspace_bytes 100: too small" + needs);
  expect_refused(
      StatusCode::kWorkspace, [](auto& a) { a.workspace = reinterpret_cast<void*>(0x100080); },
      "workspace is 0x100080: must be aligned to 256 bytes" + needs);
  // Queries of one token need no ranges on the last level; others do.
  levels[1].query_start_loc = nullptr;
  EXPECT_TRUE(kernel.launch(legal_cascade(), nullptr));
  kernel = prepare_cascade({.attention = {.queries = QueryLengths::kFew, .group_size = 4}});
  expect_invalid([](auto&) {}, "levels[1]: query_start_loc is null: must be a device pointer");
}

TEST_F(CascadeLaunchTest, WhatTheLastLevelAloneNeedsIsCheckedThere) {
  kernel = prepare_cascade({.attention = {.queries = QueryLengths::kFew,
                                          .group_size = 4,
                                          .causality = Causality::kPerSequence,
                                          .soft_cap = true,
                                          .sinks = true}});
  expect_invalid([](auto&) {}, "levels[0]: soft_cap 0: must be positive and finite");
  expect_invalid([](auto& a) { a.soft_cap = 1; },
                 "levels[1]: causal_flags is null: must be a device pointer");
  const auto flags = [](CascadeArgs& a) {
    a.soft_cap = 1;
    a.causal_flags = reinterpret_cast<const uint8_t*>(0x9000);
  };
  expect_invalid(flags, "levels[1]: sinks is null: must be a device pointer");
  CascadeArgs args = legal_cascade();
  flags(args);
  args.sinks = reinterpret_cast<const float*>(0x9100);
  EXPECT_TRUE(kernel.launch(args, nullptr));
}

TEST_F(CascadeLaunchTest, AFailedLaunchSaysItsLevel) {
  script->fail("cuLaunchKernelEx", CUDA_ERROR_LAUNCH_FAILED);
  const Status status = kernel.launch(legal_cascade(), nullptr);
  EXPECT_EQ(status.code(), StatusCode::kDriverError);
  EXPECT_THAT(status.message(), HasSubstr("levels[0]: "));
  EXPECT_EQ(script->calls("cuLaunchKernelEx"), 1u);
}

TEST_F(CascadeLaunchTest, AnEmptyHandleSaysSo) {
  const CascadeKernel empty;
  EXPECT_FALSE(empty);
  const std::string sentence =
      "the CascadeKernel is empty: launch one that Engine::prepare() returned";
  EXPECT_EQ(empty.launch(legal_cascade(), nullptr).message(), sentence);
  EXPECT_EQ(empty.workspace_init(nullptr, 0, nullptr).message(), sentence);
  EXPECT_EQ(empty.read_debug_report(nullptr, nullptr).message(), sentence);
  EXPECT_EQ(empty.workspace_bytes(legal_cascade()), 0u);
  EXPECT_EQ(empty.max_workspace_bytes(2, 1, 1), 0u);
  EXPECT_EQ(empty.choose_num_splits(legal_cascade(), 0), 1);
  EXPECT_EQ(empty.spec(), CascadeSpec{});
  EXPECT_EQ(empty.info().merge.key, "");
  EXPECT_THAT(kernel.workspace_init(reinterpret_cast<void*>(0x100), 100, nullptr).message(),
              HasSubstr("workspace_bytes 100: too small"));
}

}  // namespace
}  // namespace pagejit
