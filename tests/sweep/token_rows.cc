#include "tests/sweep/token_rows.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "tests/sweep/family_test.h"

namespace pagejit {
namespace {

// Of two products of f32 below 2^12, where they nearly cancel.
constexpr double kProductError = 5e-4;

// The element that turns with `i`, and the place of cos and sin for both.
struct Turn {
  int partner;
  int angle;
  bool is_first;
};
Turn turn_of(RopeStyle style, int rotary_dim, int i) {
  const int half = rotary_dim / 2;
  if (style == RopeStyle::kInterleaved) return {i ^ 1, i / 2, i % 2 == 0};
  return i < half ? Turn{i + half, i, true} : Turn{i - half, i - half, false};
}

}  // namespace

TokenRows make_rows(DataType dtype, int num_tokens, int num_heads, int row_elements, int pad,
                    SplitMix64& rng) {
  TokenRows rows;
  rows.dtype = dtype;
  rows.num_heads = num_heads;
  rows.row_elements = row_elements;
  rows.stride_head = row_elements + pad;
  rows.stride_token = num_heads * rows.stride_head + pad;
  const int64_t count = num_tokens * rows.stride_token;
  rows.bytes.resize(static_cast<size_t>(count * data_type_bytes(dtype)));
  for (int64_t i = 0; i < count; ++i) {
    const float size = std::exp2(static_cast<float>(rng.below(24) - 12));
    put_element(dtype, rows.bytes, i, rng.uniform() * size);
  }
  return rows;
}

std::vector<int64_t> draw_slots(int num_tokens, int64_t num_slots, bool with_skipped,
                                SplitMix64& rng) {
  std::vector<int64_t> slots;
  // The first of a shuffled list.
  std::vector<int64_t> all(static_cast<size_t>(num_slots));
  std::iota(all.begin(), all.end(), int64_t{0});
  for (int i = 0; i < num_tokens; ++i) {
    const auto at = static_cast<size_t>(i);
    std::swap(all[at],
              all[at + static_cast<size_t>(rng.below(static_cast<int64_t>(all.size() - at)))]);
    slots.push_back(with_skipped && i % 7 == 3 ? -1 : all[at]);
  }
  return slots;
}

Rotation make_rotation(RopeStyle style, int rotary_dim, DataType cos_sin_dtype, int num_tokens,
                       SplitMix64& rng) {
  Rotation rotation;
  rotation.style = style;
  rotation.rotary_dim = rotary_dim;
  rotation.cos_sin_dtype = cos_sin_dtype;
  for (int i = 0; i < num_tokens; ++i) {
    rotation.positions.push_back(rng.below(Rotation::kMaxPosition));
  }
  const int64_t angles = Rotation::kMaxPosition * rotary_dim;
  rotation.cos_sin.resize(static_cast<size_t>(angles * data_type_bytes(cos_sin_dtype)));
  for (int64_t i = 0; i < angles; ++i) {
    put_element(cos_sin_dtype, rotation.cos_sin, i, rng.uniform());
  }
  return rotation;
}

float Rotation::turned(const TokenRows& rows, int token, int head, int i) const {
  const int64_t base = rows.row_begin(token, head);
  const float x = get_element(rows.dtype, rows.bytes, base + i);
  if (style == RopeStyle::kNone || i >= rotary_dim) return x;
  const Turn turn = turn_of(style, rotary_dim, i);
  const double y = get_element(rows.dtype, rows.bytes, base + turn.partner);
  const int64_t angles = positions[static_cast<size_t>(token)] * rotary_dim;
  const double cos = get_element(cos_sin_dtype, cos_sin, angles + turn.angle);
  const double sin = get_element(cos_sin_dtype, cos_sin, angles + rotary_dim / 2 + turn.angle);
  const double turned = turn.is_first ? x * cos - y * sin : x * cos + y * sin;
  return decode_float(rows.dtype, encode_float(rows.dtype, static_cast<float>(turned)));
}

double relative_slack(DataType type) {
  return 2 * (type == DataType::kFloat32 ? 0x1p-23 : unit_roundoff(type));
}

double turned_slack(DataType stored_type, float want) {
  switch (stored_type) {
    case DataType::kInt8:
    case DataType::kInt4:
      return 1;
    case DataType::kFloat8E4m3:
      return std::abs(want) / 8 + 0x1p-9;
    case DataType::kFloat8E5m2:
      return std::abs(want) / 4 + 0x1p-16;
    default:
      return relative_slack(stored_type) * std::abs(want) + kProductError;
  }
}

std::string describe_element(const std::string& what, int token, int head, int i, double got,
                             double want) {
  return what + " of token " + std::to_string(token) + ", head " + std::to_string(head) +
         ", element " + std::to_string(i) + ": " + std::to_string(got) + " instead of " +
         std::to_string(want);
}

std::string compare_turned_rows(const Rotation& rotation, const TokenRows& before, int num_tokens,
                                const std::vector<uint8_t>& after) {
  std::vector<uint8_t> changed = before.bytes;
  for (int token = 0; token < num_tokens; ++token) {
    for (int head = 0; head < before.num_heads; ++head) {
      for (int i = 0; i < before.row_elements; ++i) {
        const int64_t at = before.row_begin(token, head) + i;
        const float got = get_element(before.dtype, after, at);
        const float want = rotation.turned(before, token, head, i);
        const bool is_turned = i < rotation.rotary_dim;
        if (!(std::abs(got - want) <= (is_turned ? turned_slack(before.dtype, want) : 0.0))) {
          return describe_element("q", token, head, i, got, want);
        }
        put_element(before.dtype, changed, at, got);
      }
    }
  }
  return changed == after ? "" : "q was changed between its rows";
}

}  // namespace pagejit
