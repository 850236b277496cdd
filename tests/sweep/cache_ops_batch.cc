#include "tests/sweep/cache_ops_batch.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "pagejit/mla_cache.h"
#include "tests/sweep/family_test.h"
#include "tools/reference/random.h"

namespace pagejit {
namespace {

constexpr uint8_t kGuard = 0x5a;

std::vector<uint8_t> random_bytes(size_t count, SplitMix64& rng) {
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng.below(256));
  return bytes;
}

// A cache of random values of a type.
std::vector<uint8_t> random_cache(DataType type, int64_t elements, SplitMix64& rng) {
  std::vector<uint8_t> bytes(static_cast<size_t>(elements * data_type_bits(type) / 8));
  for (int64_t i = 0; i < elements; ++i) {
    const float size = type == DataType::kInt8   ? 100.0f
                       : type == DataType::kInt4 ? 8.0f
                                                 : std::exp2(static_cast<float>(rng.below(16)) - 8);
    put_element(type, bytes, i, rng.uniform() * size);
  }
  return bytes;
}

bool is_ds_mla(const GatherCacheSpec& spec) { return spec.layout == KvLayout::kDsMla; }

KvStrides strides_of(const GatherOptions& o, bool is_value) {
  const int64_t bs = o.spec.block_size;
  // Bytes, with a gap behind each block.
  if (is_ds_mla(o.spec)) return {bs * kDsMlaRowBytes + 16, 0, kDsMlaRowBytes};
  const int64_t d = is_value ? value_head_size(o.spec) : o.spec.head_size;
  const int64_t h = o.num_kv_heads;
  if (o.spec.layout == KvLayout::kVllm) return {bs * h * d, 0, bs * d};
  return o.heads_first ? KvStrides{h * bs * d, d, bs * d} : KvStrides{bs * h * d, h * d, d};
}

int64_t cache_index(const GatherOptions& o, bool is_value, int64_t block, int64_t token, int head,
                    int i) {
  const KvStrides strides = strides_of(o, is_value);
  const int64_t base = block * strides.block + head * strides.head;
  if (o.spec.layout != KvLayout::kVllm) return base + token * strides.token + i;
  if (is_value) return base + int64_t{i} * o.spec.block_size + token;
  const int64_t x = 16 / data_type_bytes(o.spec.kv_dtype);
  return base + (i / x) * o.spec.block_size * x + token * x + i % x;
}

// Rows of KvLayout::kDsMla: all codes, scales of all sizes, then bf16.
std::vector<uint8_t> random_ds_mla_cache(const GatherOptions& o, SplitMix64& rng) {
  const KvStrides strides = strides_of(o, false);
  std::vector<uint8_t> cache = random_bytes(static_cast<size_t>(o.num_blocks * strides.block), rng);
  for (uint8_t& code : cache) {
    // A NaN has many codes in f32.
    if (o.spec.out_dtype == DataType::kFloat32 && (code & 0x7f) == 0x7f) code = 0;
  }
  for (int64_t block = 0; block < o.num_blocks; ++block) {
    for (int64_t token = 0; token < o.spec.block_size; ++token) {
      const int64_t row = block * strides.block + token * strides.token;
      for (int i = 0; i < 4; ++i) {
        const float size = std::exp2(static_cast<float>(rng.below(20)) - 16);
        put_element(DataType::kFloat32, cache, (row + 512) / 4 + i, size + std::abs(rng.uniform()));
      }
      for (int i = 0; i < 64; ++i) {
        put_element(DataType::kBFloat16, cache, (row + 528) / 2 + i, rng.uniform() * 1000);
      }
    }
  }
  return cache;
}

float get_ds_mla_element(const std::vector<uint8_t>& cache, int64_t row, int i) {
  if (i >= 512) return get_element(DataType::kBFloat16, cache, (row + 528) / 2 + i - 512);
  return get_element(DataType::kFloat8E4m3, cache, row + i) *
         get_element(DataType::kFloat32, cache, (row + 512) / 4 + i / 128);
}

struct GatherBatch {
  std::vector<uint8_t> k, v;
  std::vector<float> k_scale, v_scale;
  std::vector<int32_t> table, cu_seq_lens, starts;
  int64_t table_stride = 0;
  int64_t k_out_stride_head = 0;
  int64_t k_out_stride_token = 0;
  int64_t v_out_stride_head = 0;
  int64_t v_out_stride_token = 0;
  int num_tokens = 0;
};

GatherBatch make_gather(const GatherOptions& o) {
  GatherBatch batch;
  SplitMix64 rng(7);
  batch.k = is_ds_mla(o.spec)
                ? random_ds_mla_cache(o, rng)
                : random_cache(o.spec.kv_dtype, o.num_blocks * strides_of(o, false).block, rng);
  batch.v = random_cache(o.spec.kv_dtype, o.num_blocks * strides_of(o, true).block, rng);
  const int64_t scales = o.spec.scale == KvScale::kTokenHead
                             ? o.num_blocks * o.spec.block_size * o.num_kv_heads
                         : o.spec.scale == KvScale::kHead ? o.num_kv_heads
                                                          : 1;
  for (int64_t i = 0; i < scales; ++i) {
    batch.k_scale.push_back(0.1f + std::abs(rng.uniform()));
    batch.v_scale.push_back(1.1f + std::abs(rng.uniform()));
  }
  batch.cu_seq_lens.push_back(0);
  int longest = 0;
  for (const int len : o.seq_lens) {
    batch.cu_seq_lens.push_back(batch.cu_seq_lens.back() + len);
    batch.starts.push_back(o.with_starts ? static_cast<int32_t>(rng.below(30)) : 0);
    longest = std::max(longest, len + batch.starts.back());
  }
  batch.num_tokens = batch.cu_seq_lens.back();
  batch.table_stride = longest / o.spec.block_size + 3;
  for (int64_t i = 0; i < batch.table_stride * static_cast<int64_t>(o.seq_lens.size()); ++i) {
    batch.table.push_back(static_cast<int32_t>(rng.below(o.num_blocks)));
  }
  batch.k_out_stride_head = o.spec.head_size + 16;
  batch.k_out_stride_token = o.num_kv_heads * batch.k_out_stride_head + 16;
  batch.v_out_stride_head = value_head_size(o.spec) + 16;
  batch.v_out_stride_token = o.num_kv_heads * batch.v_out_stride_head + 16;
  return batch;
}

std::vector<uint8_t> wanted_rows(const GatherOptions& o, const GatherBatch& batch, bool is_value) {
  const std::vector<uint8_t>& cache = is_value ? batch.v : batch.k;
  const std::vector<float>& scales = is_value ? batch.v_scale : batch.k_scale;
  const int64_t stride_token = is_value ? batch.v_out_stride_token : batch.k_out_stride_token;
  const int64_t stride_head = is_value ? batch.v_out_stride_head : batch.k_out_stride_head;
  const int head_size = is_value ? value_head_size(o.spec) : o.spec.head_size;
  std::vector<uint8_t> rows(static_cast<size_t>((batch.num_tokens + o.unused_tokens) *
                                                stride_token * data_type_bytes(o.spec.out_dtype)),
                            kGuard);
  for (size_t seq = 0; seq < o.seq_lens.size(); ++seq) {
    for (int row = 0; row < o.seq_lens[seq]; ++row) {
      const int64_t position = row + batch.starts[seq];
      const int64_t block = batch.table[seq * static_cast<size_t>(batch.table_stride) +
                                        static_cast<size_t>(position / o.spec.block_size)];
      const int64_t token = position % o.spec.block_size;
      for (int head = 0; head < o.num_kv_heads; ++head) {
        const int64_t out = (batch.cu_seq_lens[seq] + row) * stride_token + head * stride_head;
        int64_t at = o.spec.scale == KvScale::kHead ? head : 0;
        if (o.spec.scale == KvScale::kTokenHead) {
          at = (block * o.spec.block_size + token) * o.num_kv_heads + head;
        }
        const float scale = o.spec.scale == KvScale::kNone ? 1.0f : scales[static_cast<size_t>(at)];
        for (int i = 0; i < head_size; ++i) {
          const int64_t at_element = cache_index(o, is_value, block, token, head, i);
          if (is_ds_mla(o.spec) && !is_value) {
            put_element(o.spec.out_dtype, rows, out + i,
                        get_ds_mla_element(cache, at_element - i, i));
            continue;
          }
          const float value = get_element(o.spec.kv_dtype, cache, at_element);
          put_element(o.spec.out_dtype, rows, out + i, value * scale);
        }
      }
    }
  }
  return rows;
}

}  // namespace

