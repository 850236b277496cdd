#include "tools/reference/attention_batch.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>

#include "tools/reference/batch_builder.h"

namespace pagejit {
namespace {

Status untouched_error(const char* buffer, int64_t index) {
  return Status(StatusCode::kInternal, std::string("element ") + std::to_string(index) + " of " +
                                           buffer + " lies outside of the result and was written");
}

}  // namespace

std::string_view cache_layout_name(CacheLayout layout) {
  switch (layout) {
    case CacheLayout::kNhd:
      return "nhd";
    case CacheLayout::kHnd:
      return "hnd";
    case CacheLayout::kInterleaved:
      return "interleaved";
    case CacheLayout::kLayered:
      return "layered";
    case CacheLayout::kPadded:
      return "padded";
  }
  return "unknown";
}

std::string_view logit_regime_name(LogitRegime regime) {
  switch (regime) {
    case LogitRegime::kNormal:
      return "normal";
    case LogitRegime::kHigh:
      return "high";
    case LogitRegime::kLow:
      return "low";
    case LogitRegime::kMixed:
      return "mixed";
  }
  return "unknown";
}

int64_t AttentionBatch::valid_kv_bytes() const {
  int64_t tokens = 0;
  for (int32_t length : seq_lens) tokens += length;
  const int64_t scale_bytes = options.spec.token_scales ? 2 * sizeof(float) : 0;
  return tokens * options.num_kv_heads * (kv_token_bytes(options.spec) + scale_bytes);
}

ElementScales AttentionBatch::scales_of(int kv_head) const {
  const auto place = static_cast<size_t>(kv_head * kv_scale_stride);
  ElementScales scales;
  if (!q_scale.empty()) scales.q = q_scale[0];
  if (!out_scale.empty()) scales.out = out_scale[0];
  if (options.spec.token_scales) return scales;
  if (!k_scale.empty()) scales.k = k_scale[place];
  if (!v_scale.empty()) scales.v = options.spec.latent ? k_scale[place] : v_scale[place];
  return scales;
}

int AttentionBatch::seq_of(int query) const {
  const auto next = std::upper_bound(query_start_loc.begin(), query_start_loc.end(), query);
  return static_cast<int>(next - query_start_loc.begin()) - 1;
}

AttentionBatch::Sight AttentionBatch::sight_of(int query) const {
  const int seq = seq_of(query);
  const KernelSpec& spec = options.spec;
  const int64_t seq_len = seq_lens[static_cast<size_t>(seq)];
  const int64_t query_end = query_start_loc[static_cast<size_t>(seq) + 1];
  Sight sight{0, seq_len, seq_len - (query_end - query)};
  if (spec.bidirectional_ranges) {
    while (sight.begin < sight.end && !sees_by_definition(query, sight.begin)) ++sight.begin;
    while (sight.begin < sight.end && !sees_by_definition(query, sight.end - 1)) --sight.end;
    return sight;
  }
  if (is_causal(seq)) sight.end = std::min(sight.end, sight.position + 1);
  if (spec.window && options.window_left >= 0) {
    sight.begin = std::max(sight.begin, sight.position - options.window_left);
  }
  if (spec.window && options.window_right >= 0) {
    sight.end = std::min(sight.end, sight.position + options.window_right + 1);
  }
  if (spec.chunked) {
    const int64_t in_chunk = sight.position < 0 ? 0 : sight.position % options.chunk_size;
    sight.begin = std::max<int64_t>(0, sight.position - in_chunk);
    sight.end = std::min(sight.end, sight.position - in_chunk + options.chunk_size);
    if (sight.position < 0) sight.end = 0;
  }
  sight.end = std::max(sight.end, sight.begin);
  return sight;
}

bool AttentionBatch::is_causal(int seq) const {
  const Causality causality = options.spec.causality;
  return causality == Causality::kCausal ||
         (causality == Causality::kPerSequence && causal_flags[static_cast<size_t>(seq)] != 0);
}

bool AttentionBatch::sees_by_definition(int query, int64_t key) const {
  const int seq = seq_of(query);
  const auto index = static_cast<size_t>(seq);
  const int64_t position = int64_t{seq_lens[index]} - (query_start_loc[index + 1] - query);
  AttentionArgs args;  // what the definition asks for
  args.window_left = options.window_left;
  args.window_right = options.window_right;
  args.chunk_size = options.chunk_size;
  args.bidirectional_ranges = bidirectional_ranges.data();
  args.bidirectional_ranges_stride = bidirectional_ranges_stride;
  args.max_bidirectional_ranges = max_bidirectional_ranges;
  args.ranges_within_window = options.ranges_within_window;
  return sees_key(options.spec, args, seq, is_causal(seq), position, key);
}

std::vector<float> AttentionBatch::bias_of(int query, const Sight& sight) const {
  if (!options.spec.qq_bias) return {};
  const auto seq = static_cast<size_t>(seq_of(query));
  const int64_t first_key = seq_lens[seq] - (query_start_loc[seq + 1] - query_start_loc[seq]);
  const int64_t row = static_cast<int64_t>(seq) * qq_bias_stride_seq +
                      (query - query_start_loc[seq]) * qq_bias_stride_row;
  std::vector<float> biases;
  for (int64_t key = sight.begin; key < sight.end; ++key) {
    biases.push_back(key < first_key ? 0.0f : qq_bias[static_cast<size_t>(row + key - first_key)]);
  }
  return biases;
}

std::vector<uint8_t> AttentionBatch::seen_by(int query, int head, const Sight& sight) const {
  const KernelSpec& spec = options.spec;
  const auto seq = static_cast<size_t>(seq_of(query));
  if (!is_listed.empty()) return is_listed[seq];
  if (!spec.custom_mask && !spec.block_sparse && !spec.bidirectional_ranges) return {};
  const int64_t first_bit = int64_t{query - query_start_loc[seq]} * seq_lens[seq];
  int64_t first_local = 0;  // sparse block
  int64_t offset = 0;
  if (spec.block_sparse) {
    const BlockSparseArgs& sparse = options.block_sparse;
    const int64_t own_block =
        sight.position < 0 ? -1 : sight.position / sparse.block_size;  // before all keys
    first_local = own_block - sparse.local_blocks + 1;
    const int64_t step = sparse.head_sliding_step;
    const int64_t num_before =
        int64_t{sparse.tp_rank} * (step < 0 ? options.num_kv_heads : num_heads);
    offset = (num_before + (step < 0 ? head / spec.group_size : head)) * std::abs(step) + 1;
  }
  std::vector<uint8_t> seen;
  for (int64_t key = sight.begin; key < sight.end; ++key) {
    bool is_seen = !spec.bidirectional_ranges || sees_by_definition(query, key);
    if (spec.custom_mask) {
      const int64_t bit = first_bit + key;
      const uint8_t byte = custom_mask[static_cast<size_t>(custom_mask_indptr[seq] + bit / 8)];
      is_seen &= (byte >> (bit % 8) & 1) != 0;
    }
    if (spec.block_sparse) {
      const int64_t block = key / options.block_sparse.block_size;
      is_seen &= block >= first_local || (block + offset) % options.block_sparse.vert_stride == 0;
    }
    seen.push_back(static_cast<uint8_t>(is_seen));
  }
  return seen;
}

AttentionArgs AttentionBatch::host_args() const {
  AttentionArgs args;
  args.q = q.address(guard_elements(q.type()));
  args.q_stride_token = q_stride_token;
  args.q_stride_head = q_stride_head;
  args.k_cache = allocations[static_cast<size_t>(k_place.allocation)].data.address(k_place.offset);
  args.v_cache = allocations[static_cast<size_t>(v_place.allocation)].data.address(v_place.offset);
  args.k_strides = k_place.strides;
  args.v_strides = v_place.strides;
  args.q_scale = q_scale.empty() ? nullptr : q_scale.data();
  args.k_scale = k_scale.empty() ? nullptr : k_scale.data();
  args.v_scale = v_scale.empty() ? nullptr : v_scale.data();
  args.kv_scale_stride = kv_scale_stride;
  args.out_scale = out_scale.empty() ? nullptr : out_scale.data();
  args.k_scale_strides = k_scale_strides;
  args.v_scale_strides = v_scale_strides;
  if (has_inline_scales()) {
    const auto behind_row = [&](const KvPlace& place, int row_elements) {
      const ElementBuffer& data = allocations[static_cast<size_t>(place.allocation)].data;
      return reinterpret_cast<const float*>(data.address(place.offset + row_elements));
    };
    args.k_scale = behind_row(k_place, options.spec.head_size);
    args.v_scale = behind_row(v_place, head_size_v());
  }
  if (options.spec.latent) args.v_cache = nullptr, args.v_scale = nullptr;
  args.num_blocks = num_blocks;
  args.block_table = block_table.data();
  args.block_table_stride = block_table_stride;
  args.max_blocks_per_seq = max_blocks_per_seq;
  args.seq_lens = seq_lens.data();
  args.kv_indptr = kv_indptr.data();
  args.kv_indices = kv_indices.data();
  args.kv_last_block_len = kv_last_block_len.data();
  args.kv_start_loc = kv_start_loc.data();
  if (!is_listed.empty()) args.seq_lens = list_lens.data();
  args.token_lists = token_lists.data();
  args.token_list_stride = token_list_stride;
  args.max_list_len = max_list_len;
  args.query_seqs = query_seqs.data();
  if (options.spec.kv_table == KvTable::kContiguous) {
    args.k_strides.token = k_place.strides.block;
    args.v_strides.token = v_place.strides.block;
    args.k_scale_strides.token = k_scale_strides.block;
    args.v_scale_strides.token = v_scale_strides.block;
  }
  args.chunk_size = options.chunk_size;
  args.query_start_loc = query_start_loc.data();
  args.num_query_tokens = num_query_rows;
  args.causal_flags = causal_flags.data();
  args.window_left = options.window_left;
  args.window_right = options.window_right;
  args.block_sparse = options.block_sparse;
  args.soft_cap = soft_cap;
  args.custom_mask = custom_mask.data();
  args.custom_mask_indptr = custom_mask_indptr.data();
  args.bidirectional_ranges = bidirectional_ranges.data();
  args.bidirectional_ranges_stride = bidirectional_ranges_stride;
  args.max_bidirectional_ranges = max_bidirectional_ranges;
  args.ranges_within_window = options.ranges_within_window;
  args.qq_bias = qq_bias.data();
  args.qq_bias_stride_seq = qq_bias_stride_seq;
  args.qq_bias_stride_row = qq_bias_stride_row;
  args.alibi_slopes = alibi_slopes.data();
  args.sinks = sinks.data();
  args.out_stride_token = out_stride_token;
  args.out_stride_head = out_stride_head;
  args.num_seqs = num_seqs;
  args.num_kv_heads = options.num_kv_heads;
  args.scale = scale;
  return args;
}

Result<AttentionBatch> make_attention_batch(const BatchOptions& options) {
  if (Status status = validate(options.spec); !status) return status;
  if (options.num_kv_heads < 1 || options.seq_lens.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "a batch needs at least one sequence and one KV head");
  }
  for (int length : options.seq_lens) {
    const int64_t num_blocks = ceil_div(length, options.spec.block_size);
    if (length < 0 ||
        (options.max_blocks_per_seq != 0 && num_blocks > options.max_blocks_per_seq)) {
      return Status(StatusCode::kInvalidArgument,
                    "seq_len " + std::to_string(length) +
                        ": must be at least 0 and at most max_blocks_per_seq * block_size");
    }
  }
  const bool has_lengths = !options.query_lens.empty();
  if (has_lengths && (options.spec.queries == QueryLengths::kOne ||
                      options.query_lens.size() != options.seq_lens.size())) {
    return Status(StatusCode::kInvalidArgument,
                  "query_lens must have one number for each sequence, and none where queries is "
                  "one");
  }
  if (!options.bidirectional_ranges.empty() &&
      options.bidirectional_ranges.size() != options.seq_lens.size()) {
    return Status(StatusCode::kInvalidArgument,
                  "bidirectional_ranges must have one list for each sequence");
  }
  BatchBuilder builder(options);
  builder.make_queries();
  builder.make_block_table();
  builder.make_caches();
  builder.make_token_lists();
  return builder.take();
}

