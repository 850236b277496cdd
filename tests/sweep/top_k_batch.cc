#include "tests/sweep/top_k_batch.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/sweep/family_test.h"
#include "tools/reference/random.h"

namespace pagejit {
namespace {

constexpr int32_t kGuard = 0x5a5a5a5a;

float random_logit(LogitKind kind, SplitMix64& rng) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kSpecial[] = {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(),
                                0x1p-140f, 0.0f,       std::numeric_limits<float>::max(),
                                0x1p-126f, 1.0f,       -std::numeric_limits<float>::quiet_NaN()};
  constexpr float kFew[] = {0.0f, -0.0f, 1.5f, -2.0f, 3.0f};
  switch (kind) {
    case LogitKind::kNormal:
      return rng.normal();
    case LogitKind::kLowBits:
      return std::bit_cast<float>(0x3f800000u | static_cast<uint32_t>(rng.below(1024)));
    case LogitKind::kFew:
      return kFew[rng.below(5)];
    case LogitKind::kSpecial:
      return kSpecial[rng.below(9)] * (rng.below(2) == 0 ? 1.0f : -1.0f);
  }
  return 0;
}

// The rule of the public header, by a stable sort.
std::vector<int32_t> wanted_indices(const float* row, int length, int k) {
  std::vector<int32_t> order(static_cast<size_t>(length));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    if (std::isnan(row[a]) || std::isnan(row[b])) return !std::isnan(row[a]) && std::isnan(row[b]);
    return row[a] > row[b];
  });
  order.resize(static_cast<size_t>(std::min(length, k)));
  std::sort(order.begin(), order.end());
  order.resize(static_cast<size_t>(k), -1);
  return order;
}

std::string compare(const std::vector<int32_t>& got, const std::vector<int32_t>& want,
                    int64_t stride) {
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i]) continue;
    return "row " + std::to_string(i / static_cast<size_t>(stride)) + ", place " +
           std::to_string(i % static_cast<size_t>(stride)) + ": " + std::to_string(got[i]) +
           " instead of " + std::to_string(want[i]);
  }
  return "";
}

}  // namespace

std::string check_top_k(Engine& engine, const DeviceSession& session, const TopKOptions& o) {
  const Result<TopKKernel> kernel = engine.prepare(o.spec);
  if (!kernel) return kernel.status().to_string() + kernel.status().detail();
  SplitMix64 rng(o.seed);
  const int rows_per_length = std::max(o.next_n, 1);
  std::vector<int32_t> begins, ends;
  int num_columns = 0;
  for (const int length : o.lengths) {
    for (int i = 0; i < rows_per_length; ++i) {
      begins.push_back(
          o.next_n == 0 && o.with_begins ? static_cast<int32_t>(rng.below(o.last_begin + 1)) : 0);
      // Of a sequence that is shorter than next_n the first rows see nothing.
      ends.push_back(begins.back() + std::max(length - (rows_per_length - 1 - i), 0));
      num_columns = std::max(num_columns, ends.back());
    }
  }
  const size_t num_rows = begins.size();
  const int unit = o.spec.row_alignment / 4;
  const int64_t stride = int64_t{(num_columns + unit - 1) / unit + 1} * unit;
  const int64_t indices_stride = o.k + 3;
  // What no row has is greater than all.
  std::vector<float> logits(num_rows * static_cast<size_t>(stride),
                            std::numeric_limits<float>::infinity());
  std::vector<int32_t> want(num_rows * static_cast<size_t>(indices_stride), kGuard);
  const std::vector<int32_t> empty = want;
  for (size_t row = 0; row < num_rows; ++row) {
    float* values = &logits[row * static_cast<size_t>(stride)];
    for (int i = begins[row]; i < ends[row]; ++i) values[i] = random_logit(o.kind, rng);
    const auto indices = wanted_indices(values + begins[row], ends[row] - begins[row], o.k);
    std::copy(indices.begin(), indices.end(),
              want.begin() + static_cast<int64_t>(row) * indices_stride);
  }

  const DeviceBuffer logits_buffer = upload_all(session, logits);
  const DeviceBuffer begin_buffer = upload_all(session, begins);
  const DeviceBuffer end_buffer = upload_all(session, ends);
  const DeviceBuffer lens_buffer = upload_all(session, o.lengths);
  const DeviceBuffer report = upload_all(session, std::vector<uint8_t>(kDebugReportBytes));
  TopKArgs args;
  args.logits = logits_buffer.data<float>();
  args.logits_stride = stride;
  if (o.next_n > 0) {
    args.ranges = {.seq_lens = lens_buffer.data<int32_t>(), .next_n = o.next_n};
  } else {
    args.ranges.row_begins = o.with_begins ? begin_buffer.data<int32_t>() : nullptr;
    args.ranges.row_ends = end_buffer.data<int32_t>();
  }
  args.num_rows = static_cast<int32_t>(num_rows);
  args.num_columns = num_columns;
  args.k = o.k;
  args.indices_stride = indices_stride;
  args.debug_report = report.data();
  args.num_splits = o.num_splits;
  // Nothing of it but its counters is initialised.
  const size_t workspace_bytes = TopKKernel::workspace_bytes(args);
  const DeviceBuffer workspace = upload_all(session, std::vector<uint8_t>(workspace_bytes, 0xee));
  if (workspace_bytes != 0) {
    args.workspace = workspace.data();
    args.workspace_bytes = workspace_bytes;
    const Status status = kernel->workspace_init(args.workspace, workspace_bytes, nullptr);
    if (!status) return status.to_string();
  }
  // The second launch finds what the first one left in the workspace.
  for (int i = 0; i < (workspace_bytes == 0 ? 1 : 2); ++i) {
    const DeviceBuffer indices = upload_all(session, empty);
    args.indices = indices.data<int32_t>();
    std::string fault = launch_and_wait(session, *kernel, args);
    if (fault.empty()) fault = compare(download_all<int32_t>(indices), want, indices_stride);
    if (!fault.empty()) return fault;
  }
  return "";
}

}  // namespace pagejit
