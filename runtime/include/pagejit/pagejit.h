// pagejit's C API: everything that the C++ API does, for programs in C11, C++ and languages that
// call C. This header includes all of it. Thread-safety: handles may be used from any number of
// threads at once; structs are plain values; an error object serves one thread at a time.
//
//   pagejit_error* error = NULL;
//   pagejit_error_create(&error);
//   pagejit_engine* engine = NULL;
//   if (pagejit_engine_create(NULL, &engine, error) != PAGEJIT_OK) {
//     fprintf(stderr, "%s\n", pagejit_error_message(error));
//     return 1;
//   }
//
//   pagejit_kernel_spec spec;
//   pagejit_kernel_spec_init(&spec, sizeof spec);
//   spec.group_size = 4;
//   pagejit_kernel* kernel = NULL;
//   if (pagejit_kernel_prepare(engine, &spec, 0, NULL, &kernel, error) != PAGEJIT_OK) ...
//
//   pagejit_attention_args args;
//   pagejit_attention_args_init(&args, sizeof args);
//   args.q = q;  // and so on
//   if (pagejit_kernel_launch(kernel, &args, stream, error) != PAGEJIT_OK) ...
//
//   pagejit_kernel_destroy(kernel, NULL);
//   pagejit_engine_destroy(engine, NULL);
//   pagejit_error_destroy(error);
//
// Functions return a pagejit_status and take an error object last, which may be null. Outputs are
// written only where a call succeeds, but for `length` below. What returns something else yields 0
// or a text that says so for what is not legal. Nothing is thrown, printed, or ends the process.
// Any function may return INVALID_ARGUMENT, for handles and pointers, and INTERNAL, where there is
// no memory; beside a function stand its own reasons.
//
// Structs begin with struct_size, which _init sets to the size that the caller was compiled with,
// all other fields to their defaults ("= x" where that is not 0). A smaller one than the first
// version's is INVALID_ARGUMENT. A larger one is of a program that was compiled with a newer
// pagejit: it is served if all that this library does not know is 0, else UNSUPPORTED; above 2,048
// bytes it is INVALID_ARGUMENT, taken for memory that was never initialised. What a call fills
// becomes 0 there. New fields come at the end, and 0 in them means what was before. Fields called
// reserved must be 0. Numbers of enumerations never change; fields that hold one, or 0 or 1, are
// int32_t. Structs without struct_size are parts of others and never change; pagejit_target
// neither.
//
// Handles are pointers by type, but their value is no address: do not look behind it. A handle that
// was destroyed, one of another kind, null and any other value are INVALID_ARGUMENT, whatever was
// made since. What a thread destroys while others are in calls with it lives until they have left.
//
// In a forked child an engine of the parent that had opened the driver is DRIVER_UNAVAILABLE where
// the driver is needed; one that another thread was calling is COMPILER_UNAVAILABLE where it would
// compile or load; others work. A pagejit_pending of the parent is CANCELLED. A launch checks
// none of this: CUDA itself fails there.
//
// Texts are UTF-8 or bytes as given, closed by 0. Those that are returned go into the caller's
// buffer: `length` (may be null) gets the length without the closing 0, also where the buffer is
// too small, which is INVALID_ARGUMENT and writes nothing else. A null buffer of size 0 asks for
// the length alone.
#pragma once

#include "pagejit/c/attention.h"
#include "pagejit/c/cache_ops.h"
#include "pagejit/c/cache_write.h"
#include "pagejit/c/cascade.h"
#include "pagejit/c/engine.h"
#include "pagejit/c/index_keys.h"
#include "pagejit/c/indexer.h"
#include "pagejit/c/merge_states.h"
#include "pagejit/c/mla_cache.h"
#include "pagejit/c/paged_attention.h"
#include "pagejit/c/sparse_attention.h"
#include "pagejit/c/spec.h"
#include "pagejit/c/types.h"
