// What all of pagejit's C API shares: status numbers, error objects, targets, element types, what
// is known of a kernel. pagejit/pagejit.h has the conventions and includes everything.
// Thread-safety: structs are plain values; an error object is used by one thread at a time.
#pragma once

#include <stddef.h>
#include <stdint.h>

// What libpagejit.so offers to C. Nothing is ever thrown through it; as C++, clang would have each
// definition say so again.
#if defined(__clang__) && defined(__cplusplus)
#define PAGEJIT_API __attribute__((visibility("default")))
#elif defined(__GNUC__)
#define PAGEJIT_API __attribute__((visibility("default"), nothrow))
#else
#define PAGEJIT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// ---- Version ----

#define PAGEJIT_VERSION_MAJOR 0
#define PAGEJIT_VERSION_MINOR 1
#define PAGEJIT_VERSION_PATCH 0
// One number that can be compared: 0.1.0 is 100.
#define PAGEJIT_VERSION \
  (PAGEJIT_VERSION_MAJOR * 10000 + PAGEJIT_VERSION_MINOR * 100 + PAGEJIT_VERSION_PATCH)

// Those of the library that runs: the number as above, and "0.1.0".
PAGEJIT_API int32_t pagejit_version(void);
PAGEJIT_API const char* pagejit_version_text(void);

// ---- Status ----

// One of enum pagejit_status_code.
typedef int32_t pagejit_status;

// Stable numbers, the same as StatusCode's in C++.
enum pagejit_status_code {
  PAGEJIT_OK = 0,
  PAGEJIT_INVALID_ARGUMENT = 1,  // a value or a handle that is never legal; the message names it
  PAGEJIT_UNSUPPORTED = 2,       // legal, but not served by this version, target or GPU
  PAGEJIT_NOT_FOUND = 3,         // a file, a library, a GPU that was asked for is not there
  PAGEJIT_COMPILE_FAILED = 4,    // the compiler refused the source: log, options and source
  PAGEJIT_COMPILER_UNAVAILABLE = 5,  // no NVRTC (or C++ compiler for "host"), or one too old
  PAGEJIT_DRIVER_UNAVAILABLE = 6,    // no CUDA driver, one too old, or none that works
  PAGEJIT_DRIVER_ERROR = 7,          // a driver call failed: pagejit_error_cuda_result()
  PAGEJIT_CACHE_ERROR = 8,           // the cache directory cannot be used (never fatal to prepare)
  PAGEJIT_DATA_CORRUPT = 9,          // stored bytes fail their checksum or grammar
  PAGEJIT_WORKSPACE = 10,            // workspace missing, too small or not initialised
  PAGEJIT_DEVICE_CHECK_FAILED = 11,  // a debug kernel found a bad value on the device
  PAGEJIT_CANCELLED = 12,
  PAGEJIT_INTERNAL = 13,  // no memory, or a defect of pagejit; the message says which
  PAGEJIT_DENIED = 14     // a kernel is not ready, and the policy or a capture forbids making it so
};

// "invalid argument"; "unknown status" for other numbers. Never null.
PAGEJIT_API const char* pagejit_status_name(pagejit_status status);

// ---- Error objects ----

// What went wrong in the call that it was last given to; a call that succeeds clears it. A handle
// that the caller owns; for one call at a time: a callback that calls uses another.
typedef struct pagejit_error pagejit_error;

PAGEJIT_API pagejit_status pagejit_error_create(pagejit_error** error);
// Null is legal.
PAGEJIT_API pagejit_status pagejit_error_destroy(pagejit_error* error);

// OK where the last call succeeded. INVALID_ARGUMENT for null, and for what is no error object.
PAGEJIT_API pagejit_status pagejit_error_code(const pagejit_error* error);

