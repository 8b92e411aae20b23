// Switches between the main flow and fibers, checks that values in callee-saved registers and the floating-point state
// survive, and that a stack is aligned as a call wants it. Exit status 0 when all is well.
#include "fiber.h"

#include <cstdint>
#include <cstdio>

using tile2cu::engine::Fiber;
using tile2cu::engine::FiberStacks;

namespace {

constexpr int fibers = 40, rounds = 1000;
Fiber main_fiber, fiber[fibers];
double results[fibers];
int running = 0;
bool aligned = true;

__attribute__((noinline)) void pause() { switch_fiber(fiber[running], main_fiber); }

void work() {
  const int self = running;
  alignas(16) char here[16];
  aligned &= reinterpret_cast<std::uintptr_t>(here) % 16 == 0;
  double sum = self;
  long a = self, b = self + 1, c = self + 2, d = self + 3, e = self + 4;  // enough to be kept across the switches
  for (int round = 0; round < rounds; ++round) {
    pause();
    sum += 0.5 * double(a + b + c + d + e);
    a++, b++, c++, d++, e++;
  }
  results[self] = sum;
  for (;;) pause();
}

double expected(int self) {
  double sum = self;
  for (int round = 0; round < rounds; ++round) sum += 0.5 * (5.0 * (self + round) + 10.0);
  return sum;
}

}  // namespace

int main() {
  FiberStacks stacks;
  stacks.reserve(fibers);
  for (int number = 0; number < fibers; ++number) {
    prepare_fiber(fiber[number], stacks.stack(number), FiberStacks::usable_bytes(number), work);
  }
  for (int round = 0; round <= rounds; ++round) {
    for (running = 0; running < fibers; ++running) switch_fiber(main_fiber, fiber[running]);
  }
  for (int number = 0; number < fibers; ++number) {
    if (results[number] == expected(number)) continue;
    std::printf("fiber %d: %f, not %f\n", number, results[number], expected(number));
    return 1;
  }
  return aligned ? 0 : 2;
}
