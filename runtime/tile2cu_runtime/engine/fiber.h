// Stack switching within an OS thread.
// A switch takes about 10 ns in assembly (x86-64, aarch64) and 200 ns by ucontext, which makes two system calls for the
// signal mask; a GEMM tile needs 80,000 switches.
#pragma once
#include <cstddef>

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(TILE2CU_PORTABLE_FIBERS)
#define TILE2CU_ASSEMBLY_FIBERS 1
#else
#include <ucontext.h>
#endif

namespace tile2cu::engine {

// A suspended execution context.
struct Fiber {
#if defined(TILE2CU_ASSEMBLY_FIBERS)
  void* stack_pointer = nullptr;
#else
  ucontext_t context{};
#endif
};

// Prepares `fiber` to start `entry` on the given stack. `entry` must not return.
void prepare_fiber(Fiber& fiber, char* stack, std::size_t stack_bytes, void (*entry)());

// Saves the running context into `from` and resumes `to`.
void switch_fiber(Fiber& from, Fiber& to);

// Stacks of equal size in one mapping, each above guard pages, as many as large frames may skip. The mapping grows on
// demand and is kept between blocks.
class FiberStacks {
 public:
  static constexpr std::size_t guard_bytes = std::size_t(64) << 10;
  static constexpr std::size_t stack_bytes = (std::size_t(256) << 10) + guard_bytes;
  FiberStacks() = default;
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;
  ~FiberStacks();
  void reserve(int stacks);
  // The first of usable_bytes usable bytes. Starts are staggered, so that equal frames of a warp's threads map to
  // different cache sets.
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
