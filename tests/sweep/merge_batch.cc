#include "tests/sweep/merge_batch.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tests/sweep/family_test.h"
#include "tools/reference/random.h"

namespace pagejit {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kGuard = -77.0f;

struct Row {
  int64_t token;
  int64_t head;
};

std::string where(const Row& row) {
  return "token " + std::to_string(row.token) + ", head " + std::to_string(row.head);
}

int64_t v_offset(const MergeBatch& batch, int state, const Row& row) {
  const MergeStatesArgs& a = batch.args;
  return state * a.v_stride_state + row.token * a.v_stride_token + row.head * a.v_stride_head;
}

int64_t lse_offset(const MergeBatch& batch, int state, const Row& row) {
  const MergeStatesArgs& a = batch.args;
  return state * a.lse_stride_state + row.token * a.lse_stride_token + row.head * a.lse_stride_head;
}

int64_t out_offset(const MergeBatch& batch, const Row& row) {
  return row.token * batch.args.out_stride_token + row.head * batch.args.out_stride_head;
}

void set_strides(const MergeBatchOptions& o, MergeStatesArgs& a) {
  const int64_t pad = o.padded ? 8 : 0;
  a.v_stride_head = o.spec.head_size + pad;
  a.v_stride_token = o.num_heads * a.v_stride_head + 2 * pad;
  a.v_stride_state = o.num_tokens * a.v_stride_token + 3 * pad;
  a.out_stride_head = o.spec.head_size + 3 * pad;
  a.out_stride_token = o.num_heads * a.out_stride_head + pad;
  a.lse_stride_token = o.heads_first_lse ? 1 : o.num_heads + pad;
  a.lse_stride_head = o.heads_first_lse ? o.num_tokens + pad : 1;
  a.lse_stride_state = int64_t{o.num_tokens + pad} * (o.num_heads + pad);
  a.out_lse_stride_token = a.lse_stride_token;
  a.out_lse_stride_head = a.lse_stride_head;
  a.num_states = o.num_states;
  a.num_tokens = o.num_tokens;
  a.num_heads = o.num_heads;
  a.num_merged_tokens = o.num_merged_tokens;
}

// f16 1, bf16 1: how far apart two neighbours are, relative to the value.
double unit(DataType type) { return type == DataType::kFloat32 ? 0x1p-24 : unit_roundoff(type); }

std::string compare_row(const MergeBatch& batch, const Row& row, const std::vector<uint8_t>& out,
                        const std::vector<float>& out_lse) {
  const MergeBatchOptions& o = batch.options;
  const bool merged = o.num_merged_tokens < 0 || row.token < o.num_merged_tokens;
  double max = -kInf;
  double max_abs = 0;
  std::vector<double> lse;
  for (int state = 0; state < o.num_states; ++state) {
    double value = batch.lse[static_cast<size_t>(lse_offset(batch, state, row))];
    if (value == kInf || (!merged && state != o.num_states - 1)) value = -kInf;
    lse.push_back(value);
    max = std::max(max, value);
    if (value != -kInf) max_abs = std::max(max_abs, std::abs(value));
  }
  double sum = 0;
  for (const double value : lse) sum += max == -kInf ? 0 : std::exp(value - max);
  for (int i = 0; i < o.spec.head_size; ++i) {
    double want = 0;
    double greatest = 0;
    for (int state = 0; state < o.num_states; ++state) {
      if (lse[static_cast<size_t>(state)] == -kInf) continue;
      const double v = get_element(o.spec.in_dtype, batch.v, v_offset(batch, state, row) + i);
      want += std::exp(lse[static_cast<size_t>(state)] - max) / sum * v;
      greatest = std::max(greatest, std::abs(v));
    }
    const double got = get_element(o.spec.out_dtype, out, out_offset(batch, row) + i);
    const double allowed = 2e-6 * greatest + 2 * unit(o.spec.out_dtype) * std::abs(want) + 1e-7;
    if (!(std::abs(got - want) <= allowed)) {
      return where(row) + ", element " + std::to_string(i) + ": " + std::to_string(got) +
             " instead of " + std::to_string(want);
    }
  }
  if (out_lse.empty()) return "";
  const double want = max == -kInf ? max : max + std::log(sum);
  const double got = out_lse[static_cast<size_t>(lse_offset(batch, 0, row))];
  const bool right =
      want == -kInf ? got == want : std::abs(got - want) <= 2e-6 * std::max(1.0, max_abs);
  return right
             ? ""
             : where(row) + ": lse " + std::to_string(got) + " instead of " + std::to_string(want);
}

}  // namespace

