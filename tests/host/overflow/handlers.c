/* What audit.py links to a kernel: what g++'s -fsanitize=signed-integer-overflow,integer-divide-by-zero,shift-exponent
 * calls, and memory and options for runs at extreme sizes.
 *
 * Each place that overflows writes one line to `overflow_file`: FILE:LINE:COLUMN, the operation, its operands' bits, and
 * the address in the library. libubsan would need to be loaded before the process starts.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <tl/host/engine.h>
#include <unistd.h>

int overflow_file = 2;

struct place { /* [GCC, ubsan_source_location_type] */
  const char* file;
  uint32_t line, column;
};

static void found(struct place* at, const char* what, uintptr_t lhs, uintptr_t rhs, const void* caller) {
  if (at->column == UINT32_MAX) return; /* reported already */
  Dl_info library = {0};
  dladdr(caller, &library);
  char text[1024];
  const int length = snprintf(text, sizeof text, "%s:%u:%u\t%s\t%lx\t%lx\t%lx\n", at->file, at->line, at->column, what,
                              (unsigned long)lhs, (unsigned long)rhs,
                              (unsigned long)((uintptr_t)caller - (uintptr_t)library.dli_fbase));
  at->column = UINT32_MAX;
  if (write(overflow_file, text, (size_t)length) != length) _exit(3);
}

#define HANDLER(name)                                                         \
  void __ubsan_handle_##name(void* data, uintptr_t lhs, uintptr_t rhs) {      \
    found((struct place*)data, #name, lhs, rhs, __builtin_return_address(0)); \
  }
HANDLER(add_overflow)
HANDLER(sub_overflow)
HANDLER(mul_overflow)
HANDLER(divrem_overflow)
HANDLER(shift_out_of_bounds)
void __ubsan_handle_negate_overflow(void* data, uintptr_t value) {
  found((struct place*)data, "negate_overflow", value, 0, __builtin_return_address(0));
}

/* Memory of zeros that takes only the pages that a kernel writes. Behind its last element, and in front of the first
 * page, no access is possible. Null if there is no address space. */
void* sparse_memory(size_t bytes) {
  const size_t page = 4096, pages = (bytes + page - 1) / page * page;
  char* const all = mmap(NULL, pages + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return NULL;
  if (pages && mprotect(all + page, pages, PROT_READ | PROT_WRITE)) return NULL;
  if (pages) madvise(all + page, pages, MADV_NOHUGEPAGE);
  return all + page + (pages - bytes) / 256 * 256; /* aligned like memory of cudaMalloc */
}

/* So many blocks of each launch run, spread evenly, the first and the last among them. */
void run_few_blocks(int most) {
  tl_engine_options options = {0};
  options.workers = 1;
  options.most_blocks = most;
  tl_engine_set_options(&options);
}
