#include "tests/sweep/cache_write_batch.h"

#include <algorithm>
#include <cmath>

#include "tests/sweep/family_test.h"
#include "tests/sweep/token_rows.h"

namespace pagejit {
namespace {

struct Batch {
  CacheWriteOptions options;
  TokenRows key, value, q;
  std::vector<int64_t> slots;
  Rotation rotation;
  std::vector<float> k_scale, v_scale;
  int64_t k_elements = 0;
  int64_t v_elements = 0;
  int64_t cache_offset = 0;  // of V, where it lies in K's allocation
  KvStrides k_strides, v_strides;
};

void set_cache_strides(Batch& batch) {
  const CacheWriteOptions& o = batch.options;
  const int64_t bs = o.spec.block_size;
  const int64_t h = o.num_kv_heads;
  const auto strides_of = [&](int64_t d) {
    if (o.spec.layout == KvLayout::kVllm) return KvStrides{bs * h * d, 0, bs * d};
    if (o.order == RowOrder::kHnd) return KvStrides{h * bs * d, d, bs * d};
    return KvStrides{bs * h * d, h * d, d};
  };
  const int64_t d = o.spec.head_size;
  const int64_t d_v = value_head_size(o.spec);
  batch.k_strides = strides_of(d);
  batch.v_strides = strides_of(d_v);
  if (o.order == RowOrder::kInterleaved) {
    batch.k_strides = batch.v_strides = strides_of(d + d_v);
    batch.cache_offset = d;
  }
  batch.k_elements = o.num_blocks * batch.k_strides.block;
  batch.v_elements = o.num_blocks * batch.v_strides.block;
}

Batch make_batch(const CacheWriteOptions& options) {
  Batch batch;
  batch.options = options;
  const CacheWriteSpec& spec = options.spec;
  SplitMix64 rng(options.seed);
  const int pad = options.source_pad;
  const int tokens = options.num_tokens + options.unused_tokens;
  batch.key = make_rows(spec.dtype, tokens, options.num_kv_heads, spec.head_size, pad, rng);
  batch.value =
      make_rows(spec.dtype, tokens, options.num_kv_heads, value_head_size(spec), 2 * pad, rng);
  batch.q = make_rows(spec.dtype, tokens, options.num_q_heads, spec.head_size, pad, rng);
  batch.slots = draw_slots(options.num_tokens, options.num_blocks * spec.block_size,
                           options.with_skipped_slots, rng);
  batch.rotation =
      make_rotation(spec.rope, spec.rotary_dim, spec.cos_sin_dtype, options.num_tokens, rng);
  const bool per_row = spec.scale == KvScale::kTokenHead;
  const int64_t scales = per_row ? options.num_blocks * spec.block_size * options.num_kv_heads
                         : spec.scale == KvScale::kHead ? options.num_kv_heads
                                                        : 1;
  for (int64_t i = 0; i < scales; ++i) {
    batch.k_scale.push_back(per_row ? -3.0f : 0.75f + std::abs(rng.uniform()));
    batch.v_scale.push_back(per_row ? -3.0f : 1.75f + std::abs(rng.uniform()));
  }
  if (!per_row) batch.k_scale[0] = 0.5f;  // exact, so that ties occur
  set_cache_strides(batch);
  return batch;
}

// Where element i of a row lies in the cache.
int64_t cache_index(const Batch& batch, bool is_value, int64_t slot, int head, int i) {
  const CacheWriteSpec& spec = batch.options.spec;
  const KvStrides& strides = is_value ? batch.v_strides : batch.k_strides;
  const int64_t block = slot / spec.block_size;
  const int64_t token = slot % spec.block_size;
  const int64_t base = block * strides.block + head * strides.head;
  if (spec.layout == KvLayout::kRows) return base + token * strides.token + i;
  if (is_value) return base + int64_t{i} * spec.block_size + token;
  const int64_t x = 16 / data_type_bytes(spec.kv_dtype);
  return base + (i / x) * spec.block_size * x + token * x + i % x;
}

// The result of one row against what it should be; marks the bytes it looked at.
struct CacheImage {
  const std::vector<uint8_t>& bytes;
  std::vector<uint8_t>& touched;
};

float scale_of_row(const CacheWriteSpec& spec, const std::vector<float>& row) {
  float greatest = 0;
  for (const float x : row) greatest = std::max(greatest, std::abs(x));
  const float most = spec.kv_dtype == DataType::kInt4         ? 7.0f
                     : spec.kv_dtype == DataType::kInt8       ? 127.0f
                     : spec.kv_dtype == DataType::kFloat8E4m3 ? 448.0f
                                                              : 57344.0f;
  return greatest == 0 ? 1.0f : greatest / most;
}

std::string compare_row(const Batch& batch, CacheImage& image, bool is_value, int token, int head,
                        const std::vector<float>& scales) {
  const CacheWriteSpec& spec = batch.options.spec;
  const int64_t slot = batch.slots[static_cast<size_t>(token)];
  const bool rotates = spec.rope != RopeStyle::kNone && !is_value;
  const int head_size = is_value ? value_head_size(spec) : spec.head_size;
  const TokenRows& source = is_value ? batch.value : batch.key;
  const Rotation no_rotation;
  const Rotation& rotation = is_value ? no_rotation : batch.rotation;
  std::vector<float> row;
  for (int i = 0; i < head_size; ++i) row.push_back(rotation.turned(source, token, head, i));
  const char* what = is_value ? "V" : "K";
  float scale = 1;
  if (spec.scale == KvScale::kTokenHead) {
    scale = scales[static_cast<size_t>(slot * batch.options.num_kv_heads + head)];
    const float want = scale_of_row(spec, row);
    if (!(std::abs(scale - want) <= (rotates ? relative_slack(spec.dtype) * want : 0.0))) {
      return describe_element(std::string(what) + " scale", token, head, 0, scale, want);
    }
  } else if (spec.scale != KvScale::kNone) {
    scale = scales[spec.scale == KvScale::kHead ? static_cast<size_t>(head) : 0];
  }
  for (int i = 0; i < head_size; ++i) {
    const int64_t at = cache_index(batch, is_value, slot, head, i);
    const int bytes = data_type_bytes(spec.kv_dtype);
    std::fill_n(image.touched.begin() + at * data_type_bits(spec.kv_dtype) / 8, bytes, uint8_t{1});
    // -8 is not used: the greatest magnitude is 7.
    const float quotient = row[static_cast<size_t>(i)] / scale;
    const uint32_t want_code = encode_float(
        spec.kv_dtype, spec.kv_dtype == DataType::kInt4 ? std::max(quotient, -7.0f) : quotient);
    if (get_code(spec.kv_dtype, image.bytes, at) == want_code) continue;
    const float got = get_element(spec.kv_dtype, image.bytes, at);
    const float want = decode_float(spec.kv_dtype, want_code);
    if (!rotates) return describe_element(what, token, head, i, got, want);
    if (!(std::abs(got - want) <= turned_slack(spec.kv_dtype, want))) {
      return describe_element(what, token, head, i, got, want);
    }
  }
  return "";
}

std::string compare_cache(const Batch& batch, bool is_value, const std::vector<uint8_t>& bytes,
                          const std::vector<float>& scales, std::vector<uint8_t>& touched) {
  CacheImage image{bytes, touched};
  for (int token = 0; token < batch.options.num_tokens; ++token) {
    if (batch.slots[static_cast<size_t>(token)] < 0) continue;
    for (int head = 0; head < batch.options.num_kv_heads; ++head) {
      const std::string fault = compare_row(batch, image, is_value, token, head, scales);
      if (!fault.empty()) return fault;
    }
  }
  return "";
}

std::string find_overwritten(const std::vector<uint8_t>& bytes,
                             const std::vector<uint8_t>& touched) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (touched[i] == 0 && bytes[i] != kGuardByte) {
      return "byte " + std::to_string(i) + " of the cache was overwritten";
    }
  }
  return "";
}

}  // namespace

