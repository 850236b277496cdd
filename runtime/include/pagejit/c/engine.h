// The engine: makes kernels (render, compile, cache, load) and hands out handles that launch them;
// its options, events and counts. The families of kernels have headers of their own.
// Thread-safety: handles may be used from any number of threads at once; structs are plain values.
#pragma once

#include "pagejit/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Two engines in one process are independent. One engine serves every device and context.
typedef struct pagejit_engine pagejit_engine;            // a handle
typedef struct pagejit_environment pagejit_environment;  // a handle
typedef struct pagejit_pending pagejit_pending;          // a handle
typedef struct pagejit_stats pagejit_stats;              // a handle

// ---- Events ----

enum pagejit_jit_event_kind {
  PAGEJIT_EVENT_HIT = 0,      // there already, or made by another thread while this one waited
  PAGEJIT_EVENT_COMPILE = 1,  // compiled by this call, in vain where status is an error
  PAGEJIT_EVENT_DENIED = 2    // refused, by the policy or because of a capture; status says which
};

// A call makes no event where it fails otherwise. One call may make several. Its texts live as
// long as the call of the callback.
typedef struct pagejit_jit_event {
  size_t struct_size;
  int32_t kind;      // PAGEJIT_EVENT_*
  int32_t reserved;  // 0
  const char* spec;  // canonical text
  pagejit_target target;
  // The name of the cache entry; its part before the dot where no compiler is known, "" of a
  // refusal during a capture.
  const char* key;
  int32_t origin;     // PAGEJIT_ORIGIN_*; of a hit: not COMPILED
  int32_t reserved1;  // 0
  // Wall time: of the compile, queueing included; else of looking it up or waiting for it.
  double duration_ms;
  pagejit_status status;  // OK of a hit
  int32_t precompiling;   // 0 or 1: by a precompile, not by a prepare
  const char* message;    // as those of an error object
  const char* detail;
} pagejit_jit_event;

// ---- Options ----

enum pagejit_log_level {
  PAGEJIT_LOG_DEBUG = 0,
  PAGEJIT_LOG_INFO = 1,
  PAGEJIT_LOG_WARNING = 2,
  PAGEJIT_LOG_ERROR = 3,
  PAGEJIT_LOG_OFF = 4
};

// How kernels for the target "host" are compiled: plain; with pagejit's race, initialisation and
// bounds checker; or with AddressSanitizer (which needs a program that is itself built with it).
enum pagejit_host_build {
  PAGEJIT_HOST_BUILD_PLAIN = 0,
  PAGEJIT_HOST_BUILD_CHECKED = 1,
  PAGEJIT_HOST_BUILD_ADDRESS_SANITIZER = 2
};

// How a remote names the entry <S>.<C8>: under the URL itself; in a folder of S's first two digits;
// or as Bazel's remote caches do it, "ac/<SHA-256 of that name>".
enum pagejit_remote_layout {
  PAGEJIT_REMOTE_LAYOUT_FLAT = 0,
  PAGEJIT_REMOTE_LAYOUT_SUBDIRECTORIES = 1,
  PAGEJIT_REMOTE_LAYOUT_BAZEL = 2
};

// What a prepare does where a kernel is stored nowhere. A precompile always compiles.
enum pagejit_jit_policy {
  PAGEJIT_JIT_ON = 0,     // compiles it
  PAGEJIT_JIT_WARN = 1,   // compiles it, and logs a warning with spec, target, key and duration
  PAGEJIT_JIT_ERROR = 2,  // compiles nothing, opens no NVRTC: DENIED, a log line and an event
  PAGEJIT_JIT_OFF = 3     // as ERROR, but silent: DENIED and a count
};

// Bytes in memory. Part of an array.
typedef struct pagejit_bytes {
  const void* data;
  size_t size;
} pagejit_bytes;

