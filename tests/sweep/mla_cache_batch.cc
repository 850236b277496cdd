#include "tests/sweep/mla_cache_batch.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "tests/sweep/family_test.h"
#include "tests/sweep/token_rows.h"

namespace pagejit {
namespace {

constexpr DataType kE4M3 = DataType::kFloat8E4m3;
// The scale of a layer.
float tensor_scale(int layer) { return 0.375f + static_cast<float>(layer); }

struct Batch {
  MlaWriteOptions options;
  int layer = 0;
  TokenRows kv_c, k_pe, q_pe;
  std::vector<int64_t> slots;
  Rotation rotation;
  int64_t stride_token = 0;
  int64_t stride_block = 0;
};

// Of the cache's elements; of kDsMla bytes.
DataType cache_type(const MlaCacheWriteSpec& spec) {
  return spec.format == MlaFormat::kPlain ? spec.dtype : kE4M3;
}

// Each group of 128 elements of the first tokens is another case.
// Of rows that turn, no sums of what is too great: how these round is the hardware's.
void put_extremes(TokenRows& rows, int num_tokens, bool turns) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const float largest = rows.dtype == DataType::kFloat16 ? 65504.0f : 3.0e38f;
  const float least = rows.dtype == DataType::kFloat16 ? 0x1p-24f : 0x1p-133f;
  const std::vector<std::vector<float>> cases = {
      {0.0f},         {-0.0f, 0.0f},        {kNan, 1.0f, -3.0f}, {kNan},
      {kInf, 2.0f},   {-kInf, -1.0f, kNan}, {largest, -largest}, {least, -least, 0.0f},
      {448.0f, 1.0f}, {-448.0f * 7, 0.1f},
  };
  const size_t num_cases = turns ? 6 : cases.size();
  size_t number = 0;
  for (int token = 0; token < std::min(8, num_tokens); ++token) {
    for (int i = 0; i < rows.row_elements; ++i) {
      if (i % 128 == 0) ++number;
      const std::vector<float>& values = cases[number % num_cases];
      put_element(rows.dtype, rows.bytes, rows.row_begin(token, 0) + i,
                  values[static_cast<size_t>(i) % values.size()]);
    }
  }
}

Batch make_batch(const MlaWriteOptions& o, int layer) {
  Batch batch;
  batch.options = o;
  batch.layer = layer;
  const MlaCacheWriteSpec& spec = o.spec;
  SplitMix64 rng(o.seed + static_cast<uint64_t>(layer));
  const int tokens = o.num_tokens + o.unused_tokens;
  const int rope_dim = spec.qk_rope_head_dim;
  batch.kv_c = make_rows(spec.dtype, tokens, 1, spec.kv_lora_rank, 2 * o.source_pad, rng);
  batch.k_pe = make_rows(spec.dtype, tokens, 1, rope_dim, o.source_pad, rng);
  batch.q_pe = make_rows(spec.dtype, tokens, o.num_q_heads, rope_dim, o.source_pad, rng);
  if (o.with_extremes) {
    put_extremes(batch.kv_c, tokens, false);
    put_extremes(batch.k_pe, tokens, spec.rope != RopeStyle::kNone);
  }
  batch.slots = draw_slots(o.num_tokens, o.num_blocks * spec.block_size, true, rng);
  // Behind the last of a layer; read by none.
  batch.slots.insert(batch.slots.end(), static_cast<size_t>(o.unused_tokens), -5);
  batch.rotation = make_rotation(spec.rope, spec.rope == RopeStyle::kNone ? 0 : rope_dim,
                                 spec.cos_sin_dtype, o.num_tokens, rng);
  const int row = spec.format == MlaFormat::kDsMla ? 656 : spec.kv_lora_rank + rope_dim;
  batch.stride_token = row + o.cache_pad;
  batch.stride_block = spec.block_size * batch.stride_token + o.cache_pad;
  return batch;
}

// What a slot should hold, beside what it holds: a turned element that is near enough is taken as
// it is, so that all bytes can then be compared.
class RowComparison {
 public:
  RowComparison(const Batch& batch, int token, const std::vector<uint8_t>& got,
                std::vector<uint8_t>& want)
      : batch_(batch), spec_(batch.options.spec), token_(token), got_(got), want_(want) {
    const int64_t slot = batch.slots[static_cast<size_t>(token)];
    begin_ =
        slot / spec_.block_size * batch.stride_block + slot % spec_.block_size * batch.stride_token;
  }

