#include "pagejit/kernel_handle.h"

namespace pagejit {

const KernelInfo& KernelHandle::info() const {
  static const KernelInfo empty;
  return info_ != nullptr ? *info_ : empty;
}

std::string_view origin_name(ImageOrigin origin) {
  switch (origin) {
    case ImageOrigin::kMemory:
      return "memory";
    case ImageOrigin::kDisk:
      return "cached";
    case ImageOrigin::kCompiled:
      return "compiled";
    case ImageOrigin::kBundle:
      return "bundle";
    case ImageOrigin::kReadOnlyDirectory:
      return "read-only directory";
    case ImageOrigin::kRemote:
      return "remote";
  }
  return "unknown";
}

}  // namespace pagejit
