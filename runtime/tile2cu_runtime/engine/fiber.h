// Switching between stacks of one OS thread.
//
// A switch costs about 10 ns in assembly (x86-64, aarch64) and 200 ns through ucontext, which asks the kernel for the
// signal mask twice; a tile of a GEMM needs 80 thousand of them.
#pragma once
#include <cstddef>

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(TILE2CU_PORTABLE_FIBERS)
#define TILE2CU_ASSEMBLY_FIBERS 1
#else
#include <ucontext.h>
#endif

namespace tile2cu::engine {

// A suspended flow of control.
struct Fiber {
#if defined(TILE2CU_ASSEMBLY_FIBERS)
  void* stack_pointer = nullptr;
#else
  ucontext_t context{};
#endif
};

// Makes `fiber` start `entry` on the given stack. `entry` must never return.
void prepare_fiber(Fiber& fiber, char* stack, std::size_t stack_bytes, void (*entry)());

// Suspends the running flow into `from` and resumes `to`.
void switch_fiber(Fiber& from, Fiber& to);

// Equal stacks in one mapping, each above pages that fault (many: a large frame must not step over them). Grows on
// demand, is kept between blocks.
class FiberStacks {
 public:
  static constexpr std::size_t guard_bytes = std::size_t(64) << 10;
  static constexpr std::size_t stack_bytes = (std::size_t(256) << 10) + guard_bytes;
  FiberStacks() = default;
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;
  ~FiberStacks();
  void reserve(int stacks);
  // First usable byte; usable_bytes of them. Starts are staggered, so that equal frames of a warp's 32 threads do not
  // compete for one set of the cache.
  char* stack(int number) const { return memory_ + std::size_t(number) * stack_bytes + guard_bytes; }
  static std::size_t usable_bytes(int number) { return stack_bytes - guard_bytes - std::size_t(number % 16) * 256; }
  bool contains(const void* address) const {
    return static_cast<const char*>(address) >= memory_ &&
           static_cast<const char*>(address) < memory_ + std::size_t(count_) * stack_bytes;
  }

 private:
  char* memory_ = nullptr;
  int count_ = 0;
};

}  // namespace tile2cu::engine
