#include "paged_cache.h"

#include <stdio.h>
#include <stdlib.h>

#include "cuda_driver.h"

static int32_t take_block(paged_cache* cache) {
  if (cache->num_free == 0) {
    fprintf(stderr, "error: the paged cache is full\n");
    exit(2);
  }
  const int32_t block = cache->free_blocks[--cache->num_free];
  cache->num_users[block] = 1;
  return block;
}

static void give_back(paged_cache* cache, int32_t block) {
  if (--cache->num_users[block] > 0) return;
  cache->free_blocks[cache->num_free++] = block;
  // Nothing may read what is left in a free block, nor the rest of one that is taken: to show that,
  // it is filled with NaN (0xffff). An engine does not do this.
  device_fill((char*)cache->k + (size_t)block * BLOCK_BYTES, 0xff, BLOCK_BYTES);
  device_fill((char*)cache->v + (size_t)block * BLOCK_BYTES, 0xff, BLOCK_BYTES);
}

void paged_cache_init(paged_cache* cache, pagejit_engine* engine, pagejit_error* error) {
  *cache = (paged_cache){.engine = engine, .error = error};
  pagejit_copy_blocks_spec spec;
  pagejit_copy_blocks_spec_init(&spec, sizeof spec);
  require(pagejit_copy_blocks_kernel_prepare(engine, &spec, -1, NULL, &cache->copy_kernel, error),
          error);
  cache->k = device_alloc((size_t)NUM_BLOCKS * BLOCK_BYTES);
  cache->v = device_alloc((size_t)NUM_BLOCKS * BLOCK_BYTES);
  void* const pointers[] = {cache->k, cache->v};
  cache->cache_pointers = device_alloc(sizeof pointers);
  device_upload(cache->cache_pointers, pointers, sizeof pointers);
  cache->copy_pairs = device_alloc(2 * sizeof(int64_t));
  for (int32_t block = NUM_BLOCKS - 1; block >= 0; --block) {
    cache->num_users[block] = 1;
    give_back(cache, block);
  }
}

void paged_cache_destroy(paged_cache* cache) {
  pagejit_copy_blocks_kernel_destroy(cache->copy_kernel, NULL);
  device_free(cache->k);
  device_free(cache->v);
  device_free(cache->cache_pointers);
  device_free(cache->copy_pairs);
}

pagejit_kv_strides paged_cache_strides(void) {
  return (pagejit_kv_strides){
      .block = BLOCK_SIZE * KV_ELEMENTS, .token = KV_ELEMENTS, .head = HEAD_SIZE};
}

static void copy_block(paged_cache* cache, int32_t from, int32_t to) {
  const int64_t pair[] = {from, to};
  device_upload(cache->copy_pairs, pair, sizeof pair);
  pagejit_copy_blocks_args args;
  pagejit_copy_blocks_args_init(&args, sizeof args);
  args.caches = cache->cache_pointers;
  args.num_caches = 2;
  args.block_bytes = BLOCK_BYTES;
  args.block_stride_bytes = BLOCK_BYTES;
  args.pairs = cache->copy_pairs;
  args.num_pairs = 1;  // an engine collects those of a step
  require(pagejit_copy_blocks_kernel_launch(cache->copy_kernel, &args, cuda_stream, cache->error),
          cache->error);
}

void paged_cache_append(paged_cache* cache, sequence* seq, int count, int64_t* slots) {
  if (seq->num_tokens + count > MAX_SEQ_LEN) {
    fprintf(stderr, "error: a sequence has at most %d tokens\n", MAX_SEQ_LEN);
    exit(2);
  }
  for (int i = 0; i < count; ++i) {
    const int32_t place = seq->num_tokens % BLOCK_SIZE;
    if (place == 0) {
      const int is_stuck = cache->fault == FAULT_GROW && count == 1;
      const int32_t block = is_stuck ? seq->blocks[seq->num_blocks - 1] : take_block(cache);
      seq->blocks[seq->num_blocks++] = block;
    }
    int32_t* last = &seq->blocks[seq->num_blocks - 1];
    if (cache->num_users[*last] > 1) {
      const int32_t copy = take_block(cache);
      if (cache->fault != FAULT_COPY) copy_block(cache, *last, copy);
      give_back(cache, *last);
      *last = copy;
    }
    slots[i] = (int64_t)*last * BLOCK_SIZE + place;
    ++seq->num_tokens;
  }
}

sequence paged_cache_fork(paged_cache* cache, const sequence* seq) {
  if (cache->fault == FAULT_FORK) {
    sequence result = *seq;
    for (int32_t i = 0; i < seq->num_blocks; ++i) {
      result.blocks[i] = take_block(cache);
      copy_block(cache, seq->blocks[i], result.blocks[i]);
    }
    return result;
  }
  for (int32_t i = 0; i < seq->num_blocks; ++i) ++cache->num_users[seq->blocks[i]];
  return *seq;
}

static void swap(paged_cache* cache, int32_t direction, const sequence* seq, void* host) {
  const int is_out = direction == PAGEJIT_SWAP_DEVICE_TO_HOST;
  int64_t pairs[MAX_SEQ_BLOCKS][2];  // from, to
  for (int32_t i = 0; i < seq->num_blocks; ++i) {
    pairs[i][is_out ? 0 : 1] = seq->blocks[i];
    pairs[i][is_out ? 1 : 0] = i;
  }
  void* const device_sides[] = {cache->k, cache->v};
  void* const host_sides[] = {host, (char*)host + (size_t)seq->num_blocks * BLOCK_BYTES};
  for (int i = 0; i < 2; ++i) {
    pagejit_swap_blocks_args args;
    pagejit_swap_blocks_args_init(&args, sizeof args);
    args.direction = direction;
    args.from = is_out ? device_sides[i] : host_sides[i];
    args.to = is_out ? host_sides[i] : device_sides[i];
    args.block_bytes = BLOCK_BYTES;
    args.from_stride_bytes = BLOCK_BYTES;
    args.to_stride_bytes = BLOCK_BYTES;
    args.pairs = &pairs[0][0];
    args.num_pairs = seq->num_blocks;
    require(pagejit_engine_swap_blocks(cache->engine, &args, cuda_stream, cache->error),
            cache->error);
  }
}

void* paged_cache_swap_out(paged_cache* cache, sequence* seq) {
  void* host = pinned_alloc(2 * (size_t)seq->num_blocks * BLOCK_BYTES);
  swap(cache, PAGEJIT_SWAP_DEVICE_TO_HOST, seq, host);
  // The copies come first in the stream, so the blocks may be written by what follows them there.
  for (int32_t i = 0; i < seq->num_blocks; ++i) give_back(cache, seq->blocks[i]);
  return host;
}

void paged_cache_swap_in(paged_cache* cache, sequence* seq, void* host) {
  for (int32_t i = 0; i < seq->num_blocks; ++i) seq->blocks[i] = take_block(cache);
  if (cache->fault != FAULT_SWAP) swap(cache, PAGEJIT_SWAP_HOST_TO_DEVICE, seq, host);
  pinned_free(host);  // waits for the copies
}
