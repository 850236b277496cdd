// Operands of the two products: K and V from shared memory, products and packing.
//
// Fragment places used here and in softmax.cuh, for lane = 4 * r + c: an f32 result tile [16
// tokens or elements][8 rows] has the first index r and r + 8, the second 2c and 2c + 1: {(r,2c),
// (r,2c+1), (r+8,2c), (r+8,2c+1)}; a 16-bit b operand [16][8 rows] has row r, first index {2c,
// 2c+1} and {2c+8, 2c+9}.
#pragma once

PAGEJIT_DEVICE void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#if PAGEJIT_BF16
  dev::mma_m16n8k16_bf16(d, a, b0, b1);
#else
  dev::mma_m16n8k16_f16(d, a, b0, b1);
#endif
}

// A pair of operands, rounded.
PAGEJIT_DEVICE uint32_t pack(float low, float high) {
#if PAGEJIT_BF16
  return dev::pack_bf16x2(low, high);
#else
  return dev::pack_f16x2(low, high);
#endif
}

// A stage's tokens of V.
PAGEJIT_DEVICE const auto& value_rows(const KvStage& stage) {
#if PAGEJIT_LATENT
  return stage.k;
#else
  return stage.v;
#endif
}

#if PAGEJIT_KV_8BIT || PAGEJIT_UNPACK_E4M3
#include "elements/f16_quad.cuh"
#endif

// The token of result row r of the first product, and of row r + 8.
PAGEJIT_DEVICE int score_token(int r, bool is_upper) {
#if PAGEJIT_KV_8BIT && PAGEJIT_KV_VLLM
  // V gives lane c four tokens, 4c to 4c + 3: K's tokens take the places of V's. Which two of the four
  // come first changes with c / 2, so that the eight tokens of a matrix of K differ modulo 8, and
  // their rows lie on different banks.
  const int half = is_upper != (r / 4 != 0);
  return r / 2 * 4 + r % 2 + half * 2;
#else
  return r + is_upper * 8;
#endif
}

#if PAGEJIT_DS_MLA
// Depths of K that are codes; the others are bf16.
constexpr int kCodeDepths = pagejit_shared::kDsMlaLatent / 16;

#endif
#if PAGEJIT_KV_8BIT
// Four codes of K or V.
PAGEJIT_DEVICE F16Quad unpack_kv(uint32_t codes) {
#if PAGEJIT_KV_E5M2
  // The upper half of an f16.
  return {dev::permute_bytes(codes, 0, 0x1404), dev::permute_bytes(codes, 0, 0x3424)};
#elif PAGEJIT_KV_INT8
  // An f16 of 1024 or more counts in ones: 0x6400 is 1024, and 128 make the code positive.
  constexpr uint32_t kMinus1152 = 0xe480e480u;
  const uint32_t positive = codes ^ 0x80808080u;
  return {dev::add_f16x2(dev::permute_bytes(positive, 0x64646464u, 0x4140), kMinus1152),
          dev::add_f16x2(dev::permute_bytes(positive, 0x64646464u, 0x4342), kMinus1152)};
#else
  return unpack_e4m3(codes);
#endif
}

// The a operand of the first product: 16 tokens (rows) x 16 elements. ldmatrix gives lane 4r + c the
// elements 4c to 4c + 3 of tokens r and r + 8. They take the places {2c, 2c+1} and {2c+8, 2c+9}, and
// q's elements with them: the order of a sum's terms does not matter.
PAGEJIT_DEVICE void load_k(uint32_t (&a)[4], const KvStage& stage, int token_tile, int depth) {
  uint32_t codes[2];
  const int row = score_token(dev::lane_idx() % 8, dev::lane_idx() / 8 % 2);
  dev::ldmatrix_x2(codes, &stage.k[token_tile * 16 + row][depth * 16]);
  const F16Quad first = unpack_kv(codes[0]);
  const F16Quad second = unpack_kv(codes[1]);
  a[0] = first.low;
  a[1] = second.low;
  a[2] = first.high;
  a[3] = second.high;
}