Result<AttentionBatch> shorten(const AttentionBatch& batch, const std::vector<int>& seq_lens) {
  if (seq_lens.size() != batch.seq_lens.size()) {
    return Status(StatusCode::kInvalidArgument, std::to_string(seq_lens.size()) + " lengths for " +
                                                    std::to_string(batch.num_seqs) + " sequences");
  }
  AttentionBatch shorter = batch;
  for (size_t seq = 0; seq < seq_lens.size(); ++seq) {
    const int64_t from_length = batch.seq_lens[seq];
    const int64_t to_length = seq_lens[seq];
    if (to_length < 0 || to_length > from_length) {
      return Status(StatusCode::kInvalidArgument, "seq_len " + std::to_string(to_length) +
                                                      ": must be in [0, " +
                                                      std::to_string(from_length) + "]");
    }
    const auto cut = [&](const std::vector<float>& from, std::vector<float>& to, int64_t row) {
      to.clear();
      for (int64_t head = 0; head < batch.options.num_kv_heads; ++head) {
        const float* begin = from.data() + head * from_length * row;
        to.insert(to.end(), begin, begin + to_length * row);
      }
    };
    cut(batch.dense_k[seq], shorter.dense_k[seq], batch.options.spec.head_size);
    cut(batch.dense_v[seq], shorter.dense_v[seq], batch.head_size_v());
    if (batch.options.spec.token_scales) {
      cut(batch.dense_k_scale[seq], shorter.dense_k_scale[seq], 1);
      cut(batch.dense_v_scale[seq], shorter.dense_v_scale[seq], 1);
    }
    shorter.seq_lens[seq] = static_cast<int32_t>(to_length);
  }
  return shorter;
}

