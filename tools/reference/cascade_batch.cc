#include "tools/reference/cascade_batch.h"

#include <algorithm>
#include <string>
#include <utility>

namespace pagejit {
namespace {

Status invalid(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

// Where the parts of a sequence are: its group on each level, as an index into the storage.
std::vector<int> path_of(const std::vector<std::vector<CascadeGroup>>& prefixes, int seq) {
  std::vector<int> path;
  int first = 0;
  for (const std::vector<CascadeGroup>& level : prefixes) {
    int end = 0;
    for (size_t group = 0; group < level.size(); ++group) {
      end += level[group].num_seqs;
      if (seq < end) {
        path.push_back(first + static_cast<int>(group));
        break;
      }
    }
    first += static_cast<int>(level.size());
  }
  path.push_back(first + seq);
  return path;
}

template <class T>
std::vector<T> slice(const std::vector<T>& all, int64_t begin, int64_t count) {
  return {all.begin() + begin, all.begin() + begin + count};
}

// The groups [first, first + count) of the storage. `first_seq` has, for each of them and for the
// end, its first sequence of the batch; `query_start_loc` goes by these.
CascadeBatchLevel make_level(const AttentionBatch& storage, int first,
                             const std::vector<int>& first_seq,
                             const std::vector<int32_t>& query_start_loc) {
  const auto count = static_cast<int64_t>(first_seq.size()) - 1;
  CascadeBatchLevel level;
  int32_t longest = 0;
  for (const int seq : first_seq) {
    level.query_start_loc.push_back(query_start_loc[static_cast<size_t>(seq)]);
  }
  level.seq_lens = slice(storage.seq_lens, first, count);
  for (const int32_t length : level.seq_lens) longest = std::max(longest, length);
  level.block_table_stride = storage.block_table_stride;
  level.block_table = slice(storage.block_table, first * storage.block_table_stride,
                            count * storage.block_table_stride);
  // One more than the longest needs; each level has its own bound.
  const int block_size = storage.options.spec.block_size;
  level.max_blocks_per_seq =
      std::min(storage.max_blocks_per_seq, (longest + block_size - 1) / block_size + 1);
  level.kv_indptr = slice(storage.kv_indptr, first, count + 1);
  level.kv_indices = storage.kv_indices;
  level.kv_last_block_len = slice(storage.kv_last_block_len, first, count);
  level.kv_start_loc = slice(storage.kv_start_loc, first, count + 1);
  return level;
}

// One row of K or V per token: [num_kv_heads, tokens, head_size] of the path's groups, joined.
std::vector<float> join(const std::vector<std::vector<float>>& dense, const AttentionBatch& storage,
                        const std::vector<int>& path) {
  std::vector<float> joined;
  for (int head = 0; head < storage.options.num_kv_heads; ++head) {
    for (const int group : path) {
      const auto index = static_cast<size_t>(group);
      const int64_t size = int64_t{storage.seq_lens[index]} * storage.options.spec.head_size;
      const auto begin = dense[index].begin() + head * size;
      joined.insert(joined.end(), begin, begin + size);
    }
  }
  return joined;
}

// Prefixes are seen in full; behind them stand the bits of the last level.
void make_flat_mask(const AttentionBatch& storage, int first, AttentionBatch* flat) {
  flat->custom_mask.clear();
  flat->custom_mask_indptr.clear();
  for (int seq = 0; seq < flat->num_seqs; ++seq) {
    const auto to = static_cast<size_t>(seq);
    const size_t from = static_cast<size_t>(first) + to;
    const int64_t total = flat->seq_lens[to];
    const int64_t own = storage.seq_lens[from];
    const int64_t num_queries = flat->query_start_loc[to + 1] - flat->query_start_loc[to];
    std::vector<uint8_t> bytes(static_cast<size_t>((num_queries * total + 7) / 8));
    for (int64_t query = 0; query < num_queries; ++query) {
      for (int64_t key = 0; key < total; ++key) {
        const int64_t own_bit = query * own + key - (total - own);
        const auto byte = static_cast<size_t>(storage.custom_mask_indptr[from] + own_bit / 8);
        const bool seen =
            key < total - own || (storage.custom_mask[byte] >> (own_bit % 8) & 1) != 0;
        const int64_t bit = query * total + key;
        if (seen) bytes[static_cast<size_t>(bit / 8)] |= static_cast<uint8_t>(1 << (bit % 8));
      }
    }
    flat->custom_mask_indptr.push_back(static_cast<int32_t>(flat->custom_mask.size()));
    flat->custom_mask.insert(flat->custom_mask.end(), bytes.begin(), bytes.end());
  }
  flat->custom_mask_indptr.push_back(static_cast<int32_t>(flat->custom_mask.size()));
}

// False where a prefix ends within a block: then no one table leads to all its tokens.
bool make_flat_table(const std::vector<std::vector<int>>& paths, const AttentionBatch& storage,
                     AttentionBatch* flat) {
  const int block_size = storage.options.spec.block_size;
  std::vector<std::vector<int32_t>> rows;
  size_t longest = 0;
  for (const std::vector<int>& path : paths) {
    std::vector<int32_t> row;
    for (const int group : path) {
      const int32_t length = storage.seq_lens[static_cast<size_t>(group)];
      if (group != path.back() && length % block_size != 0) return false;
      const auto begin = storage.block_table.begin() + group * storage.block_table_stride;
      row.insert(row.end(), begin, begin + (length + block_size - 1) / block_size);
    }
    longest = std::max(longest, row.size());
    rows.push_back(std::move(row));
  }
  flat->max_blocks_per_seq = static_cast<int32_t>(longest);
  flat->block_table_stride = flat->max_blocks_per_seq;
  flat->block_table.clear();
  for (std::vector<int32_t>& row : rows) {
    row.resize(longest, -1);
    flat->block_table.insert(flat->block_table.end(), row.begin(), row.end());
  }
  return true;
}

// Everything else, from the storage.
CascadeBatch derive(const CascadeSpec& spec, const std::vector<std::vector<CascadeGroup>>& prefixes,
                    AttentionBatch storage) {
  CascadeBatch batch;
  batch.spec = spec;
  batch.prefixes = prefixes;
  int num_prefixes = 0;
  for (const std::vector<CascadeGroup>& level : prefixes) {
    num_prefixes += static_cast<int>(level.size());
  }
  AttentionBatch& flat = batch.flat;
  flat = storage;
  flat.num_seqs = storage.num_seqs - num_prefixes;
  flat.options.spec = spec.attention;
  if (spec.attention.queries == QueryLengths::kOne) flat.options.query_lens.clear();
  flat.query_start_loc = slice(storage.query_start_loc, num_prefixes, flat.num_seqs + 1);
  flat.causal_flags = slice(storage.causal_flags, num_prefixes, flat.num_seqs);

  int first = 0;
  for (const std::vector<CascadeGroup>& level : prefixes) {
    std::vector<int> first_seq = {0};
    for (const CascadeGroup& group : level) first_seq.push_back(first_seq.back() + group.num_seqs);
    batch.levels.push_back(make_level(storage, first, first_seq, flat.query_start_loc));
    first += static_cast<int>(level.size());
  }
  std::vector<int> sequences;
  for (int seq = 0; seq <= flat.num_seqs; ++seq) sequences.push_back(seq);
  batch.levels.push_back(make_level(storage, first, sequences, flat.query_start_loc));

  flat.seq_lens.clear();
  flat.dense_k.clear();
  flat.dense_v.clear();
  std::vector<std::vector<int>> paths;
  for (int seq = 0; seq < flat.num_seqs; ++seq) {
    const std::vector<int>& path = paths.emplace_back(path_of(prefixes, seq));
    int32_t total = 0;
    for (const int group : path) total += storage.seq_lens[static_cast<size_t>(group)];
    flat.seq_lens.push_back(total);
    flat.dense_k.push_back(join(storage.dense_k, storage, path));
    flat.dense_v.push_back(join(storage.dense_v, storage, path));
  }
  batch.has_flat_table =
      spec.attention.kv_table == KvTable::kBlocks && make_flat_table(paths, storage, &flat);
  if (spec.attention.custom_mask) make_flat_mask(storage, num_prefixes, &flat);
  batch.storage = std::move(storage);
  return batch;
}

}  // namespace

Result<CascadeBatch> make_cascade_batch(const CascadeBatchOptions& options) {
  if (Status status = validate(options.spec); !status) return status;
  BatchOptions all = options.batch;
  const std::vector<int> suffixes = std::move(all.seq_lens);
  const std::vector<int> query_lens =
      all.query_lens.empty() ? std::vector<int>(suffixes.size(), 1) : std::move(all.query_lens);
  if (query_lens.size() != suffixes.size()) {
    return invalid("query_lens must have one number for each sequence");
  }
  all.seq_lens.clear();
  all.query_lens.clear();
  for (const std::vector<CascadeGroup>& level : options.prefixes) {
    size_t num_seqs = 0;
    for (const CascadeGroup& group : level) {
      num_seqs += static_cast<size_t>(group.num_seqs);
      all.seq_lens.push_back(group.num_tokens);
      all.query_lens.push_back(0);
    }
    if (num_seqs == suffixes.size()) continue;
    return invalid("the groups of a level have " + std::to_string(num_seqs) + " of " +
                   std::to_string(suffixes.size()) + " sequences");
  }
  all.seq_lens.insert(all.seq_lens.end(), suffixes.begin(), suffixes.end());
  all.query_lens.insert(all.query_lens.end(), query_lens.begin(), query_lens.end());
  all.spec = options.spec.attention;
  // So that groups without query tokens are legal.
  if (all.spec.queries == QueryLengths::kOne) all.spec.queries = QueryLengths::kFew;
  Result<AttentionBatch> storage = make_attention_batch(all);
  if (!storage) return storage.status();
  return derive(options.spec, options.prefixes, std::move(storage).value());
}

Result<CascadeBatch> change_lengths(const CascadeBatch& batch,
                                    const std::vector<std::vector<int>>& seq_lens,
                                    const std::vector<int>& query_lens) {
  std::vector<int> lengths;
  for (const std::vector<int>& level : seq_lens) {
    lengths.insert(lengths.end(), level.begin(), level.end());
  }
  Result<AttentionBatch> shorter = shorten(batch.storage, lengths);
  if (!shorter) return shorter.status();
  const size_t num_prefixes = lengths.size() - query_lens.size();
  shorter->query_start_loc.assign(num_prefixes + 1, 0);
  for (const int length : query_lens) {
    shorter->query_start_loc.push_back(shorter->query_start_loc.back() + length);
  }
  shorter->num_queries = shorter->query_start_loc.back();
  if (shorter->num_queries > batch.storage.num_queries) {
    return invalid("more query tokens than before");
  }
  return derive(batch.spec, batch.prefixes, std::move(shorter).value());
}

}  // namespace pagejit