// Everything that an engine can be told when it is created. Texts: null is "". All are copied but
// the bytes of memory_bundles. In capitals the variable of each.
typedef struct pagejit_engine_options {
  size_t struct_size;
  // "" = the CUDA driver; "emulator" = the CPU emulator; else the path of a driver library.
  // PAGEJIT_DRIVER
  const char* driver;
  // 0 or 1: use the emulator where no CUDA driver is found; it is said on one warning line.
  // PAGEJIT_ALLOW_EMULATOR=1
  int32_t allow_emulator;
  int32_t reserved;  // 0
  // The emulator's library. "" = libpagejit-emulator.so beside this library. PAGEJIT_EMULATOR
  const char* emulator_path;
  // A libnvrtc file or a folder that holds one. "" = searched. PAGEJIT_NVRTC
  const char* nvrtc_path;
  // The C++ compiler for the target "host". "" = c++, then g++, then clang++ on the PATH.
  // PAGEJIT_HOST_CXX
  const char* host_compiler;
  int32_t host_build;  // PAGEJIT_HOST_BUILD_*. PAGEJIT_HOST_BUILD=plain|checked|asan
  int32_t reserved1;   // 0
  // The cache directory. "" = $XDG_CACHE_HOME/pagejit, else $HOME/.cache/pagejit, else memory
  // only. PAGEJIT_CACHE_DIR
  const char* cache_dir;
  int32_t disk_cache;  // = 1. 0: memory only. PAGEJIT_CACHE=on|off
  int32_t reserved2;   // 0
  // = 512 MiB. The directory's entries are kept below this size, the least recently used going
  // first; 0 = no limit. PAGEJIT_CACHE_MAX_MIB (in MiB)
  uint64_t cache_max_bytes;
  // Where kernels are looked for before the cache directory, in this order; nothing is ever
  // written there. One that cannot be used is left out, with one warning.
  const pagejit_bytes* memory_bundles;  // their bytes must live until the engine has ended
  size_t num_memory_bundles;
  const char* const* bundles;  // bundle files. PAGEJIT_BUNDLES, separated by ':'
  size_t num_bundles;
  const char* const* read_only_dirs;  // cache directories. PAGEJIT_READ_ONLY_DIRS, by ':'
  size_t num_read_only_dirs;
  // Where kernels are looked for after the cache directory: "http://host/path" or https. Needs
  // libcurl, opened when it is first asked. "" = none. PAGEJIT_REMOTE
  const char* remote;
  int32_t remote_layout;  // = SUBDIRECTORIES. PAGEJIT_REMOTE_LAYOUT=flat|subdirs|bazel
  // 0 or 1: uploads what was compiled, in the background. PAGEJIT_REMOTE_WRITE=1
  int32_t remote_write;
  // Ed25519 public keys as 64 hexadecimal digits: what they signed is trusted whoever owns the
  // file. Needs libsodium. PAGEJIT_TRUSTED_KEYS, separated by ':'
  const char* const* trusted_keys;
  size_t num_trusted_keys;
  int32_t require_signed;   // 0 or 1: takes no others. PAGEJIT_REQUIRE_SIGNED=1
  int32_t compile_threads;  // 0 = processors, at most 16. PAGEJIT_COMPILE_THREADS
  int32_t jit;              // PAGEJIT_JIT_*. PAGEJIT_JIT=on|warn|error|off
  int32_t reserved3;        // 0
  // A file that gets a line for each kernel that is asked for the first time; "%p" in it becomes
  // the process's id. "" = none. PAGEJIT_RECORD
  const char* record_path;
  // A folder that gets source, options, log, PTX, cubin and a script to repeat the compile for
  // each kernel that is compiled. "" = none. PAGEJIT_DUMP
  const char* dump_dir;
  // A file that gets the engine's counts as JSON at its end. "" = none. PAGEJIT_STATS
  const char* stats_path;
  int32_t log_level;  // = WARNING. PAGEJIT_LOG=debug|info|warning|error|off
  int32_t reserved4;  // 0
  // Receives every log line at or above log_level; null = standard error. From any thread; must
  // not use the engine, whose locks may be held, nor throw or longjmp out. `line` lives as long as
  // the call.
  void (*log_callback)(void* user, int32_t level, const char* line);
  void* log_user;
  // Receives what each prepare and precompile did, in order, on the thread that called it and
  // before it returns; of prepare_async on a thread of the engine, before there is a result. No
  // lock is held, so it may use the engine; threads may be in it at once. It must neither throw nor
  // longjmp out. A launch makes none.
  void (*on_event)(void* user, const pagejit_jit_event* event);
  void* event_user;
  // 0 or 1: takes the tile configurations that `pagejit tune` has found faster than the planner's
  // on GPUs of this name, where the record and its kernel are stored; never for specs that are
  // batch_invariant. PAGEJIT_TUNED=on|off
  int32_t tuned;
  int32_t reserved5;  // 0
} pagejit_engine_options;

PAGEJIT_API pagejit_status pagejit_engine_options_init(pagejit_engine_options* options,
                                                       size_t struct_size);
