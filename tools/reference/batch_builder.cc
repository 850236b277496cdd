#include "tools/reference/batch_builder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace pagejit {
namespace {

constexpr int kSpareBlocks = 3;  // blocks in the cache that no sequence uses

float scale_of(const BatchOptions& options) {
  return options.scale != 0 ? options.scale
                            : 1.0f / std::sqrt(static_cast<float>(options.spec.head_size));
}

}  // namespace

BatchBuilder::BatchBuilder(const BatchOptions& options)
    : rng_(options.seed), values_(options, scale_of(options)) {
  batch_.options = options;
  batch_.num_seqs = static_cast<int>(options.seq_lens.size());
  batch_.num_heads = options.num_kv_heads * spec().group_size;
  batch_.scale = scale_of(options);
  batch_.q_scale = values_.q_scale();
  batch_.k_scale = values_.k_scale();
  batch_.v_scale = values_.v_scale();
  batch_.out_scale = values_.out_scale();
  batch_.kv_scale_stride = values_.kv_scale_stride();
  batch_.seq_lens.assign(options.seq_lens.begin(), options.seq_lens.end());
  batch_.query_start_loc.push_back(0);
  for (int seq = 0; seq < batch_.num_seqs; ++seq) {
    const auto index = static_cast<size_t>(seq);
    batch_.num_queries += options.query_lens.empty() ? 1 : options.query_lens[index];
    batch_.query_start_loc.push_back(batch_.num_queries);
    batch_.causal_flags.push_back(static_cast<uint8_t>(seq % 2 == 0));
  }
  batch_.num_query_rows = batch_.num_queries + options.unused_queries;
  batch_.soft_cap = options.soft_cap != 0 ? options.soft_cap : 1.5f;
  if (spec().custom_mask) make_custom_mask();
  if (spec().bidirectional_ranges) make_bidirectional_ranges();
  if (spec().qq_bias) make_qq_bias();
  // Slopes as ALiBi's, of either sign; sinks around the usual scores.
  SplitMix64 rng(options.seed + 1);
  for (int head = 0; head < batch_.num_heads; ++head) {
    batch_.alibi_slopes.push_back(rng.uniform() / 4);
    batch_.sinks.push_back(2 * rng.normal());
  }
}

void BatchBuilder::make_queries() {
  const int64_t head_gap = batch_.options.padded_rows ? 8 : 0;
  const int64_t token_gap = batch_.options.padded_rows ? 24 : 0;
  batch_.q_stride_head = spec().head_size + head_gap;
  batch_.q_stride_token = batch_.num_heads * batch_.q_stride_head + token_gap;
  // Other gaps for out, so that the two cannot be taken for each other.
  batch_.out_stride_head = batch_.head_size_v() + 2 * head_gap;
  batch_.out_stride_token = batch_.num_heads * batch_.out_stride_head + 2 * token_gap;
  const DataType q_type = spec().q_dtype;
  const DataType out_type = spec().out_dtype;
  batch_.q = ElementBuffer(q_type, buffer_size(q_type, batch_.q_stride_token),
                           ElementBuffer::nan_code(q_type));
  batch_.out = ElementBuffer(out_type, buffer_size(out_type, batch_.out_stride_token),
                             ElementBuffer::sentinel_code(out_type));
  batch_.lse.assign(static_cast<size_t>(int64_t{batch_.num_query_rows} * batch_.num_heads +
                                        2 * AttentionBatch::kLseGuard),
                    std::bit_cast<float>(AttentionBatch::kLseSentinel));
  std::vector<float> row(static_cast<size_t>(spec().head_size));
  for (int query = 0; query < batch_.num_queries; ++query) {
    for (int head = 0; head < batch_.num_heads; ++head) {
      values_.draw_q(rng_, row.data());
      int64_t at = batch_.q_index(query, head);
      for (float value : row) batch_.q.set(at++, value);
    }
  }
}

