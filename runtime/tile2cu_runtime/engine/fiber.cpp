#include "fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#if defined(TILE2CU_ASSEMBLY_FIBERS)
extern "C" void tile2cu_engine_switch(void** save_stack_pointer, void* load_stack_pointer);

#if defined(__x86_64__)
// System V ABI: saves the callee-saved registers on the old stack, and restores those on the new one.
asm(R"(
.text
.globl tile2cu_engine_switch
.hidden tile2cu_engine_switch
.type tile2cu_engine_switch, @function
tile2cu_engine_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tile2cu_engine_switch, .-tile2cu_engine_switch
)");
#else
// AAPCS64: x19..x30 and the low halves of v8..v15.
asm(R"(
.text
.globl tile2cu_engine_switch
.hidden tile2cu_engine_switch
.type tile2cu_engine_switch, %function
tile2cu_engine_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size tile2cu_engine_switch, .-tile2cu_engine_switch
)");
#endif
#endif

namespace tile2cu::engine {

#if !defined(TILE2CU_ASSEMBLY_FIBERS)

void prepare_fiber(Fiber& fiber, char* stack, std::size_t stack_bytes, void (*entry)()) {
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = stack;
  fiber.context.uc_stack.ss_size = stack_bytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, entry, 0);
}

#elif defined(__x86_64__)

void prepare_fiber(Fiber& fiber, char* stack, std::size_t stack_bytes, void (*entry)()) {
  const auto end = (reinterpret_cast<std::uintptr_t>(stack) + stack_bytes) & ~std::uintptr_t(15);
  auto** top = reinterpret_cast<void**>(end) - 8;
  *--top = nullptr;                         // the return address of entry, which never returns
  *--top = reinterpret_cast<void*>(entry);  // the switch returns to it, with the stack aligned as after a call
  for (int saved = 0; saved < 6; ++saved) *--top = nullptr;
  fiber.stack_pointer = top;
}

#else

void prepare_fiber(Fiber& fiber, char* stack, std::size_t stack_bytes, void (*entry)()) {
  const auto end = (reinterpret_cast<std::uintptr_t>(stack) + stack_bytes) & ~std::uintptr_t(15);
  auto** top = reinterpret_cast<void**>(end) - 20;
  for (int saved = 0; saved < 20; ++saved) top[saved] = nullptr;
  top[11] = reinterpret_cast<void*>(entry);  // x30, the link register
  fiber.stack_pointer = top;
}

#endif

#if defined(TILE2CU_ASSEMBLY_FIBERS)
void switch_fiber(Fiber& from, Fiber& to) { tile2cu_engine_switch(&from.stack_pointer, to.stack_pointer); }
#else
void switch_fiber(Fiber& from, Fiber& to) { swapcontext(&from.context, &to.context); }
#endif

FiberStacks::~FiberStacks() {
  if (memory_) munmap(memory_, std::size_t(count_) * stack_bytes);
}

void FiberStacks::reserve(int stacks) {
  if (stacks <= count_) return;
  if (memory_) munmap(memory_, std::size_t(count_) * stack_bytes);
  memory_ = nullptr;
  count_ = 0;
  void* memory = mmap(nullptr, std::size_t(stacks) * stack_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<char*>(memory);
  count_ = stacks;
  for (int number = 0; number < stacks; ++number) {
    mprotect(memory_ + std::size_t(number) * stack_bytes, guard_bytes, PROT_NONE);
  }
}

}  // namespace tile2cu::engine
