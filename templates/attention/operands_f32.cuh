// Operands of the two products where K and V are f32: what operands.cuh has for narrower types.
//
// Tensor cores take narrower operands, so each value is the sum of three bf16, its terms, exactly:
// three times 8 digits and their signs hold the 24 of an f32. Of the nine products of two values'
// terms six are computed. The others are 2^-24 of the product at most, what one rounding may be.
//
// Fragment places as in operands.cuh: an f32 result tile of lane 4r + c has {(r,2c), (r,2c+1),
// (r+8,2c), (r+8,2c+1)}; a 16-bit b operand [16][8 rows] has row r, first index {2c, 2c+1} and
// {2c+8, 2c+9}.
#pragma once

constexpr int kTerms = pagejit_shared::kF32Terms;

// The terms of two values, which are neighbours in an operand, greatest first. Values from 2^128 -
// 2^119 on become infinite.
PAGEJIT_DEVICE void split(uint32_t (&terms)[kTerms], float low, float high) {
#pragma unroll
  for (int t = 0; t < kTerms; ++t) {
    terms[t] = dev::pack_bf16x2(low, high);
    low -= __builtin_bit_cast(float, terms[t] << 16);
    high -= __builtin_bit_cast(float, terms[t] & 0xffff0000u);
  }
}

// d += a b, the small products first. Their sum is added to d apart: what a tensor core adds to its
// sum it truncates, and over thousands of tokens errors of one sign would pile up.
PAGEJIT_DEVICE void mma(float (&d)[4], const uint32_t (&a)[kTerms][4],
                        const uint32_t (&b)[kTerms][2]) {
  float sum[4] = {};
#pragma unroll
  for (int order = kTerms - 1; order >= 0; --order) {
#pragma unroll
    for (int t = 0; t <= order; ++t) {
      dev::mma_m16n8k16_bf16(sum, a[t], b[order - t][0], b[order - t][1]);
    }
  }
#pragma unroll
  for (int e = 0; e < 4; ++e) d[e] += sum[e];
}

// The token of result row r of the first product, and of row r + 8.
PAGEJIT_DEVICE int score_token(int r, bool is_upper) {
#if PAGEJIT_KV_VLLM
  // V gives lane c the tokens c and c + 4 for the places 2c and 2c + 1: K's tokens take the same.
  return r / 2 + r % 2 * 4 + is_upper * 8;
#else
  return r + is_upper * 8;
#endif
}

// One half of an a operand, columns 8 * half to 8 * half + 7. ldmatrix moves f32 as if each were two
// elements: `row` is 4 elements of row lane % 16, the second 4 for lanes from 16 on, and lane 4r + c
// gets elements c and c + 4 of rows r and r + 8. They take the places 2c and 2c + 1.
PAGEJIT_DEVICE void load_half(uint32_t (&a)[kTerms][4], int half, const float* row) {
  uint32_t values[4];
  dev::ldmatrix_x4(values, row);
#pragma unroll
  for (int upper = 0; upper < 2; ++upper) {
    uint32_t terms[kTerms];
    split(terms, __builtin_bit_cast(float, values[upper]),
          __builtin_bit_cast(float, values[upper + 2]));
#pragma unroll
    for (int t = 0; t < kTerms; ++t) a[t][half * 2 + upper] = terms[t];
  }
}

// The a operand of the first product: 16 tokens (rows) x 16 elements.
PAGEJIT_DEVICE void load_k(uint32_t (&a)[kTerms][4], const KvStage& stage, int token_tile,
                           int depth) {
  const int row = score_token(dev::lane_idx() % 8, dev::lane_idx() / 8 % 2);
  const int column = depth * 16 + dev::lane_idx() / 16 * 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    load_half(a, half, &stage.k[token_tile * 16 + row][column + half * 8]);
  }
}

// The element of q that is at place 8 * half + 2 * c of a depth; the next place has the fourth one
// behind it.
PAGEJIT_DEVICE int query_element(int depth, int half, int c) { return depth * 16 + half * 8 + c; }

#if PAGEJIT_KV_VLLM
// The a operand of the second product: 16 elements (rows) x 16 tokens, as V lies.
PAGEJIT_DEVICE void load_v(uint32_t (&a)[kTerms][4], const KvStage& stage, int token_tile,
                           int depth) {
  const int column = token_tile * 16 + dev::lane_idx() / 16 * 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    load_half(a, half, &stage.v[depth * 16 + dev::lane_idx() % 16][column + half * 8]);
  }
}

// The head element of row r of a result tile of the second product, and of row r + 8.
PAGEJIT_DEVICE int result_element(int depth, int r, bool is_upper) {
  return depth * 16 + r + is_upper * 8;
}

#else
struct alignas(8) ValuePair {
  float first;
  float second;
};

// The a operand of the second product: 16 elements (rows) x 16 tokens. Lane 4r + c loads elements 2r
// and 2r + 1 of its four tokens: row r of the result is element 2r, row r + 8 element 2r + 1. With
// an odd number of 16-byte chunks from token to token half a warp's pairs fall on all 32 banks.
PAGEJIT_DEVICE void load_v(uint32_t (&a)[kTerms][4], const KvStage& stage, int token_tile,
                           int depth) {
  const int token = token_tile * 16 + dev::lane_idx() % 4 * 2;
  const int element = depth * 16 + dev::lane_idx() / 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const auto& low = *reinterpret_cast<const ValuePair*>(&stage.v[token + half * 8][element]);
    const auto& high = *reinterpret_cast<const ValuePair*>(&stage.v[token + half * 8 + 1][element]);
    uint32_t even[kTerms];
    uint32_t odd[kTerms];
    split(even, low.first, high.first);
    split(odd, low.second, high.second);
#pragma unroll
    for (int t = 0; t < kTerms; ++t) {
      a[t][half * 2] = even[t];
      a[t][half * 2 + 1] = odd[t];
    }
  }
}

// The head element of row r of a result tile of the second product, and of row r + 8.
PAGEJIT_DEVICE int result_element(int depth, int r, bool is_upper) {
  return depth * 16 + r * 2 + is_upper;
}

#endif
