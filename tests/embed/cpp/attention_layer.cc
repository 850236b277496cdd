#include "attention_layer.h"

#include <algorithm>

namespace {

pagejit::KernelSpec attention_spec(pagejit::QueryLengths queries) {
  pagejit::KernelSpec spec;  // q, K, V and the result are bf16
  spec.queries = queries;
  spec.head_size = kHeadSize;
  spec.block_size = kBlockSize;
  spec.group_size = kNumHeads / kNumKvHeads;
  // The one query of a decode step comes last, so that there is nothing to hide from it.
  if (queries != pagejit::QueryLengths::kOne) spec.causality = pagejit::Causality::kCausal;
  return spec;
}

pagejit::CacheWriteSpec cache_write_spec() {
  pagejit::CacheWriteSpec spec;
  spec.head_size = kHeadSize;
  spec.block_size = kBlockSize;
  return spec;
}

}  // namespace

AttentionLayer::AttentionLayer(const CudaDriver& cuda, pagejit::Engine& engine) : cuda_(cuda) {
  // All compile at once; a real engine loads its weights meanwhile.
  auto write = require(engine.prepare_async(cache_write_spec()));
  auto prefill = require(engine.prepare_async(attention_spec(pagejit::QueryLengths::kMany)));
  auto decode = require(engine.prepare_async(attention_spec(pagejit::QueryLengths::kOne)));
  write_ = require(write.wait());
  prefill_ = require(prefill.wait());
  decode_ = require(decode.wait());

  // One workspace serves all launches of a stream, whatever their shapes.
  workspace_ =
      DeviceBuffer(cuda, std::max(prefill_.max_workspace_bytes(), decode_.max_workspace_bytes()));
  require(decode_.workspace_init(workspace_.data(), workspace_.size(), cuda.stream()));
}

std::vector<Bf16> AttentionLayer::run(PagedCache& cache, const Step& step) {
  std::vector<int64_t> slots;           // of the new tokens
  std::vector<int32_t> query_start{0};  // where each sequence's new tokens begin
  std::vector<int32_t> seq_lens;        // new tokens included
  size_t width = 1;                     // of the block table
  for (size_t i = 0; i < step.sequences.size(); ++i) {
    Sequence& sequence = *step.sequences[i];
    const std::vector<int64_t> added = cache.append(sequence, step.num_new_tokens[i]);
    slots.insert(slots.end(), added.begin(), added.end());
    query_start.push_back(query_start.back() + step.num_new_tokens[i]);
    seq_lens.push_back(sequence.num_tokens);
    width = std::max(width, sequence.blocks.size());
  }
  const int32_t num_tokens = query_start.back();

  std::vector<int32_t> block_table;  // [sequences, width]
  for (const Sequence* sequence : step.sequences) {
    std::vector<int32_t> row = sequence->blocks;
    if (fault_ == Fault::kBlockTable && row.size() > 1) row[1] = row[0];
    row.resize(width, -1);  // what is behind a sequence's blocks is not read
    block_table.insert(block_table.end(), row.begin(), row.end());
  }

  // An engine keeps these buffers from step to step.
  const DeviceBuffer q(cuda_, step.q), k(cuda_, step.k), v(cuda_, step.v), out(cuda_, q.size());
  const DeviceBuffer device_slots(cuda_, slots), device_table(cuda_, block_table),
      device_lens(cuda_, seq_lens), device_starts(cuda_, query_start);

  pagejit::CacheWriteArgs write;
  write.key = k.data();
  write.value = v.data();
  write.key_stride_token = write.value_stride_token = kKvElements;
  write.key_stride_head = write.value_stride_head = kHeadSize;
  write.k_cache = cache.k_cache();
  write.v_cache = cache.v_cache();
  write.k_strides = write.v_strides = PagedCache::strides();
  write.slot_mapping = device_slots.data<const int64_t>();
  write.num_tokens = num_tokens;
  write.num_kv_heads = kNumKvHeads;
  require(write_.launch(write, cuda_.stream()));

  pagejit::AttentionArgs args;
  args.q = q.data();
  args.out = out.data();
  args.q_stride_token = args.out_stride_token = kQElements;
  args.q_stride_head = args.out_stride_head = kHeadSize;
  args.k_cache = cache.k_cache();
  args.v_cache = cache.v_cache();
  args.k_strides = args.v_strides = PagedCache::strides();
  args.block_table = device_table.data<const int32_t>();
  args.block_table_stride = static_cast<int64_t>(width);
  args.max_blocks_per_seq = static_cast<int32_t>(width);
  args.seq_lens = device_lens.data<const int32_t>();
  args.query_start_loc = device_starts.data<const int32_t>();  // prefill's alone; decode has i to i
  args.num_query_tokens = num_tokens;
  args.num_seqs = static_cast<int32_t>(step.sequences.size());
  args.num_kv_heads = kNumKvHeads;
  args.scale = kScale;
  args.workspace = workspace_.data();
  args.workspace_bytes = workspace_.size();
  const bool is_decode = num_tokens == args.num_seqs;
  require((is_decode ? decode_ : prefill_).launch(args, cuda_.stream()));

  std::vector<Bf16> result(step.q.size());
  out.download(result.data());
  return result;
}
