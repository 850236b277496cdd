#include "attention_layer.h"

#include "cuda_driver.h"

static pagejit_kernel_spec attention_spec(int32_t queries) {
  pagejit_kernel_spec spec;
  pagejit_kernel_spec_init(&spec, sizeof spec);  // q, K, V and the result are bf16
  spec.queries = queries;
  spec.head_size = HEAD_SIZE;
  spec.block_size = BLOCK_SIZE;
  spec.group_size = NUM_HEADS / NUM_KV_HEADS;
  // The one query of a decode step comes last, so that there is nothing to hide from it.
  if (queries != PAGEJIT_QUERIES_ONE) spec.causality = PAGEJIT_CAUSALITY_CAUSAL;
  return spec;
}

void attention_layer_init(attention_layer* layer, pagejit_engine* engine, pagejit_error* error) {
  *layer = (attention_layer){.error = error};
  pagejit_cache_write_spec write;
  pagejit_cache_write_spec_init(&write, sizeof write);
  write.head_size = HEAD_SIZE;
  write.block_size = BLOCK_SIZE;
  const pagejit_kernel_spec prefill = attention_spec(PAGEJIT_QUERIES_MANY);
  const pagejit_kernel_spec decode = attention_spec(PAGEJIT_QUERIES_ONE);

  // All compile at once; a real engine loads its weights meanwhile.
  enum { CURRENT_DEVICE = -1 };
  pagejit_pending *write_pending, *prefill_pending, *decode_pending;
  require(pagejit_cache_write_kernel_prepare_async(engine, &write, CURRENT_DEVICE, NULL,
                                                   &write_pending, error),
          error);
  require(
      pagejit_kernel_prepare_async(engine, &prefill, CURRENT_DEVICE, NULL, &prefill_pending, error),
      error);
  require(
      pagejit_kernel_prepare_async(engine, &decode, CURRENT_DEVICE, NULL, &decode_pending, error),
      error);
  require(pagejit_cache_write_kernel_wait(write_pending, &layer->write, error), error);
  require(pagejit_kernel_wait(prefill_pending, &layer->prefill, error), error);
  require(pagejit_kernel_wait(decode_pending, &layer->decode, error), error);
  pagejit_pending_destroy(write_pending, NULL);
  pagejit_pending_destroy(prefill_pending, NULL);
  pagejit_pending_destroy(decode_pending, NULL);

  // One workspace serves all launches of a stream, whatever their shapes.
  size_t prefill_bytes, decode_bytes;
  require(pagejit_kernel_max_workspace_bytes(layer->prefill, &prefill_bytes, error), error);
  require(pagejit_kernel_max_workspace_bytes(layer->decode, &decode_bytes, error), error);
  layer->workspace_bytes = prefill_bytes > decode_bytes ? prefill_bytes : decode_bytes;
  layer->workspace = device_alloc(layer->workspace_bytes);
  require(pagejit_kernel_workspace_init(layer->decode, layer->workspace, layer->workspace_bytes,
                                        cuda_stream, error),
          error);

  layer->q = device_alloc(sizeof(bf16) * MAX_STEP_TOKENS * Q_ELEMENTS);
  layer->k = device_alloc(sizeof(bf16) * MAX_STEP_TOKENS * KV_ELEMENTS);
  layer->v = device_alloc(sizeof(bf16) * MAX_STEP_TOKENS * KV_ELEMENTS);
  layer->out = device_alloc(sizeof(bf16) * MAX_STEP_TOKENS * Q_ELEMENTS);
  layer->slots = device_alloc(sizeof(int64_t) * MAX_STEP_TOKENS);
  layer->block_table = device_alloc(sizeof(int32_t) * MAX_SEQS * MAX_SEQ_BLOCKS);
  layer->seq_lens = device_alloc(sizeof(int32_t) * MAX_SEQS);
  layer->query_start = device_alloc(sizeof(int32_t) * (MAX_SEQS + 1));
}

void attention_layer_destroy(attention_layer* layer) {
  pagejit_cache_write_kernel_destroy(layer->write, NULL);
  pagejit_kernel_destroy(layer->prefill, NULL);
  pagejit_kernel_destroy(layer->decode, NULL);
  void* const buffers[] = {layer->workspace, layer->q,           layer->k,
                           layer->v,         layer->out,         layer->slots,
                           layer->seq_lens,  layer->query_start, layer->block_table};
  for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; ++i) device_free(buffers[i]);
}