std::string check_copy_blocks(Engine& engine, const DeviceSession& session,
                              const CopyOptions& options) {
  const Result<CopyBlocksKernel> kernel = engine.prepare(options.spec);
  if (!kernel) return kernel.status().to_string() + kernel.status().detail();
  SplitMix64 rng(3);
  const int64_t stride = options.block_bytes + options.gap_bytes;
  std::vector<int64_t> blocks(static_cast<size_t>(options.num_blocks));
  std::iota(blocks.begin(), blocks.end(), int64_t{0});
  for (size_t i = 0; i < blocks.size(); ++i) {
    std::swap(blocks[i],
              blocks[i + static_cast<size_t>(rng.below(static_cast<int64_t>(blocks.size() - i)))]);
  }
  // Targets are the first blocks, sources any of the others, some twice.
  std::vector<int64_t> pairs;
  for (int i = 0; i < options.num_pairs; ++i) {
    pairs.push_back(blocks[static_cast<size_t>(options.num_pairs +
                                               rng.below(options.num_blocks - options.num_pairs))]);
    pairs.push_back(blocks[static_cast<size_t>(i)]);
  }
  std::vector<std::vector<uint8_t>> hosts;
  std::vector<DeviceBuffer> buffers;
  std::vector<void*> caches;
  for (int i = 0; i < options.num_caches; ++i) {
    hosts.push_back(random_bytes(static_cast<size_t>(options.num_blocks * stride), rng));
    buffers.push_back(upload_all(session, hosts.back()));
    caches.push_back(buffers.back().data());
  }
  const DeviceBuffer cache_list = upload_all(session, caches);
  const DeviceBuffer pair_list = upload_all(session, pairs);
  const DeviceBuffer report = upload_all(session, std::vector<uint8_t>(kDebugReportBytes));
  CopyBlocksArgs args;
  args.caches = cache_list.data<void*>();
  args.num_caches = options.num_caches;
  args.block_bytes = options.block_bytes;
  args.block_stride_bytes = stride;
  args.pairs = pair_list.data<int64_t>();
  args.num_pairs = options.num_pairs;
  args.num_blocks = options.num_blocks;
  args.debug_report = report.data();
  std::string fault = launch_and_wait(session, *kernel, args);
  for (int i = 0; i < options.num_caches && fault.empty(); ++i) {
    std::vector<uint8_t> want = hosts[static_cast<size_t>(i)];
    for (size_t pair = 0; pair < pairs.size(); pair += 2) {
      std::copy_n(hosts[static_cast<size_t>(i)].begin() + pairs[pair] * stride, options.block_bytes,
                  want.begin() + pairs[pair + 1] * stride);
    }
    fault = compare_bytes("cache", download_all<uint8_t>(buffers[static_cast<size_t>(i)]), want);
  }
  return fault;
}

