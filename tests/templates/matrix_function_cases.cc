// The cases of the functions on fragments of matrices: ldmatrix, movmatrix, mma.
#include <bit>

#include "pagejit/spec.h"
#include "tests/templates/device_function_cases.h"

namespace pagejit::testing {
namespace {

// Element (row, column) of an 8x8 matrix of 16-bit values whose rows of 16 bytes follow each other
// in `words`.
uint16_t element(const Words& words, size_t matrix, size_t row, size_t column) {
  const uint32_t word = words[matrix * 32 + row * 4 + column / 2];
  return static_cast<uint16_t>(column % 2 == 0 ? word & 0xffff : word >> 16);
}

// What lane `lane` holds of a matrix: row lane / 4, columns 2 * (lane % 4) and the next;
// transposed: column and rows.
uint32_t fragment(const Words& words, size_t matrix, size_t lane, bool transposed) {
  const size_t row = lane / 4;
  const size_t column = lane % 4 * 2;
  const uint32_t low =
      transposed ? element(words, matrix, column, row) : element(words, matrix, row, column);
  const uint32_t high = transposed ? element(words, matrix, column + 1, row)
                                   : element(words, matrix, row, column + 1);
  return low | high << 16;
}

DeviceFunctionCase ldmatrix_case(const char* name, size_t matrices, bool transposed) {
  DeviceFunctionCase test;
  test.name = name;
  const std::string count = std::to_string(matrices);
  test.body =
      "for (int i = lane; i < 128; i += 32) shared[i] = in[i]; dev::sync_cta(); uint32_t r[" +
      count + "]; dev::ldmatrix_x" + count + (transposed ? "_trans" : "") +
      "(r, shared + lane % (8 * " + count + ") * 4); for (int i = 0; i < " + count +
      "; ++i) out[lane * " + count + " + i] = r[i];";
  test.num_outputs = static_cast<int>(32 * matrices);
  test.expected = [matrices, transposed](const Words& in) {
    Words out;
    for (size_t lane = 0; lane < 32; ++lane) {
      for (size_t m = 0; m < matrices; ++m) out.push_back(fragment(in, m, lane, transposed));
    }
    return out;
  };
  return test;
}

// What the two below expect: C + A B over the first `depth` columns of A and rows of B.
Words expected_mma(const Words& in, size_t depth) {
  const auto small = [&](size_t i) { return static_cast<double>(in[i] % 15) - 7; };
  Words out;
  for (size_t row = 0; row < 16; ++row) {
    for (size_t column = 0; column < 8; ++column) {
      double sum = in[384 + row * 8 + column] % 101;
      for (size_t k = 0; k < depth; ++k) sum += small(row * 16 + k) * small(256 + k * 8 + column);
      out.push_back(std::bit_cast<uint32_t>(static_cast<float>(sum)));
    }
  }
  return out;
}

// D[16][8] = C + A[16][16] B[16][8]. Inputs are small whole numbers, so that every sum is exact
// whatever its order.
DeviceFunctionCase mma_case(DataType type) {
  const bool bf16 = type == DataType::kBFloat16;
  DeviceFunctionCase test;
  test.name = bf16 ? "MmaBf16" : "MmaF16";
  const std::string pack = bf16 ? "dev::pack_bf16x2" : "dev::pack_f16x2";
  test.body = R"(
    uint32_t a[4];
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + i % 2 * 8;
      const int column = lane % 4 * 2 + i / 2 * 8;
      a[i] = )" +
              pack + R"((static_cast<float>(in[row * 16 + column] % 15) - 7.0f,
                             static_cast<float>(in[row * 16 + column + 1] % 15) - 7.0f);
    }
    uint32_t b[2];
    for (int i = 0; i < 2; ++i) {
      const int row = lane % 4 * 2 + i * 8;
      b[i] = )" +
              pack + R"((static_cast<float>(in[256 + row * 8 + lane / 4] % 15) - 7.0f,
                             static_cast<float>(in[256 + (row + 1) * 8 + lane / 4] % 15) - 7.0f);
    }
    float d[4];
    for (int i = 0; i < 4; ++i) {
      d[i] = static_cast<float>(in[384 + (lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] % 101);
    }
    dev::mma_m16n8k16_)" +
              std::string(bf16 ? "bf16" : "f16") + R"((d, a, b[0], b[1]);
    for (int i = 0; i < 4; ++i) {
      out[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = __builtin_bit_cast(uint32_t, d[i]);
    }
  )";
  if (bf16) test.least_sm = 80;
  test.num_outputs = 128;
  test.expected = [](const Words& in) { return expected_mma(in, 16); };
  return test;
}

// The same of A[16][8] and B[8][8], the first halves of a and b.
DeviceFunctionCase half_deep_mma_case() {
  DeviceFunctionCase test = mma_case(DataType::kFloat16);
  test.name = "MmaHalfDeepF16";
  const std::string call = "dev::mma_m16n8k16_f16(d, a, b[0], b[1]);";
  test.body.replace(test.body.find(call), call.size(),
                    "dev::mma_m16n8k8_f16(d, a[0], a[1], b[0]);");
  test.expected = [](const Words& in) { return expected_mma(in, 8); };
  return test;
}

}  // namespace

std::vector<DeviceFunctionCase> matrix_function_cases() {
  std::vector<DeviceFunctionCase> cases;
  cases.push_back(ldmatrix_case("LdmatrixX4", 4, false));
  cases.push_back(ldmatrix_case("LdmatrixX4Trans", 4, true));
  cases.push_back(ldmatrix_case("LdmatrixX2", 2, false));
  cases.push_back(ldmatrix_case("LdmatrixX2Trans", 2, true));
  cases.push_back(
      {"Movmatrix", "out[lane] = dev::movmatrix_trans(in[lane]);", 32, 32, [](const Words& in) {
         Words out;
         for (size_t lane = 0; lane < 32; ++lane) out.push_back(fragment(in, 0, lane, true));
         return out;
       }});
  cases.push_back(mma_case(DataType::kFloat16));
  cases.push_back(mma_case(DataType::kBFloat16));
  cases.push_back(half_deep_mma_case());
  return cases;
}

}  // namespace pagejit::testing
