#include "tests/sweep/planted_problems.h"

#include "tests/sweep/test_device.h"

namespace pagejit {
namespace {

using Problems = std::vector<PlantedProblem>;

Problems decode_problems() {
  CheckOptions plain;
  plain.batch.num_kv_heads = 2;
  CheckOptions padded = plain;
  padded.batch.layout = CacheLayout::kPadded;
  padded.batch.seq_lens = {40, 0, 300, 17};
  padded.num_splits = 3;
  CheckOptions low = plain;
  low.batch.logits = LogitRegime::kLow;
  low.batch.seq_lens = {100, 5};
  CheckOptions huge = plain;
  huge.batch.layout = CacheLayout::kInterleaved;
  huge.batch.device_block_stride = (int64_t{1} << 30) + 8;
  huge.batch.seq_lens = {70};
  CheckOptions many_splits = plain;  // more than are fetched at once
  many_splits.batch.seq_lens = {1600};
  many_splits.num_splits = 25;
  Problems problems;
  for (const KernelSpec& spec :
       {make_spec(DataType::kFloat16, 72, 16, 4), make_spec(DataType::kBFloat16, 128, 32, 40)}) {
    for (const CheckOptions& options : {plain, padded, low, huge, many_splits}) {
      problems.push_back({spec, options});
    }
    problems.push_back({spec, {}, PlantedProblem::kLaterLaunches});
  }
  return problems;
}

Problems ragged_problems() {
  KernelSpec causal = make_spec(DataType::kBFloat16, 64, 16, 4);
  causal.queries = QueryLengths::kFew;
  causal.causality = Causality::kCausal;
  KernelSpec window = causal;
  window.causality = Causality::kPerSequence;
  window.window = true;
  KernelSpec changed = causal;
  changed.soft_cap = changed.alibi = changed.sinks = true;
  KernelSpec csr = causal;
  csr.queries = QueryLengths::kMany;
  csr.kv_table = KvTable::kCsr;
  csr.causality = Causality::kNone;
  csr.chunked = true;
  KernelSpec contiguous = causal;
  contiguous.kv_table = KvTable::kContiguous;
  contiguous.block_size = 1;
  KernelSpec masked = causal;
  masked.queries = QueryLengths::kMany;
  masked.custom_mask = true;
  KernelSpec shared = causal;
  shared.queries = QueryLengths::kShared;
  shared.group_size = 20;  // more than one tile of 128 rows
  Problems problems;
  for (const KernelSpec& spec : {causal, window, changed, csr, contiguous, masked, shared}) {
    for (const int num_splits : {1, 3}) {
      CheckOptions options;
      options.batch.num_kv_heads = 2;
      options.batch.seq_lens = {40, 0, 300, 217, 64};
      options.batch.query_lens = {3, 2, 1, 17, 4};
      options.batch.unused_queries = 2;
      options.batch.layout = CacheLayout::kPadded;
      options.batch.window_left = 21;
      options.batch.window_right = 5;
      options.batch.chunk_size = 13;
      options.num_splits = num_splits;
      problems.push_back({spec, options});
    }
  }
  return problems;
}

Problems block_sparse_problems() {
  const KernelSpec one = {.head_size = 64, .group_size = 4, .block_sparse = true};
  KernelSpec few = one;
  few.queries = QueryLengths::kFew;
  few.causality = Causality::kCausal;
  const BlockSparseArgs numbers[] = {
      {.local_blocks = 2, .vert_stride = 5, .block_size = 24, .head_sliding_step = 1},
      {.local_blocks = 1, .vert_stride = 3, .block_size = 7, .head_sliding_step = -1},
      {.local_blocks = 1, .vert_stride = 70, .block_size = 2},
  };
  Problems problems;
  for (const KernelSpec& spec : {one, few}) {
    for (const BlockSparseArgs& sparse : numbers) {
      CheckOptions options;
      options.batch.num_kv_heads = 2;
      options.batch.seq_lens = {40, 0, 300, 217, 64};
      if (spec.queries == QueryLengths::kFew) options.batch.query_lens = {3, 2, 1, 37, 4};
      options.batch.block_sparse = sparse;
      problems.push_back({spec, options});
    }
  }
  return problems;
}

// Custom masks, ranges of positions, the bias between query tokens.
Problems mask_problems() {
  KernelSpec causal = make_spec(DataType::kBFloat16, 64, 16, 4);
  causal.queries = QueryLengths::kMany;
  causal.causality = Causality::kCausal;
  KernelSpec masked = causal;
  masked.custom_mask = true;
  masked.causality = Causality::kNone;
  masked.group_size = 3;  // neighbouring rows are of different query tokens
  KernelSpec biased = causal;
  biased.qq_bias = true;
  KernelSpec ranges = causal;
  ranges.bidirectional_ranges = true;
  KernelSpec window = ranges;
  window.queries = QueryLengths::kFew;
  window.causality = Causality::kPerSequence;
  window.window = true;
  Problems problems;
  for (const KernelSpec& spec : {masked, biased, ranges, window}) {
    for (const bool within_window : {false, true}) {
      if (within_window && !spec.window) continue;
      CheckOptions options;
      options.batch.num_kv_heads = 2;
      options.batch.seq_lens = {140, 0, 300, 217, 61};
      options.batch.query_lens = {3, 2, 1, 117, 60};
      options.batch.window_left = 21;
      options.batch.window_right = 5;
      options.batch.ranges_within_window = within_window;
      options.num_splits = 2;
      problems.push_back({spec, options});
    }
  }
  problems.push_back({masked, {}, PlantedProblem::kEndOfMask});
  return problems;
}

// Other types, layouts and head sizes.
Problems element_problems() {
  KernelSpec fp8 = make_spec(DataType::kFloat8E4m3, 64, 16, 4);
  fp8.out_dtype = DataType::kBFloat16;
  KernelSpec scaled = fp8;  // q is brought into the range of f16
  scaled.q_dtype = DataType::kBFloat16;
  KernelSpec vllm = scaled;
  vllm.kv_layout = KvLayout::kVllm;
  KernelSpec window = make_spec(DataType::kFloat16, 64, 32, 2);
  window.kv_layout = KvLayout::kVllm;
  window.queries = QueryLengths::kFew;
  window.causality = Causality::kCausal;
  window.window = true;
  const KernelSpec large = make_spec(DataType::kBFloat16, 512, 16, 1);
  KernelSpec tokens = scaled;
  tokens.kv_dtype = DataType::kInt8;
  tokens.token_scales = true;
  tokens.out_dtype = DataType::kFloat8E4m3;
  KernelSpec values = make_spec(DataType::kBFloat16, 192, 16, 4);
  values.head_size_v = 128;
  KernelSpec int4 = tokens;
  int4.kv_dtype = DataType::kInt4;
  KernelSpec wide = int4;  // q in shared memory
  wide.head_size = 512;
  wide.group_size = 1;
  Problems problems;
  for (const KernelSpec& spec : {fp8, scaled, vllm, window, large, tokens, int4, wide, values}) {
    for (const float scale : {0.125f, -0.0625f}) {
      CheckOptions options;
      options.batch.num_kv_heads = 3;
      options.batch.seq_lens = {40, 0, 300, 217};
      options.batch.per_head_scales = true;
      options.batch.window_left = 21;
      options.batch.scale = scale;
      options.num_splits = 2;
      problems.push_back({spec, options});
    }
  }
  return problems;
}

// K and V of f32: decode, with q in registers; vLLM's layout; 128 rows, with q in shared memory.
Problems f32_problems() {
  const KernelSpec one = make_spec(DataType::kFloat32, 72, 16, 4);
  KernelSpec vllm = one;
  vllm.kv_layout = KvLayout::kVllm;
  KernelSpec shared = make_spec(DataType::kFloat32, 256, 16, 8);
  shared.queries = QueryLengths::kShared;
  Problems problems;
  for (const KernelSpec& spec : {one, vllm, shared}) {
    for (const float scale : {0.125f, -0.0625f}) {
      CheckOptions options;
      options.batch.num_kv_heads = 2;
      options.batch.seq_lens = {40, 0, 300, 217};
      if (spec.queries == QueryLengths::kShared) options.batch.query_lens = {3, 2, 20, 1};
      options.batch.scale = scale;
      options.num_splits = 2;
      problems.push_back({spec, options});
    }
  }
  return problems;
}

// K rows that hold V: one tile of rows per warp, warps with fewer elements of V than others, rows
// divided among warps, rows that see nothing of a tile's first group, elements of 8 bits.
Problems latent_problems() {
  KernelSpec one = make_spec(DataType::kBFloat16, 96, 16, 4);
  one.head_size_v = 80;
  one.latent = true;
  KernelSpec few = one;
  few.group_size = 16;
  few.queries = QueryLengths::kFew;
  few.causality = Causality::kCausal;
  KernelSpec fp8 = few;
  fp8.kv_dtype = DataType::kFloat8E4m3;
  KernelSpec window = few;
  window.queries = QueryLengths::kMany;
  window.group_size = 1;
  window.window = true;
  KernelSpec tall = one;  // two tiles of rows
  tall.group_size = 80;
  KernelSpec lists = one;
  lists.kv_table = KvTable::kPositions;
  KernelSpec ds_mla = fp8;  // rows that hold their scales
  ds_mla.head_size = 576;
  ds_mla.head_size_v = 512;
  ds_mla.kv_layout = KvLayout::kDsMla;
  Problems problems;
  for (const KernelSpec& spec : {one, tall, few, fp8, window, lists, ds_mla}) {
    for (const LogitRegime logits : {LogitRegime::kNormal, LogitRegime::kMixed}) {
      CheckOptions options;
      options.batch.seq_lens = {33, 0, 300, 217};
      if (spec.queries != QueryLengths::kOne) options.batch.query_lens = {4, 1, 70, 20};
      options.batch.window_left = 21;
      options.batch.logits = logits;
      options.num_splits = 2;
      problems.push_back({spec, options});
    }
  }
  problems.push_back({tall, {}, PlantedProblem::kLaterLaunches});
  return problems;
}

Problems pdl_problems() {
  KernelSpec spec = make_spec(DataType::kBFloat16, 64, 16, 4);
  spec.pdl = true;
  return {{spec, {}}};
}

}  // namespace

std::vector<PlantedProblem> planted_problems(PlantedBug::Kernels kernels) {
  switch (kernels) {
    case PlantedBug::kDecode:
      return decode_problems();
    case PlantedBug::kRagged:
      return ragged_problems();
    case PlantedBug::kElements:
      return element_problems();
    case PlantedBug::kF32Caches:
      return f32_problems();
    case PlantedBug::kPdl:
      return pdl_problems();
    case PlantedBug::kBlockSparse:
      return block_sparse_problems();
    case PlantedBug::kMasks:
      return mask_problems();
    case PlantedBug::kLatent:
      return latent_problems();
  }
  return {};
}

}  // namespace pagejit
