// PagedAttentionTest: vLLM's entry points on the stub driver, in a current context. Thread-safety:
// none.
#pragma once

#include "pagejit/paged_attention.h"
#include "tests/runtime/engine_fixture.h"

namespace pagejit {

class PagedAttentionTest : public EngineTest {
 protected:
  PagedAttentionTest() : driver_(*Driver::open(PAGEJIT_STUB_DRIVER)) {
    driver_->cuCtxPushCurrent(script->make_context(0));
  }
  ~PagedAttentionTest() override {
    CUcontext context = nullptr;
    driver_->cuCtxPopCurrent(&context);
  }

  // 32 query heads, 8 KV heads, bf16; the addresses are never used.
  static PagedAttentionArgs legal_paged_args() {
    return {.out = reinterpret_cast<void*>(0x6000),
            .query = reinterpret_cast<const void*>(0x1000),
            .key_cache = reinterpret_cast<const void*>(0x2000),
            .value_cache = reinterpret_cast<const void*>(0x3000),
            .num_kv_heads = 8,
            .scale = 0.0883883476f,
            .block_tables = reinterpret_cast<const int32_t*>(0x4000),
            .seq_lens = reinterpret_cast<const int32_t*>(0x5000),
            .block_size = 16,
            .max_seq_len = 50000,
            .num_seqs = 2,
            .num_heads = 32,
            .head_size = 128,
            .max_num_blocks_per_seq = 4096};
  }

 private:
  std::shared_ptr<const Driver> driver_;
};

}  // namespace pagejit