static void upload_step(attention_layer* layer, paged_cache* cache, const decoder_step* step) {
  int64_t slots[MAX_STEP_TOKENS];           // of the new tokens
  int32_t query_start[MAX_SEQS + 1] = {0};  // where each sequence's new tokens begin
  int32_t seq_lens[MAX_SEQS];               // new tokens included
  int32_t table[MAX_SEQS][MAX_SEQ_BLOCKS];
  for (int i = 0; i < step->num_seqs; ++i) {
    sequence* seq = step->sequences[i];
    paged_cache_append(cache, seq, step->num_new_tokens, &slots[i * step->num_new_tokens]);
    query_start[i + 1] = query_start[i] + step->num_new_tokens;
    seq_lens[i] = seq->num_tokens;
    for (int b = 0; b < MAX_SEQ_BLOCKS; ++b) {
      table[i][b] = b < seq->num_blocks ? seq->blocks[b] : -1;  // what is behind them is not read
    }
    if (layer->fault == FAULT_BLOCK_TABLE && seq->num_blocks > 1) table[i][1] = table[i][0];
  }
  const size_t num_seqs = (size_t)step->num_seqs;
  const size_t num_tokens = num_seqs * (size_t)step->num_new_tokens;
  device_upload(layer->q, step->q, sizeof(bf16) * num_tokens * Q_ELEMENTS);
  device_upload(layer->k, step->k, sizeof(bf16) * num_tokens * KV_ELEMENTS);
  device_upload(layer->v, step->v, sizeof(bf16) * num_tokens * KV_ELEMENTS);
  device_upload(layer->slots, slots, sizeof slots[0] * num_tokens);
  device_upload(layer->block_table, table, sizeof table[0] * num_seqs);
  device_upload(layer->seq_lens, seq_lens, sizeof seq_lens[0] * num_seqs);
  device_upload(layer->query_start, query_start, sizeof query_start[0] * (num_seqs + 1));
}

void attention_layer_run(attention_layer* layer, paged_cache* cache, decoder_step* step) {
  upload_step(layer, cache, step);
  const int32_t num_tokens = step->num_seqs * step->num_new_tokens;

  pagejit_cache_write_args write;
  pagejit_cache_write_args_init(&write, sizeof write);
  write.key = layer->k;
  write.value = layer->v;
  write.key_stride_token = write.value_stride_token = KV_ELEMENTS;
  write.key_stride_head = write.value_stride_head = HEAD_SIZE;
  write.k_cache = cache->k;
  write.v_cache = cache->v;
  write.k_strides = write.v_strides = paged_cache_strides();
  write.slot_mapping = layer->slots;
  write.num_tokens = num_tokens;
  write.num_kv_heads = NUM_KV_HEADS;
  require(pagejit_cache_write_kernel_launch(layer->write, &write, cuda_stream, layer->error),
          layer->error);

  pagejit_attention_args args;
  pagejit_attention_args_init(&args, sizeof args);
  args.q = layer->q;
  args.out = layer->out;
  args.q_stride_token = args.out_stride_token = Q_ELEMENTS;
  args.q_stride_head = args.out_stride_head = HEAD_SIZE;
  args.k_cache = cache->k;
  args.v_cache = cache->v;
  args.k_strides = args.v_strides = paged_cache_strides();
  args.block_table = layer->block_table;
  args.block_table_stride = MAX_SEQ_BLOCKS;
  args.max_blocks_per_seq = MAX_SEQ_BLOCKS;
  args.seq_lens = layer->seq_lens;
  args.query_start_loc = layer->query_start;  // looked at by prefill alone
  args.num_query_tokens = num_tokens;
  args.num_seqs = step->num_seqs;
  args.num_kv_heads = NUM_KV_HEADS;
  args.scale = SCALE;
  args.workspace = layer->workspace;
  args.workspace_bytes = layer->workspace_bytes;
  const pagejit_kernel* kernel = step->num_new_tokens == 1 ? layer->decode : layer->prefill;
  require(pagejit_kernel_launch(kernel, &args, cuda_stream, layer->error), layer->error);

  device_download(step->out, layer->out, sizeof(bf16) * (size_t)num_tokens * Q_ELEMENTS);
}