// Texts. Never null; "" where there is none; they live until the error object is given to another
// call, or destroyed.
//
// One sentence: what failed, with which values, and what is legal. For null and for what is no
// error object it says so.
PAGEJIT_API const char* pagejit_error_message(const pagejit_error* error);
// Long text where there is one: of a failed compile its log, options and numbered source.
PAGEJIT_API const char* pagejit_error_detail(const pagejit_error* error);
// The canonical text of the kernel that was asked for; "" of a launch that was refused and of a
// request that was cancelled.
PAGEJIT_API const char* pagejit_error_spec(const pagejit_error* error);
// Of a failed compile: what the compiler said, its options one a line, the source.
PAGEJIT_API const char* pagejit_error_log(const pagejit_error* error);
PAGEJIT_API const char* pagejit_error_options(const pagejit_error* error);
PAGEJIT_API const char* pagejit_error_source(const pagejit_error* error);
// The CUresult of the driver call that failed; 0 where none did.
PAGEJIT_API int32_t pagejit_error_cuda_result(const pagejit_error* error);

// ---- Element types ----

// The two floating-point formats of 8 bits are those of OCP's OFP8: e4m3 has no infinity, and its
// greatest value is 448.
enum pagejit_data_type {
  PAGEJIT_DTYPE_F16 = 0,
  PAGEJIT_DTYPE_BF16 = 1,
  PAGEJIT_DTYPE_F32 = 2,
  PAGEJIT_DTYPE_FP8_E4M3 = 3,
  PAGEJIT_DTYPE_FP8_E5M2 = 4,
  PAGEJIT_DTYPE_INT8 = 5,
  PAGEJIT_DTYPE_INT4 = 6  // -8 to 7; two in a byte, the element of even index in its low half
};

// "f16", "bf16", "f32", "fp8_e4m3", "fp8_e5m2", "int8", "int4"; "unknown" for other numbers.
PAGEJIT_API const char* pagejit_data_type_name(int32_t type);
// Accepts those and the usual other names: half, float16, bfloat16, float, fp8, float8_e4m3fn, ...
PAGEJIT_API pagejit_status pagejit_data_type_parse(const char* text, int32_t* type,
                                                   pagejit_error* error);
// Bytes of an element (of int4, of two), and bits; 0 for other numbers.
PAGEJIT_API int32_t pagejit_data_type_bytes(int32_t type);
PAGEJIT_API int32_t pagejit_data_type_bits(int32_t type);

// ---- Caches ----

// Where the elements of a KV block lie.
enum pagejit_kv_layout {
  // head_size elements of a token and head follow each other; blocks, tokens and heads are
  // anywhere, by pagejit_kv_strides (NHD, HND, interleaved, ...).
  PAGEJIT_KV_LAYOUT_ROWS = 0,
  // vLLM's PagedAttention: K [num_blocks, num_kv_heads, head_size / x, block_size, x] with 16
  // bytes in x elements, V [num_blocks, num_kv_heads, head_size, block_size]; blocks and heads
  // are anywhere, by pagejit_kv_strides.
  PAGEJIT_KV_LAYOUT_VLLM = 1,
  // Rows of PAGEJIT_DS_MLA_ROW_BYTES (vLLM: fp8_ds_mla): 512 codes of e4m3, 4 f32, each the scale
  // of 128 of them, and 64 bf16; strides count bytes. For pagejit_kernel_spec.latent alone.
  PAGEJIT_KV_LAYOUT_DS_MLA = 2
};
#define PAGEJIT_DS_MLA_ROW_BYTES 656

// Strides of one KV cache, in elements (int4: elements too); the head_size elements of a (block,
// token, head) row are contiguous. NHD cache [num_blocks, block_size, num_kv_heads, head_size]:
// {block_size * num_kv_heads * head_size, num_kv_heads * head_size, head_size}. HND cache
// [num_blocks, num_kv_heads, block_size, head_size]: {num_kv_heads * block_size * head_size,
// head_size, block_size * head_size}. Each a multiple of 16 bytes unless the spec asks for less;
// pagejit/launch.h has the exceptions. Part of other structs.
typedef struct pagejit_kv_strides {
  int64_t block;
  int64_t token;  // not looked at where the layout is vLLM's
  int64_t head;
} pagejit_kv_strides;