// The element of q that is at place 8 * half + 2 * c of a depth, with the next one behind it.
PAGEJIT_DEVICE int query_element(int depth, int half, int c) {
#if PAGEJIT_DS_MLA
  if (depth >= kCodeDepths) return depth * 16 + half * 8 + c * 2;  // the rotated part has no codes
#endif
  return depth * 16 + c * 4 + half * 2;
}

#if PAGEJIT_KV_VLLM
// The a operand of the second product: 16 elements (rows) x 16 tokens, as V lies.
PAGEJIT_DEVICE void load_v(uint32_t (&a)[4], const KvStage& stage, int token_tile, int depth) {
  uint32_t codes[2];
  dev::ldmatrix_x2(codes, &stage.v[depth * 16 + dev::lane_idx() % 16][token_tile * 16]);
  // The order of score_token().
  const uint32_t selector = dev::lane_idx() % 4 < 2 ? 0x3210 : 0x1032;
  const F16Quad first = unpack_kv(dev::permute_bytes(codes[0], 0, selector));
  const F16Quad second = unpack_kv(dev::permute_bytes(codes[1], 0, selector));
  a[0] = first.low;
  a[1] = second.low;
  a[2] = first.high;
  a[3] = second.high;
}

// The head element of row r of a result tile of the second product, and of row r + 8.
PAGEJIT_DEVICE int result_element(int depth, int r, bool is_upper) {
  return depth * 16 + r + is_upper * 8;
}

#else
// The a operand of the second product: 16 elements (rows) x 16 tokens. Transposed in pairs of codes,
// so that lane 4r + c gets the elements 2r and 2r + 1 of tokens {2c, 2c+1} and {2c+8, 2c+9}: row r
// of the result is element 2r, row r + 8 element 2r + 1.
PAGEJIT_DEVICE void load_v(uint32_t (&a)[4], const KvStage& stage, int token_tile, int depth) {
  uint32_t codes[2];
  dev::ldmatrix_x2_trans(codes,
                         &value_rows(stage)[token_tile * 16 + dev::lane_idx() % 16][depth * 16]);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    // {token 2c: 2r, 2r + 1; token 2c + 1: 2r, 2r + 1} -> one element's two tokens, then the other's
    const F16Quad values = unpack_kv(dev::permute_bytes(codes[half], 0, 0x3120));
    a[half * 2] = values.low;
    a[half * 2 + 1] = values.high;
  }
}

// The head element of row r of a result tile of the second product, and of row r + 8.
PAGEJIT_DEVICE int result_element(int depth, int r, bool is_upper) {
  return depth * 16 + r * 2 + is_upper;
}

#endif
#elif PAGEJIT_KV_INT4
// 32 elements take two products: of a word of eight codes these have the even and the odd pairs.
constexpr int kDepthsAtOnce = 2;

// A word's eight codes as four pairs of f16, exactly: {0, 4}, {1, 5}, {2, 6}, {3, 7}. A code with its
// sign flipped is 8 more than its value; as the last bits of an f16 of 1024 it counts in ones, four
// bits higher in sixteens, which the multiplication undoes. For 8 codes: a shift, 4 lop3, 2 hadd2 and
// 2 hfma2.
PAGEJIT_DEVICE void unpack_int4(uint32_t (&pairs)[4], uint32_t codes) {
  constexpr uint32_t kMinus1032 = 0xe408e408u;
  constexpr uint32_t kSixteenth = 0x2c002c00u;
  constexpr uint32_t kMinus72 = 0xd480d480u;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const uint32_t shifted = codes >> (i * 4);
    const uint32_t ones = dev::and_xor(shifted, 0x000f000fu, 0x64086408u);
    const uint32_t sixteens = dev::and_xor(shifted, 0x00f000f0u, 0x64806480u);
    pairs[i] = dev::add_f16x2(ones, kMinus1032);
    pairs[i + 1] = dev::fma_f16x2(sixteens, kSixteenth, kMinus72);
  }
}

