// The checks that launches of all families share: by value only, nothing is dereferenced. The
// sentences are made out of line. Thread-safety: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "pagejit/status.h"
#include "templates/shared/elements.h"

namespace pagejit {

inline constexpr int kMaxGridYZ = 65535;  // CUDA's limit of gridDim.y and gridDim.z
inline constexpr int64_t kMaxGridX = 0x7fffffff;

inline bool misaligned(const void* pointer, uintptr_t alignment) {
  return (reinterpret_cast<uintptr_t>(pointer) & (alignment - 1)) != 0;
}
// Null or misaligned. alignment: a power of two.
inline bool bad(const void* pointer, uintptr_t alignment) {
  return pointer == nullptr || misaligned(pointer, alignment);
}

// kInvalidArgument.
[[gnu::cold]] Status invalid(std::string message);
// Why a pointer is bad().
[[gnu::cold]] Status bad_pointer(const char* name, const void* pointer, uintptr_t alignment);
// A launch of a handle that no prepare() made.
[[gnu::cold]] Status empty_handle();

inline Status check_pointer(const char* name, const void* pointer, uintptr_t alignment) {
  return bad(pointer, alignment) ? bad_pointer(name, pointer, alignment) : Status();
}

// Workspaces of attention, and what lies in their parts.
inline constexpr size_t kWorkspaceAlign = 256;
inline size_t round_up_part(size_t bytes) {
  return (bytes + kWorkspaceAlign - 1) / kWorkspaceAlign * kWorkspaceAlign;
}
inline bool has_workspace(const void* workspace, size_t bytes, size_t needed) {
  return !bad(workspace, kWorkspaceAlign) && bytes >= needed;
}
// kWorkspace: why has_workspace() is false for `launch`, in words.
[[gnu::cold]] Status bad_workspace(const void* workspace, size_t bytes, size_t needed,
                                   std::string_view launch);

// A stride of `elements` must be a multiple of a vector.
Status check_stride(const char* name, int64_t stride, int vector_elements);

// A tensor that is accessed in vectors, with the names of its strides.
struct TensorArgument {
  const char* name;
  const void* pointer;
  std::initializer_list<std::pair<const char*, int64_t>> strides;
};
// That its pointer is aligned to a vector and that its strides are multiples of one.
Status check_tensor(pagejit_shared::Element element, int vector_elements,
                    const TensorArgument& tensor);
// kInvalidArgument "name value: must be a multiple of unit".
Status check_multiple(const char* name, int64_t value, int unit);

// [low, high].
Status check_count(const char* name, int64_t value, int64_t low, int64_t high);

}  // namespace pagejit
