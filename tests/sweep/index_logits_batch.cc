#include "tests/sweep/index_logits_batch.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/sweep/family_test.h"
#include "tools/reference/random.h"

namespace pagejit {
namespace {

constexpr DataType kE4m3 = DataType::kFloat8E4m3;
constexpr uint8_t kNaNCode = 0x7f;
constexpr uint32_t kGuard = 0x5a5a5a5au;

struct Key {
  std::vector<float> values;
  float scale;
};

std::vector<uint8_t> random_codes(int64_t count, SplitMix64& rng) {
  std::vector<uint8_t> codes(static_cast<size_t>(count));
  for (uint8_t& code : codes) code = static_cast<uint8_t>(encode_float(kE4m3, rng.normal() * 9.0f));
  return codes;
}

void put_float(std::vector<uint8_t>& bytes, int64_t at, float value) {
  std::memcpy(&bytes.at(static_cast<size_t>(at)), &value, sizeof(value));
}

// Rows, keys and what a launch needs of them.
struct Batch {
  int num_rows = 0;
  std::vector<int32_t> begins, ends;  // of rows, as the arguments have them
  std::vector<uint8_t> q;
  int64_t q_stride_head = 0, q_stride_row = 0;
  std::vector<float> weights;
  int64_t weights_stride = 0;
  std::vector<uint8_t> k;
  std::vector<float> k_scale;
  int64_t k_stride = 0;
  int64_t num_blocks = 0;
  std::vector<int32_t> table;
  int64_t table_stride = 0;
  std::vector<std::vector<Key>> keys;  // [sequence][position]; contiguous: one sequence
  int column_end = 0;
  int64_t logits_stride = 0;
};

void make_rows(const IndexLogitsOptions& o, SplitMix64& rng, Batch& batch) {
  const bool is_paged = o.spec.block_size != 0;
  int longest = 1;
  for (const int length : o.lengths) {
    for (int i = 0; i < (is_paged ? o.next_n : 1); ++i) {
      batch.begins.push_back(static_cast<int32_t>(rng.below(o.last_begin + 1)));
      batch.ends.push_back(is_paged ? length - (o.next_n - 1 - i) : batch.begins.back() + length);
      longest = std::max(longest, batch.ends.back());
    }
  }
  batch.num_rows = static_cast<int>(batch.ends.size());
  batch.column_end = o.num_columns == 0 ? longest : o.column_begin + o.num_columns;
  batch.logits_stride = batch.column_end - o.column_begin + 5;
  const int head_size = o.spec.head_size;
  batch.q_stride_head = head_size + 4;
  batch.q_stride_row = o.spec.num_heads * batch.q_stride_head + 8;
  batch.q = random_codes(batch.num_rows * batch.q_stride_row, rng);
  batch.weights_stride = o.spec.num_heads + 3;
  batch.weights.assign(static_cast<size_t>(batch.num_rows * batch.weights_stride),
                       std::numeric_limits<float>::quiet_NaN());
  for (int row = 0; row < batch.num_rows; ++row) {
    for (int head = 0; head < o.spec.num_heads; ++head) {
      batch.weights[static_cast<size_t>(row * batch.weights_stride + head)] = rng.normal();
    }
  }
}

Key read_key(const std::vector<uint8_t>& codes, int64_t at, int head_size, float scale) {
  Key key{{}, scale};
  for (int i = 0; i < head_size; ++i) {
    key.values.push_back(decode_float(kE4m3, codes[static_cast<size_t>(at + i)]));
  }
  return key;
}

void make_contiguous_keys(const IndexLogitsOptions& o, SplitMix64& rng, Batch& batch) {
  const int head_size = o.spec.head_size;
  batch.k_stride = head_size + 16;
  // Keys that no row has are NaN.
  batch.k.assign(static_cast<size_t>(o.num_keys * batch.k_stride), kNaNCode);
  batch.k_scale.assign(static_cast<size_t>(o.num_keys), std::numeric_limits<float>::quiet_NaN());
  batch.keys.resize(1);
  for (int key = 0; key < o.num_keys; ++key) {
    bool is_seen = false;
    for (int row = 0; row < batch.num_rows; ++row) {
      is_seen |= key >= batch.begins[static_cast<size_t>(row)] &&
                 key < batch.ends[static_cast<size_t>(row)];
    }
    const int64_t at = key * batch.k_stride;
    if (is_seen) {
      const std::vector<uint8_t> codes = random_codes(head_size, rng);
      std::copy(codes.begin(), codes.end(), batch.k.begin() + at);
      batch.k_scale[static_cast<size_t>(key)] = 0.01f + std::abs(rng.uniform());
    }
    batch.keys[0].push_back(
        read_key(batch.k, at, head_size, batch.k_scale[static_cast<size_t>(key)]));
  }
}

void make_pages(const IndexLogitsOptions& o, SplitMix64& rng, Batch& batch) {
  const int head_size = o.spec.head_size;
  const int bs = o.spec.block_size;
  batch.k_stride = index_page_bytes(bs, head_size, head_size) + o.page_gap;
  const int longest = *std::max_element(o.lengths.begin(), o.lengths.end());
  batch.table_stride = (longest + bs - 1) / bs + 2;
  batch.table.assign(o.lengths.size() * static_cast<size_t>(batch.table_stride), 0x40000000);
  std::vector<int32_t> blocks;
  for (const int length : o.lengths) batch.num_blocks += (length + bs - 1) / bs;
  batch.num_blocks += 2;
  for (int32_t i = 0; i < batch.num_blocks; ++i) blocks.push_back(i);
  for (size_t i = 0; i < blocks.size(); ++i) {
    std::swap(blocks[i],
              blocks[i + static_cast<size_t>(rng.below(static_cast<int64_t>(blocks.size() - i)))]);
  }
  batch.k.assign(static_cast<size_t>(batch.num_blocks * batch.k_stride), kNaNCode);
  for (int64_t block = 0; block < batch.num_blocks; ++block) {
    for (int i = 0; i < bs; ++i) {
      put_float(batch.k, block * batch.k_stride + int64_t{bs} * head_size + i * 4,
                std::numeric_limits<float>::quiet_NaN());
    }
  }
  size_t next = 0;
  for (size_t seq = 0; seq < o.lengths.size(); ++seq) {
    batch.keys.emplace_back();
    for (int position = 0; position < o.lengths[seq]; ++position) {
      int32_t& block = batch.table[seq * static_cast<size_t>(batch.table_stride) +
                                   static_cast<size_t>(position / bs)];
      if (position % bs == 0) block = blocks[next++];
      const int64_t page = block * batch.k_stride;
      const int64_t at = page + position % bs * head_size;
      const std::vector<uint8_t> codes = random_codes(head_size, rng);
      std::copy(codes.begin(), codes.end(), batch.k.begin() + at);
      const float scale = 0.01f + std::abs(rng.uniform());
      put_float(batch.k, page + int64_t{bs} * head_size + position % bs * 4, scale);
      batch.keys.back().push_back(read_key(batch.k, at, head_size, scale));
    }
    // Nor are those looked at that lie in front of what the rows have.
    const auto first = batch.begins.begin() + static_cast<int64_t>(seq) * o.next_n;
    const int begin = *std::min_element(first, first + o.next_n);
    for (int i = 0; i < begin / bs && i < batch.table_stride; ++i) {
      batch.table[seq * static_cast<size_t>(batch.table_stride) + static_cast<size_t>(i)] = -7;
    }
  }
}

struct Wanted {
  double value = 0;
  double magnitude = 0;  // of the sum's terms
};

Wanted wanted_logit(const IndexLogitsOptions& o, const Batch& batch,
                    const std::vector<float>& queries, int row, const Key& key) {
  Wanted wanted;
  const int head_size = o.spec.head_size;
  for (int head = 0; head < o.spec.num_heads; ++head) {
    const double weight = batch.weights[static_cast<size_t>(row * batch.weights_stride + head)];
    const float* q = &queries[static_cast<size_t>((row * o.spec.num_heads + head) * head_size)];
    double product = 0;
    double terms = 0;
    for (int i = 0; i < head_size; ++i) {
      const double term = double{q[i]} * key.values[static_cast<size_t>(i)];
      product += term;
      terms += std::abs(term);
    }
    wanted.value += weight * std::max(product, 0.0) * key.scale;
    wanted.magnitude += std::abs(weight) * terms * key.scale;
  }
  return wanted;
}

// Everything that the launch wrote, and what it must not write.
std::string compare(const IndexLogitsOptions& o, const Batch& batch,
                    const std::vector<float>& got) {
  std::vector<float> queries;
  for (int row = 0; row < batch.num_rows; ++row) {
    for (int head = 0; head < o.spec.num_heads; ++head) {
      for (int i = 0; i < o.spec.head_size; ++i) {
        queries.push_back(
            decode_float(kE4m3, batch.q[static_cast<size_t>(row * batch.q_stride_row +
                                                            head * batch.q_stride_head + i)]));
      }
    }
  }
  double product_sum = 0;
  double square_sum = 0;
  for (int row = 0; row < batch.num_rows; ++row) {
    const auto seq = static_cast<size_t>(o.spec.block_size == 0 ? 0 : row / o.next_n);
    for (int64_t column = 0; column < batch.logits_stride; ++column) {
      const float value = got[static_cast<size_t>(row * batch.logits_stride + column)];
      const int64_t key = column + o.column_begin;
      const std::string place = "row " + std::to_string(row) + ", key " + std::to_string(key) +
                                ": " + std::to_string(value);
      const bool is_column = key < batch.column_end;
      if (!is_column || key < batch.begins[static_cast<size_t>(row)] ||
          key >= batch.ends[static_cast<size_t>(row)]) {
        const bool is_right = is_column && o.spec.clean
                                  ? value == -std::numeric_limits<float>::infinity()
                                  : std::bit_cast<uint32_t>(value) == kGuard;
        if (!is_right) return place + " where the row has no key";
        continue;
      }
      const Wanted wanted =
          wanted_logit(o, batch, queries, row, batch.keys[seq][static_cast<size_t>(key)]);
      // Sums of f32: a rounding for each of the steps that a term goes through, of which few are
      // against it.
      const double limit = wanted.magnitude * 0x1p-21;
      if (!(std::abs(value - wanted.value) <= limit)) {
        return place + " instead of " + std::to_string(wanted.value) + ", at most " +
               std::to_string(limit) + " off";
      }
      product_sum += double{value} * wanted.value;
      square_sum += double{value} * value + wanted.value * wanted.value;
    }
  }
  const double difference = square_sum == 0 ? 0 : 1 - 2 * product_sum / square_sum;
  if (!(difference < 1e-5)) return "1 - 2 sum(xy) / sum(xx + yy): " + std::to_string(difference);
  return "";
}

}  // namespace

std::string check_index_logits(Engine& engine, const DeviceSession& session,
                               const IndexLogitsOptions& o) {
  const Result<IndexLogitsKernel> kernel = engine.prepare(o.spec);
  if (!kernel) return kernel.status().to_string() + kernel.status().detail();
  SplitMix64 rng(o.seed);
  const bool is_paged = o.spec.block_size != 0;
  Batch batch;
  make_rows(o, rng, batch);
  is_paged ? make_pages(o, rng, batch) : make_contiguous_keys(o, rng, batch);

  const DeviceBuffer q = upload_all(session, batch.q);
  const DeviceBuffer weights = upload_all(session, batch.weights);
  const DeviceBuffer k = upload_all(session, batch.k);
  const DeviceBuffer k_scale = upload_all(session, batch.k_scale);
  const DeviceBuffer table = upload_all(session, batch.table);
  const DeviceBuffer begins = upload_all(session, batch.begins);
  const DeviceBuffer ends = upload_all(session, batch.ends);
  const DeviceBuffer lengths = upload_all(session, o.lengths);
  const DeviceBuffer report = upload_all(session, std::vector<uint8_t>(kDebugReportBytes));
  const DeviceBuffer logits = upload_all(
      session,
      std::vector<uint32_t>(static_cast<size_t>(batch.num_rows * batch.logits_stride), kGuard));
  IndexLogitsArgs args;
  args.q = q.data();
  args.q_stride_row = batch.q_stride_row;
  args.q_stride_head = batch.q_stride_head;
  args.weights = weights.data<float>();
  args.weights_stride = batch.weights_stride;
  args.k = k.data();
  args.k_stride = batch.k_stride;
  if (is_paged) {
    args.block_table = table.data<int32_t>();
    args.block_table_stride = batch.table_stride;
    args.num_blocks = batch.num_blocks;
    args.ranges.next_n = o.next_n;
  } else {
    args.k_scale = k_scale.data<float>();
    args.num_keys = o.num_keys;
  }
  if (o.last_begin != 0) args.ranges.row_begins = begins.data<int32_t>();
  if (is_paged && !o.lengths_by_row) {
    args.ranges.seq_lens = lengths.data<int32_t>();
  } else {
    args.ranges.row_ends = ends.data<int32_t>();
  }
  args.num_rows = batch.num_rows;
  args.column_begin = o.column_begin;
  args.num_columns = batch.column_end - o.column_begin;
  args.logits = logits.data<float>();
  args.logits_stride = batch.logits_stride;
  args.debug_report = report.data();
  const std::string fault = launch_and_wait(session, *kernel, args);
  return fault.empty() ? compare(o, batch, download_all<float>(logits)) : fault;
}

}  // namespace pagejit
