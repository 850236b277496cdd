// What the batches of all kernels that write caches are made of: rows of tokens with values of all
// sizes, slots for them, and rotations with their reference in float64. Thread-safety: plain
// values, free functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pagejit/cache_write.h"
#include "tools/reference/random.h"

namespace pagejit {

// What must stay as it is.
inline constexpr uint8_t kGuardByte = 0x5a;

// A tensor [tokens, heads, elements].
struct TokenRows {
  DataType dtype = DataType::kBFloat16;
  std::vector<uint8_t> bytes;
  int num_heads = 0;
  int row_elements = 0;
  int64_t stride_token = 0;
  int64_t stride_head = 0;

  int64_t row_begin(int token, int head) const { return token * stride_token + head * stride_head; }
};

// Values of all sizes: some saturate in 8 bits, some are subnormal. `pad` elements lie behind each
// row, and as many more behind each token.
TokenRows make_rows(DataType dtype, int num_tokens, int num_heads, int row_elements, int pad,
                    SplitMix64& rng);

// Distinct ones of num_slots, at random; every seventh token has none where `with_skipped`.
std::vector<int64_t> draw_slots(int num_tokens, int64_t num_slots, bool with_skipped,
                                SplitMix64& rng);

// By what rows turn.
struct Rotation {
  static constexpr int64_t kMaxPosition = 97;

  RopeStyle style = RopeStyle::kNone;
  int rotary_dim = 0;
  DataType cos_sin_dtype = DataType::kFloat32;
  std::vector<int64_t> positions;  // of each token
  std::vector<uint8_t> cos_sin;    // [kMaxPosition, rotary_dim]

  // Element i of the token's row, turned where it is among the first rotary_dim, rounded to its
  // type.
  float turned(const TokenRows& rows, int token, int head, int i) const;
};
Rotation make_rotation(RopeStyle style, int rotary_dim, DataType cos_sin_dtype, int num_tokens,
                       SplitMix64& rng);

// How far a turned element, stored as a type, may be from what it should be: one rounding more,
// which in 8 or 4 bits may be a step: 1/8, 1/4 of the value, or 1.
double turned_slack(DataType stored_type, float want);
// The part of that which grows with the value, of a type of 16 or 32 bits.
double relative_slack(DataType type);

// "K of token 3, head 0, element 5: 1.0 instead of 2.0".
std::string describe_element(const std::string& what, int token, int head, int i, double got,
                             double want);

// What differs where the rows of the first num_tokens were to be turned in place and nothing else
// changed; "" for nothing.
std::string compare_turned_rows(const Rotation& rotation, const TokenRows& before, int num_tokens,
                                const std::vector<uint8_t>& after);

}  // namespace pagejit
