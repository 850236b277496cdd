#include "pagejit/kernel_handle.h"

namespace pagejit {

const KernelInfo& KernelHandle::info() const {
  static const KernelInfo empty;
  return info_ != nullptr ? *info_ : empty;
}

}  // namespace pagejit
