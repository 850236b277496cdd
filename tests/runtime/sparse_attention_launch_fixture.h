// What the tests of sparse attention's launches share: a kernel on the stub driver, legal arguments
// of both ways of use. Thread-safety: the main thread of a test program.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tests/runtime/engine_fixture.h"

namespace pagejit {

class SparseAttentionLaunchTest : public EngineTest {
 protected:
  static constexpr int kRows = 8;
  static constexpr int kTopK = 64;
  static constexpr int64_t kRowBytes = 4096 * 4;  // of the logits of 64 blocks of 64 tokens

  SparseAttentionLaunchTest() {
    script->record_params(0);
    EngineDependencies with = dependencies();
    with.plan = plan_any;  // the other families have no fake
    Result<std::shared_ptr<Engine>> made = create_engine(options(), with);
    EXPECT_TRUE(made) << made.status().to_string();
    engine = *made;
    kernel = prepare_sparse(make_sparse());
  }

  static SparseAttentionSpec make_sparse() {
    SparseAttentionSpec spec;
    spec.attention.head_size = 576;
    spec.attention.head_size_v = 512;
    spec.attention.block_size = 64;
    spec.attention.group_size = 16;
    spec.attention.latent = true;
    spec.attention.kv_table = KvTable::kPositions;
    return spec;
  }
  static SparseAttentionSpec make_contiguous() {
    SparseAttentionSpec spec = make_sparse();
    spec.contiguous_index_keys = true;
    return spec;
  }

  SparseAttentionKernel prepare_sparse(const SparseAttentionSpec& spec) {
    Result<SparseAttentionKernel> prepared = engine->prepare(spec, 0);
    EXPECT_TRUE(prepared) << prepared.status().to_string();
    return prepared ? *prepared : SparseAttentionKernel();
  }

  // 4 sequences of at most 4,096 tokens with 2 query tokens each.
  static SparseAttentionArgs legal_pages() {
    SparseAttentionArgs args;
    args.num_rows = kRows;
    args.top_k = kTopK;
    args.index_q = reinterpret_cast<const void*>(0x11000);
    args.index_q_stride_row = 64 * 128;
    args.index_q_stride_head = 128;
    args.index_weights = reinterpret_cast<const float*>(0x12000);
    args.index_weights_stride = 64;
    args.index_k = reinterpret_cast<const void*>(0x13000);
    args.index_k_stride = index_page_bytes(64, 128, 128);
    args.ranges.seq_lens = reinterpret_cast<const int32_t*>(0x14000);
    args.ranges.next_n = 2;
    args.q = reinterpret_cast<const void*>(0x1000);
    args.q_stride_token = 16 * 576;
    args.q_stride_head = 576;
    args.k_cache = reinterpret_cast<const void*>(0x2000);
    args.k_strides = {64 * 576, 576, 576};
    args.block_table = reinterpret_cast<const int32_t*>(0x4000);
    args.block_table_stride = 64;
    args.max_blocks_per_seq = 64;
    args.query_seqs = reinterpret_cast<const int32_t*>(0x5000);
    args.out = reinterpret_cast<void*>(0x6000);
    args.out_stride_token = 16 * 512;
    args.out_stride_head = 512;
    args.lse = reinterpret_cast<float*>(0x7000);
    args.scale = 0.1f;
    args.workspace = reinterpret_cast<void*>(0x100000);
    args.workspace_bytes = size_t{1} << 30;
    return args;
  }

  // The rows of any sequences, of 3,000 keys of all.
  static SparseAttentionArgs legal_contiguous() {
    SparseAttentionArgs args = legal_pages();
    args.index_k_stride = 128;
    args.index_k_scale = reinterpret_cast<const float*>(0x15000);
    args.num_index_keys = 3000;
    args.ranges = {.row_begins = reinterpret_cast<const int32_t*>(0x16000),
                   .row_ends = reinterpret_cast<const int32_t*>(0x17000)};
    return args;
  }

  void expect_refused(StatusCode code, const SparseAttentionArgs& args,
                      const std::string& sentence) {
    const uint64_t calls = script->total_calls();
    const Status status = kernel.launch(args, nullptr);
    EXPECT_EQ(status.code(), code) << sentence;
    EXPECT_EQ(status.message(), sentence);
    EXPECT_EQ(script->total_calls(), calls) << sentence;
  }
  void expect_invalid(const std::function<void(SparseAttentionArgs&)>& change,
                      const std::string& sentence) {
    SparseAttentionArgs args =
        kernel.spec().contiguous_index_keys ? legal_contiguous() : legal_pages();
    change(args);
    expect_refused(StatusCode::kInvalidArgument, args, sentence);
  }

  // How many launches a legal call is.
  uint64_t launches_of(const SparseAttentionArgs& args) {
    const uint64_t before = script->calls("cuLaunchKernelEx");
    const Status status = kernel.launch(args, nullptr);
    EXPECT_TRUE(status) << status.to_string();
    return script->calls("cuLaunchKernelEx") - before;
  }

  std::shared_ptr<Engine> engine;
  SparseAttentionKernel kernel;
};

}  // namespace pagejit