void BatchBuilder::make_block_table() {
  int64_t num_used = 0;
  std::vector<std::vector<int64_t>> logical(static_cast<size_t>(batch_.num_seqs));
  donors_.assign(static_cast<size_t>(batch_.num_seqs), Donor{});
  for (int seq = 0; seq < batch_.num_seqs; ++seq) {
    std::vector<int64_t>& blocks = logical[static_cast<size_t>(seq)];
    if (batch_.options.share_prefix) find_donor(seq);
    const Donor& donor = donors_[static_cast<size_t>(seq)];
    for (int64_t i = 0; i < num_blocks_of(seq); ++i) {
      const bool shared = i < donor.num_blocks;
      blocks.push_back(shared ? logical[static_cast<size_t>(donor.seq)][static_cast<size_t>(i)]
                              : num_used++);
    }
  }
  batch_.num_blocks = num_used + kSpareBlocks;
  // Without blocks the tokens lie in their order.
  std::vector<int32_t> places = shuffled(batch_.num_blocks);
  if (spec().kv_table == KvTable::kContiguous) std::iota(places.begin(), places.end(), 0);

  int64_t longest = 0;
  for (int seq = 0; seq < batch_.num_seqs; ++seq) {
    longest = std::max(longest, num_blocks_of(seq));
  }
  const int64_t wanted = batch_.options.max_blocks_per_seq;
  batch_.max_blocks_per_seq = static_cast<int32_t>(wanted != 0 ? wanted : longest + 3);
  batch_.block_table_stride = batch_.max_blocks_per_seq + (batch_.options.padded_rows ? 5 : 0);
  batch_.block_table.resize(static_cast<size_t>(batch_.num_seqs * batch_.block_table_stride));
  const int32_t absurd[] = {std::numeric_limits<int32_t>::max(), -1,
                            std::numeric_limits<int32_t>::min(),
                            static_cast<int32_t>(batch_.num_blocks), 0x7fffff00};
  for (size_t i = 0; i < batch_.block_table.size(); ++i) {
    batch_.block_table[i] = absurd[i % std::size(absurd)];
  }
  for (int seq = 0; seq < batch_.num_seqs; ++seq) {
    int32_t* row = batch_.block_table.data() + seq * batch_.block_table_stride;
    batch_.kv_indptr.push_back(static_cast<int32_t>(batch_.kv_indices.size()));
    for (int64_t block : logical[static_cast<size_t>(seq)]) {
      *row++ = places[static_cast<size_t>(block)];
      batch_.kv_indices.push_back(places[static_cast<size_t>(block)]);
    }
    const int in_last = (seq_len(seq) + spec().block_size - 1) % spec().block_size + 1;
    batch_.kv_last_block_len.push_back(seq_len(seq) == 0 ? -7 : in_last);
    batch_.kv_start_loc.push_back(seq == 0 ? 0 : batch_.kv_start_loc.back() + seq_len(seq - 1));
  }
  batch_.kv_indptr.push_back(static_cast<int32_t>(batch_.kv_indices.size()));
  batch_.kv_indices.push_back(-1);
  batch_.kv_start_loc.push_back(batch_.kv_start_loc.back() + seq_len(batch_.num_seqs - 1));
}

// In random order, some entries without a token between them; and the blocks of the sequences stand
// in the table's rows in reverse, which query_seqs undoes.
void BatchBuilder::make_token_lists() {
  if (spec().kv_table != KvTable::kSlots && spec().kv_table != KvTable::kPositions) return;
  SplitMix64 rng(batch_.options.seed + 5);
  int longest = 0;
  for (int seq = 0; seq < batch_.num_seqs; ++seq) longest = std::max(longest, seq_len(seq));
  constexpr int kFurther = 11;
  const int most = batch_.options.list_len != 0 ? batch_.options.list_len : longest + kFurther;
  batch_.max_list_len = most;
  batch_.token_list_stride = most + (batch_.options.padded_rows ? 3 : 0);
  constexpr int32_t kAbsurd = 0x7fffff00;
  batch_.token_lists.assign(static_cast<size_t>(batch_.num_seqs * batch_.token_list_stride),
                            kAbsurd);
  const std::vector<int32_t> table = batch_.block_table;
  const auto row_begin = [&](int row) { return table.begin() + row * batch_.block_table_stride; };
  for (int seq = 0; seq < batch_.num_seqs; ++seq) {
    const int row = batch_.num_seqs - 1 - seq;
    batch_.query_seqs.push_back(row);
    std::copy_n(row_begin(seq), batch_.block_table_stride,
                batch_.block_table.begin() + row * batch_.block_table_stride);
    std::vector<int32_t> entries;
    std::vector<uint8_t> listed(static_cast<size_t>(seq_len(seq)), 0);
    const std::vector<int32_t> order = shuffled(std::max(seq_len(seq), 1));
    for (const int32_t token : order) {
      if (static_cast<int>(entries.size()) + 1 >= most || token >= seq_len(seq)) break;
      if (rng.below(8) == 0) entries.push_back(-1 - static_cast<int32_t>(rng.below(1000)));
      if (rng.below(4) == 0) continue;
      listed[static_cast<size_t>(token)] = 1;
      const int32_t block = row_begin(seq)[token / spec().block_size];
      entries.push_back(spec().kv_table == KvTable::kPositions
                            ? token
                            : block * spec().block_size + token % spec().block_size);
    }
    if (entries.empty()) entries.push_back(-1);
    std::copy(entries.begin(), entries.end(),
              batch_.token_lists.begin() + seq * batch_.token_list_stride);
    batch_.list_lens.push_back(static_cast<int32_t>(entries.size()));
    batch_.is_listed.push_back(std::move(listed));
  }
}

AttentionBatch BatchBuilder::take() { return std::move(batch_); }