// The a operands of the first product: 16 tokens (rows) x 32 elements. ldmatrix gives lane 4r + c the
// elements 8c to 8c + 7 of tokens r and r + 8. Pair i and pair i + 1 of them take the places
// {2c, 2c+1} and {2c+8, 2c+9} of depth i / 2, and q's elements with them.
PAGEJIT_DEVICE void load_k(uint32_t (&a)[2][4], const KvStage& stage, int token_tile, int depth) {
  uint32_t codes[2];
  dev::ldmatrix_x2(codes, &stage.k[token_tile * 16 + dev::lane_idx() % 16][depth * 8]);
#pragma unroll
  for (int upper = 0; upper < 2; ++upper) {
    uint32_t pairs[4];
    unpack_int4(pairs, codes[upper]);
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i / 2][i % 2 * 2 + upper] = pairs[i];
  }
}

// The elements 4 * half and 4 * half + 1 from here on are at place 2c + half of a depth and at the one
// 8 behind it: a pair of codes of K is one of the first four and one of the last four.
PAGEJIT_DEVICE int query_element(int depth, int half, int c) {
  return depth / 2 * 32 + c * 8 + depth % 2 * 2 + half * 4;
}

// The a operands of the second product: 32 elements (rows) x 16 tokens. Transposed in fours of codes,
// so that lane 4r + c gets the elements 4r to 4r + 3 of tokens 2c and 2c + 1 in one word: a pair is
// one element's two tokens. Row r of depth i is element 4r + 2i, row r + 8 the one behind it.
PAGEJIT_DEVICE void load_v(uint32_t (&a)[2][4], const KvStage& stage, int token_tile, int depth) {
  uint32_t codes[2];
  dev::ldmatrix_x2_trans(codes, &stage.v[token_tile * 16 + dev::lane_idx() % 16][depth * 8]);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint32_t pairs[4];
    unpack_int4(pairs, codes[half]);
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i / 2][half * 2 + i % 2] = pairs[i];
  }
}

// The head element of row r of a result tile of the second product, and of row r + 8.
PAGEJIT_DEVICE int result_element(int depth, int r, bool is_upper) {
  return depth / 2 * 32 + r * 4 + depth % 2 * 2 + is_upper;
}

#else
// The a operand of the first product: 16 tokens (rows) x 16 elements, as K lies. Matrices: (tokens
// 0-7, 8-15) x (elements 0-7, 8-15).
PAGEJIT_DEVICE void load_k(uint32_t (&a)[4], const KvStage& stage, int token_tile, int depth) {
  const int row = dev::lane_idx() % 16;
  const int column = dev::lane_idx() / 16 * 8;
  dev::ldmatrix_x4(a, &stage.k[token_tile * 16 + row][depth * 16 + column]);
}

// The element of q that is at place 8 * half + 2 * c of a depth, with the next one behind it.
PAGEJIT_DEVICE int query_element(int depth, int half, int c) {
  return depth * 16 + half * 8 + c * 2;
}

// The a operand of the second product: 16 elements (rows) x 16 tokens. Matrices: (elements 0-7,
// 8-15) x (tokens 0-7, 8-15).
PAGEJIT_DEVICE void load_v(uint32_t (&a)[4], const KvStage& stage, int token_tile, int depth) {
#if PAGEJIT_KV_VLLM
  const int row = dev::lane_idx() % 16;
  const int column = dev::lane_idx() / 16 * 8;
  dev::ldmatrix_x4(a, &stage.v[depth * 16 + row][token_tile * 16 + column]);
#else
  const int row = dev::lane_idx() / 16 * 8 + dev::lane_idx() % 8;
  const int column = dev::lane_idx() / 8 % 2 * 8;
  dev::ldmatrix_x4_trans(a, &value_rows(stage)[token_tile * 16 + row][depth * 16 + column]);
#endif
}

// The head element of row r of a result tile of the second product, and of row r + 8.
PAGEJIT_DEVICE int result_element(int depth, int r, bool is_upper) {
  return depth * 16 + r + is_upper * 8;
}

#endif
