// Turns an invalid memory access or integer division of a kernel into a finding that aborts the launch, not the
// process. The handlers of SIGSEGV, SIGBUS and SIGFPE are installed during a launch. They run on an alternate stack,
// since the fiber's may have overflowed, and only redirect the OS thread to Worker::abandon_after_fault on a second
// spare stack: outside the signal context, where allocating memory and switching fibers are allowed.
#pragma once
#include <signal.h>

#include <cstddef>
#include <memory>

namespace tile2cu::engine {

// Process-wide, for the duration of a launch. Faults outside kernels are forwarded to the previous handlers.
class CrashHandlers {
 public:
  CrashHandlers();
  ~CrashHandlers();
  CrashHandlers(const CrashHandlers&) = delete;
  CrashHandlers& operator=(const CrashHandlers&) = delete;
};

// The two spare stacks of an OS thread that runs kernels.
class CrashStacks {
 public:
  CrashStacks();
  ~CrashStacks();
  CrashStacks(const CrashStacks&) = delete;
  CrashStacks& operator=(const CrashStacks&) = delete;
  // The top of the stack on which abandon_after_fault runs.
  void* top_of_second() const { return memory_.get() + 2 * bytes; }

 private:
  static constexpr std::size_t bytes = std::size_t(128) << 10;
  std::unique_ptr<char[]> memory_;
  stack_t before_{};
};

}  // namespace tile2cu::engine
