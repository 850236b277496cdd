// CApiLaunchTest: legal arguments of launches through C, and the same of C++; the addresses are
// never used. Thread-safety: none.
#pragma once

#include "tests/c_api/c_api_fixture.h"

namespace pagejit {

class CApiLaunchTest : public CApiTest {
 protected:
  static pagejit_attention_args legal_c_args() {
    pagejit_attention_args args;
    pagejit_attention_args_init(&args, sizeof args);
    const AttentionArgs from = legal_args();
    args.q = from.q;
    args.q_stride_token = from.q_stride_token;
    args.q_stride_head = from.q_stride_head;
    args.k_cache = from.k_cache;
    args.v_cache = from.v_cache;
    args.k_strides =
        args.v_strides = {from.k_strides.block, from.k_strides.token, from.k_strides.head};
    args.num_blocks = from.num_blocks;
    args.block_table = from.block_table;
    args.block_table_stride = from.block_table_stride;
    args.max_blocks_per_seq = from.max_blocks_per_seq;
    args.seq_lens = from.seq_lens;
    args.out = from.out;
    args.out_stride_token = from.out_stride_token;
    args.out_stride_head = from.out_stride_head;
    args.num_seqs = from.num_seqs;
    args.num_kv_heads = from.num_kv_heads;
    args.scale = from.scale;
    args.num_splits = from.num_splits;
    return args;
  }

  // 8 KV heads of 128; no two fields that a launch passes on have one value.
  static CacheWriteArgs legal_write_args() {
    CacheWriteArgs args;
    args.key = reinterpret_cast<const void*>(0x1000);
    args.value = reinterpret_cast<const void*>(0x2000);
    args.key_stride_token = 8 * 128;
    args.key_stride_head = 128;
    args.value_stride_token = 8 * 136;
    args.value_stride_head = 136;
    args.k_cache = reinterpret_cast<void*>(0x3000);
    args.v_cache = reinterpret_cast<void*>(0x4000);
    args.k_strides = {16 * 8 * 144, 8 * 144, 144};
    args.v_strides = {16 * 8 * 152, 8 * 152, 152};
    args.slot_mapping = reinterpret_cast<const int64_t*>(0x5000);
    args.num_tokens = 3;
    args.num_kv_heads = 8;
    args.k_scale = reinterpret_cast<float*>(0x6000);
    args.v_scale = reinterpret_cast<float*>(0x7000);
    args.q = reinterpret_cast<void*>(0x8000);
    args.q_stride_token = 32 * 160;
    args.q_stride_head = 160;
    args.num_q_heads = 32;
    args.positions = reinterpret_cast<const int64_t*>(0x9000);
    args.cos_sin = reinterpret_cast<const void*>(0xa000);
    args.num_blocks = 100;
    args.max_position = 4096;
    args.debug_report = reinterpret_cast<void*>(0xb000);
    return args;
  }
  static pagejit_cache_write_args legal_c_write_args() {
    const CacheWriteArgs from = legal_write_args();
    pagejit_cache_write_args args;
    pagejit_cache_write_args_init(&args, sizeof args);
    args.key = from.key;
    args.value = from.value;
    args.key_stride_token = from.key_stride_token;
    args.key_stride_head = from.key_stride_head;
    args.value_stride_token = from.value_stride_token;
    args.value_stride_head = from.value_stride_head;
    args.k_cache = from.k_cache;
    args.v_cache = from.v_cache;
    args.k_strides = {from.k_strides.block, from.k_strides.token, from.k_strides.head};
    args.v_strides = {from.v_strides.block, from.v_strides.token, from.v_strides.head};
    args.slot_mapping = from.slot_mapping;
    args.num_tokens = from.num_tokens;
    args.num_kv_heads = from.num_kv_heads;
    args.k_scale = from.k_scale;
    args.v_scale = from.v_scale;
    args.q = from.q;
    args.q_stride_token = from.q_stride_token;
    args.q_stride_head = from.q_stride_head;
    args.num_q_heads = from.num_q_heads;
    args.positions = from.positions;
    args.cos_sin = from.cos_sin;
    args.num_blocks = from.num_blocks;
    args.max_position = from.max_position;
    args.debug_report = from.debug_report;
    return args;
  }
};

}  // namespace pagejit
