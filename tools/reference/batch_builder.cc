#include "tools/reference/batch_builder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace pagejit {
namespace {

constexpr int kNumLayers = 3;
constexpr int kSpareBlocks = 3;  // blocks in the cache that no sequence uses

float softmax_scale(const BatchOptions& options) {
  return options.scale != 0 ? options.scale
                            : 1.0f / std::sqrt(static_cast<float>(options.spec.head_size));
}

}  // namespace

BatchBuilder::BatchBuilder(const BatchOptions& options)
    : rng_(options.seed), values_(options, softmax_scale(options)) {
  batch_.options = options;
  batch_.num_seqs = static_cast<int>(options.seq_lens.size());
  batch_.num_heads = options.num_kv_heads * spec().group_size;
  batch_.scale = softmax_scale(options);
  batch_.q_scale = values_.q_scale();
  batch_.k_scale = values_.k_scale();
  batch_.v_scale = values_.v_scale();
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
  batch_.out_stride_head = spec().head_size + 2 * head_gap;
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

void BatchBuilder::make_caches() {
  lay_out_caches();
  for (KvAllocation& allocation : batch_.allocations) {
    allocation.data = ElementBuffer(spec().kv_dtype, batch_.num_blocks * allocation.block_extent,
                                    ElementBuffer::nan_code(spec().kv_dtype));
    allocation.device_block_stride =
        std::max(allocation.block_extent, batch_.options.device_block_stride);
  }
  batch_.dense_k.resize(static_cast<size_t>(batch_.num_seqs));
  batch_.dense_v.resize(static_cast<size_t>(batch_.num_seqs));
  for (int seq = 0; seq < batch_.num_seqs; ++seq) make_tokens(seq);
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

void BatchBuilder::lay_out_caches() {
  const int64_t head_size = spec().head_size;
  const int64_t heads = batch_.options.num_kv_heads;
  const int64_t tokens = spec().block_size;
  const int64_t payload = heads * tokens * head_size;
  // K and V start at multiples of 16 bytes; rows at multiples of 16 where a row's size is one, else
  // of 8, which is the least that head_size allows.
  const int64_t start_unit = 16 / data_type_bytes(spec().kv_dtype);
  const int64_t row_unit = head_size % start_unit == 0 ? start_unit : start_unit / 2;
  const int64_t half = ceil_div(payload, start_unit) * start_unit;
  KvPlace& k = batch_.k_place;
  KvPlace& v = batch_.v_place;
  const auto one_allocation = [&](int64_t extent, const KvStrides& strides, int64_t k_offset) {
    batch_.allocations = {KvAllocation{{}, extent, 0}};
    k = {0, k_offset, strides};
    v = {0, k_offset + half, strides};
  };
  const auto two_allocations = [&](const KvStrides& k_strides, const KvStrides& v_strides,
                                   int64_t offset) {
    batch_.allocations = {KvAllocation{{}, k_strides.block, 0},
                          KvAllocation{{}, v_strides.block, 0}};
    k = {0, offset, k_strides};
    v = {1, offset, v_strides};
  };
  if (spec().kv_layout == KvLayout::kVllm) {
    // [num_blocks, num_kv_heads, ...]; interleaved or with gaps behind heads and blocks where the
    // layout has that.
    const int64_t x = 16 / data_type_bytes(spec().kv_dtype);
    const int64_t gap = batch_.options.layout == CacheLayout::kPadded ? row_unit : 0;
    const int64_t head_extent = head_size * tokens + gap;
    const int64_t block_extent = heads * head_extent + 2 * gap;
    if (batch_.options.layout == CacheLayout::kInterleaved) {
      one_allocation(2 * half, {2 * half, x, head_extent}, 0);
    } else {
      two_allocations({block_extent, x, head_extent}, {block_extent, x, head_extent}, 0);
    }
    k.chunk_elements = static_cast<int>(x);
    k.chunk_stride = tokens * x;
    v.strides.token = 1;
    v.chunk_elements = 1;
    v.chunk_stride = tokens;
    return;
  }
  const int64_t nhd_token = heads * head_size;
  const int64_t hnd_head = tokens * head_size;
  switch (batch_.options.layout) {
    case CacheLayout::kNhd:
      return two_allocations({payload, nhd_token, head_size}, {payload, nhd_token, head_size}, 0);
    case CacheLayout::kHnd:
      return two_allocations({payload, head_size, hnd_head}, {payload, head_size, hnd_head}, 0);
    case CacheLayout::kInterleaved:
      return one_allocation(2 * half, {2 * half, nhd_token, head_size}, 0);
    case CacheLayout::kLayered: {
      const int64_t extent = kNumLayers * 2 * half;
      return one_allocation(extent, {extent, head_size, hnd_head}, 2 * half);
    }
    case CacheLayout::kPadded: {
      // Different gaps after each head, token and block of K and V. Those after a block hold what
      // the offset takes.
      const int64_t k_head = head_size + row_unit;
      const int64_t k_token = heads * k_head + 2 * row_unit;
      const int64_t v_token = head_size + 2 * row_unit;
      const int64_t v_head = tokens * v_token + row_unit;
      return two_allocations({tokens * k_token + 3 * row_unit, k_token, k_head},
                             {heads * v_head + 5 * row_unit, v_token, v_head}, start_unit);
    }
  }
}

void BatchBuilder::make_tokens(int seq) {
  const int64_t head_size = spec().head_size;
  const int64_t length = seq_len(seq);
  const Donor donor = donors_[static_cast<size_t>(seq)];
  const int64_t num_shared = donor.num_blocks * spec().block_size;
  std::vector<float>& dense_k = batch_.dense_k[static_cast<size_t>(seq)];
  std::vector<float>& dense_v = batch_.dense_v[static_cast<size_t>(seq)];
  dense_k.resize(static_cast<size_t>(batch_.options.num_kv_heads * length * head_size));
  dense_v.resize(dense_k.size());
  const int32_t* table_row = batch_.block_table.data() + seq * batch_.block_table_stride;
  for (int64_t head = 0; head < batch_.options.num_kv_heads; ++head) {
    for (int64_t token = 0; token < length; ++token) {
      float* k_row = dense_k.data() + (head * length + token) * head_size;
      float* v_row = dense_v.data() + (head * length + token) * head_size;
      if (token < num_shared) {
        const int64_t from = (head * seq_len(donor.seq) + token) * head_size;
        std::copy_n(batch_.dense_k[static_cast<size_t>(donor.seq)].data() + from, head_size, k_row);
        std::copy_n(batch_.dense_v[static_cast<size_t>(donor.seq)].data() + from, head_size, v_row);
        continue;
      }
      values_.draw_k_and_v(rng_, head, k_row, v_row);
      const int64_t block = table_row[token / spec().block_size];
      store(batch_.k_place, block, token % spec().block_size, head, k_row);
      store(batch_.v_place, block, token % spec().block_size, head, v_row);
    }
  }
}

void BatchBuilder::store(const KvPlace& place, int64_t block, int64_t offset, int64_t head,
                         const float* row) {
  ElementBuffer& data = batch_.allocations[static_cast<size_t>(place.allocation)].data;
  const int64_t first = place.offset + block * place.strides.block + offset * place.strides.token +
                        head * place.strides.head;
  for (int i = 0; i < spec().head_size; ++i) data.set(first + place.element_offset(i), row[i]);
}

}  // namespace pagejit
