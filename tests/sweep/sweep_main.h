// main() of the sweeps, which with --all run more cases than without. It is the main() of every
// program that links sweep_main.cc. Thread-safety: the main thread of a test program.
#pragma once

namespace pagejit {

// Whether --all was given. Known from before GoogleTest makes the list of cases, so for use in
// INSTANTIATE_TEST_SUITE_P.
bool run_all();

}  // namespace pagejit
