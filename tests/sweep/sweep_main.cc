#include "tests/sweep/sweep_main.h"

#include <gtest/gtest.h>

#include <string_view>

namespace pagejit {
namespace {

bool all_given = false;

}  // namespace

bool run_all() { return all_given; }

}  // namespace pagejit

int main(int argc, char** argv) {
  // GoogleTest makes the list of cases in InitGoogleTest.
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--all") pagejit::all_given = true;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
