#include "tests/sweep/index_keys_batch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "tests/sweep/family_test.h"
#include "tools/reference/random.h"

namespace pagejit {
namespace {

constexpr uint8_t kGuard = 0x5a;

// Values of all sizes, rows of zeros and tiny rows, and here and there NaN.
std::vector<uint8_t> random_keys(const IndexWriteOptions& o, int64_t stride, SplitMix64& rng) {
  const int64_t rows = o.num_tokens + o.unused_tokens;
  std::vector<uint8_t> bytes(static_cast<size_t>(rows * stride * data_type_bytes(o.spec.dtype)));
  for (int64_t row = 0; row < rows; ++row) {
    const float size = row % 7 == 3 ? 0.0f : std::exp2(static_cast<float>(rng.below(36)) - 20.0f);
    for (int64_t i = 0; i < stride; ++i) {
      float value = rng.uniform() * size;
      // The greatest of a row is an exact power of two now and then: the edge of rounding up.
      if (row % 5 == 1 && i % 32 == 7) value = 448.0f * size;
      if (row % 11 == 5 && i % 50 == 9) value = std::numeric_limits<float>::quiet_NaN();
      if (row % 13 == 6 && i == 1) value = std::numeric_limits<float>::infinity();
      put_element(o.spec.dtype, bytes, row * stride + i, value);
    }
  }
  return bytes;
}

float wanted_scale(const IndexKeyWriteSpec& spec, const std::vector<uint8_t>& k, int64_t first) {
  float greatest = 0.0f;
  for (int i = 0; i < spec.quant_block_size; ++i) {
    const float value = get_element(spec.dtype, k, first + i);
    if (!std::isnan(value)) greatest = std::max(greatest, std::abs(value));
  }
  const float scale = std::max(greatest, 1e-4f) / 448.0f;
  if (!spec.power_of_two_scale || std::isinf(scale)) return scale;
  int exponent = 0;
  const float digits = std::frexp(scale, &exponent);
  return std::ldexp(1.0f, digits == 0.5f ? exponent - 1 : exponent);
}

}  // namespace

std::string check_index_key_write(Engine& engine, const DeviceSession& session,
                                  const IndexWriteOptions& o) {
  const Result<IndexKeyWriteKernel> kernel = engine.prepare(o.spec);
  if (!kernel) return kernel.status().to_string() + kernel.status().detail();
  SplitMix64 rng(o.seed);
  const int head_size = o.spec.head_size;
  const int64_t stride = head_size + o.source_pad;
  const std::vector<uint8_t> k = random_keys(o, stride, rng);
  const int64_t page_stride =
      index_page_bytes(o.spec.block_size, head_size, o.spec.quant_block_size) + o.page_gap;
  std::vector<int64_t> slots(static_cast<size_t>(o.num_blocks * o.spec.block_size));
  std::iota(slots.begin(), slots.end(), int64_t{0});
  for (size_t i = 0; i < slots.size(); ++i) {
    std::swap(slots[i],
              slots[i + static_cast<size_t>(rng.below(static_cast<int64_t>(slots.size() - i)))]);
  }
  slots.resize(static_cast<size_t>(o.num_tokens));
  for (size_t i = 4; i < slots.size(); i += 6) slots[i] = -1;

  std::vector<uint8_t> want(static_cast<size_t>(o.num_blocks * page_stride), kGuard);
  const std::vector<uint8_t> empty = want;
  const int quant_blocks = head_size / o.spec.quant_block_size;
  for (int64_t token = 0; token < o.num_tokens; ++token) {
    const int64_t slot = slots[static_cast<size_t>(token)];
    if (slot < 0) continue;
    const int64_t page = slot / o.spec.block_size * page_stride;
    const int64_t in_block = slot % o.spec.block_size;
    const int64_t scales = page + int64_t{o.spec.block_size} * head_size;
    for (int b = 0; b < quant_blocks; ++b) {
      const int64_t first = token * stride + int64_t{b} * o.spec.quant_block_size;
      const float scale = wanted_scale(o.spec, k, first);
      std::memcpy(&want[static_cast<size_t>(scales + (in_block * quant_blocks + b) * 4)], &scale,
                  4);
      for (int i = 0; i < o.spec.quant_block_size; ++i) {
        const float value = get_element(o.spec.dtype, k, first + i);
        const int64_t at = page + in_block * head_size + b * o.spec.quant_block_size + i;
        want[static_cast<size_t>(at)] =
            static_cast<uint8_t>(encode_float(DataType::kFloat8E4m3, value / scale));
      }
    }
  }

  const DeviceBuffer k_buffer = upload_all(session, k);
  const DeviceBuffer cache = upload_all(session, empty);
  const DeviceBuffer slot_buffer = upload_all(session, slots);
  const DeviceBuffer report = upload_all(session, std::vector<uint8_t>(kDebugReportBytes));
  IndexKeyWriteArgs args;
  args.k = k_buffer.data();
  args.k_stride_token = stride;
  args.cache = cache.data();
  args.block_stride_bytes = page_stride;
  args.slot_mapping = slot_buffer.data<int64_t>();
  args.num_tokens = o.num_tokens;
  args.num_blocks = o.num_blocks;
  args.debug_report = report.data();
  const std::string fault = launch_and_wait(session, *kernel, args);
  if (!fault.empty()) return fault;
  return compare_bytes("cache", download_all<uint8_t>(cache), want);
}

std::string check_index_key_gather(Engine& engine, const DeviceSession& session,
                                   const IndexGatherOptions& o) {
  const Result<IndexKeyGatherKernel> kernel = engine.prepare(o.spec);
  if (!kernel) return kernel.status().to_string() + kernel.status().detail();
  SplitMix64 rng(11);
  const int bs = o.spec.block_size;
  const int head_size = o.spec.head_size;
  const int num_scales = head_size / o.spec.quant_block_size;
  const int64_t page_stride = index_page_bytes(bs, head_size, o.spec.quant_block_size) + o.page_gap;
  std::vector<uint8_t> pages(static_cast<size_t>(o.num_blocks * page_stride));
  for (uint8_t& byte : pages) byte = static_cast<uint8_t>(rng.below(256));

  std::vector<int32_t> cu_seq_lens = {0};
  std::vector<int32_t> starts;
  int longest = 0;
  for (const int len : o.seq_lens) {
    cu_seq_lens.push_back(cu_seq_lens.back() + len);
    starts.push_back(o.with_starts ? static_cast<int32_t>(rng.below(2 * bs + 5)) : 0);
    longest = std::max(longest, len + starts.back());
  }
  // Ids that no token has are absurd.
  const int64_t table_stride = (longest + bs - 1) / bs + 2;
  std::vector<int32_t> table(static_cast<size_t>(table_stride) * o.seq_lens.size(), -1234567);
  const int num_tokens = cu_seq_lens.back() + o.unused_tokens;
  const int64_t k_stride = head_size + 16;
  const int64_t scale_stride = num_scales + 1;
  std::vector<uint8_t> want_k(static_cast<size_t>(num_tokens * k_stride), kGuard);
  std::vector<uint8_t> want_scale(static_cast<size_t>(num_tokens * scale_stride * 4), kGuard);
  const std::vector<uint8_t> empty_k = want_k;
  const std::vector<uint8_t> empty_scale = want_scale;
  for (size_t seq = 0; seq < o.seq_lens.size(); ++seq) {
    int32_t* blocks = &table[seq * static_cast<size_t>(table_stride)];
    for (int row = 0; row < o.seq_lens[seq]; ++row) {
      const int position = starts[seq] + row;
      int32_t& block = blocks[position / bs];
      if (block < 0) block = static_cast<int32_t>(rng.below(o.num_blocks));
      const int64_t token = cu_seq_lens[seq] + row;
      const uint8_t* page = &pages[static_cast<size_t>(block * page_stride)];
      const int in_block = position % bs;
      std::copy_n(page + in_block * head_size, head_size,
                  &want_k[static_cast<size_t>(token * k_stride)]);
      std::copy_n(page + bs * head_size + in_block * num_scales * 4, num_scales * 4,
                  &want_scale[static_cast<size_t>(token * scale_stride * 4)]);
    }
  }

  const DeviceBuffer cache = upload_all(session, pages);
  const DeviceBuffer table_buffer = upload_all(session, table);
  const DeviceBuffer cu_buffer = upload_all(session, cu_seq_lens);
  const DeviceBuffer start_buffer = upload_all(session, starts);
  const DeviceBuffer k_out = upload_all(session, empty_k);
  const DeviceBuffer scale_out = upload_all(session, empty_scale);
  const DeviceBuffer report = upload_all(session, std::vector<uint8_t>(kDebugReportBytes));
  IndexKeyGatherArgs args;
  args.cache = cache.data();
  args.block_stride_bytes = page_stride;
  args.block_table = table_buffer.data<int32_t>();
  args.block_table_stride = table_stride;
  args.cu_seq_lens = cu_buffer.data<int32_t>();
  args.seq_starts = o.with_starts ? start_buffer.data<int32_t>() : nullptr;
  args.num_seqs = static_cast<int32_t>(o.seq_lens.size());
  args.num_tokens = num_tokens;
  args.k_out = k_out.data();
  args.k_out_stride_token = k_stride;
  args.scale_out = scale_out.data<float>();
  args.scale_out_stride_token = scale_stride;
  args.num_blocks = o.num_blocks;
  args.debug_report = report.data();
  std::string fault = launch_and_wait(session, *kernel, args);
  if (fault.empty()) fault = compare_bytes("codes", download_all<uint8_t>(k_out), want_k);
  if (fault.empty()) fault = compare_bytes("scales", download_all<uint8_t>(scale_out), want_scale);
  return fault;
}

}  // namespace pagejit
