// ldmatrix, movmatrix and mma.sync on the fragments of the PTX ISA.
#include <cstring>

#include "runtime/emulator/device_functions.h"
#include "runtime/emulator/machine.h"
#include "templates/device/host/float16.cuh"

namespace pagejit_emulator {
namespace {

constexpr int kRows = 8;  // of an 8x8 matrix of 16-bit elements; a row is 16 bytes
constexpr unsigned kRowBytes = 16;

struct LdmatrixArgs {
  unsigned* r;
  const void* row;
};

struct MmaArgs {
  float* d;
  const unsigned* a;
  unsigned b[2];
};

unsigned half_of(unsigned word, int index) { return index == 0 ? word & 0xffffu : word >> 16; }

// Eight rows of 16 bytes pass in one cycle if they lie in different groups of four banks. Rows at
// one address count once.
unsigned extra_cycles(const void* const* rows) {
  unsigned most = 1;
  for (int group = 0; group < 8; ++group) {
    unsigned distinct = 0;
    for (int i = 0; i < kRows; ++i) {
      if (reinterpret_cast<uintptr_t>(rows[i]) / kRowBytes % 8 != static_cast<unsigned>(group)) {
        continue;
      }
      bool repeated = false;
      for (int j = 0; j < i; ++j) repeated |= rows[j] == rows[i];
      distinct += repeated ? 0 : 1;
    }
    if (distinct > most) most = distinct;
  }
  return most - 1;
}

Operation ldmatrix_operation(int num_matrices, bool transposed) {
  if (num_matrices == 2) return transposed ? Operation::kLdmatrixX2Trans : Operation::kLdmatrixX2;
  return transposed ? Operation::kLdmatrixX4Trans : Operation::kLdmatrixX4;
}

}  // namespace

void ldmatrix(unsigned* r, int num_matrices, bool transposed, const void* row, Loc loc) {
  Machine& m = machine();
  const Operation operation = ldmatrix_operation(num_matrices, transposed);
  // Lane 8 * i + j gives row j of matrix i; the addresses of further lanes are not used.
  if (m.current().lane() < num_matrices * kRows) {
    check_shared(row, kRowBytes, kRowBytes, operation_name(operation), loc);
    note_shared_read(row, kRowBytes, loc);
  }
  LdmatrixArgs args = {r, row};
  if (!arrive(operation, 0, &args, loc)) return;
  Warp& warp = *m.current().warp;
  for (int matrix = 0; matrix < num_matrices; ++matrix) {
    const void* rows[kRows];
    unsigned short elements[kRows][kRows];
    for (int i = 0; i < kRows; ++i) {
      rows[i] = static_cast<LdmatrixArgs*>(warp.args[matrix * kRows + i])->row;
      std::memcpy(elements[i], rows[i], kRowBytes);
    }
    ++m.counters().ldmatrix_phases;
    m.counters().ldmatrix_extra_cycles += extra_cycles(rows);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const int i = lane / 4;
      const int j = lane % 4 * 2;
      const unsigned low = transposed ? elements[j][i] : elements[i][j];
      const unsigned high = transposed ? elements[j + 1][i] : elements[i][j + 1];
      static_cast<LdmatrixArgs*>(warp.args[lane])->r[matrix] = low | high << 16;
    }
  }
  release_warp();
}

unsigned movmatrix_trans(unsigned a, Loc loc) {
  unsigned value = a;
  if (!arrive(Operation::kMovmatrixTrans, 0, &value, loc)) return value;
  Warp& warp = *machine().current().warp;
  unsigned elements[kRows][kRows];
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const unsigned word = *static_cast<unsigned*>(warp.args[lane]);
    for (int h = 0; h < 2; ++h) elements[lane / 4][lane % 4 * 2 + h] = half_of(word, h);
  }
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const int i = lane / 4;
    const int j = lane % 4 * 2;
    *static_cast<unsigned*>(warp.args[lane]) = elements[j][i] | elements[j + 1][i] << 16;
  }
  release_warp();
  return value;
}

void mma_m16n8k16(float* d, const unsigned* a, unsigned b0, unsigned b1, bool bfloat16, Loc loc) {
  MmaArgs args = {d, a, {b0, b1}};
  if (!arrive(bfloat16 ? Operation::kMmaBf16 : Operation::kMmaF16, 0, &args, loc)) return;
  Warp& warp = *machine().current().warp;
  const auto value = [bfloat16](unsigned word, int h) {
    const auto bits = static_cast<unsigned short>(half_of(word, h));
    return bfloat16 ? f32_from_bf16(bits) : f32_from_f16(bits);
  };
  float a_rows[16][16];
  float b_columns[8][16];
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const auto& mine = *static_cast<MmaArgs*>(warp.args[lane]);
    const int group = lane / 4;
    const int pair = lane % 4 * 2;
    for (int h = 0; h < 2; ++h) {
      a_rows[group][pair + h] = value(mine.a[0], h);
      a_rows[group + 8][pair + h] = value(mine.a[1], h);
      a_rows[group][pair + 8 + h] = value(mine.a[2], h);
      a_rows[group + 8][pair + 8 + h] = value(mine.a[3], h);
      b_columns[group][pair + h] = value(mine.b[0], h);
      b_columns[group][pair + 8 + h] = value(mine.b[1], h);
    }
  }
  for (int lane = 0; lane < kWarpSize; ++lane) {
    float* mine = static_cast<MmaArgs*>(warp.args[lane])->d;
    for (int e = 0; e < 4; ++e) {
      const int row = lane / 4 + e / 2 * 8;
      const int column = lane % 4 * 2 + e % 2;
      float sum = mine[e];
      for (int k = 0; k < 16; ++k) sum += a_rows[row][k] * b_columns[column][k];
      mine[e] = sum;
    }
  }
  release_warp();
}

}  // namespace pagejit_emulator