std::string check_gather_cache(Engine& engine, const DeviceSession& session,
                               const GatherOptions& options) {
  const Result<GatherCacheKernel> kernel = engine.prepare(options.spec);
  if (!kernel) return kernel.status().to_string() + kernel.status().detail();
  const GatherBatch batch = make_gather(options);
  const std::vector<uint8_t> want_k = wanted_rows(options, batch, false);
  const std::vector<uint8_t> want_v = wanted_rows(options, batch, true);
  const std::vector<uint8_t> empty_k(want_k.size(), kGuard);
  const std::vector<uint8_t> empty_v(want_v.size(), kGuard);
  const DeviceBuffer k = upload_all(session, batch.k);
  const DeviceBuffer v = upload_all(session, batch.v);
  const DeviceBuffer k_scale = upload_all(session, batch.k_scale);
  const DeviceBuffer v_scale = upload_all(session, batch.v_scale);
  const DeviceBuffer table = upload_all(session, batch.table);
  const DeviceBuffer cu_seq_lens = upload_all(session, batch.cu_seq_lens);
  const DeviceBuffer starts = upload_all(session, batch.starts);
  const DeviceBuffer k_out = upload_all(session, empty_k);
  const DeviceBuffer v_out = upload_all(session, empty_v);
  const DeviceBuffer report = upload_all(session, std::vector<uint8_t>(kDebugReportBytes));
  GatherCacheArgs args;
  args.k_cache = k.data();
  args.v_cache = options.with_values ? v.data() : nullptr;
  args.k_strides = strides_of(options, false);
  args.v_strides = strides_of(options, true);
  args.block_table = table.data<int32_t>();
  args.block_table_stride = batch.table_stride;
  args.cu_seq_lens = cu_seq_lens.data<int32_t>();
  args.seq_starts = options.with_starts ? starts.data<int32_t>() : nullptr;
  args.num_seqs = static_cast<int32_t>(options.seq_lens.size());
  args.num_tokens = batch.num_tokens + options.unused_tokens;
  args.num_kv_heads = options.num_kv_heads;
  args.k_scale = k_scale.data<float>();
  args.v_scale = v_scale.data<float>();
  args.k_out = k_out.data();
  args.v_out = v_out.data();
  args.out_stride_token = batch.k_out_stride_token;
  args.out_stride_head = batch.k_out_stride_head;
  if (value_head_size(options.spec) != options.spec.head_size) {
    args.v_out_stride_token = batch.v_out_stride_token;
    args.v_out_stride_head = batch.v_out_stride_head;
  }
  args.num_blocks = options.num_blocks;
  args.debug_report = report.data();
  std::string fault = launch_and_wait(session, *kernel, args);
  if (fault.empty()) fault = compare_bytes("K", download_all<uint8_t>(k_out), want_k);
  if (fault.empty()) {
    fault =
        compare_bytes("V", download_all<uint8_t>(v_out), options.with_values ? want_v : empty_v);
  }
  return fault;
}

