#include "crash_guard.h"

#include <ucontext.h>

#include <cstdint>

#include "worker.h"

namespace tile2cu::engine {
namespace {

struct sigaction before_segv, before_bus;

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
  if (!worker || !worker->running) {  // not a kernel's: restore the handlers; the access faults again
    sigaction(signal, signal == SIGSEGV ? &before_segv : &before_bus, nullptr);
    return;
  }
  worker->running = false;
  worker->fault_address = info->si_addr;
  worker->fault_site =
      redirect(*static_cast<ucontext_t*>(context), go_on_in_worker, worker->crash_stacks.top_of_second());
}

#else

void on_fault(int signal, siginfo_t*, void*) {
  sigaction(signal, signal == SIGSEGV ? &before_segv : &before_bus, nullptr);
}

#endif

}  // namespace

CrashHandlers::CrashHandlers() {
  struct sigaction ours{};
  ours.sa_sigaction = on_fault;
  // SA_NODEFER: the handler does not return to the interrupted code, so the signal must not stay blocked.
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, &ours, &before_segv);
  sigaction(SIGBUS, &ours, &before_bus);
}

CrashHandlers::~CrashHandlers() {
  sigaction(SIGSEGV, &before_segv, nullptr);
  sigaction(SIGBUS, &before_bus, nullptr);
}

CrashStacks::CrashStacks() : memory_(new char[2 * bytes]) {
  stack_t ours{};
  ours.ss_sp = memory_.get();
  ours.ss_size = bytes;
  sigaltstack(&ours, &before_);
}

CrashStacks::~CrashStacks() { sigaltstack(&before_, nullptr); }

}  // namespace tile2cu::engine