Status check_untouched(const AttentionBatch& batch, const ElementBuffer& out,
                       const std::vector<float>& lse, bool with_lse) {
  std::vector<bool> is_result(static_cast<size_t>(out.size()), false);
  for (int query = 0; query < batch.num_queries; ++query) {
    for (int head = 0; head < batch.num_heads; ++head) {
      const int64_t row = batch.out_index(query, head);
      for (int i = 0; i < batch.head_size_v(); ++i) {
        is_result[static_cast<size_t>(row + i)] = true;
      }
    }
  }
  const uint32_t sentinel = ElementBuffer::sentinel_code(out.type());
  for (int64_t i = 0; i < out.size(); ++i) {
    if (!is_result[static_cast<size_t>(i)] && out.code(i) != sentinel) {
      return untouched_error("out", i - AttentionBatch::guard_elements(out.type()));
    }
  }
  const int64_t num_rows = int64_t{batch.num_queries} * batch.num_heads;
  for (size_t i = 0; i < lse.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) - AttentionBatch::kLseGuard;
    const bool result = with_lse && row >= 0 && row < num_rows;
    if (!result && std::bit_cast<uint32_t>(lse[i]) != AttentionBatch::kLseSentinel) {
      return untouched_error("lse", row);
    }
  }
  return {};
}

}  // namespace pagejit
