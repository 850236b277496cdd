// The layout of the C API, as it is for ever: sizes, offsets, numbers. A line that does not hold any
// more breaks programs that were compiled before; new fields and enumerators get new lines, and a
// struct that grew a new size. Compiling this is the test.
#include "pagejit/pagejit.h"

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " changed its size")
#define FIELD(type, field, bytes) \
  _Static_assert(offsetof(type, field) == (bytes), #type "." #field " moved")
#define NUMBER(name, value) _Static_assert((name) == (value), #name " changed its number")

SIZE(pagejit_kv_strides, 24);
FIELD(pagejit_kv_strides, block, 0);
FIELD(pagejit_kv_strides, token, 8);
FIELD(pagejit_kv_strides, head, 16);

SIZE(pagejit_target, 24);
FIELD(pagejit_target, struct_size, 0);
FIELD(pagejit_target, kind, 8);
FIELD(pagejit_target, sm, 12);
FIELD(pagejit_target, variant, 16);
FIELD(pagejit_target, reserved, 20);

SIZE(pagejit_kernel_info, 448);
FIELD(pagejit_kernel_info, struct_size, 0);
FIELD(pagejit_kernel_info, kernel_name, 8);
FIELD(pagejit_kernel_info, key, 264);
FIELD(pagejit_kernel_info, target, 360);
FIELD(pagejit_kernel_info, origin, 384);
FIELD(pagejit_kernel_info, reserved, 388);
FIELD(pagejit_kernel_info, compile_ms, 392);
FIELD(pagejit_kernel_info, prepare_ms, 400);
FIELD(pagejit_kernel_info, image_bytes, 408);
FIELD(pagejit_kernel_info, registers, 416);
FIELD(pagejit_kernel_info, spill_store_bytes, 420);
FIELD(pagejit_kernel_info, spill_load_bytes, 424);
FIELD(pagejit_kernel_info, stack_bytes, 428);
FIELD(pagejit_kernel_info, shared_bytes, 432);
FIELD(pagejit_kernel_info, threads_per_cta, 436);
FIELD(pagejit_kernel_info, pdl, 440);
FIELD(pagejit_kernel_info, reserved1, 444);

SIZE(pagejit_jit_event, 96);
FIELD(pagejit_jit_event, struct_size, 0);
FIELD(pagejit_jit_event, kind, 8);
FIELD(pagejit_jit_event, reserved, 12);
FIELD(pagejit_jit_event, spec, 16);
FIELD(pagejit_jit_event, target, 24);
FIELD(pagejit_jit_event, key, 48);
FIELD(pagejit_jit_event, origin, 56);
FIELD(pagejit_jit_event, reserved1, 60);
FIELD(pagejit_jit_event, duration_ms, 64);
FIELD(pagejit_jit_event, status, 72);
FIELD(pagejit_jit_event, precompiling, 76);
FIELD(pagejit_jit_event, message, 80);
FIELD(pagejit_jit_event, detail, 88);

SIZE(pagejit_bytes, 16);
FIELD(pagejit_bytes, data, 0);
FIELD(pagejit_bytes, size, 8);

SIZE(pagejit_engine_options, 240);
FIELD(pagejit_engine_options, struct_size, 0);
FIELD(pagejit_engine_options, driver, 8);
FIELD(pagejit_engine_options, allow_emulator, 16);
FIELD(pagejit_engine_options, reserved, 20);
FIELD(pagejit_engine_options, emulator_path, 24);
FIELD(pagejit_engine_options, nvrtc_path, 32);
FIELD(pagejit_engine_options, host_compiler, 40);
FIELD(pagejit_engine_options, host_build, 48);
FIELD(pagejit_engine_options, reserved1, 52);
FIELD(pagejit_engine_options, cache_dir, 56);
FIELD(pagejit_engine_options, disk_cache, 64);
FIELD(pagejit_engine_options, reserved2, 68);
FIELD(pagejit_engine_options, cache_max_bytes, 72);
FIELD(pagejit_engine_options, memory_bundles, 80);
FIELD(pagejit_engine_options, num_memory_bundles, 88);
FIELD(pagejit_engine_options, bundles, 96);
FIELD(pagejit_engine_options, num_bundles, 104);
FIELD(pagejit_engine_options, read_only_dirs, 112);
FIELD(pagejit_engine_options, num_read_only_dirs, 120);
FIELD(pagejit_engine_options, remote, 128);
FIELD(pagejit_engine_options, remote_layout, 136);
FIELD(pagejit_engine_options, remote_write, 140);
FIELD(pagejit_engine_options, trusted_keys, 144);
FIELD(pagejit_engine_options, num_trusted_keys, 152);
FIELD(pagejit_engine_options, require_signed, 160);
FIELD(pagejit_engine_options, compile_threads, 164);
FIELD(pagejit_engine_options, jit, 168);
FIELD(pagejit_engine_options, reserved3, 172);
FIELD(pagejit_engine_options, record_path, 176);
FIELD(pagejit_engine_options, dump_dir, 184);
FIELD(pagejit_engine_options, stats_path, 192);
FIELD(pagejit_engine_options, log_level, 200);
FIELD(pagejit_engine_options, reserved4, 204);
FIELD(pagejit_engine_options, log_callback, 208);
FIELD(pagejit_engine_options, log_user, 216);
FIELD(pagejit_engine_options, on_event, 224);
FIELD(pagejit_engine_options, event_user, 232);

SIZE(pagejit_prepare_options, 40);
FIELD(pagejit_prepare_options, struct_size, 0);
FIELD(pagejit_prepare_options, priority, 8);
FIELD(pagejit_prepare_options, reserved, 12);
FIELD(pagejit_prepare_options, stream, 16);
FIELD(pagejit_prepare_options, on_done, 24);
FIELD(pagejit_prepare_options, done_user, 32);

SIZE(pagejit_stats_counts, 216);
FIELD(pagejit_stats_counts, struct_size, 0);
FIELD(pagejit_stats_counts, memory_hits, 8);
FIELD(pagejit_stats_counts, bundle_hits, 16);
FIELD(pagejit_stats_counts, read_only_hits, 24);
FIELD(pagejit_stats_counts, disk_hits, 32);
FIELD(pagejit_stats_counts, remote_hits, 40);
FIELD(pagejit_stats_counts, compiles, 48);
FIELD(pagejit_stats_counts, compile_failures, 56);
FIELD(pagejit_stats_counts, compiles_cancelled, 64);
FIELD(pagejit_stats_counts, waits, 72);
FIELD(pagejit_stats_counts, process_waits, 80);
FIELD(pagejit_stats_counts, process_wait_hits, 88);
FIELD(pagejit_stats_counts, process_wait_timeouts, 96);
FIELD(pagejit_stats_counts, corrupt_entries, 104);
FIELD(pagejit_stats_counts, publish_failures, 112);
FIELD(pagejit_stats_counts, evictions, 120);
FIELD(pagejit_stats_counts, evicted_bytes, 128);
FIELD(pagejit_stats_counts, driver_rejects, 136);
FIELD(pagejit_stats_counts, modules_loaded, 144);
FIELD(pagejit_stats_counts, misses_denied_by_policy, 152);
FIELD(pagejit_stats_counts, misses_denied_in_capture, 160);
FIELD(pagejit_stats_counts, remote_failures, 168);
FIELD(pagejit_stats_counts, remote_uploads, 176);
FIELD(pagejit_stats_counts, remote_upload_failures, 184);
FIELD(pagejit_stats_counts, remote_breaker_opens, 192);
FIELD(pagejit_stats_counts, num_corrupt_kinds, 200);
FIELD(pagejit_stats_counts, num_publish_errnos, 208);

SIZE(pagejit_histogram, 48);
FIELD(pagejit_histogram, struct_size, 0);
FIELD(pagejit_histogram, bounds, 8);
FIELD(pagejit_histogram, counts, 16);
FIELD(pagejit_histogram, num_bounds, 24);
FIELD(pagejit_histogram, sum, 32);
FIELD(pagejit_histogram, count, 40);

SIZE(pagejit_kernel_spec, 112);
FIELD(pagejit_kernel_spec, struct_size, 0);
FIELD(pagejit_kernel_spec, queries, 8);
FIELD(pagejit_kernel_spec, q_dtype, 12);
FIELD(pagejit_kernel_spec, kv_dtype, 16);
FIELD(pagejit_kernel_spec, out_dtype, 20);
FIELD(pagejit_kernel_spec, head_size, 24);
FIELD(pagejit_kernel_spec, head_size_v, 28);
FIELD(pagejit_kernel_spec, block_size, 32);
FIELD(pagejit_kernel_spec, group_size, 36);
FIELD(pagejit_kernel_spec, causality, 40);
FIELD(pagejit_kernel_spec, kv_table, 44);
FIELD(pagejit_kernel_spec, kv_layout, 48);
FIELD(pagejit_kernel_spec, latent, 52);
FIELD(pagejit_kernel_spec, token_scales, 56);
FIELD(pagejit_kernel_spec, kv_alignment, 60);
FIELD(pagejit_kernel_spec, window, 64);
FIELD(pagejit_kernel_spec, chunked, 68);
FIELD(pagejit_kernel_spec, custom_mask, 72);
FIELD(pagejit_kernel_spec, bidirectional_ranges, 76);
FIELD(pagejit_kernel_spec, block_sparse, 80);
FIELD(pagejit_kernel_spec, soft_cap, 84);
FIELD(pagejit_kernel_spec, alibi, 88);
FIELD(pagejit_kernel_spec, qq_bias, 92);
FIELD(pagejit_kernel_spec, sinks, 96);
FIELD(pagejit_kernel_spec, batch_invariant, 100);
FIELD(pagejit_kernel_spec, debug, 104);
FIELD(pagejit_kernel_spec, pdl, 108);

SIZE(pagejit_block_sparse_args, 20);
FIELD(pagejit_block_sparse_args, local_blocks, 0);
FIELD(pagejit_block_sparse_args, vert_stride, 4);
FIELD(pagejit_block_sparse_args, block_size, 8);
FIELD(pagejit_block_sparse_args, head_sliding_step, 12);
FIELD(pagejit_block_sparse_args, tp_rank, 16);

SIZE(pagejit_attention_args, 504);
FIELD(pagejit_attention_args, struct_size, 0);
FIELD(pagejit_attention_args, q, 8);
FIELD(pagejit_attention_args, q_stride_token, 16);
FIELD(pagejit_attention_args, q_stride_head, 24);
FIELD(pagejit_attention_args, k_cache, 32);
FIELD(pagejit_attention_args, v_cache, 40);
FIELD(pagejit_attention_args, k_strides, 48);
FIELD(pagejit_attention_args, v_strides, 72);
FIELD(pagejit_attention_args, q_scale, 96);
FIELD(pagejit_attention_args, k_scale, 104);
FIELD(pagejit_attention_args, v_scale, 112);
FIELD(pagejit_attention_args, kv_scale_stride, 120);
FIELD(pagejit_attention_args, k_scale_strides, 128);
FIELD(pagejit_attention_args, v_scale_strides, 152);
FIELD(pagejit_attention_args, num_blocks, 176);
FIELD(pagejit_attention_args, block_table, 184);
FIELD(pagejit_attention_args, block_table_stride, 192);
FIELD(pagejit_attention_args, max_blocks_per_seq, 200);
FIELD(pagejit_attention_args, reserved, 204);
FIELD(pagejit_attention_args, seq_lens, 208);
FIELD(pagejit_attention_args, kv_indptr, 216);
FIELD(pagejit_attention_args, kv_indices, 224);
FIELD(pagejit_attention_args, kv_last_block_len, 232);
FIELD(pagejit_attention_args, kv_start_loc, 240);
FIELD(pagejit_attention_args, token_lists, 248);
FIELD(pagejit_attention_args, token_list_stride, 256);
FIELD(pagejit_attention_args, max_list_len, 264);
FIELD(pagejit_attention_args, reserved1, 268);
FIELD(pagejit_attention_args, query_seqs, 272);
FIELD(pagejit_attention_args, query_start_loc, 280);
FIELD(pagejit_attention_args, num_query_tokens, 288);
FIELD(pagejit_attention_args, reserved2, 292);
FIELD(pagejit_attention_args, causal_flags, 296);
FIELD(pagejit_attention_args, out, 304);
FIELD(pagejit_attention_args, out_stride_token, 312);
FIELD(pagejit_attention_args, out_stride_head, 320);
FIELD(pagejit_attention_args, out_scale, 328);
FIELD(pagejit_attention_args, lse, 336);
FIELD(pagejit_attention_args, window_left, 344);
FIELD(pagejit_attention_args, window_right, 348);
FIELD(pagejit_attention_args, chunk_size, 352);
FIELD(pagejit_attention_args, reserved3, 356);
FIELD(pagejit_attention_args, custom_mask, 360);
FIELD(pagejit_attention_args, custom_mask_indptr, 368);
FIELD(pagejit_attention_args, bidirectional_ranges, 376);
FIELD(pagejit_attention_args, bidirectional_ranges_stride, 384);
FIELD(pagejit_attention_args, max_bidirectional_ranges, 392);
FIELD(pagejit_attention_args, ranges_within_window, 396);
FIELD(pagejit_attention_args, block_sparse, 400);
FIELD(pagejit_attention_args, soft_cap, 420);
FIELD(pagejit_attention_args, alibi_slopes, 424);
FIELD(pagejit_attention_args, qq_bias, 432);
FIELD(pagejit_attention_args, qq_bias_stride_seq, 440);
FIELD(pagejit_attention_args, qq_bias_stride_row, 448);
FIELD(pagejit_attention_args, sinks, 456);
FIELD(pagejit_attention_args, num_seqs, 464);
FIELD(pagejit_attention_args, num_kv_heads, 468);
FIELD(pagejit_attention_args, scale, 472);
FIELD(pagejit_attention_args, max_seq_len, 476);
FIELD(pagejit_attention_args, num_splits, 480);
FIELD(pagejit_attention_args, reserved4, 484);
FIELD(pagejit_attention_args, workspace, 488);
FIELD(pagejit_attention_args, workspace_bytes, 496);

SIZE(pagejit_cache_write_spec, 64);
FIELD(pagejit_cache_write_spec, struct_size, 0);
FIELD(pagejit_cache_write_spec, dtype, 8);
FIELD(pagejit_cache_write_spec, kv_dtype, 12);
FIELD(pagejit_cache_write_spec, scale, 16);
FIELD(pagejit_cache_write_spec, layout, 20);
FIELD(pagejit_cache_write_spec, head_size, 24);
FIELD(pagejit_cache_write_spec, head_size_v, 28);
FIELD(pagejit_cache_write_spec, block_size, 32);
FIELD(pagejit_cache_write_spec, rope, 36);
FIELD(pagejit_cache_write_spec, rotary_dim, 40);
FIELD(pagejit_cache_write_spec, cos_sin_dtype, 44);
FIELD(pagejit_cache_write_spec, row_alignment, 48);
FIELD(pagejit_cache_write_spec, debug, 52);
FIELD(pagejit_cache_write_spec, pdl, 56);
FIELD(pagejit_cache_write_spec, reserved, 60);

SIZE(pagejit_cache_write_args, 224);
FIELD(pagejit_cache_write_args, struct_size, 0);
FIELD(pagejit_cache_write_args, key, 8);
FIELD(pagejit_cache_write_args, value, 16);
FIELD(pagejit_cache_write_args, key_stride_token, 24);
FIELD(pagejit_cache_write_args, key_stride_head, 32);
FIELD(pagejit_cache_write_args, value_stride_token, 40);
FIELD(pagejit_cache_write_args, value_stride_head, 48);
FIELD(pagejit_cache_write_args, k_cache, 56);
FIELD(pagejit_cache_write_args, v_cache, 64);
FIELD(pagejit_cache_write_args, k_strides, 72);
FIELD(pagejit_cache_write_args, v_strides, 96);
FIELD(pagejit_cache_write_args, slot_mapping, 120);
FIELD(pagejit_cache_write_args, num_tokens, 128);
FIELD(pagejit_cache_write_args, num_kv_heads, 132);
FIELD(pagejit_cache_write_args, k_scale, 136);
FIELD(pagejit_cache_write_args, v_scale, 144);
FIELD(pagejit_cache_write_args, q, 152);
FIELD(pagejit_cache_write_args, q_stride_token, 160);
FIELD(pagejit_cache_write_args, q_stride_head, 168);
FIELD(pagejit_cache_write_args, num_q_heads, 176);
FIELD(pagejit_cache_write_args, reserved, 180);
FIELD(pagejit_cache_write_args, positions, 184);
FIELD(pagejit_cache_write_args, cos_sin, 192);
FIELD(pagejit_cache_write_args, num_blocks, 200);
FIELD(pagejit_cache_write_args, max_position, 208);
FIELD(pagejit_cache_write_args, debug_report, 216);

SIZE(pagejit_copy_blocks_spec, 16);
FIELD(pagejit_copy_blocks_spec, struct_size, 0);
FIELD(pagejit_copy_blocks_spec, alignment, 8);
FIELD(pagejit_copy_blocks_spec, debug, 12);

SIZE(pagejit_copy_blocks_args, 72);
FIELD(pagejit_copy_blocks_args, struct_size, 0);
FIELD(pagejit_copy_blocks_args, caches, 8);
FIELD(pagejit_copy_blocks_args, num_caches, 16);
FIELD(pagejit_copy_blocks_args, reserved, 20);
FIELD(pagejit_copy_blocks_args, block_bytes, 24);
FIELD(pagejit_copy_blocks_args, block_stride_bytes, 32);
FIELD(pagejit_copy_blocks_args, pairs, 40);
FIELD(pagejit_copy_blocks_args, num_pairs, 48);
FIELD(pagejit_copy_blocks_args, reserved1, 52);
FIELD(pagejit_copy_blocks_args, num_blocks, 56);
FIELD(pagejit_copy_blocks_args, debug_report, 64);

SIZE(pagejit_gather_cache_spec, 48);
FIELD(pagejit_gather_cache_spec, struct_size, 0);
FIELD(pagejit_gather_cache_spec, kv_dtype, 8);
FIELD(pagejit_gather_cache_spec, out_dtype, 12);
FIELD(pagejit_gather_cache_spec, scale, 16);
FIELD(pagejit_gather_cache_spec, layout, 20);
FIELD(pagejit_gather_cache_spec, head_size, 24);
FIELD(pagejit_gather_cache_spec, head_size_v, 28);
FIELD(pagejit_gather_cache_spec, block_size, 32);
FIELD(pagejit_gather_cache_spec, row_alignment, 36);
FIELD(pagejit_gather_cache_spec, debug, 40);
FIELD(pagejit_gather_cache_spec, reserved, 44);

SIZE(pagejit_gather_cache_args, 200);
FIELD(pagejit_gather_cache_args, struct_size, 0);
FIELD(pagejit_gather_cache_args, k_cache, 8);
FIELD(pagejit_gather_cache_args, v_cache, 16);
FIELD(pagejit_gather_cache_args, k_strides, 24);
FIELD(pagejit_gather_cache_args, v_strides, 48);
FIELD(pagejit_gather_cache_args, block_table, 72);
FIELD(pagejit_gather_cache_args, block_table_stride, 80);
FIELD(pagejit_gather_cache_args, cu_seq_lens, 88);
FIELD(pagejit_gather_cache_args, seq_starts, 96);
FIELD(pagejit_gather_cache_args, num_seqs, 104);
FIELD(pagejit_gather_cache_args, num_tokens, 108);
FIELD(pagejit_gather_cache_args, num_kv_heads, 112);
FIELD(pagejit_gather_cache_args, reserved, 116);
FIELD(pagejit_gather_cache_args, k_scale, 120);
FIELD(pagejit_gather_cache_args, v_scale, 128);
FIELD(pagejit_gather_cache_args, k_out, 136);
FIELD(pagejit_gather_cache_args, v_out, 144);
FIELD(pagejit_gather_cache_args, out_stride_token, 152);
FIELD(pagejit_gather_cache_args, out_stride_head, 160);
FIELD(pagejit_gather_cache_args, v_out_stride_token, 168);
FIELD(pagejit_gather_cache_args, v_out_stride_head, 176);
FIELD(pagejit_gather_cache_args, num_blocks, 184);
FIELD(pagejit_gather_cache_args, debug_report, 192);

SIZE(pagejit_convert_float8_spec, 16);
FIELD(pagejit_convert_float8_spec, struct_size, 0);
FIELD(pagejit_convert_float8_spec, from_dtype, 8);
FIELD(pagejit_convert_float8_spec, to_dtype, 12);

SIZE(pagejit_convert_float8_args, 40);
FIELD(pagejit_convert_float8_args, struct_size, 0);
FIELD(pagejit_convert_float8_args, from, 8);
FIELD(pagejit_convert_float8_args, to, 16);
FIELD(pagejit_convert_float8_args, count, 24);
FIELD(pagejit_convert_float8_args, scale, 32);
FIELD(pagejit_convert_float8_args, reserved, 36);

SIZE(pagejit_swap_blocks_args, 72);
FIELD(pagejit_swap_blocks_args, struct_size, 0);
FIELD(pagejit_swap_blocks_args, direction, 8);
FIELD(pagejit_swap_blocks_args, reserved, 12);
FIELD(pagejit_swap_blocks_args, from, 16);
FIELD(pagejit_swap_blocks_args, to, 24);
FIELD(pagejit_swap_blocks_args, block_bytes, 32);
FIELD(pagejit_swap_blocks_args, from_stride_bytes, 40);
FIELD(pagejit_swap_blocks_args, to_stride_bytes, 48);
FIELD(pagejit_swap_blocks_args, pairs, 56);
FIELD(pagejit_swap_blocks_args, num_pairs, 64);
FIELD(pagejit_swap_blocks_args, reserved1, 68);

SIZE(pagejit_merge_states_spec, 32);
FIELD(pagejit_merge_states_spec, struct_size, 0);
FIELD(pagejit_merge_states_spec, in_dtype, 8);
FIELD(pagejit_merge_states_spec, out_dtype, 12);
FIELD(pagejit_merge_states_spec, head_size, 16);
FIELD(pagejit_merge_states_spec, listed, 20);
FIELD(pagejit_merge_states_spec, pdl, 24);
FIELD(pagejit_merge_states_spec, reserved, 28);

SIZE(pagejit_merge_state, 16);
FIELD(pagejit_merge_state, v, 0);
FIELD(pagejit_merge_state, lse, 8);

SIZE(pagejit_merge_states_args, 168);
FIELD(pagejit_merge_states_args, struct_size, 0);
FIELD(pagejit_merge_states_args, v, 8);
FIELD(pagejit_merge_states_args, lse, 16);
FIELD(pagejit_merge_states_args, v_stride_state, 24);
FIELD(pagejit_merge_states_args, lse_stride_state, 32);
FIELD(pagejit_merge_states_args, states, 40);
FIELD(pagejit_merge_states_args, v_stride_token, 48);
FIELD(pagejit_merge_states_args, v_stride_head, 56);
FIELD(pagejit_merge_states_args, lse_stride_token, 64);
FIELD(pagejit_merge_states_args, lse_stride_head, 72);
FIELD(pagejit_merge_states_args, out, 80);
FIELD(pagejit_merge_states_args, out_stride_token, 88);
FIELD(pagejit_merge_states_args, out_stride_head, 96);
FIELD(pagejit_merge_states_args, out_lse, 104);
FIELD(pagejit_merge_states_args, out_lse_stride_token, 112);
FIELD(pagejit_merge_states_args, out_lse_stride_head, 120);
FIELD(pagejit_merge_states_args, num_states, 128);
FIELD(pagejit_merge_states_args, reserved, 132);
FIELD(pagejit_merge_states_args, num_tokens, 136);
FIELD(pagejit_merge_states_args, num_heads, 144);
FIELD(pagejit_merge_states_args, reserved1, 148);
FIELD(pagejit_merge_states_args, num_merged_tokens, 152);
FIELD(pagejit_merge_states_args, token_count, 160);

SIZE(pagejit_mla_cache_write_spec, 56);
FIELD(pagejit_mla_cache_write_spec, struct_size, 0);
FIELD(pagejit_mla_cache_write_spec, dtype, 8);
FIELD(pagejit_mla_cache_write_spec, format, 12);
FIELD(pagejit_mla_cache_write_spec, kv_lora_rank, 16);
FIELD(pagejit_mla_cache_write_spec, qk_rope_head_dim, 20);
FIELD(pagejit_mla_cache_write_spec, block_size, 24);
FIELD(pagejit_mla_cache_write_spec, rope, 28);
FIELD(pagejit_mla_cache_write_spec, cos_sin_dtype, 32);
FIELD(pagejit_mla_cache_write_spec, grouped, 36);
FIELD(pagejit_mla_cache_write_spec, row_alignment, 40);
FIELD(pagejit_mla_cache_write_spec, debug, 44);
FIELD(pagejit_mla_cache_write_spec, pdl, 48);
FIELD(pagejit_mla_cache_write_spec, reserved, 52);

SIZE(pagejit_mla_cache_write_args, 200);
FIELD(pagejit_mla_cache_write_args, struct_size, 0);
FIELD(pagejit_mla_cache_write_args, kv_c, 8);
FIELD(pagejit_mla_cache_write_args, k_pe, 16);
FIELD(pagejit_mla_cache_write_args, kv_c_stride_token, 24);
FIELD(pagejit_mla_cache_write_args, k_pe_stride_token, 32);
FIELD(pagejit_mla_cache_write_args, cache, 40);
FIELD(pagejit_mla_cache_write_args, cache_stride_block, 48);
FIELD(pagejit_mla_cache_write_args, cache_stride_token, 56);
FIELD(pagejit_mla_cache_write_args, slot_mapping, 64);
FIELD(pagejit_mla_cache_write_args, num_tokens, 72);
FIELD(pagejit_mla_cache_write_args, reserved, 76);
FIELD(pagejit_mla_cache_write_args, caches, 80);
FIELD(pagejit_mla_cache_write_args, num_layers, 88);
FIELD(pagejit_mla_cache_write_args, reserved1, 92);
FIELD(pagejit_mla_cache_write_args, kv_c_stride_layer, 96);
FIELD(pagejit_mla_cache_write_args, k_pe_stride_layer, 104);
FIELD(pagejit_mla_cache_write_args, slot_mapping_stride_layer, 112);
FIELD(pagejit_mla_cache_write_args, scale, 120);
FIELD(pagejit_mla_cache_write_args, q_pe, 128);
FIELD(pagejit_mla_cache_write_args, q_pe_stride_token, 136);
FIELD(pagejit_mla_cache_write_args, q_pe_stride_head, 144);
FIELD(pagejit_mla_cache_write_args, num_q_heads, 152);
FIELD(pagejit_mla_cache_write_args, reserved2, 156);
FIELD(pagejit_mla_cache_write_args, positions, 160);
FIELD(pagejit_mla_cache_write_args, cos_sin, 168);
FIELD(pagejit_mla_cache_write_args, num_blocks, 176);
FIELD(pagejit_mla_cache_write_args, max_position, 184);
FIELD(pagejit_mla_cache_write_args, debug_report, 192);

SIZE(pagejit_index_key_write_spec, 40);
FIELD(pagejit_index_key_write_spec, struct_size, 0);
FIELD(pagejit_index_key_write_spec, dtype, 8);
FIELD(pagejit_index_key_write_spec, head_size, 12);
FIELD(pagejit_index_key_write_spec, quant_block_size, 16);
FIELD(pagejit_index_key_write_spec, block_size, 20);
FIELD(pagejit_index_key_write_spec, power_of_two_scale, 24);
FIELD(pagejit_index_key_write_spec, row_alignment, 28);
FIELD(pagejit_index_key_write_spec, debug, 32);
FIELD(pagejit_index_key_write_spec, reserved, 36);

SIZE(pagejit_index_key_write_args, 72);
FIELD(pagejit_index_key_write_args, struct_size, 0);
FIELD(pagejit_index_key_write_args, k, 8);
FIELD(pagejit_index_key_write_args, k_stride_token, 16);
FIELD(pagejit_index_key_write_args, cache, 24);
FIELD(pagejit_index_key_write_args, block_stride_bytes, 32);
FIELD(pagejit_index_key_write_args, slot_mapping, 40);
FIELD(pagejit_index_key_write_args, num_tokens, 48);
FIELD(pagejit_index_key_write_args, reserved, 52);
FIELD(pagejit_index_key_write_args, num_blocks, 56);
FIELD(pagejit_index_key_write_args, debug_report, 64);

SIZE(pagejit_index_key_gather_spec, 32);
FIELD(pagejit_index_key_gather_spec, struct_size, 0);
FIELD(pagejit_index_key_gather_spec, head_size, 8);
FIELD(pagejit_index_key_gather_spec, quant_block_size, 12);
FIELD(pagejit_index_key_gather_spec, block_size, 16);
FIELD(pagejit_index_key_gather_spec, row_alignment, 20);
FIELD(pagejit_index_key_gather_spec, debug, 24);
FIELD(pagejit_index_key_gather_spec, reserved, 28);

SIZE(pagejit_index_key_gather_args, 112);
FIELD(pagejit_index_key_gather_args, struct_size, 0);
FIELD(pagejit_index_key_gather_args, cache, 8);
FIELD(pagejit_index_key_gather_args, block_stride_bytes, 16);
FIELD(pagejit_index_key_gather_args, block_table, 24);
FIELD(pagejit_index_key_gather_args, block_table_stride, 32);
FIELD(pagejit_index_key_gather_args, cu_seq_lens, 40);
FIELD(pagejit_index_key_gather_args, seq_starts, 48);
FIELD(pagejit_index_key_gather_args, num_seqs, 56);
FIELD(pagejit_index_key_gather_args, num_tokens, 60);
FIELD(pagejit_index_key_gather_args, k_out, 64);
FIELD(pagejit_index_key_gather_args, k_out_stride_token, 72);
FIELD(pagejit_index_key_gather_args, scale_out, 80);
FIELD(pagejit_index_key_gather_args, scale_out_stride_token, 88);
FIELD(pagejit_index_key_gather_args, num_blocks, 96);
FIELD(pagejit_index_key_gather_args, debug_report, 104);

SIZE(pagejit_index_row_ranges, 32);
FIELD(pagejit_index_row_ranges, row_begins, 0);
FIELD(pagejit_index_row_ranges, row_ends, 8);
FIELD(pagejit_index_row_ranges, seq_lens, 16);
FIELD(pagejit_index_row_ranges, next_n, 24);
FIELD(pagejit_index_row_ranges, reserved, 28);

SIZE(pagejit_index_logits_spec, 32);
FIELD(pagejit_index_logits_spec, struct_size, 0);
FIELD(pagejit_index_logits_spec, num_heads, 8);
FIELD(pagejit_index_logits_spec, head_size, 12);
FIELD(pagejit_index_logits_spec, block_size, 16);
FIELD(pagejit_index_logits_spec, clean, 20);
FIELD(pagejit_index_logits_spec, debug, 24);
FIELD(pagejit_index_logits_spec, reserved, 28);

SIZE(pagejit_index_logits_args, 176);
FIELD(pagejit_index_logits_args, struct_size, 0);
FIELD(pagejit_index_logits_args, q, 8);
FIELD(pagejit_index_logits_args, q_stride_row, 16);
FIELD(pagejit_index_logits_args, q_stride_head, 24);
FIELD(pagejit_index_logits_args, weights, 32);
FIELD(pagejit_index_logits_args, weights_stride, 40);
FIELD(pagejit_index_logits_args, k, 48);
FIELD(pagejit_index_logits_args, k_stride, 56);
FIELD(pagejit_index_logits_args, k_scale, 64);
FIELD(pagejit_index_logits_args, num_keys, 72);
FIELD(pagejit_index_logits_args, reserved, 76);
FIELD(pagejit_index_logits_args, block_table, 80);
FIELD(pagejit_index_logits_args, block_table_stride, 88);
FIELD(pagejit_index_logits_args, ranges, 96);
FIELD(pagejit_index_logits_args, num_rows, 128);
FIELD(pagejit_index_logits_args, column_begin, 132);
FIELD(pagejit_index_logits_args, num_columns, 136);
FIELD(pagejit_index_logits_args, reserved1, 140);
FIELD(pagejit_index_logits_args, logits, 144);
FIELD(pagejit_index_logits_args, logits_stride, 152);
FIELD(pagejit_index_logits_args, num_blocks, 160);
FIELD(pagejit_index_logits_args, debug_report, 168);

SIZE(pagejit_top_k_spec, 16);
FIELD(pagejit_top_k_spec, struct_size, 0);
FIELD(pagejit_top_k_spec, row_alignment, 8);
FIELD(pagejit_top_k_spec, debug, 12);

SIZE(pagejit_top_k_args, 120);
FIELD(pagejit_top_k_args, struct_size, 0);
FIELD(pagejit_top_k_args, logits, 8);
FIELD(pagejit_top_k_args, logits_stride, 16);
FIELD(pagejit_top_k_args, ranges, 24);
FIELD(pagejit_top_k_args, num_rows, 56);
FIELD(pagejit_top_k_args, num_columns, 60);
FIELD(pagejit_top_k_args, k, 64);
FIELD(pagejit_top_k_args, reserved, 68);
FIELD(pagejit_top_k_args, indices, 72);
FIELD(pagejit_top_k_args, indices_stride, 80);
FIELD(pagejit_top_k_args, workspace, 88);
FIELD(pagejit_top_k_args, workspace_bytes, 96);
FIELD(pagejit_top_k_args, num_splits, 104);
FIELD(pagejit_top_k_args, reserved1, 108);
FIELD(pagejit_top_k_args, debug_report, 112);

SIZE(pagejit_cascade_spec, 16);
FIELD(pagejit_cascade_spec, struct_size, 0);
FIELD(pagejit_cascade_spec, attention, 8);

SIZE(pagejit_cascade_level, 96);
FIELD(pagejit_cascade_level, struct_size, 0);
FIELD(pagejit_cascade_level, query_start_loc, 8);
FIELD(pagejit_cascade_level, num_seqs, 16);
FIELD(pagejit_cascade_level, reserved, 20);
FIELD(pagejit_cascade_level, block_table, 24);
FIELD(pagejit_cascade_level, block_table_stride, 32);
FIELD(pagejit_cascade_level, max_blocks_per_seq, 40);
FIELD(pagejit_cascade_level, reserved1, 44);
FIELD(pagejit_cascade_level, seq_lens, 48);
FIELD(pagejit_cascade_level, kv_indptr, 56);
FIELD(pagejit_cascade_level, kv_indices, 64);
FIELD(pagejit_cascade_level, kv_last_block_len, 72);
FIELD(pagejit_cascade_level, kv_start_loc, 80);
FIELD(pagejit_cascade_level, max_seq_len, 88);
FIELD(pagejit_cascade_level, num_splits, 92);

SIZE(pagejit_cascade_args, 304);
FIELD(pagejit_cascade_args, struct_size, 0);
FIELD(pagejit_cascade_args, levels, 8);
FIELD(pagejit_cascade_args, num_levels, 16);
FIELD(pagejit_cascade_args, reserved, 20);
FIELD(pagejit_cascade_args, q, 24);
FIELD(pagejit_cascade_args, q_stride_token, 32);
FIELD(pagejit_cascade_args, q_stride_head, 40);
FIELD(pagejit_cascade_args, k_cache, 48);
FIELD(pagejit_cascade_args, v_cache, 56);
FIELD(pagejit_cascade_args, k_strides, 64);
FIELD(pagejit_cascade_args, v_strides, 88);
FIELD(pagejit_cascade_args, q_scale, 112);
FIELD(pagejit_cascade_args, k_scale, 120);
FIELD(pagejit_cascade_args, v_scale, 128);
FIELD(pagejit_cascade_args, kv_scale_stride, 136);
FIELD(pagejit_cascade_args, k_scale_strides, 144);
FIELD(pagejit_cascade_args, v_scale_strides, 168);
FIELD(pagejit_cascade_args, num_blocks, 192);
FIELD(pagejit_cascade_args, num_query_tokens, 200);
FIELD(pagejit_cascade_args, num_kv_heads, 204);
FIELD(pagejit_cascade_args, out, 208);
FIELD(pagejit_cascade_args, out_stride_token, 216);
FIELD(pagejit_cascade_args, out_stride_head, 224);
FIELD(pagejit_cascade_args, lse, 232);
FIELD(pagejit_cascade_args, causal_flags, 240);
FIELD(pagejit_cascade_args, custom_mask, 248);
FIELD(pagejit_cascade_args, custom_mask_indptr, 256);
FIELD(pagejit_cascade_args, soft_cap, 264);
FIELD(pagejit_cascade_args, reserved1, 268);
FIELD(pagejit_cascade_args, sinks, 272);
FIELD(pagejit_cascade_args, scale, 280);
FIELD(pagejit_cascade_args, reserved2, 284);
FIELD(pagejit_cascade_args, workspace, 288);
FIELD(pagejit_cascade_args, workspace_bytes, 296);

SIZE(pagejit_sparse_attention_spec, 32);
FIELD(pagejit_sparse_attention_spec, struct_size, 0);
FIELD(pagejit_sparse_attention_spec, attention, 8);
FIELD(pagejit_sparse_attention_spec, index_num_heads, 16);
FIELD(pagejit_sparse_attention_spec, index_head_size, 20);
FIELD(pagejit_sparse_attention_spec, contiguous_index_keys, 24);
FIELD(pagejit_sparse_attention_spec, reserved, 28);

SIZE(pagejit_sparse_attention_args, 360);
FIELD(pagejit_sparse_attention_args, struct_size, 0);
FIELD(pagejit_sparse_attention_args, num_rows, 8);
FIELD(pagejit_sparse_attention_args, top_k, 12);
FIELD(pagejit_sparse_attention_args, index_q, 16);
FIELD(pagejit_sparse_attention_args, index_q_stride_row, 24);
FIELD(pagejit_sparse_attention_args, index_q_stride_head, 32);
FIELD(pagejit_sparse_attention_args, index_weights, 40);
FIELD(pagejit_sparse_attention_args, index_weights_stride, 48);
FIELD(pagejit_sparse_attention_args, index_k, 56);
FIELD(pagejit_sparse_attention_args, index_k_stride, 64);
FIELD(pagejit_sparse_attention_args, index_k_scale, 72);
FIELD(pagejit_sparse_attention_args, num_index_keys, 80);
FIELD(pagejit_sparse_attention_args, reserved, 84);
FIELD(pagejit_sparse_attention_args, ranges, 88);
FIELD(pagejit_sparse_attention_args, max_seq_len, 120);
FIELD(pagejit_sparse_attention_args, reserved1, 124);
FIELD(pagejit_sparse_attention_args, logits_bytes, 128);
FIELD(pagejit_sparse_attention_args, indices, 136);
FIELD(pagejit_sparse_attention_args, indices_stride, 144);
FIELD(pagejit_sparse_attention_args, q, 152);
FIELD(pagejit_sparse_attention_args, q_stride_token, 160);
FIELD(pagejit_sparse_attention_args, q_stride_head, 168);
FIELD(pagejit_sparse_attention_args, q_scale, 176);
FIELD(pagejit_sparse_attention_args, k_cache, 184);
FIELD(pagejit_sparse_attention_args, k_strides, 192);
FIELD(pagejit_sparse_attention_args, k_scale, 216);
FIELD(pagejit_sparse_attention_args, kv_scale_stride, 224);
FIELD(pagejit_sparse_attention_args, num_blocks, 232);
FIELD(pagejit_sparse_attention_args, block_table, 240);
FIELD(pagejit_sparse_attention_args, block_table_stride, 248);
FIELD(pagejit_sparse_attention_args, max_blocks_per_seq, 256);
FIELD(pagejit_sparse_attention_args, reserved2, 260);
FIELD(pagejit_sparse_attention_args, query_seqs, 264);
FIELD(pagejit_sparse_attention_args, out, 272);
FIELD(pagejit_sparse_attention_args, out_stride_token, 280);
FIELD(pagejit_sparse_attention_args, out_stride_head, 288);
FIELD(pagejit_sparse_attention_args, out_scale, 296);
FIELD(pagejit_sparse_attention_args, lse, 304);
FIELD(pagejit_sparse_attention_args, soft_cap, 312);
FIELD(pagejit_sparse_attention_args, reserved3, 316);
FIELD(pagejit_sparse_attention_args, sinks, 320);
FIELD(pagejit_sparse_attention_args, num_kv_heads, 328);
FIELD(pagejit_sparse_attention_args, scale, 332);
FIELD(pagejit_sparse_attention_args, num_splits, 336);
FIELD(pagejit_sparse_attention_args, reserved4, 340);
FIELD(pagejit_sparse_attention_args, workspace, 344);
FIELD(pagejit_sparse_attention_args, workspace_bytes, 352);

SIZE(pagejit_paged_attention_args, 184);
FIELD(pagejit_paged_attention_args, struct_size, 0);
FIELD(pagejit_paged_attention_args, out, 8);
FIELD(pagejit_paged_attention_args, workspace, 16);
FIELD(pagejit_paged_attention_args, workspace_bytes, 24);
FIELD(pagejit_paged_attention_args, query, 32);
FIELD(pagejit_paged_attention_args, key_cache, 40);
FIELD(pagejit_paged_attention_args, value_cache, 48);
FIELD(pagejit_paged_attention_args, num_kv_heads, 56);
FIELD(pagejit_paged_attention_args, scale, 60);
FIELD(pagejit_paged_attention_args, block_tables, 64);
FIELD(pagejit_paged_attention_args, seq_lens, 72);
FIELD(pagejit_paged_attention_args, block_size, 80);
FIELD(pagejit_paged_attention_args, max_seq_len, 84);
FIELD(pagejit_paged_attention_args, alibi_slopes, 88);
FIELD(pagejit_paged_attention_args, kv_cache_dtype, 96);
FIELD(pagejit_paged_attention_args, k_scale, 104);
FIELD(pagejit_paged_attention_args, v_scale, 112);
FIELD(pagejit_paged_attention_args, tp_rank, 120);
FIELD(pagejit_paged_attention_args, blocksparse_local_blocks, 124);
FIELD(pagejit_paged_attention_args, blocksparse_vert_stride, 128);
FIELD(pagejit_paged_attention_args, blocksparse_block_size, 132);
FIELD(pagejit_paged_attention_args, blocksparse_head_sliding_step, 136);
FIELD(pagejit_paged_attention_args, dtype, 140);
FIELD(pagejit_paged_attention_args, num_seqs, 144);
FIELD(pagejit_paged_attention_args, num_heads, 148);
FIELD(pagejit_paged_attention_args, head_size, 152);
FIELD(pagejit_paged_attention_args, max_num_blocks_per_seq, 156);
FIELD(pagejit_paged_attention_args, q_stride, 160);
FIELD(pagejit_paged_attention_args, kv_block_stride, 168);
FIELD(pagejit_paged_attention_args, kv_head_stride, 176);

// pagejit_status_code
NUMBER(PAGEJIT_OK, 0);
NUMBER(PAGEJIT_INVALID_ARGUMENT, 1);
NUMBER(PAGEJIT_UNSUPPORTED, 2);
NUMBER(PAGEJIT_NOT_FOUND, 3);
NUMBER(PAGEJIT_COMPILE_FAILED, 4);
NUMBER(PAGEJIT_COMPILER_UNAVAILABLE, 5);
NUMBER(PAGEJIT_DRIVER_UNAVAILABLE, 6);
NUMBER(PAGEJIT_DRIVER_ERROR, 7);
NUMBER(PAGEJIT_CACHE_ERROR, 8);
NUMBER(PAGEJIT_DATA_CORRUPT, 9);
NUMBER(PAGEJIT_WORKSPACE, 10);
NUMBER(PAGEJIT_DEVICE_CHECK_FAILED, 11);
NUMBER(PAGEJIT_CANCELLED, 12);
NUMBER(PAGEJIT_INTERNAL, 13);
NUMBER(PAGEJIT_DENIED, 14);

// pagejit_data_type
NUMBER(PAGEJIT_DTYPE_F16, 0);
NUMBER(PAGEJIT_DTYPE_BF16, 1);
NUMBER(PAGEJIT_DTYPE_F32, 2);
NUMBER(PAGEJIT_DTYPE_FP8_E4M3, 3);
NUMBER(PAGEJIT_DTYPE_FP8_E5M2, 4);
NUMBER(PAGEJIT_DTYPE_INT8, 5);
NUMBER(PAGEJIT_DTYPE_INT4, 6);

// pagejit_kv_layout
NUMBER(PAGEJIT_KV_LAYOUT_ROWS, 0);
NUMBER(PAGEJIT_KV_LAYOUT_VLLM, 1);
NUMBER(PAGEJIT_KV_LAYOUT_DS_MLA, 2);

// pagejit_target_kind
NUMBER(PAGEJIT_TARGET_CUDA, 0);
NUMBER(PAGEJIT_TARGET_HOST, 1);

// pagejit_target_variant
NUMBER(PAGEJIT_TARGET_VARIANT_PLAIN, 0);
NUMBER(PAGEJIT_TARGET_VARIANT_FAMILY, 1);
NUMBER(PAGEJIT_TARGET_VARIANT_EXACT, 2);
NUMBER(PAGEJIT_TARGET_VARIANT_PTX, 3);

// pagejit_image_origin
NUMBER(PAGEJIT_ORIGIN_MEMORY, 0);
NUMBER(PAGEJIT_ORIGIN_DISK, 1);
NUMBER(PAGEJIT_ORIGIN_COMPILED, 2);
NUMBER(PAGEJIT_ORIGIN_BUNDLE, 3);
NUMBER(PAGEJIT_ORIGIN_READ_ONLY_DIRECTORY, 4);
NUMBER(PAGEJIT_ORIGIN_REMOTE, 5);

// pagejit_jit_event_kind
NUMBER(PAGEJIT_EVENT_HIT, 0);
NUMBER(PAGEJIT_EVENT_COMPILE, 1);
NUMBER(PAGEJIT_EVENT_DENIED, 2);

// pagejit_log_level
NUMBER(PAGEJIT_LOG_DEBUG, 0);
NUMBER(PAGEJIT_LOG_INFO, 1);
NUMBER(PAGEJIT_LOG_WARNING, 2);
NUMBER(PAGEJIT_LOG_ERROR, 3);
NUMBER(PAGEJIT_LOG_OFF, 4);

// pagejit_host_build
NUMBER(PAGEJIT_HOST_BUILD_PLAIN, 0);
NUMBER(PAGEJIT_HOST_BUILD_CHECKED, 1);
NUMBER(PAGEJIT_HOST_BUILD_ADDRESS_SANITIZER, 2);

// pagejit_remote_layout
NUMBER(PAGEJIT_REMOTE_LAYOUT_FLAT, 0);
NUMBER(PAGEJIT_REMOTE_LAYOUT_SUBDIRECTORIES, 1);
NUMBER(PAGEJIT_REMOTE_LAYOUT_BAZEL, 2);

// pagejit_jit_policy
NUMBER(PAGEJIT_JIT_ON, 0);
NUMBER(PAGEJIT_JIT_WARN, 1);
NUMBER(PAGEJIT_JIT_ERROR, 2);
NUMBER(PAGEJIT_JIT_OFF, 3);

// pagejit_job_priority
NUMBER(PAGEJIT_PRIORITY_BACKGROUND, 0);
NUMBER(PAGEJIT_PRIORITY_NORMAL, 1);
NUMBER(PAGEJIT_PRIORITY_URGENT, 2);

// pagejit_histogram_kind
NUMBER(PAGEJIT_HISTOGRAM_COMPILE_MS, 0);
NUMBER(PAGEJIT_HISTOGRAM_LOAD_MS, 1);
NUMBER(PAGEJIT_HISTOGRAM_LOOKUP_US, 2);
NUMBER(PAGEJIT_HISTOGRAM_PROCESS_WAIT_MS, 3);

// pagejit_query_lengths
NUMBER(PAGEJIT_QUERIES_ONE, 0);
NUMBER(PAGEJIT_QUERIES_MANY, 2);
NUMBER(PAGEJIT_QUERIES_SHARED, 3);

// pagejit_causality
NUMBER(PAGEJIT_CAUSALITY_NONE, 0);
NUMBER(PAGEJIT_CAUSALITY_CAUSAL, 1);
NUMBER(PAGEJIT_CAUSALITY_PER_SEQUENCE, 2);

// pagejit_kv_table
NUMBER(PAGEJIT_KV_TABLE_SLOTS, 3);
NUMBER(PAGEJIT_KV_TABLE_POSITIONS, 4);

// pagejit_kv_scale
NUMBER(PAGEJIT_KV_SCALE_NONE, 0);
NUMBER(PAGEJIT_KV_SCALE_TENSOR, 1);
NUMBER(PAGEJIT_KV_SCALE_HEAD, 2);
NUMBER(PAGEJIT_KV_SCALE_TOKEN_HEAD, 3);

// pagejit_rope_style
NUMBER(PAGEJIT_ROPE_NONE, 0);
NUMBER(PAGEJIT_ROPE_NEOX, 1);
NUMBER(PAGEJIT_ROPE_INTERLEAVED, 2);

// pagejit_swap_direction
NUMBER(PAGEJIT_SWAP_DEVICE_TO_HOST, 0);
NUMBER(PAGEJIT_SWAP_HOST_TO_DEVICE, 1);
NUMBER(PAGEJIT_SWAP_DEVICE_TO_DEVICE, 2);

// pagejit_mla_format
NUMBER(PAGEJIT_MLA_FORMAT_PLAIN, 0);
NUMBER(PAGEJIT_MLA_FORMAT_DS_MLA, 2);

// Constants.
NUMBER(PAGEJIT_DS_MLA_ROW_BYTES, 656);
NUMBER(PAGEJIT_KERNEL_NAME_SIZE, 256);
NUMBER(PAGEJIT_KEY_SIZE, 96);
NUMBER(PAGEJIT_DEBUG_REPORT_BYTES, 64);
NUMBER(PAGEJIT_MAX_LISTED_STATES, 32);
NUMBER(PAGEJIT_MAX_CASCADE_LEVELS, 32);
NUMBER(PAGEJIT_DEFAULT_LOGITS_BYTES, (int64_t)64 << 20);
_Static_assert(sizeof(pagejit_status) == 4, "pagejit_status changed its size");
