// What libpagejit-emulator.so exports beside the CUDA driver API: its settings, its counters and
// its reports. A C interface, to be found with dlsym in the library that was opened as the driver.
// Thread-safety: all functions may be called from several threads at once; a launch uses the
// options it found at its start.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The order in which ready threads run; also the order of the CTAs of a grid: first to last, last
// to first, or shuffled.
enum PagejitEmulatorOrder {
  kPagejitEmulatorFifo = 0,
  kPagejitEmulatorLifo = 1,
  kPagejitEmulatorRandom = 2,
};

// When the data of cp.async arrive: only at the wait that needs them, at issue, or either by
// chance. Late finds missing waits, early finds buffers that are refilled while they are still
// read.
enum PagejitEmulatorCompletion {
  kPagejitEmulatorLate = 0,
  kPagejitEmulatorEarly = 1,
  kPagejitEmulatorRandomCompletion = 2,
};

typedef struct PagejitEmulatorOptions {
  size_t struct_size;  // sizeof(PagejitEmulatorOptions) of the caller
  int order;           // PagejitEmulatorOrder. PAGEJIT_EMULATOR_ORDER=fifo|lifo|random
  int completion;      // PagejitEmulatorCompletion. PAGEJIT_EMULATOR_COMPLETION=late|early|random
  uint64_t seed;       // of the two random choices. PAGEJIT_EMULATOR_SEED
  int resident;        // CTAs that run at once, [1, 64]. PAGEJIT_EMULATOR_RESIDENT
  // The compute capability the device claims, with that GPU's limits: 75, 80, 86, 87, 89, 90, 100,
  // 103, 110, 120 or 121. PAGEJIT_EMULATOR_SM
  int sm;
  // A launch fails when no CTA has ended for so long. 0 = never. PAGEJIT_EMULATOR_WATCHDOG_S
  double watchdog_s;
  // PAGEJIT_EMULATOR_REPORT=<path>|stderr appends each report there; it is read with the other
  // variables and has no field.
} PagejitEmulatorOptions;

// Sums since the library was loaded or the counters were reset.
typedef struct PagejitEmulatorCounters {
  size_t struct_size;  // sizeof(PagejitEmulatorCounters) of the caller
  uint64_t launches;
  uint64_t ctas;
  uint64_t switches;              // from one thread of a CTA to another
  uint64_t global_bytes_read;     // by load_global, load_global_nc and valid cp.async
  uint64_t global_bytes_written;  // by store_global
  uint64_t ldmatrix_phases;  // 8x8 matrices read, one shared memory cycle each without conflicts
  uint64_t ldmatrix_extra_cycles;    // more cycles for bank conflicts
  uint64_t checked_shared_accesses;  // loads and stores of checked images; 0 means that nothing was
                                     // checked
  uint64_t checked_global_accesses;
} PagejitEmulatorCounters;

// kEmulatorAbi: which images this library runs. Its presence tells the emulator from a CUDA driver.
int pagejit_emulator_abi(void);

// The current options. Unless configured they are the environment's, read at the first call of any
// function.
void pagejit_emulator_options(PagejitEmulatorOptions* options);

// Sets all options that fit in options->struct_size. 0, or 1 (CUDA_ERROR_INVALID_VALUE) and no
// change where a value is illegal.
int pagejit_emulator_configure(const PagejitEmulatorOptions* options);

void pagejit_emulator_counters(PagejitEmulatorCounters* counters);
void pagejit_emulator_reset_counters(void);

// Bytes of global memory that each CTA of the last launch read, into bytes[0, count): CTA (x, y, z)
// is number x + gridDim.x * (y + gridDim.y * z). Returns the number of CTAs, at most 65,536,
// whatever `count` is.
uint64_t pagejit_emulator_cta_bytes_read(uint64_t* bytes, uint64_t count);

// The text on the last call that failed: a launch's report, or why an image was refused. "" when
// there was none. Valid until the calling thread calls this again.
const char* pagejit_emulator_last_report(void);

#ifdef __cplusplus
}
#endif