  // The first fault.
  std::string compare() {
    if (spec_.format == MlaFormat::kDsMla) return compare_ds_mla();
    const float scale = spec_.format == MlaFormat::kE4m3 ? tensor_scale(batch_.layer) : 1.0f;
    for (int i = 0; i < spec_.kv_lora_rank; ++i) put_latent(i, scale);
    for (int i = 0; i < spec_.qk_rope_head_dim; ++i) {
      put_rope(cache_type(spec_), begin_ + spec_.kv_lora_rank + i, i, scale);
    }
    return fault_;
  }

 private:
  std::string compare_ds_mla() {
    for (int group = 0; group < 4; ++group) {
      float greatest = 0.0f;
      for (int i = 0; i < 128; ++i) {
        const float size = std::abs(latent(group * 128 + i));
        if (size > greatest) greatest = size;  // NaN is not
      }
      const float scale = std::max(greatest / 448.0f, FLT_MIN);
      for (int i = 0; i < 128; ++i) put_latent(group * 128 + i, scale);
      put_element(DataType::kFloat32, want_, (begin_ + 512) / 4 + group, scale);
    }
    for (int i = 0; i < 64; ++i) put_rope(DataType::kBFloat16, (begin_ + 528) / 2 + i, i, 1.0f);
    return fault_;
  }

  float latent(int i) const {
    return get_element(spec_.dtype, batch_.kv_c.bytes, batch_.kv_c.row_begin(token_, 0) + i);
  }

  // An element as it is in its source: NaN keeps its bits.
  void copy_element(const TokenRows& rows, int i, int64_t at) {
    const int64_t from = rows.row_begin(token_, 0) + i;
    const auto bytes = data_type_bytes(spec_.dtype);
    std::copy_n(rows.bytes.begin() + from * bytes, bytes, want_.begin() + at * bytes);
  }

  void copy_got(DataType type, int64_t at) {
    const auto bytes = data_type_bytes(type);
    std::copy_n(got_.begin() + at * bytes, bytes, want_.begin() + at * bytes);
  }

  void put_latent(int i, float scale) {
    if (spec_.format == MlaFormat::kPlain) {
      copy_element(batch_.kv_c, i, begin_ + i);
    } else {
      put_element(kE4M3, want_, begin_ + i, latent(i) / scale);
    }
  }

  void put_rope(DataType type, int64_t at, int i, float scale) {
    if (spec_.rope == RopeStyle::kNone && type == spec_.dtype) {
      copy_element(batch_.k_pe, i, at);
      return;
    }
    put_element(type, want_, at, batch_.rotation.turned(batch_.k_pe, token_, 0, i) / scale);
    if (spec_.rope == RopeStyle::kNone) return;
    const float want = get_element(type, want_, at);
    const float got = get_element(type, got_, at);
    const bool is_same = got == want || (std::isnan(got) && std::isnan(want));
    if (is_same || std::abs(got - want) <= turned_slack(type, want)) {
      copy_got(type, at);
    } else if (fault_.empty()) {
      fault_ = describe_element("k_pe", token_, 0, i, got, want);
    }
  }

  const Batch& batch_;
  const MlaCacheWriteSpec& spec_;
  int token_;
  const std::vector<uint8_t>& got_;
  std::vector<uint8_t>& want_;
  int64_t begin_;  // of the row, in elements of the cache
  std::string fault_;
};

std::string compare_cache(const Batch& batch, const std::vector<uint8_t>& got) {
  std::vector<uint8_t> want(got.size(), kGuardByte);
  for (int token = 0; token < batch.options.num_tokens; ++token) {
    if (batch.slots[static_cast<size_t>(token)] < 0) continue;
    const std::string fault = RowComparison(batch, token, got, want).compare();
    if (!fault.empty()) return fault;
  }
  const auto [a, b] = std::mismatch(got.begin(), got.end(), want.begin());
  if (a == got.end()) return "";
  const int64_t element = (a - got.begin()) / data_type_bytes(cache_type(batch.options.spec));
  return "block " + std::to_string(element / batch.stride_block) + ", row " +
         std::to_string(element % batch.stride_block / batch.stride_token) + ", element " +
         std::to_string(element % batch.stride_block % batch.stride_token) + ": byte " +
         std::to_string(*a) + " instead of " + std::to_string(*b);
}

// The layers' tensors behind each other.
template <class T>
std::vector<T> join(const std::vector<Batch>& layers,
                    const std::vector<T>& (*tensor)(const Batch&)) {
  std::vector<T> all;
  for (const Batch& layer : layers) {
    all.insert(all.end(), tensor(layer).begin(), tensor(layer).end());
  }
  return all;
}

const std::vector<uint8_t>& kv_c_of(const Batch& batch) { return batch.kv_c.bytes; }
const std::vector<uint8_t>& k_pe_of(const Batch& batch) { return batch.k_pe.bytes; }
const std::vector<int64_t>& slots_of(const Batch& batch) { return batch.slots; }

}  // namespace

