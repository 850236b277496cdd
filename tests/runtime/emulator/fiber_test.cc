// Switching between stacks, which has code of its own for each processor.
#include "runtime/emulator/fiber.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace pagejit_emulator {
namespace {

constexpr int kFibers = 3;
constexpr int kRounds = 100;

FiberContext main_context;
FiberContext fibers[kFibers];
int running = -1;
std::vector<int> order;
double sums[kFibers];
uintptr_t worst_alignment = 0;

// Values that live across switches: integers and floating-point numbers in callee-saved registers,
// and a local array on the fiber's own stack.
void run() {
  const int self = running;
  enter_fiber(&fibers[self]);
  alignas(16) volatile int local[16] = {};
  worst_alignment |= reinterpret_cast<uintptr_t>(&local) % 16;
  double sum = 0.5 * self;
  for (int round = 0; round < kRounds; ++round) {
    order.push_back(self);
    sum += round;
    local[round % 16] = local[round % 16] + self;
    switch_fiber(&fibers[self], &main_context);
  }
  for (const volatile int& value : local) sum += 1000.0 * value;
  sums[self] = sum;
  switch_fiber(&fibers[self], &main_context, /*from_ends=*/true);
}

TEST(FiberTest, EachKeepsItsStackAndRegistersThroughSwitches) {
  StackPool pool;
  unsigned char* stacks[kFibers];
  for (int i = 0; i < kFibers; ++i) {
    stacks[i] = pool.take();
    ASSERT_NE(stacks[i], nullptr);
    prepare_fiber(&fibers[i], stacks[i], run);
  }
  for (int round = 0; round <= kRounds; ++round) {
    for (running = 0; running < kFibers; ++running) switch_fiber(&main_context, &fibers[running]);
  }
  ASSERT_EQ(order.size(), static_cast<size_t>(kFibers * kRounds));
  for (int i = 0; i < kFibers * kRounds; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i % kFibers);
  for (int i = 0; i < kFibers; ++i) {
    EXPECT_EQ(sums[i], 0.5 * i + 0.5 * kRounds * (kRounds - 1) + 1000.0 * i * kRounds) << i;
    pool.give_back(stacks[i]);
  }
  EXPECT_EQ(worst_alignment, 0u);
}

}  // namespace
}  // namespace pagejit_emulator