// Of query token q of a sequence and key k: bit q * seq_len + k. Between sequences a byte of
// zeros, which must not matter.
void BatchBuilder::make_custom_mask() {
  SplitMix64 rng(batch_.options.seed + 2);
  for (int seq = 0; seq < batch_.num_seqs; ++seq) {
    batch_.custom_mask_indptr.push_back(static_cast<int32_t>(batch_.custom_mask.size()));
    const auto index = static_cast<size_t>(seq);
    const int64_t num_queries = batch_.query_start_loc[index + 1] - batch_.query_start_loc[index];
    const int64_t num_bytes = ceil_div(num_queries * batch_.seq_lens[index], 8) + 1;
    for (int64_t i = 0; i < num_bytes; ++i) {
      const uint64_t bits = rng.next();
      const auto byte = static_cast<uint8_t>(bits | bits >> 8);
      batch_.custom_mask.push_back(i + 1 < num_bytes ? byte : uint8_t{0});
    }
  }
  batch_.custom_mask_indptr.push_back(static_cast<int32_t>(batch_.custom_mask.size()));
}

// Four ranges about the query tokens and before them, where none are given: of up to 60 positions,
// overlapping, beyond the end, empty, empty and absurd.
void BatchBuilder::make_bidirectional_ranges() {
  constexpr PositionRange kEverything = {std::numeric_limits<int>::min(),
                                         std::numeric_limits<int>::max()};
  SplitMix64 rng(batch_.options.seed + 3);
  std::vector<std::vector<PositionRange>> all = batch_.options.bidirectional_ranges;
  if (all.empty()) {
    for (int seq = 0; seq < batch_.num_seqs; ++seq) {
      const auto index = static_cast<size_t>(seq);
      const int num_queries = batch_.query_start_loc[index + 1] - batch_.query_start_loc[index];
      const auto draw = [&](int before) {
        const int first = seq_len(seq) - num_queries - before;
        const int begin = first + static_cast<int>(rng.below(num_queries + before));
        return PositionRange{begin, begin + static_cast<int>(rng.below(60))};
      };
      all.push_back({draw(20), draw(1), {kEverything.end, kEverything.begin}, draw(20)});
    }
  }
  size_t most = 0;
  for (const auto& ranges : all) most = std::max(most, ranges.size());
  batch_.max_bidirectional_ranges = static_cast<int32_t>(most);
  batch_.bidirectional_ranges_stride = 2 * (int64_t{batch_.max_bidirectional_ranges} + 1);
  for (std::vector<PositionRange>& ranges : all) {
    ranges.resize(most, {7, 7});
    ranges.push_back(kEverything);
    for (const PositionRange& range : ranges) {
      batch_.bidirectional_ranges.push_back(range.begin);
      batch_.bidirectional_ranges.push_back(range.end);
    }
  }
}

void BatchBuilder::make_qq_bias() {
  SplitMix64 rng(batch_.options.seed + 4);
  const bool is_shared = batch_.options.shared_qq_bias;
  int most = 0;
  for (int seq = 0; seq < batch_.num_seqs; ++seq) {
    const auto index = static_cast<size_t>(seq);
    most = std::max(most, batch_.query_start_loc[index + 1] - batch_.query_start_loc[index]);
  }
  batch_.qq_bias_stride_row = most + 3;
  const int64_t matrix = most * batch_.qq_bias_stride_row + 5;
  if (!is_shared) batch_.qq_bias_stride_seq = matrix;
  const int num_matrices = is_shared ? 1 : batch_.num_seqs;
  batch_.qq_bias.assign(static_cast<size_t>(num_matrices * matrix),
                        std::numeric_limits<float>::quiet_NaN());
  for (int seq = 0; seq < num_matrices; ++seq) {
    const int first_query = batch_.query_start_loc[static_cast<size_t>(seq)];
    const int num_queries =
        is_shared ? most : batch_.query_start_loc[static_cast<size_t>(seq) + 1] - first_query;
    const int64_t first_key = is_shared ? 0 : seq_len(seq) - num_queries;
    for (int i = 0; i < num_queries; ++i) {
      for (int j = 0; j < num_queries; ++j) {
        const float bias =
            rng.below(8) == 0 ? -std::numeric_limits<float>::infinity() : 2 * rng.normal();
        const int64_t key = first_key + j;
        if (!is_shared && (key < 0 || !batch_.sees_by_definition(first_query + i, key))) continue;
        const int64_t at = seq * matrix + i * batch_.qq_bias_stride_row + j;
        batch_.qq_bias[static_cast<size_t>(at)] = bias;
      }
    }
  }
}

int64_t BatchBuilder::buffer_size(DataType type, int64_t stride_token) const {
  return batch_.num_query_rows * stride_token + 2 * AttentionBatch::guard_elements(type);
}

void BatchBuilder::find_donor(int seq) {
  Donor& donor = donors_[static_cast<size_t>(seq)];
  for (int other = 0; other < seq; ++other) {
    // Whole blocks of both: a shared block that only one of them fills would have no NaN in the
    // other's tail.
    const int64_t blocks = std::min(seq_len(seq), seq_len(other)) / spec().block_size;
    if (blocks > donor.num_blocks) donor = {other, blocks};
  }
}

std::vector<int32_t> BatchBuilder::shuffled(int64_t count) {
  std::vector<int32_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = count - 1; i > 0; --i) {
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(rng_.below(i + 1))]);
  }
  return order;
}

}  // namespace pagejit