// ---- Targets ----

enum pagejit_target_kind { PAGEJIT_TARGET_CUDA = 0, PAGEJIT_TARGET_HOST = 1 };

// Which GPUs a cubin runs on: the same major with an equal or higher minor; the GPUs of one family
// ('f'); that compute capability only ('a'). PTX: that compute capability and all later ones.
enum pagejit_target_variant {
  PAGEJIT_TARGET_VARIANT_PLAIN = 0,
  PAGEJIT_TARGET_VARIANT_FAMILY = 1,
  PAGEJIT_TARGET_VARIANT_EXACT = 2,
  PAGEJIT_TARGET_VARIANT_PTX = 3
};

// What a kernel is compiled for.
typedef struct pagejit_target {
  size_t struct_size;
  int32_t kind;  // PAGEJIT_TARGET_*
  // = 90. Compute capability as major * 10 + minor; of the host: the architecture whose tile
  // configuration the kernel takes.
  int32_t sm;
  int32_t variant;   // PAGEJIT_TARGET_VARIANT_*
  int32_t reserved;  // 0
} pagejit_target;

PAGEJIT_API pagejit_status pagejit_target_init(pagejit_target* target, size_t struct_size);
// Accepts "sm_90a", "compute_90", "90a", "9.0", "host", "host_80". INVALID_ARGUMENT for what is no
// target at all.
PAGEJIT_API pagejit_status pagejit_target_parse(const char* text, pagejit_target* target,
                                                pagejit_error* error);
// "sm_90a", "sm_100f", "sm_80", "compute_80" (PTX); "host" (configured as sm_90), "host_80".
PAGEJIT_API pagejit_status pagejit_target_text(const pagejit_target* target, char* buffer,
                                               size_t buffer_size, size_t* length,
                                               pagejit_error* error);

// ---- Kernels ----

// A CUstream. Null is the default stream of the current context.
typedef void* pagejit_stream;

// Where an image came from.
enum pagejit_image_origin {
  PAGEJIT_ORIGIN_MEMORY = 0,
  PAGEJIT_ORIGIN_DISK = 1,  // the cache directory
  PAGEJIT_ORIGIN_COMPILED = 2,
  PAGEJIT_ORIGIN_BUNDLE = 3,
  PAGEJIT_ORIGIN_READ_ONLY_DIRECTORY = 4,
  PAGEJIT_ORIGIN_REMOTE = 5
};
// "memory", "cached", "compiled", "bundle", "read-only directory", "remote"; "unknown".
PAGEJIT_API const char* pagejit_origin_name(int32_t origin);

// With their closing zeros; longer names are cut off.
#define PAGEJIT_KERNEL_NAME_SIZE 256
#define PAGEJIT_KEY_SIZE 96

// What is known of a compiled kernel. Numbers are the compiler's own (its log), never estimates.
typedef struct pagejit_kernel_info {
  size_t struct_size;
  char kernel_name[PAGEJIT_KERNEL_NAME_SIZE];
  char key[PAGEJIT_KEY_SIZE];  // name of the cache entry
  pagejit_target target;
  int32_t origin;  // = COMPILED; PAGEJIT_ORIGIN_*
  int32_t reserved;
  double compile_ms;  // of the compile that made the image, whenever that was
  double prepare_ms;  // wall time of the call, compiling or reading included
  size_t image_bytes;
  int32_t registers;  // per thread; 0 for the target "host"
  int32_t spill_store_bytes;
  int32_t spill_load_bytes;
  int32_t stack_bytes;
  int32_t shared_bytes;  // dynamic and static, per CTA
  int32_t threads_per_cta;
  int32_t pdl;    // 0 or 1: launched with programmatic stream serialization
  int32_t tuned;  // 0 or 1: of the tile configuration that a tuned record names, not the planner's
} pagejit_kernel_info;

PAGEJIT_API pagejit_status pagejit_kernel_info_init(pagejit_kernel_info* info, size_t struct_size);

#ifdef __cplusplus
}
#endif
