// Callbacks of the checked build. The kernel is compiled with -fsanitize=thread,undefined but
// without the sanitizers' run-time libraries: each load and store of the kernel text, and each
// undefined operation, comes here and is handed to the emulator, which knows CUDA's rules. All are
// hidden, so that a program that is itself built with a sanitizer keeps its own.
#pragma once

#define PAGEJIT_CALLBACK \
  extern "C" __attribute__((used, visibility("hidden"), noinline)) PAGEJIT_UNCHECKED

// ---- -fsanitize=thread ----

#define PAGEJIT_ACCESS(suffix, bytes)                                            \
  PAGEJIT_CALLBACK void __tsan_read##suffix(void* p) {                           \
    pagejit_emulator::api->access(p, bytes, false, __builtin_return_address(0)); \
  }                                                                              \
  PAGEJIT_CALLBACK void __tsan_write##suffix(void* p) {                          \
    pagejit_emulator::api->access(p, bytes, true, __builtin_return_address(0));  \
  }                                                                              \
  PAGEJIT_CALLBACK void __tsan_unaligned_read##suffix(void* p) {                 \
    pagejit_emulator::api->access(p, bytes, false, __builtin_return_address(0)); \
  }                                                                              \
  PAGEJIT_CALLBACK void __tsan_unaligned_write##suffix(void* p) {                \
    pagejit_emulator::api->access(p, bytes, true, __builtin_return_address(0));  \
  }
PAGEJIT_ACCESS(1, 1)
PAGEJIT_ACCESS(2, 2)
PAGEJIT_ACCESS(4, 4)
PAGEJIT_ACCESS(8, 8)
PAGEJIT_ACCESS(16, 16)
#undef PAGEJIT_ACCESS

PAGEJIT_CALLBACK void __tsan_read_range(void* p, long bytes) {
  pagejit_emulator::api->access(p, static_cast<unsigned long long>(bytes), false,
                                __builtin_return_address(0));
}
PAGEJIT_CALLBACK void __tsan_write_range(void* p, long bytes) {
  pagejit_emulator::api->access(p, static_cast<unsigned long long>(bytes), true,
                                __builtin_return_address(0));
}
PAGEJIT_CALLBACK void __tsan_init() {}
PAGEJIT_CALLBACK void __tsan_func_entry(void*) {}
PAGEJIT_CALLBACK void __tsan_func_exit(void*) {}

// ---- -fsanitize=undefined ----

namespace pagejit_emulator {

// The record that compilers pass to a handler begins with the place in the source (libubsan's ABI).
struct UbsanRecord {
  const char* file;
  unsigned line;
  unsigned column;
};

// Of __ubsan_handle_type_mismatch_v1.
struct UbsanTypeMismatch {
  UbsanRecord place;
  const void* type;
  unsigned char log_alignment;
  unsigned char kind;
};

}  // namespace pagejit_emulator

#define PAGEJIT_UNDEFINED(handler, what)                                                       \
  PAGEJIT_CALLBACK void __ubsan_handle_##handler(void* record, void*, void*) {                 \
    const auto* place = static_cast<const pagejit_emulator::UbsanRecord*>(record);             \
    pagejit_emulator::api->undefined_behaviour(what, place->file, place->line, place->column); \
    __builtin_trap();                                                                          \
  }
PAGEJIT_UNDEFINED(add_overflow_abort, "signed integer overflow in +")
PAGEJIT_UNDEFINED(sub_overflow_abort, "signed integer overflow in -")
PAGEJIT_UNDEFINED(mul_overflow_abort, "signed integer overflow in *")
PAGEJIT_UNDEFINED(negate_overflow_abort, "signed integer overflow in negation")
PAGEJIT_UNDEFINED(divrem_overflow_abort, "division by zero or overflow in division")
PAGEJIT_UNDEFINED(shift_out_of_bounds_abort, "shift by a negative or too large amount")
PAGEJIT_UNDEFINED(out_of_bounds_abort, "array index out of bounds")
PAGEJIT_UNDEFINED(pointer_overflow_abort, "pointer arithmetic overflows")
PAGEJIT_UNDEFINED(load_invalid_value_abort, "value that its type cannot hold")
PAGEJIT_UNDEFINED(float_cast_overflow_abort, "floating-point value out of the integer's range")
PAGEJIT_UNDEFINED(vla_bound_not_positive_abort, "array bound not positive")
PAGEJIT_UNDEFINED(invalid_builtin_abort, "zero passed to a bit-count builtin")
PAGEJIT_UNDEFINED(nonnull_arg_abort, "null passed as a non-null argument")
PAGEJIT_UNDEFINED(nonnull_return_v1_abort, "null returned where none is allowed")
PAGEJIT_UNDEFINED(function_type_mismatch_abort, "call through a pointer of another function type")
PAGEJIT_UNDEFINED(function_type_mismatch_v1_abort,
                  "call through a pointer of another function type")
PAGEJIT_UNDEFINED(builtin_unreachable, "unreachable code reached")
PAGEJIT_UNDEFINED(missing_return, "function with a result ends without return")
#undef PAGEJIT_UNDEFINED

PAGEJIT_CALLBACK void __ubsan_handle_type_mismatch_v1_abort(void* record, uintptr_t p) {
  const auto* mismatch = static_cast<const pagejit_emulator::UbsanTypeMismatch*>(record);
  const uintptr_t alignment = static_cast<uintptr_t>(1) << mismatch->log_alignment;
  const char* what = p == 0                       ? "null pointer used"
                     : (p & (alignment - 1)) != 0 ? "misaligned pointer used"
                                                  : "pointer to too small an object used";
  pagejit_emulator::api->undefined_behaviour(what, mismatch->place.file, mismatch->place.line,
                                             mismatch->place.column);
  __builtin_trap();
}

#undef PAGEJIT_CALLBACK
