#include "runtime/engine/argument_check.h"

#include <utility>

#include "runtime/format.h"

namespace pagejit {

Status invalid(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

Status bad_pointer(const char* name, const void* pointer, uintptr_t alignment) {
  if (pointer == nullptr) return invalid(format("{} is null: must be a device pointer", name));
  return invalid(format("{} is {}: must be aligned to {} bytes", name, pointer, alignment));
}

Status empty_handle() {
  return invalid("the Kernel is empty: launch one that Engine::prepare() returned");
}

Status bad_workspace(const void* workspace, size_t bytes, size_t needed, std::string_view launch) {
  std::string message;
  if (workspace == nullptr) {
    message = "workspace is null";
  } else if (bytes < needed) {
    message = format("workspace_bytes {}: too small", bytes);
  } else {
    message = format("workspace is {}: must be aligned to {} bytes", workspace, kWorkspaceAlign);
  }
  return Status(StatusCode::kWorkspace, format("{}; {} needs {} bytes", message, launch, needed));
}

Status check_stride(const char* name, int64_t stride, int vector_elements) {
  if (stride % vector_elements == 0) return {};
  return invalid(format("{} {}: must be a multiple of {} elements", name, stride, vector_elements));
}

Status check_tensor(pagejit_shared::Element element, int vector_elements,
                    const TensorArgument& tensor) {
  const auto bytes = pagejit_shared::elements_bytes(element, vector_elements);
  Status status = check_pointer(tensor.name, tensor.pointer, static_cast<uintptr_t>(bytes));
  for (const auto& [name, stride] : tensor.strides) {
    if (status) status = check_stride(name, stride, vector_elements);
  }
  return status;
}

Status check_multiple(const char* name, int64_t value, int unit) {
  if (value % unit == 0) return {};
  return invalid(format("{} {}: must be a multiple of {}", name, value, unit));
}

Status check_count(const char* name, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return invalid(format("{} {}: must be in [{}, {}]", name, value, low, high));
}

}  // namespace pagejit
