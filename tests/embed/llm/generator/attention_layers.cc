#include "attention_layers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tensor_math.h"

namespace llm {

using pagejit::AttentionArgs;
using pagejit::DataType;
using pagejit::Engine;
using pagejit::KernelSpec;
using pagejit::KvStrides;
using pagejit::QueryLengths;
using pagejit::Result;
using pagejit::Status;

namespace {

constexpr pagejit::Stream kStream = nullptr;  // the default stream, so that copies wait for kernels
constexpr size_t kBf16Bytes = 2;
constexpr unsigned char kPoison = 0xff;  // bf16 of these bytes is NaN: an unwritten slot is noticed

pagejit::CacheWriteSpec cache_write_spec(const Model& model) {
  pagejit::CacheWriteSpec spec;  // bf16, stored as it is
  spec.head_size = model.head_size;
  spec.block_size = kBlockSize;
  spec.rope =
      model.rotates_neighbours ? pagejit::RopeStyle::kInterleaved : pagejit::RopeStyle::kNeox;
  spec.rotary_dim = model.head_size;
  return spec;
}

KernelSpec attention_spec(const Model& model, QueryLengths queries, bool has_window) {
  KernelSpec spec;  // q, K and V in bf16
  spec.queries = queries;
  spec.out_dtype = DataType::kFloat32;
  spec.head_size = model.head_size;
  spec.block_size = kBlockSize;
  spec.group_size = model.num_heads / model.num_kv_heads;
  if (queries != QueryLengths::kOne) spec.causality = pagejit::Causality::kCausal;
  spec.window = has_window;
  return spec;
}

// NHD: [num_blocks, kBlockSize, kv_heads, head_size].
KvStrides cache_strides(const Model& model) {
  const int64_t token = int64_t{model.num_kv_heads} * model.head_size;
  return {.block = kBlockSize * token, .token = token, .head = model.head_size};
}

template <class T>
Status allocate_array(DeviceBuffer& buffer, std::shared_ptr<const Device> device, size_t count) {
  Result<DeviceBuffer> made = DeviceBuffer::allocate(std::move(device), count * sizeof(T));
  if (made) buffer = std::move(*made);
  return made.status();
}

}  // namespace

Result<std::unique_ptr<AttentionLayers>> AttentionLayers::create(
    Engine& engine, std::shared_ptr<const Device> device, const Model& model, const Limits& limits,
    bool uses_cascade) {
  std::unique_ptr<AttentionLayers> layers(new AttentionLayers(model));
  Status status = layers->prepare(engine, uses_cascade);
  if (status) status = layers->allocate(std::move(device), limits);
  if (!status) return status;
  return layers;
}

Status AttentionLayers::prepare(Engine& engine, bool uses_cascade) {
  // All at once in the background, then all results: compiling uses every core.
  pagejit::Result<pagejit::Pending<pagejit::Kernel>> prefill[2] = {Status(), Status()};
  pagejit::Result<pagejit::Pending<pagejit::Kernel>> decode[2] = {Status(), Status()};
  auto cache_write = engine.prepare_async(cache_write_spec(model_));
  auto copy_blocks = engine.prepare_async(pagejit::CopyBlocksSpec{});
  const auto is_local = [](const Layer& layer) { return layer.window > 0; };
  const bool needed[2] = {!std::ranges::all_of(model_.layers, is_local),
                          std::ranges::any_of(model_.layers, is_local)};
  for (const bool window : {false, true}) {
    if (!needed[window]) continue;
    prefill[window] = engine.prepare_async(attention_spec(model_, QueryLengths::kMany, window));
    decode[window] = engine.prepare_async(attention_spec(model_, QueryLengths::kOne, window));
  }

  Status status;
  const auto finish = [&status](auto& pending, auto& kernel) {
    if (!status) return;
    if (!pending) {
      status = pending.status();
      return;
    }
    auto made = pending->wait();
    if (made) kernel = std::move(*made);
    status = made.status();
  };
  finish(cache_write, cache_write_);
  finish(copy_blocks, copy_blocks_);
  for (const bool window : {false, true}) {
    if (!needed[window]) continue;
    finish(prefill[window], prefill_[window]);
    finish(decode[window], decode_[window]);
  }
  if (status && uses_cascade) {
    auto made = engine.prepare(
        pagejit::CascadeSpec{attention_spec(model_, QueryLengths::kOne, needed[true])});
    if (made) cascade_ = std::move(*made);
    status = made.status();
  }
  return status;
}

Status AttentionLayers::allocate(std::shared_ptr<const Device> device, const Limits& limits) {
  max_blocks_ = static_cast<int>((limits.max_length + kBlockSize - 1) / kBlockSize);
  num_blocks_ = limits.num_blocks;
  const auto head_size = static_cast<size_t>(model_.head_size);
  const auto q_row = head_size * static_cast<size_t>(model_.num_heads);
  const auto kv_row = head_size * static_cast<size_t>(model_.num_kv_heads);
  const auto cache_size = static_cast<size_t>(limits.num_blocks) * kBlockSize * kv_row;

  Status status;
  std::vector<void*> addresses;
  k_caches_.resize(model_.layers.size());
  v_caches_.resize(model_.layers.size());
  for (auto* caches : {&k_caches_, &v_caches_}) {
    for (DeviceBuffer& cache : *caches) {
      if (status) status = allocate_array<uint16_t>(cache, device, cache_size);
      if (status) status = cache.fill(kPoison);
      addresses.push_back(cache.get());
    }
  }
  if (status) status = allocate_array<void*>(cache_addresses_, device, addresses.size());
  if (status) status = cache_addresses_.upload(addresses);

  const size_t tokens = limits.max_tokens, sequences = limits.max_sequences;
  if (status) status = allocate_array<uint16_t>(q_, device, tokens * q_row);
  if (status) status = allocate_array<uint16_t>(k_, device, tokens * kv_row);
  if (status) status = allocate_array<uint16_t>(v_, device, tokens * kv_row);
  if (status) status = allocate_array<float>(out_, device, tokens * q_row);
  if (status) status = allocate_array<int64_t>(positions_, device, tokens);
  if (status) status = allocate_array<int64_t>(slots_, device, tokens);
  const size_t table_size = sequences * static_cast<size_t>(max_blocks_);
  if (status) status = allocate_array<int32_t>(block_table_, device, table_size);
  if (status) status = allocate_array<int32_t>(seq_lens_, device, sequences);
  if (status) status = allocate_array<int32_t>(query_starts_, device, sequences + 1);
  if (status) status = allocate_array<int32_t>(prefix_length_, device, 1);
  if (status) status = allocate_array<int32_t>(prefix_starts_, device, 2);
  if (status) status = allocate_array<int32_t>(suffix_lens_, device, sequences);
  if (status) status = allocate_array<BlockCopy>(block_pair_, device, 1);
  if (status) status = make_rotations(device, limits.max_length);

  // One workspace for all kernels: they follow each other on one stream.
  for (const auto* kernels : {prefill_, decode_}) {
    for (const bool window : {false, true}) {
      if (!kernels[window]) continue;
      workspace_bytes_ = std::max(workspace_bytes_, kernels[window].max_workspace_bytes());
    }
  }
  if (cascade_) {
    const size_t bytes =
        cascade_.max_workspace_bytes(2, static_cast<int>(sequences), model_.num_kv_heads);
    workspace_bytes_ = std::max(workspace_bytes_, bytes);
  }
  if (status) status = allocate_array<char>(workspace_, std::move(device), workspace_bytes_);
  const bool any_window = !decode_[false];
  if (status) {
    status = decode_[any_window].workspace_init(workspace_.get(), workspace_bytes_, kStream);
  }
  return status;
}

Status AttentionLayers::make_rotations(std::shared_ptr<const Device> device, size_t max_length) {
  const auto size = static_cast<size_t>(model_.head_size);
  for (const Layer& layer : model_.layers) {
    if (rotations_.contains(layer.rope_base)) continue;
    std::vector<float> table(max_length * size);
    for (size_t position = 0; position < max_length; ++position) {
      for (size_t i = 0; i < size / 2; ++i) {
        const double turn = static_cast<double>(2 * i) / static_cast<double>(size);
        const double angle = static_cast<double>(position) * std::pow(layer.rope_base, -turn);
        table[position * size + i] = static_cast<float>(std::cos(angle));
        table[position * size + size / 2 + i] = static_cast<float>(std::sin(angle));
      }
    }
    DeviceBuffer& buffer = rotations_[layer.rope_base];
    Status status = allocate_array<float>(buffer, device, table.size());
    if (status) status = buffer.upload(table);
    if (!status) return status;
  }
  return {};
}

Status AttentionLayers::begin_step(const std::vector<StepPart>& parts) {
  const auto columns = static_cast<size_t>(max_blocks_);
  std::vector<int64_t> positions, slots;
  std::vector<int32_t> table(parts.size() * columns, 0), lengths, starts{0};
  is_decode_ = true;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Sequence& sequence = *parts[i].sequence;
    const size_t end = sequence.num_cached + parts[i].num_tokens;
    for (size_t position = sequence.num_cached; position < end; ++position) {
      const int64_t block = sequence.blocks[position / kBlockSize];
      positions.push_back(static_cast<int64_t>(position));
      slots.push_back(block * kBlockSize + static_cast<int64_t>(position % kBlockSize));
    }
    std::ranges::copy(sequence.blocks, table.begin() + static_cast<int64_t>(i * columns));
    lengths.push_back(static_cast<int32_t>(end));
    starts.push_back(static_cast<int32_t>(positions.size()));
    is_decode_ = is_decode_ && parts[i].num_tokens == 1;
  }
  num_tokens_ = starts.back();
  num_sequences_ = static_cast<int32_t>(parts.size());
  longest_ = *std::ranges::max_element(lengths);
  if (broken_entry_ >= 0 && parts.size() > 1) {
    const auto entry = static_cast<size_t>(broken_entry_);
    std::swap(table[entry], table[columns + entry]);
  }

