// What a host image (a kernel compiled for the target "host") and the CPU emulator agree on: the
// table of functions that the emulator gives to the image, and the records that the image shows to
// the emulator. Included by the host prelude and by runtime/emulator; built-in types only, no
// includes. Any change here needs a new kEmulatorAbi.
#pragma once

namespace pagejit_emulator {

// An image of another number is refused at load.
constexpr int kEmulatorAbi = 7;

// A line of the kernel text.
struct Loc {
  const char* file;
  int line;

  static constexpr Loc current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

// One entry per hardware operation. All are called on a fiber of the emulator, that is from inside
// a kernel.
struct Api {
  int abi;  // kEmulatorAbi

  int (*thread_idx)();
  int (*block_idx)(int dimension);
  int (*grid_dim)(int dimension);
  unsigned char* (*dynamic_shared)();

  // Check and count an access of `bytes`; the image itself then reads or writes.
  void (*load_global)(const void* p, unsigned bytes, Loc loc);
  void (*store_global)(void* p, unsigned bytes, Loc loc);
  unsigned (*atomic_inc)(unsigned* p, unsigned limit, Loc loc);
  int (*atomic_cas)(int* p, int expected, int desired, Loc loc);
  void (*atomic_add_shared)(int* p, int v, Loc loc);
  void (*fence_gpu)(Loc loc);
  void (*grid_dependency_wait)(Loc loc);

  void (*cp_async)(void* shared, const void* global, unsigned bytes, unsigned valid_bytes,
                   Loc loc);
  void (*cp_async_commit)(Loc loc);
  void (*cp_async_wait)(int pending, Loc loc);

  // Collectives of a warp.
  void (*ldmatrix)(unsigned* r, int num_matrices, bool transposed, const void* row, Loc loc);
  unsigned (*movmatrix_trans)(unsigned a, Loc loc);
  void (*mma_m16n8k16)(float* d, const unsigned* a, unsigned b0, unsigned b1, bool bfloat16,
                       Loc loc);
  unsigned (*shuffle_xor)(unsigned value, int lane_mask, Loc loc);
  unsigned long long (*shuffle)(unsigned long long value, int src_lane, Loc loc);
  int (*count_lanes)(bool p, Loc loc);
  int (*reduce_lanes)(int value, bool largest, Loc loc);  // the largest, else the sum
  void (*sync_warp)(Loc loc);

  void (*sync_cta)(Loc loc);
  void (*sync_named)(int barrier, int num_threads, Loc loc);

  float (*exp2_approx)(float x);
  float (*log2_approx)(float x);
  float (*rcp_approx)(float x);

  // Checked images only: a load or store of the kernel text at code address `pc`, and undefined
  // behaviour found by the compiler's instrumentation (does not return).
  void (*access)(const void* p, unsigned long long bytes, bool is_write, const void* pc);
  void (*undefined_behaviour)(const char* what, const char* file, unsigned line, unsigned column);
};

// One kernel of an image: symbol "<kernel name>_emulator_entry".
struct KernelEntry {
  const char* name;
  unsigned long long params_bytes;
  int num_threads;  // of PAGEJIT_KERNEL
  int min_ctas;
  void (*run)(const void* params);  // one thread
};

// The image as a whole: symbol "pagejit_emulator_image".
struct ImageEntry {
  int abi;
  bool checked;
  void (*bind)(const Api* api);
};

}  // namespace pagejit_emulator
