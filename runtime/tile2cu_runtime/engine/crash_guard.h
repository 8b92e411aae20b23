// Keeps a kernel's wild access from ending the process: it becomes a finding, and the launch is abandoned.
//
// During a launch SIGSEGV and SIGBUS are ours. The handler runs on a stack of its own (the fiber's may be what
// overflowed) and does nothing but make the OS thread go on in Worker::abandon_after_fault, on a second spare stack:
// outside of the signal context, where allocating memory and switching fibers are allowed.
#pragma once
#include <signal.h>

#include <cstddef>
#include <memory>

namespace tile2cu::engine {

// Process-wide; for the duration of a launch. A fault outside of kernels goes to whoever was there before.
class CrashHandlers {
 public:
  CrashHandlers();
  ~CrashHandlers();
  CrashHandlers(const CrashHandlers&) = delete;
  CrashHandlers& operator=(const CrashHandlers&) = delete;
};

// The two stacks of an OS thread that runs kernels.
class CrashStacks {
 public:
  CrashStacks();
  ~CrashStacks();
  CrashStacks(const CrashStacks&) = delete;
  CrashStacks& operator=(const CrashStacks&) = delete;
  // The highest address of the stack on which abandon_after_fault runs.
  void* top_of_second() const { return memory_.get() + 2 * bytes; }

 private:
  static constexpr std::size_t bytes = std::size_t(128) << 10;
  std::unique_ptr<char[]> memory_;
  stack_t before_{};
};

}  // namespace tile2cu::engine
