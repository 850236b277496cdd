// paged_cache: one layer's K and V in blocks that sequences take as they grow, share when they are
// forked and give back. It decides which block holds what, and copies blocks where sharing ends and
// where a sequence goes to the host; it computes nothing. What fails ends the program. One thread.
#pragma once

#include <pagejit/pagejit.h>
#include <stddef.h>
#include <stdint.h>

#include "model.h"

// A sequence's tokens in the cache: its row of the block table.
typedef struct {
  int32_t blocks[MAX_SEQ_BLOCKS];
  int32_t num_blocks;  // ceil(num_tokens / BLOCK_SIZE)
  int32_t num_tokens;
} sequence;

// What is done wrong on purpose (--break), to see that the program's checks find it.
typedef enum {
  FAULT_NONE,
  FAULT_BLOCK_TABLE,  // each sequence's second block in the table has the id of its first
  FAULT_FORK,         // the fork gets blocks of its own at once
  FAULT_COPY,         // the block that is written after the fork is not copied
  FAULT_GROW,         // a decode step that needs another block goes on in the last one
  FAULT_SWAP,         // nothing is copied back from the host
} planted_fault;

typedef struct {
  pagejit_engine* engine;  // the caller's
  pagejit_error* error;
  pagejit_copy_blocks_kernel* copy_kernel;
  void* k;  // [NUM_BLOCKS, BLOCK_SIZE, NUM_KV_HEADS, HEAD_SIZE] on the device
  void* v;
  void* cache_pointers;  // for the copies: k and v, on the device
  void* copy_pairs;      // likewise: from, to
  int32_t num_users[NUM_BLOCKS];
  int32_t free_blocks[NUM_BLOCKS];  // the one given back last is taken first
  int32_t num_free;
  planted_fault fault;  // but for that of the block table, which is the layer's
} paged_cache;

void paged_cache_init(paged_cache* cache, pagejit_engine* engine, pagejit_error* error);
void paged_cache_destroy(paged_cache* cache);

// The strides of both caches.
pagejit_kv_strides paged_cache_strides(void);

// Makes room for `count` tokens and writes their slots, as pagejit_cache_write_args.slot_mapping
// wants them. A block that is written and shared is copied first.
void paged_cache_append(paged_cache* cache, sequence* seq, int count, int64_t* slots);
// A sequence with the same tokens in the same blocks.
sequence paged_cache_fork(paged_cache* cache, const sequence* seq);
// Copies to pinned host memory, K of all blocks and then V of all, and gives the blocks back; and
// into other blocks again, which frees the memory. The lengths stay in `seq`.
void* paged_cache_swap_out(paged_cache* cache, sequence* seq);
void paged_cache_swap_in(paged_cache* cache, sequence* seq, void* host);