  Status status = positions_.upload(positions);
  if (status) status = slots_.upload(slots);
  if (status) status = block_table_.upload(table);
  if (status) status = seq_lens_.upload(lengths);
  if (status) status = query_starts_.upload(starts);
  if (!is_decode_ || !cascade_ || !status) return status;

  // A cascade has the shared blocks as one sequence, and the others' lengths without them.
  size_t shared = parts[0].sequence->blocks.size();
  for (const StepPart& part : parts) {
    shared = std::min(shared, num_shared_blocks(*parts[0].sequence, *part.sequence));
  }
  num_shared_blocks_ = static_cast<int32_t>(shared);
  const int32_t prefix = num_shared_blocks_ * kBlockSize;
  for (int32_t& length : lengths) length -= prefix;
  status = prefix_length_.upload(std::vector<int32_t>{prefix});
  if (status) status = prefix_starts_.upload(std::vector<int32_t>{0, num_tokens_});
  if (status) status = suffix_lens_.upload(lengths);
  return status;
}

Status AttentionLayers::attend(size_t layer, const std::vector<float>& q,
                               const std::vector<float>& k, const std::vector<float>& v,
                               std::vector<float>& out) {
  Status status;
  const std::pair<const std::vector<float>*, const DeviceBuffer*> inputs[] = {
      {&q, &q_}, {&k, &k_}, {&v, &v_}};
  for (const auto& [values, buffer] : inputs) {
    to_bf16(*values, narrow_);
    if (status) status = buffer->upload(narrow_);
  }
  if (status) status = write_cache(layer);
  if (status) status = is_decode_ && cascade_ ? attend_cascade(layer) : attend_cached(layer);
  out.resize(q.size());
  if (status) status = out_.download_bytes(out.data(), out.size() * sizeof(float));
  return status;
}

