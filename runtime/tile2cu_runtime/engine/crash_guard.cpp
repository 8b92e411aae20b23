#include "crash_guard.h"

#include <ucontext.h>

#include <cstdint>

#include "worker.h"

namespace tile2cu::engine {
namespace {

constexpr int signals[] = {SIGSEGV, SIGBUS, SIGFPE};
struct sigaction before[NSIG];

void restore(int signal) { sigaction(signal, &before[signal], nullptr); }

#if defined(__x86_64__) || defined(__aarch64__)

void go_on_in_worker() { current_worker().abandon_after_fault(); }

// Returns the site of the fault, and redirects the thread to `function` on another stack when the handler returns.
Site redirect(ucontext_t& context, void (*function)(), void* stack_top) {
  const auto top = reinterpret_cast<std::uintptr_t>(stack_top) & ~std::uintptr_t(63);
#if defined(__x86_64__)
  auto& registers = context.uc_mcontext.gregs;
  const auto site = reinterpret_cast<Site>(registers[REG_RIP] + 1);  // sites are return addresses
  registers[REG_RIP] = greg_t(reinterpret_cast<std::uintptr_t>(function));
  registers[REG_RSP] = greg_t(top - 8);  // as after a call
#else
  auto& machine = context.uc_mcontext;
  const auto site = reinterpret_cast<Site>(machine.pc + 4);
  machine.pc = reinterpret_cast<std::uintptr_t>(function);
  machine.sp = top;
#endif
  return site;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  Worker* worker = active_worker;
  if (!worker || !worker->running) {  // not a kernel's: restore the handler; the instruction faults again
    restore(signal);
    return;
  }
  worker->running = false;
  worker->fault_signal = signal;
  worker->fault_address = info->si_addr;
  worker->fault_site =
      redirect(*static_cast<ucontext_t*>(context), go_on_in_worker, worker->crash_stacks.top_of_second());
}

#else

void on_fault(int signal, siginfo_t*, void*) { restore(signal); }

#endif

}  // namespace

CrashHandlers::CrashHandlers() {
  struct sigaction ours{};
  ours.sa_sigaction = on_fault;
  // SA_NODEFER: the handler does not return to the interrupted code, so the signal must not stay blocked.
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (const int each : signals) sigaction(each, &ours, &before[each]);
}

CrashHandlers::~CrashHandlers() {
  for (const int each : signals) restore(each);
}

CrashStacks::CrashStacks() : memory_(new char[2 * bytes]) {
  stack_t ours{};
  ours.ss_sp = memory_.get();
  ours.ss_size = bytes;
  sigaltstack(&ours, &before_);
}

CrashStacks::~CrashStacks() { sigaltstack(&before_, nullptr); }

}  // namespace tile2cu::engine
