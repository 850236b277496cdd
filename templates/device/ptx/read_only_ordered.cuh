// Loads of what no thread of this launch writes, but perhaps the kernel before it, which may still
// run: ordinary loads, which neither compiler moves to the front of grid_dependency_wait().
#pragma once

namespace dev {

template <class T>
PAGEJIT_DEVICE T load_global_nc(const T* p) {
  return load_global(p);
}

}  // namespace dev