std::string check_mla_cache_write(Engine& engine, const DeviceSession& session,
                                  const MlaWriteOptions& options) {
  const Result<MlaCacheWriteKernel> kernel = engine.prepare(options.spec);
  if (!kernel) return kernel.status().to_string() + kernel.status().detail();
  std::vector<Batch> layers;
  std::vector<float> scales;
  std::vector<DeviceBuffer> caches;
  std::vector<void*> cache_list;
  for (int layer = 0; layer < std::max(options.num_layers, 1); ++layer) {
    layers.push_back(make_batch(options, layer));
    scales.push_back(tensor_scale(layer));
    const auto bytes = static_cast<size_t>(options.num_blocks * layers.back().stride_block *
                                           data_type_bytes(cache_type(options.spec)));
    caches.push_back(upload_all(session, std::vector<uint8_t>(bytes, kGuardByte)));
    cache_list.push_back(caches.back().data());
  }
  const Batch& first = layers.front();
  const std::vector<uint8_t> kv_c_bytes = join(layers, kv_c_of);
  const std::vector<uint8_t> k_pe_bytes = join(layers, k_pe_of);
  const DeviceBuffer kv_c = upload_all(session, kv_c_bytes);
  const DeviceBuffer k_pe = upload_all(session, k_pe_bytes);
  const DeviceBuffer q_pe = upload_all(session, first.q_pe.bytes);
  const DeviceBuffer cache_pointers = upload_all(session, cache_list);
  const DeviceBuffer slots = upload_all(session, join(layers, slots_of));
  const DeviceBuffer scale = upload_all(session, scales);
  const DeviceBuffer positions = upload_all(session, first.rotation.positions);
  const DeviceBuffer cos_sin = upload_all(session, first.rotation.cos_sin);
  const DeviceBuffer report = upload_all(session, std::vector<uint8_t>(kDebugReportBytes));

  const int64_t tokens = options.num_tokens + options.unused_tokens;
  MlaCacheWriteArgs args;
  args.kv_c = kv_c.data();
  args.k_pe = k_pe.data();
  args.kv_c_stride_token = first.kv_c.stride_token;
  args.k_pe_stride_token = first.k_pe.stride_token;
  args.kv_c_stride_layer = tokens * first.kv_c.stride_token;
  args.k_pe_stride_layer = tokens * first.k_pe.stride_token;
  args.slot_mapping_stride_layer = static_cast<int64_t>(first.slots.size());
  args.cache = options.spec.grouped ? nullptr : caches[0].data();
  args.caches = cache_pointers.data<void*>();
  args.num_layers = options.num_layers;
  args.cache_stride_block = first.stride_block;
  args.cache_stride_token = first.stride_token;
  args.slot_mapping = slots.data<int64_t>();
  args.num_tokens = options.num_tokens;
  args.scale = scale.data<float>();
  args.q_pe = q_pe.data();
  args.q_pe_stride_token = first.q_pe.stride_token;
  args.q_pe_stride_head = first.q_pe.stride_head;
  args.num_q_heads = options.num_q_heads;
  args.positions = positions.data<int64_t>();
  args.cos_sin = cos_sin.data();
  args.num_blocks = options.num_blocks;
  args.max_position = Rotation::kMaxPosition;
  args.debug_report = report.data();
  const std::string launch_fault = launch_and_wait(session, *kernel, args);
  if (!launch_fault.empty()) return launch_fault;

  for (const Batch& layer : layers) {
    const DeviceBuffer& cache = caches[static_cast<size_t>(layer.layer)];
    const std::string fault = compare_cache(layer, download_all<uint8_t>(cache));
    if (!fault.empty()) return "layer " + std::to_string(layer.layer) + ", " + fault;
  }
  if (download_all<uint8_t>(kv_c) != kv_c_bytes || download_all<uint8_t>(k_pe) != k_pe_bytes) {
    return "kv_c or k_pe was changed";
  }
  return compare_turned_rows(first.rotation, first.q_pe, options.num_tokens,
                             download_all<uint8_t>(q_pe));
}

}  // namespace pagejit