MergeBatch make_merge_batch(const MergeBatchOptions& options) {
  MergeBatch batch;
  batch.options = options;
  set_strides(options, batch.args);
  const MergeStatesArgs& a = batch.args;
  const auto in_bytes = static_cast<size_t>(data_type_bytes(options.spec.in_dtype));
  const auto out_bytes = static_cast<size_t>(data_type_bytes(options.spec.out_dtype));
  // 0xff is NaN in every type.
  batch.v.assign(static_cast<size_t>(options.num_states * a.v_stride_state) * in_bytes, 0xff);
  batch.lse.assign(static_cast<size_t>(options.num_states * a.lse_stride_state), kGuard);
  batch.out.assign(static_cast<size_t>(options.num_tokens * a.out_stride_token) * out_bytes, 0xff);
  batch.out_lse.assign(static_cast<size_t>(a.lse_stride_state), kGuard);
  SplitMix64 rng(options.seed);
  for (int64_t token = 0; token < options.num_tokens; ++token) {
    for (int64_t head = 0; head < options.num_heads; ++head) {
      const bool empty_row = (token * 31 + head * 7) % 23 == 5;
      for (int state = 0; state < options.num_states; ++state) {
        const int64_t kind = rng.below(10);
        float lse = rng.uniform() * options.lse_range;
        if (kind == 0) lse = kInf;
        if (kind == 1 || empty_row) lse = -kInf;
        const Row row{token, head};
        batch.lse[static_cast<size_t>(lse_offset(batch, state, row))] = lse;
        if (std::isinf(lse)) continue;
        for (int i = 0; i < options.spec.head_size; ++i) {
          put_element(options.spec.in_dtype, batch.v, v_offset(batch, state, row) + i,
                      rng.uniform());
        }
      }
    }
  }
  return batch;
}

std::string compare_merge(const MergeBatch& batch, const std::vector<uint8_t>& out,
                          const std::vector<float>& out_lse) {
  const MergeBatchOptions& o = batch.options;
  const auto bytes = static_cast<int64_t>(data_type_bytes(o.spec.out_dtype));
  std::vector<uint8_t> touched(out.size(), 0);
  std::vector<uint8_t> lse_touched(out_lse.size(), 0);
  const int num_tokens = o.counted_tokens < 0 ? o.num_tokens : o.counted_tokens;
  for (int64_t token = 0; token < num_tokens; ++token) {
    for (int64_t head = 0; head < o.num_heads; ++head) {
      const Row row{token, head};
      const std::string fault = compare_row(batch, row, out, out_lse);
      if (!fault.empty()) return fault;
      const int64_t begin = out_offset(batch, row) * bytes;
      std::fill_n(touched.begin() + begin, o.spec.head_size * bytes, uint8_t{1});
      if (!out_lse.empty()) lse_touched[static_cast<size_t>(lse_offset(batch, 0, row))] = 1;
    }
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (touched[i] == 0 && out[i] != 0xff) return "byte " + std::to_string(i) + " was overwritten";
  }
  for (size_t i = 0; i < out_lse.size(); ++i) {
    if (lse_touched[i] == 0 && out_lse[i] != kGuard) {
      return "lse " + std::to_string(i) + " was overwritten";
    }
  }
  return "";
}

std::string check_merge(Engine& engine, const DeviceSession& session,
                        const MergeBatchOptions& options, bool with_lse) {
  const Result<MergeStatesKernel> kernel = engine.prepare(options.spec);
  if (!kernel) return kernel.status().to_string() + kernel.status().detail();
  const MergeBatch batch = make_merge_batch(options);
  const DeviceBuffer v = upload_all(session, batch.v);
  const DeviceBuffer lse = upload_all(session, batch.lse);
  const DeviceBuffer out = upload_all(session, batch.out);
  const DeviceBuffer out_lse = upload_all(session, batch.out_lse);
  const DeviceBuffer token_count =
      upload_all(session, std::vector<int32_t>(1, options.counted_tokens));
  MergeStatesArgs args = batch.args;
  if (options.counted_tokens >= 0) args.token_count = token_count.data<int32_t>();
  std::vector<MergeState> states;
  const int bytes = data_type_bytes(options.spec.in_dtype);
  for (int i = 0; i < options.num_states; ++i) {
    states.push_back({v.data<uint8_t>() + i * args.v_stride_state * bytes,
                      lse.data<float>() + i * args.lse_stride_state});
  }
  if (options.spec.listed) {
    args.states = states.data();
    args.v_stride_state = args.lse_stride_state = 1;  // must not matter
  } else {
    args.v = v.data();
    args.lse = lse.data<float>();
  }
  args.out = out.data();
  args.out_lse = with_lse ? out_lse.data<float>() : nullptr;
  const std::string launch_fault = launch_and_wait(session, *kernel, args);
  if (!launch_fault.empty()) return launch_fault;
  return compare_merge(batch, download_all<uint8_t>(out),
                       with_lse ? download_all<float>(out_lse) : std::vector<float>());
}

}  // namespace pagejit
