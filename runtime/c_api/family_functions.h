// The C functions that all families of kernels have, as definitions: C has no templates, so each
// name is put together here. For the families' own files, outside of any namespace. What they do is
// in family.h.
#pragma once

#include <algorithm>
#include <new>

#include "runtime/c_api/families.h"
#include "runtime/c_api/family.h"

// The parameters are parts of names and types, which take no parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)

// Of a spec, e.g. pagejit_kernel_spec, and of the arguments of its launches.
#define PAGEJIT_C_SPEC_FUNCTIONS(Family, spec_name, args_name)                                    \
  pagejit_status spec_name##_init(spec_name* spec, size_t struct_size) {                          \
    return pagejit::c_api::init_spec<pagejit::c_api::Family>(spec, struct_size);                  \
  }                                                                                               \
  pagejit_status args_name##_init(args_name* args, size_t struct_size) {                          \
    return pagejit::c_api::init_args<pagejit::c_api::Family>(args, struct_size);                  \
  }                                                                                               \
  pagejit_status spec_name##_validate(const spec_name* spec, pagejit_error* error) {              \
    return pagejit::c_api::spec_validate<pagejit::c_api::Family>(spec, error);                    \
  }                                                                                               \
  pagejit_status spec_name##_supports(const spec_name* spec, const pagejit_target* target,        \
                                      pagejit_error* error) {                                     \
    return pagejit::c_api::spec_supports<pagejit::c_api::Family>(spec, target, error);            \
  }                                                                                               \
  pagejit_status spec_name##_canonical_text(const spec_name* spec, char* buffer,                  \
                                            size_t buffer_size, size_t* length,                   \
                                            pagejit_error* error) {                               \
    return pagejit::c_api::spec_canonical_text<pagejit::c_api::Family>(spec, buffer, buffer_size, \
                                                                       length, error);            \
  }

// Of every handle, e.g. pagejit_kernel.
#define PAGEJIT_C_KERNEL_FUNCTIONS(Family, spec_name, kernel_name, args_name)                    \
  pagejit_status kernel_name##_prepare(pagejit_engine* engine, const spec_name* spec,            \
                                       int32_t device, pagejit_stream stream,                    \
                                       kernel_name** kernel, pagejit_error* error) {             \
    return pagejit::c_api::prepare<pagejit::c_api::Family>(engine, spec, device, stream, kernel, \
                                                           error);                               \
  }                                                                                              \
  pagejit_status kernel_name##_prepare_async(                                                    \
      pagejit_engine* engine, const spec_name* spec, int32_t device,                             \
      const pagejit_prepare_options* options, pagejit_pending** pending, pagejit_error* error) { \
    return pagejit::c_api::prepare_async<pagejit::c_api::Family>(engine, spec, device, options,  \
                                                                 pending, error);                \
  }                                                                                              \
  pagejit_status kernel_name##_wait(const pagejit_pending* pending, kernel_name** kernel,        \
                                    pagejit_error* error) {                                      \
    return pagejit::c_api::wait<pagejit::c_api::Family>(pending, kernel, error);                 \
  }                                                                                              \
  pagejit_status kernel_name##_copy(const kernel_name* kernel, kernel_name** copy,               \
                                    pagejit_error* error) {                                      \
    return pagejit::c_api::copy<pagejit::c_api::Family>(kernel, copy, error);                    \
  }                                                                                              \
  pagejit_status kernel_name##_destroy(kernel_name* kernel, pagejit_error* error) {              \
    return pagejit::c_api::destroy(pagejit::c_api::Family::kKind, kernel, error);                \
  }                                                                                              \
  pagejit_status kernel_name##_launch(const kernel_name* kernel, const args_name* args,          \
                                      pagejit_stream stream, pagejit_error* error) {             \
    return pagejit::c_api::launch<pagejit::c_api::Family>(kernel, args, stream, error);          \
  }

// Of a handle of one kernel.
#define PAGEJIT_C_SINGLE_KERNEL_FUNCTIONS(Family, spec_name, kernel_name)                          \
  pagejit_status kernel_name##_precompile(pagejit_engine* engine, const spec_name* spec,           \
                                          const pagejit_target* target, pagejit_kernel_info* info, \
                                          pagejit_error* error) {                                  \
    return pagejit::c_api::precompile<pagejit::c_api::Family>(engine, spec, target, error, info);  \
  }                                                                                                \
  pagejit_status kernel_name##_render(const pagejit_engine* engine, const spec_name* spec,         \
                                      const pagejit_target* target, char* buffer,                  \
                                      size_t buffer_size, size_t* length, pagejit_error* error) {  \
    return pagejit::c_api::render<pagejit::c_api::Family>(engine, spec, target, buffer,            \
                                                          buffer_size, length, error);             \
  }                                                                                                \
  pagejit_status kernel_name##_get_info(const kernel_name* kernel, pagejit_kernel_info* info,      \
                                        pagejit_error* error) {                                    \
    return pagejit::c_api::get_info<pagejit::c_api::Family>(kernel, error, info);                  \
  }

#define PAGEJIT_C_GET_SPEC_FUNCTION(Family, spec_name, kernel_name)                 \
  pagejit_status kernel_name##_get_spec(const kernel_name* kernel, spec_name* spec, \
                                        pagejit_error* error) {                     \
    return pagejit::c_api::get_spec<pagejit::c_api::Family>(kernel, spec, error);   \
  }

#define PAGEJIT_C_DEBUG_REPORT_FUNCTIONS(Family, kernel_name)                                   \
  pagejit_status kernel_name##_init_debug_report(const kernel_name* kernel, void* report,       \
                                                 pagejit_stream stream, pagejit_error* error) { \
    return pagejit::c_api::init_debug_report<pagejit::c_api::Family>(kernel, report, stream,    \
                                                                     error);                    \
  }                                                                                             \
  pagejit_status kernel_name##_read_debug_report(const kernel_name* kernel, void* report,       \
                                                 pagejit_stream stream, pagejit_error* error) { \
    return pagejit::c_api::read_debug_report<pagejit::c_api::Family>(kernel, report, stream,    \
                                                                     error);                    \
  }

// Of a handle whose reports are in its workspace.
#define PAGEJIT_C_WORKSPACE_FUNCTIONS(Family, kernel_name)                                         \
  pagejit_status kernel_name##_workspace_init(const kernel_name* kernel, void* workspace,          \
                                              size_t workspace_bytes, pagejit_stream stream,       \
                                              pagejit_error* error) {                              \
    return pagejit::c_api::workspace_init<pagejit::c_api::Family>(kernel, workspace,               \
                                                                  workspace_bytes, stream, error); \
  }                                                                                                \
  pagejit_status kernel_name##_read_debug_report(const kernel_name* kernel, void* workspace,       \
                                                 pagejit_stream stream, pagejit_error* error) {    \
    return pagejit::c_api::read_debug_report<pagejit::c_api::Family>(kernel, workspace, stream,    \
                                                                     error);                       \
  }

// NOLINTEND(bugprone-macro-parentheses)