Status AttentionLayers::write_cache(size_t layer) {
  const int64_t head_size = model_.head_size;
  pagejit::CacheWriteArgs args;
  args.key = k_.get();
  args.value = v_.get();
  args.key_stride_token = args.value_stride_token = model_.num_kv_heads * head_size;
  args.key_stride_head = args.value_stride_head = head_size;
  args.k_cache = k_caches_[layer].get();
  args.v_cache = v_caches_[layer].get();
  args.k_strides = args.v_strides = cache_strides(model_);
  args.slot_mapping = slots_.as<int64_t>();
  args.num_tokens = num_tokens_;
  args.num_kv_heads = model_.num_kv_heads;
  args.q = q_.get();  // rotated in place
  args.q_stride_token = model_.num_heads * head_size;
  args.q_stride_head = head_size;
  args.num_q_heads = model_.num_heads;
  args.positions = positions_.as<int64_t>();
  args.cos_sin = rotations_.at(model_.layers[layer].rope_base).get();
  Status status = cache_write_.launch(args, kStream);
  if (status) ++counts_.cache_writes;
  if (status) counts_.written_tokens += static_cast<uint64_t>(num_tokens_);
  return status;
}

Status AttentionLayers::attend_cached(size_t layer) {
  const int64_t head_size = model_.head_size;
  const int window = model_.layers[layer].window;
  AttentionArgs args;
  args.q = q_.get();
  args.q_stride_token = args.out_stride_token = model_.num_heads * head_size;
  args.q_stride_head = args.out_stride_head = head_size;
  args.k_cache = k_caches_[layer].get();
  args.v_cache = v_caches_[layer].get();
  args.k_strides = args.v_strides = cache_strides(model_);
  args.block_table = block_table_.as<int32_t>();
  args.block_table_stride = max_blocks_;
  args.max_blocks_per_seq = max_blocks_;
  args.seq_lens = seq_lens_.as<int32_t>();
  args.query_start_loc = query_starts_.as<int32_t>();
  args.num_query_tokens = num_tokens_;
  args.out = out_.get();
  args.window_left = window - 1;  // a window counts the query itself; of 0 the kernel has none
  args.num_seqs = num_sequences_;
  args.num_kv_heads = model_.num_kv_heads;
  args.scale = model_.attention_scale;
  args.max_seq_len = longest_;
  args.workspace = workspace_.get();
  args.workspace_bytes = workspace_bytes_;
  const auto& kernels = is_decode_ ? decode_ : prefill_;
  Status status = kernels[window > 0].launch(args, kStream);
  if (const int times = std::exchange(repeated_, 0); times > 0 && status) {
    status = kernels[window > 0].launch(args, kStream);
    if (times == 2) ++(is_decode_ ? counts_.decodes : counts_.prefills);
  }
  if (status) ++(is_decode_ ? counts_.decodes : counts_.prefills);
  return status;
}

