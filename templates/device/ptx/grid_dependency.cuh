// On which grids depend that are launched with programmatic stream serialization. sm_90 and later.
#pragma once

namespace dev {

PAGEJIT_DEVICE void grid_dependency_wait() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

PAGEJIT_DEVICE void grid_dependency_launch() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace dev