// The defaults, and over them the PAGEJIT_* variables; a malformed value is INVALID_ARGUMENT that
// names it. The texts belong to `environment`, which is to be destroyed when the options are no
// longer used (pagejit_engine_create copies them).
PAGEJIT_API pagejit_status pagejit_engine_options_from_environment(
    pagejit_engine_options* options, pagejit_environment** environment, pagejit_error* error);
// Null is legal.
PAGEJIT_API pagejit_status pagejit_environment_destroy(pagejit_environment* environment,
                                                       pagejit_error* error);

// ---- Engine ----

// Opens no library and no file: that happens at first need. `options` null: the defaults.
// INVALID_ARGUMENT: a null text in a list, compile_threads below 0, a malformed trusted key,
// require_signed without one.
PAGEJIT_API pagejit_status pagejit_engine_create(const pagejit_engine_options* options,
                                                 pagejit_engine** engine, pagejit_error* error);
// Null is legal. The engine ends with this handle, or with the last pagejit_paged_attention made of
// it or the last call of another thread that is within it, if these are later. Ending cancels what
// is being prepared in the background and waits for what runs; until then the callbacks of its
// options may be called. Kernels may outlive it. Not from a callback of prepare_async; a callback
// whose call turns out to be the last one has the engine end on another thread, soon.
PAGEJIT_API pagejit_status pagejit_engine_destroy(pagejit_engine* engine, pagejit_error* error);

// The target that a prepare compiles for on this device, which is given as to a prepare.
// INVALID_ARGUMENT, NOT_FOUND, DRIVER_UNAVAILABLE, DRIVER_ERROR; UNSUPPORTED where neither this
// library nor the compiler has one; COMPILER_UNAVAILABLE only in a forked child.
PAGEJIT_API pagejit_status pagejit_engine_target_of_device(pagejit_engine* engine, int32_t device,
                                                           pagejit_target* target,
                                                           pagejit_error* error);

// ---- Preparing in the background ----

// The order in which kernels are prepared and compiled; those of one priority first come, first
// served.
enum pagejit_job_priority {
  PAGEJIT_PRIORITY_BACKGROUND = 0,
  PAGEJIT_PRIORITY_NORMAL = 1,
  PAGEJIT_PRIORITY_URGENT = 2
};

typedef struct pagejit_prepare_options {
  size_t struct_size;
  int32_t priority;       // = NORMAL. Of several requests for one kernel the greatest counts
  int32_t reserved;       // 0
  pagejit_stream stream;  // while it is captured only a kernel that is ready is returned
  // Called once with the result, after it can be had by _wait, unless cancelled first. On a thread
  // of the engine; or on the one that destroys the engine (then with CANCELLED); or, where no
  // thread can be started, on the caller's before _prepare_async returns. It may use the engine but
  // must not destroy it, wait for another kernel, throw or longjmp out, and should be short.
  // `kernel` is the handle of the family that was asked for (pagejit_kernel*, ...), null
  // unless status is OK. It and `error` live as long as the call; to keep a kernel: its _copy.
  void (*on_done)(void* user, pagejit_status status, void* kernel, const pagejit_error* error);
  void* done_user;
} pagejit_prepare_options;

PAGEJIT_API pagejit_status pagejit_prepare_options_init(pagejit_prepare_options* options,
                                                        size_t struct_size);