std::string check_convert_float8(Engine& engine, const DeviceSession& session,
                                 const ConvertFloat8Spec& spec, float scale) {
  const Result<ConvertFloat8Kernel> kernel = engine.prepare(spec);
  if (!kernel) return kernel.status().to_string() + kernel.status().detail();
  constexpr int64_t kCount = 5000;
  const bool widens = data_type_bytes(spec.from_dtype) == 1;
  SplitMix64 rng(5);
  std::vector<uint8_t> from = random_cache(spec.from_dtype, kCount, rng);
  if (widens) {
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i);
  }
  std::vector<uint8_t> want(static_cast<size_t>(kCount * data_type_bytes(spec.to_dtype)));
  for (int64_t i = 0; i < kCount; ++i) {
    const float value = get_element(spec.from_dtype, from, i);
    put_element(spec.to_dtype, want, i, widens ? value * scale : value / scale);
  }
  const DeviceBuffer from_buffer = upload_all(session, from);
  const DeviceBuffer to_buffer = upload_all(session, std::vector<uint8_t>(want.size(), kGuard));
  ConvertFloat8Args args;
  args.from = from_buffer.data();
  args.to = to_buffer.data();
  args.count = kCount;
  args.scale = scale;
  const std::string fault = launch_and_wait(session, *kernel, args);
  if (!fault.empty()) return fault;
  const std::vector<uint8_t> got = download_all<uint8_t>(to_buffer);
  for (int64_t i = 0; i < kCount; ++i) {
    const uint32_t code = get_code(spec.to_dtype, got, i);
    const float wanted = get_element(spec.to_dtype, want, i);
    // A NaN has many codes in f32, and stays one.
    if (std::isnan(wanted) && std::isnan(get_element(spec.to_dtype, got, i))) continue;
    if (code != get_code(spec.to_dtype, want, i)) {
      return "element " + std::to_string(i) + ": " +
             std::to_string(get_element(spec.to_dtype, got, i)) + " instead of " +
             std::to_string(wanted);
    }
  }
  return "";
}

}  // namespace pagejit
