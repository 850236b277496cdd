// CascadeBatch: the inputs of one cascade launch, made as an AttentionBatch whose sequences are the
// groups of all levels, so that its poison lies around every prefix and suffix; and the same as
// sequences over concatenated KV, which the results are judged by. Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "pagejit/cascade.h"
#include "tools/reference/attention_batch.h"

namespace pagejit {

// Neighbouring sequences of the batch with one prefix.
struct CascadeGroup {
  int num_seqs = 0;
  int num_tokens = 0;  // KV tokens of the prefix

  bool operator==(const CascadeGroup&) const = default;
};

struct CascadeBatchOptions {
  CascadeSpec spec;
  // Level by level, all but the last; the groups of a level take the sequences in turn and must
  // take all of them.
  std::vector<std::vector<CascadeGroup>> prefixes;
  // What is left to say, of the last level: seq_lens are the suffixes. `spec` is overwritten.
  BatchOptions batch;
};

// The arrays of one level.
struct CascadeBatchLevel {
  std::vector<int32_t> query_start_loc;
  std::vector<int32_t> seq_lens;
  std::vector<int32_t> block_table;  // [groups, block_table_stride]
  int64_t block_table_stride = 0;
  int32_t max_blocks_per_seq = 0;
  std::vector<int32_t> kv_indptr;
  std::vector<int32_t> kv_indices;
  std::vector<int32_t> kv_last_block_len;
  std::vector<int32_t> kv_start_loc;

  int num_seqs() const { return static_cast<int>(seq_lens.size()); }
};

struct CascadeBatch {
  CascadeSpec spec;
  std::vector<std::vector<CascadeGroup>> prefixes;
  std::vector<CascadeBatchLevel> levels;
  // Its sequences are the groups of all levels, level by level; only those of the last one have
  // query tokens.
  AttentionBatch storage;
  // The sequences of the last level, each with all its KV tokens. Its block table is right where
  // `has_flat_table`: where every prefix ends with its last block.
  AttentionBatch flat;
  bool has_flat_table = false;
};

// kInvalidArgument for an invalid spec, and where groups do not take the sequences.
Result<CascadeBatch> make_cascade_batch(const CascadeBatchOptions& options);

// The same memory with fewer tokens in the groups, level by level, and with other query tokens:
// query_lens as BatchOptions has them. Not for specs with a custom mask, whose bits go by lengths.
Result<CascadeBatch> change_lengths(const CascadeBatch& batch,
                                    const std::vector<std::vector<int>>& seq_lens,
                                    const std::vector<int>& query_lens);

}  // namespace pagejit