Status AttentionLayers::attend_cascade(size_t layer) {
  pagejit::CascadeLevel levels[2];
  levels[0].query_start_loc = prefix_starts_.as<int32_t>();  // one group: all query tokens
  levels[0].num_seqs = 1;
  levels[0].block_table = block_table_.as<int32_t>();  // the first row begins with the prefix
  levels[0].seq_lens = prefix_length_.as<int32_t>();
  levels[0].max_blocks_per_seq = num_shared_blocks_;
  levels[1].num_seqs = num_sequences_;
  levels[1].block_table = block_table_.as<int32_t>() + num_shared_blocks_;
  levels[1].seq_lens = suffix_lens_.as<int32_t>();
  levels[1].max_blocks_per_seq = max_blocks_ - num_shared_blocks_;
  for (auto& level : levels) level.block_table_stride = max_blocks_;

  const int64_t head_size = model_.head_size;
  pagejit::CascadeArgs args;
  args.levels = levels;
  args.num_levels = 2;
  args.q = q_.get();
  args.q_stride_token = args.out_stride_token = model_.num_heads * head_size;
  args.q_stride_head = args.out_stride_head = head_size;
  args.k_cache = k_caches_[layer].get();
  args.v_cache = v_caches_[layer].get();
  args.k_strides = args.v_strides = cache_strides(model_);
  args.num_query_tokens = num_tokens_;
  args.num_kv_heads = model_.num_kv_heads;
  args.out = out_.get();
  args.scale = model_.attention_scale;
  args.workspace = workspace_.get();
  args.workspace_bytes = workspace_bytes_;
  Status status = cascade_.launch(args, kStream);
  if (status) ++counts_.cascades;
  return status;
}

Status AttentionLayers::copy_block(const BlockCopy& copy) {
  pagejit::CopyBlocksArgs args;
  args.caches = cache_addresses_.as<void*>();
  args.num_caches = static_cast<int32_t>(k_caches_.size() + v_caches_.size());
  args.block_bytes = cache_strides(model_).block * static_cast<int64_t>(kBf16Bytes);
  args.block_stride_bytes = args.block_bytes;
  args.pairs = block_pair_.as<int64_t>();
  args.num_pairs = 1;
  Status status = block_pair_.upload(std::vector<BlockCopy>{copy});
  if (status) status = copy_blocks_.launch(args, kStream);
  if (status) ++counts_.copies;
  return status;
}

}  // namespace llm
