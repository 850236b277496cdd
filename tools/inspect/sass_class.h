// What an instruction is for, by its opcode. Thread-safety: plain values and free functions.
//
// Source: CUDA Binary Utilities 13.0, "Instruction Set Reference", Turing to Blackwell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pagejit::inspect {

// One class for each opcode.
enum class SassClass : uint8_t {
  kMatrixProduct,    // tensor cores
  kFloat32,          // additions, multiplications, maxima, comparisons
  kFloat16,          // the same of f16 and bf16
  kSpecial,          // MUFU: ex2, rcp, lg2, tanh
  kConversion,       // between types
  kInteger,          // integers, logic, moves, predicates; addresses are most of it
  kUniform,          // the same once per warp
  kExchange,         // between lanes: shuffles, votes, transposition
  kConstantLoad,     //
  kGlobalLoad,       //
  kGlobalStore,      //
  kAsyncCopy,        // between global and shared memory, TMA included
  kMatrixLoad,       // ldmatrix
  kSharedLoad,       //
  kSharedStore,      //
  kLocal,            // stack and spills, both ways
  kAtomic,           //
  kSynchronisation,  // barriers, fences, waits for copies
  kControl,          //
  kOther,            // opcodes that this table does not know
};
inline constexpr size_t kNumSassClasses = static_cast<size_t>(SassClass::kOther) + 1;

// "matrix products", "async copies" and so on.
std::string_view class_name(SassClass c);
// By its whole opcode, "LDG.E.128.CONSTANT".
SassClass class_of(std::string_view opcode);
// Bits that each lane loads, stores or copies: 8 to 128, 32 where the opcode says nothing; of
// ldmatrix what a lane receives. 0 for classes that move none, and for TMA.
int width_of(std::string_view opcode);

}  // namespace pagejit::inspect
