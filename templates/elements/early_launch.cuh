// The begin of a kernel that may be on the SMs before the one ahead of it in the stream has ended
// (programmatic dependent launch).
#pragma once

PAGEJIT_DEVICE void begin_behind_previous_grid() {
  // Before any access: all global memory, the workspace with its counters too, may still be written.
  dev::grid_dependency_wait();
  // The next kernel may come now: it waits for this grid's end itself. After the wait, so that no
  // more than one kernel stands behind a running one, and the end of this grid tells the next one
  // that those before it have ended too.
  dev::grid_dependency_launch();
}
