// Conversions of what all families share: targets, strides, what is known of a kernel.
// Thread-safety: pure functions.
#pragma once

#include "pagejit/kernel_handle.h"
#include "pagejit/launch.h"
#include "pagejit/target.h"
#include "runtime/c_api/structs.h"

namespace pagejit::c_api {

Status to_cpp(const pagejit_target* from, Target* to);
// With its struct_size.
pagejit_target to_c(const Target& from);
pagejit_kernel_info to_c(const KernelInfo& from);

inline KvStrides to_cpp(const pagejit_kv_strides& from) {
  return {.block = from.block, .token = from.token, .head = from.head};
}

}  // namespace pagejit::c_api
