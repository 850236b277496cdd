#include "tools/inspect/unit_roofline.h"

#include <algorithm>
#include <variant>

#include "tools/inspect/number_text.h"

namespace pagejit::inspect {
namespace {

constexpr int kLseBytes = 4;    // f32
constexpr int kScaleBytes = 4;  // f32
constexpr int kLogitBytes = 4;  // f32
constexpr int kDsMlaElements = 576;
constexpr int kMergedStates = 2;

double bytes_of(int elements, DataType type) { return elements * data_type_bits(type) / 8.0; }

// "128 x 2 B", "128 x 0.5 B".
std::string text_of_row(const std::string& elements, DataType type) {
  const int bits = data_type_bits(type);
  return elements + " x " + (bits < 8 ? "0.5" : std::to_string(bits / 8)) + " B";
}
std::string text_of_row(int elements, DataType type) {
  return text_of_row(std::to_string(elements), type);
}

// K and V of one head.
std::string k_and_v(int head_size, int head_size_v) {
  return "(" + std::to_string(head_size) + " + " + std::to_string(head_size_v) + ")";
}

UnitWork work_of(const MergeStatesSpec& spec) {
  UnitWork work{.unit = "token and head of " + std::to_string(kMergedStates) + " states"};
  work.read = std::to_string(kMergedStates) + " x (" + text_of_row(spec.head_size, spec.in_dtype) +
              " + " + std::to_string(kLseBytes) + " B)";
  work.read_bytes = kMergedStates * (bytes_of(spec.head_size, spec.in_dtype) + kLseBytes);
  work.written =
      text_of_row(spec.head_size, spec.out_dtype) + " + " + std::to_string(kLseBytes) + " B";
  work.written_bytes = bytes_of(spec.head_size, spec.out_dtype) + kLseBytes;
  return work;
}

UnitWork work_of(const CacheWriteSpec& spec) {
  const int head_size_v = value_head_size(spec);
  const std::string elements = k_and_v(spec.head_size, head_size_v);
  UnitWork work{.unit = "token and KV head"};
  work.read = text_of_row(elements, spec.dtype);
  work.read_bytes = bytes_of(spec.head_size + head_size_v, spec.dtype);
  work.written = text_of_row(elements, spec.kv_dtype);
  work.written_bytes = bytes_of(spec.head_size + head_size_v, spec.kv_dtype);
  if (spec.scale == KvScale::kTokenHead) {
    work.written += " + 2 x " + std::to_string(kScaleBytes) + " B";
    work.written_bytes += 2 * kScaleBytes;
  }
  work.left_out = spec.rope == RopeStyle::kNone
                      ? "slots"
                      : "slots, positions, cos and sin, and q, which is turned in its place";
  return work;
}

UnitWork work_of(const CopyBlocksSpec& /*spec*/) {
  return {.unit = "byte of a block",
          .read = "1 B",
          .read_bytes = 1,
          .written = "1 B",
          .written_bytes = 1,
          .left_out = "the pairs of blocks"};
}

UnitWork work_of(const GatherCacheSpec& spec) {
  UnitWork work{.unit = "token and KV head"};
  work.left_out = "block ids and lengths";
  if (spec.layout == KvLayout::kDsMla) {
    work.unit = "token";
    work.read = std::to_string(kDsMlaRowBytes) + " B";
    work.read_bytes = kDsMlaRowBytes;
    work.written = text_of_row(kDsMlaElements, spec.out_dtype);
    work.written_bytes = bytes_of(kDsMlaElements, spec.out_dtype);
    return work;
  }
  const int head_size_v = value_head_size(spec);
  const std::string elements = k_and_v(spec.head_size, head_size_v);
  work.read = text_of_row(elements, spec.kv_dtype);
  work.read_bytes = bytes_of(spec.head_size + head_size_v, spec.kv_dtype);
  if (spec.scale == KvScale::kTokenHead) {
    work.read += " + 2 x " + std::to_string(kScaleBytes) + " B";
    work.read_bytes += 2 * kScaleBytes;
  }
  work.written = text_of_row(elements, spec.out_dtype);
  work.written_bytes = bytes_of(spec.head_size + head_size_v, spec.out_dtype);
  return work;
}

UnitWork work_of(const ConvertFloat8Spec& spec) {
  return {.unit = "element",
          .read = text_of_row(1, spec.from_dtype),
          .read_bytes = bytes_of(1, spec.from_dtype),
          .written = text_of_row(1, spec.to_dtype),
          .written_bytes = bytes_of(1, spec.to_dtype)};
}

UnitWork work_of(const MlaCacheWriteSpec& spec) {
  const int elements = spec.kv_lora_rank + spec.qk_rope_head_dim;
  const std::string sum = k_and_v(spec.kv_lora_rank, spec.qk_rope_head_dim);
  UnitWork work{.unit = "token"};
  work.read = text_of_row(sum, spec.dtype);
  work.read_bytes = bytes_of(elements, spec.dtype);
  switch (spec.format) {
    case MlaFormat::kPlain:
      work.written = work.read;
      work.written_bytes = work.read_bytes;
      break;
    case MlaFormat::kE4m3:
      work.written = text_of_row(sum, DataType::kFloat8E4m3);
      work.written_bytes = bytes_of(elements, DataType::kFloat8E4m3);
      break;
    case MlaFormat::kDsMla:
      work.written = std::to_string(kDsMlaRowBytes) + " B";
      work.written_bytes = kDsMlaRowBytes;
      break;
  }
  work.left_out = spec.rope == RopeStyle::kNone
                      ? "slots"
                      : "slots, positions, cos and sin, and q_pe, which is turned in its place";
  return work;
}

// A key of the indexer as the cache holds it: e4m3 codes and a scale for each quant block.
std::string text_of_key(int head_size, int num_scales) {
  return text_of_row(head_size, DataType::kFloat8E4m3) + " + " + std::to_string(num_scales) +
         " x " + std::to_string(kScaleBytes) + " B";
}
double bytes_of_key(int head_size, int num_scales) {
  return bytes_of(head_size, DataType::kFloat8E4m3) + num_scales * kScaleBytes;
}

UnitWork work_of(const IndexKeyWriteSpec& spec) {
  const int num_scales = spec.head_size / spec.quant_block_size;
  return {.unit = "token",
          .read = text_of_row(spec.head_size, spec.dtype),
          .read_bytes = bytes_of(spec.head_size, spec.dtype),
          .written = text_of_key(spec.head_size, num_scales),
          .written_bytes = bytes_of_key(spec.head_size, num_scales),
          .left_out = "slots"};
}

UnitWork work_of(const IndexKeyGatherSpec& spec) {
  const int num_scales = spec.head_size / spec.quant_block_size;
  const std::string key = text_of_key(spec.head_size, num_scales);
  const double bytes = bytes_of_key(spec.head_size, num_scales);
  return {.unit = "token",
          .read = key,
          .read_bytes = bytes,
          .written = key,
          .written_bytes = bytes,
          .left_out = "block ids and lengths"};
}

UnitWork work_of(const IndexLogitsSpec& spec) {
  return {.unit = "key, of one row",
          .read = text_of_key(spec.head_size, 1),
          .read_bytes = bytes_of_key(spec.head_size, 1),
          .written = std::to_string(kLogitBytes) + " B",
          .written_bytes = kLogitBytes,
          .operations = "2 x heads " + std::to_string(spec.num_heads) + " x " +
                        std::to_string(spec.head_size),
          .flops = 2.0 * spec.num_heads * spec.head_size,
          .left_out = "q and weights of the row; rows of one sequence read its keys together"};
}

UnitWork work_of(const TopKSpec& /*spec*/) {
  return {.unit = "column of a row",
          .read = std::to_string(kLogitBytes) + " B",
          .read_bytes = kLogitBytes,
          .written = "0 B",
          .left_out = "the k indices of the row; what is read again out of the L2"};
}

UnitWork work_of(const KernelSpec& /*spec*/) { return {}; }  // never asked for

}  // namespace

UnitWork unit_work(const AnyConfig& config) {
  return std::visit([](const auto& known) { return work_of(known.spec); }, config);
}

UnitRoofline unit_roofline_of(const AnyConfig& config, const Gpu& gpu) {
  UnitRoofline r{.work = unit_work(config)};
  r.memory_ns = r.work.bytes() / gpu.bandwidth_gb_s;
  if (gpu.tensor_tflops > 0) r.compute_ns = r.work.flops / gpu.tensor_tflops * 1e-3;
  return r;
}

std::string explain_unit_roofline(const UnitRoofline& r, const Gpu& gpu) {
  constexpr size_t kNameWidth = 14;
  std::string text;
  const auto line = [&](std::string name, const std::string& value) {
    name.resize(std::max(kNameWidth, name.size() + 1), ' ');
    text += name + value + "\n";
  };
  const UnitWork& work = r.work;
  line("unit of work", work.unit);
  line("read", work.read + " = " + significant(work.read_bytes) + " B");
  line("written", work.written + " = " + significant(work.written_bytes) + " B");
  line("operations", work.operations.empty()
                         ? "no products of matrices"
                         : work.operations + " = " + significant(work.flops) + " FLOP");
  line("memory time", significant(work.bytes()) + " B / " + significant(gpu.bandwidth_gb_s) +
                          " GB/s = " + significant(r.memory_ns) + " ns");
  if (r.compute_ns > 0) {
    line("product time", significant(work.flops) + " FLOP / " + significant(gpu.tensor_tflops) +
                             " TFLOP/s = " + significant(r.compute_ns) + " ns");
  }
  line("limit", "a million units take at least " + significant(r.limit_ns() * 1e3) +
                    " us, bound by " + (r.is_memory_bound() ? "memory" : "products"));
  return text;
}

std::vector<std::string> unit_roofline_caveats(const UnitRoofline& r, const Gpu& gpu) {
  std::vector<std::string> sentences = {
      "each byte counts once" +
      (r.work.left_out.empty() ? std::string() : "; not counted: " + r.work.left_out)};
  if (r.work.flops > 0 && gpu.tensor_tflops == 0) {
    sentences.emplace_back("the GPU's rate of products is not known, so only memory limits");
  }
  sentences.push_back("GPU: " + std::string(gpu.source));
  return sentences;
}

}  // namespace pagejit::inspect