// A pagejit_pending of any family is what its _prepare_async made; the family's _wait takes the
// kernel. It may outlive its engine: then what was not done is CANCELLED.
//
// Waits for at most so many milliseconds; `ready` gets 1 where there is a result now, else 0.
PAGEJIT_API pagejit_status pagejit_pending_wait_for(const pagejit_pending* pending,
                                                    int64_t timeout_ms, int32_t* ready,
                                                    pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_pending_is_ready(const pagejit_pending* pending, int32_t* ready,
                                                    pagejit_error* error);
// Gives this request up: _wait yields CANCELLED at once, unless there is a result already.
PAGEJIT_API pagejit_status pagejit_pending_cancel(pagejit_pending* pending, pagejit_error* error);
// Null is legal. Detaches: the kernel is prepared all the same, and on_done is called.
PAGEJIT_API pagejit_status pagejit_pending_destroy(pagejit_pending* pending, pagejit_error* error);

// ---- Counts ----

// Since the engine was created. pagejit_stats_to_prometheus() writes a line of help beside each.
typedef struct pagejit_stats_counts {
  size_t struct_size;
  // Kernels found, by the layer that had them.
  uint64_t memory_hits;
  uint64_t bundle_hits;
  uint64_t read_only_hits;
  uint64_t disk_hits;
  uint64_t remote_hits;
  uint64_t compiles;  // the failed ones included
  uint64_t compile_failures;
  uint64_t compiles_cancelled;  // given up by all who wanted them; not among the compiles
  uint64_t waits;               // calls that waited for another thread's compile of the same key
  uint64_t process_waits;       // calls that waited for another process's compile
  uint64_t process_wait_hits;
  uint64_t process_wait_timeouts;
  uint64_t corrupt_entries;   // entries that failed their checksum or grammar and were replaced
  uint64_t publish_failures;  // entries that could not be written; served from memory
  uint64_t evictions;
  uint64_t evicted_bytes;
  uint64_t driver_rejects;  // stored images that the driver refused and that were compiled anew
  uint64_t modules_loaded;
  uint64_t misses_denied_by_policy;
  uint64_t misses_denied_in_capture;
  uint64_t remote_failures;
  uint64_t remote_uploads;
  uint64_t remote_upload_failures;
  uint64_t remote_breaker_opens;
  // How many pagejit_stats_corrupt_kind() and pagejit_stats_publish_errno() have.
  uint64_t num_corrupt_kinds;
  uint64_t num_publish_errnos;
} pagejit_stats_counts;

enum pagejit_histogram_kind {
  PAGEJIT_HISTOGRAM_COMPILE_MS = 0,  // of the compiles that succeeded; queueing left out
  PAGEJIT_HISTOGRAM_LOAD_MS = 1,     // an image into the driver, until it can be launched
  PAGEJIT_HISTOGRAM_LOOKUP_US = 2,   // in all layers, hit or miss; loaded kernels left out
  PAGEJIT_HISTOGRAM_PROCESS_WAIT_MS = 3
};

// How often a measured value fell into each range. The arrays live as long as the pagejit_stats.
typedef struct pagejit_histogram {
  size_t struct_size;
  const double* bounds;    // [num_bounds]: upper bounds of the ranges, inclusive, ascending
  const uint64_t* counts;  // [num_bounds + 1]: the last of what is above all bounds
  size_t num_bounds;
  double sum;      // of all values
  uint64_t count;  // of all values
} pagejit_histogram;

PAGEJIT_API pagejit_status pagejit_stats_counts_init(pagejit_stats_counts* counts,
                                                     size_t struct_size);
PAGEJIT_API pagejit_status pagejit_histogram_init(pagejit_histogram* histogram, size_t struct_size);

// The counts of now, to be destroyed by the caller.
PAGEJIT_API pagejit_status pagejit_engine_stats(const pagejit_engine* engine, pagejit_stats** stats,
                                                pagejit_error* error);
// Null is legal.
PAGEJIT_API pagejit_status pagejit_stats_destroy(pagejit_stats* stats, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_stats_get_counts(const pagejit_stats* stats,
                                                    pagejit_stats_counts* counts,
                                                    pagejit_error* error);
// `kind`: PAGEJIT_HISTOGRAM_*, else INVALID_ARGUMENT.
PAGEJIT_API pagejit_status pagejit_stats_get_histogram(const pagejit_stats* stats, int32_t kind,
                                                       pagejit_histogram* histogram,
                                                       pagejit_error* error);
// Corrupt entries by what was wrong with them; `name` lives as long as `stats`. INVALID_ARGUMENT
// for an index that is not below num_corrupt_kinds; below the same of num_publish_errnos.
PAGEJIT_API pagejit_status pagejit_stats_corrupt_kind(const pagejit_stats* stats, size_t index,
                                                      const char** name, uint64_t* count,
                                                      pagejit_error* error);
// Publish failures by errno, those that were met.
PAGEJIT_API pagejit_status pagejit_stats_publish_errno(const pagejit_stats* stats, size_t index,
                                                       int32_t* number, uint64_t* count,
                                                       pagejit_error* error);
// The Prometheus text exposition format, version 0.0.4; one JSON object that ends in a newline.
PAGEJIT_API pagejit_status pagejit_stats_to_prometheus(const pagejit_stats* stats, char* buffer,
                                                       size_t buffer_size, size_t* length,
                                                       pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_stats_to_json(const pagejit_stats* stats, char* buffer,
                                                 size_t buffer_size, size_t* length,
                                                 pagejit_error* error);

#ifdef __cplusplus
}
#endif