std::string check_cache_write(Engine& engine, const DeviceSession& session,
                              const CacheWriteOptions& options) {
  const Result<CacheWriteKernel> kernel = engine.prepare(options.spec);
  if (!kernel) return kernel.status().to_string() + kernel.status().detail();
  const Batch batch = make_batch(options);
  const bool shares = options.order == RowOrder::kInterleaved;
  const auto kv_bytes = [&](int64_t elements) {
    return elements * data_type_bits(options.spec.kv_dtype) / 8;
  };
  const auto empty = [&](int64_t elements) {
    return std::vector<uint8_t>(static_cast<size_t>(kv_bytes(elements)), kGuardByte);
  };
  const DeviceBuffer key = upload_all(session, batch.key.bytes);
  const DeviceBuffer value = upload_all(session, batch.value.bytes);
  const DeviceBuffer q = upload_all(session, batch.q.bytes);
  const DeviceBuffer slots = upload_all(session, batch.slots);
  const DeviceBuffer positions = upload_all(session, batch.rotation.positions);
  const DeviceBuffer cos_sin = upload_all(session, batch.rotation.cos_sin);
  const DeviceBuffer k_scale = upload_all(session, batch.k_scale);
  const DeviceBuffer v_scale = upload_all(session, batch.v_scale);
  const DeviceBuffer k_cache = upload_all(session, empty(batch.k_elements));
  const DeviceBuffer v_cache =
      shares ? DeviceBuffer() : upload_all(session, empty(batch.v_elements));
  const DeviceBuffer report = upload_all(session, std::vector<uint8_t>(kDebugReportBytes));

  CacheWriteArgs args;
  args.key = key.data();
  args.value = value.data();
  args.key_stride_token = batch.key.stride_token;
  args.key_stride_head = batch.key.stride_head;
  args.value_stride_token = batch.value.stride_token;
  args.value_stride_head = batch.value.stride_head;
  args.k_cache = k_cache.data();
  args.v_cache =
      shares ? k_cache.data<uint8_t>() + kv_bytes(batch.cache_offset) : v_cache.data<uint8_t>();
  args.k_strides = batch.k_strides;
  args.v_strides = batch.v_strides;
  args.slot_mapping = slots.data<int64_t>();
  args.num_tokens = options.num_tokens;
  args.num_kv_heads = options.num_kv_heads;
  args.k_scale = k_scale.data<float>();
  args.v_scale = v_scale.data<float>();
  args.q = q.data();
  args.q_stride_token = batch.q.stride_token;
  args.q_stride_head = batch.q.stride_head;
  args.num_q_heads = options.num_q_heads;
  args.positions = positions.data<int64_t>();
  args.cos_sin = cos_sin.data();
  args.num_blocks = options.num_blocks;
  args.max_position = Rotation::kMaxPosition;
  args.debug_report = report.data();
  const std::string launch_fault = launch_and_wait(session, *kernel, args);
  if (!launch_fault.empty()) return launch_fault;

  const std::vector<uint8_t> k_bytes = download_all<uint8_t>(k_cache);
  std::vector<uint8_t> touched(k_bytes.size(), 0);
  const std::vector<float> k_scales = download_all<float>(k_scale);
  const std::vector<float> v_scales = download_all<float>(v_scale);
  std::string fault = compare_cache(batch, false, k_bytes, k_scales, touched);
  if (fault.empty() && shares) {
    // V's rows begin behind K's.
    const int64_t shift = kv_bytes(batch.cache_offset);
    const std::vector<uint8_t> v_bytes(k_bytes.begin() + shift, k_bytes.end());
    std::vector<uint8_t> v_touched(v_bytes.size(), 0);
    fault = compare_cache(batch, true, v_bytes, v_scales, v_touched);
    for (size_t i = 0; i < v_touched.size(); ++i) {
      touched[i + static_cast<size_t>(shift)] |= v_touched[i];
    }
  } else if (fault.empty()) {
    const std::vector<uint8_t> v_bytes = download_all<uint8_t>(v_cache);
    std::vector<uint8_t> v_touched(v_bytes.size(), 0);
    fault = compare_cache(batch, true, v_bytes, v_scales, v_touched);
    if (fault.empty()) fault = find_overwritten(v_bytes, v_touched);
  }
  if (fault.empty()) fault = find_overwritten(k_bytes, touched);
  if (fault.empty() && options.num_q_heads > 0) {
    fault =
        compare_turned_rows(batch.rotation, batch.q, options.num_tokens, download_all<uint8_t>(q));
  }
  return fault;
}

}  // namespace pagejit
