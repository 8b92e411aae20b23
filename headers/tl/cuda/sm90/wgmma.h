// wgmma: products of 64 rows by a warpgroup, operands in shared memory, accumulators in registers.
// [PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions: wgmma.mma_async"]
#pragma once
#include "../memory.h"
#include "../numeric.h"

namespace tl {

// How wgmma finds an operand with 128-byte swizzle: address, leading and stride byte offset in units of 16, and the
// mode in bits 62-63. For a K-major tile of 128-byte rows: leading 16, stride 1024 (8 rows); 16 elements of K further
// is + 2.  [Matrix Descriptor Format]
TL_DEVICE uint64_t wgmma_descriptor(const void* p, int leading_bytes, int stride_bytes) {
  const uint64_t address = (shared_address(p) & 0x3ffff) >> 4;
  return address | uint64_t(leading_bytes / 16) << 16 | uint64_t(stride_bytes / 16) << 32 | uint64_t(1) << 62;
}

// Who, for all of these: every thread of the warpgroup.
// Before the first wgmma of a group, and after registers that it uses were written.
TL_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TL_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most n groups are in flight.
template <int n> TL_DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory"); }

// Registers a thread may use from here on (24..256, a multiple of 8): fewer for producers, more for consumers. Who:
// every warp of a warpgroup, in a kernel with __launch_bounds__(threads, 1).  [setmaxnreg]
template <int n> TL_DEVICE void give_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n)); }
template <int n> TL_DEVICE void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n)); }

// d = a * b, or += when `accumulate`: m64nNk16, a and b K-major with 128-byte swizzle. Register i of thread t holds row
// 16 * (t / 32) + t % 32 / 4 + 8 * (i / 2 % 2), column 8 * (i / 4) + 2 * (t % 4) + i % 2.  [Register Fragments, D]
template <int n> TL_DEVICE void wgmma_m64k16(float (&d)[n / 2], uint64_t a, uint64_t b, bool accumulate, half);
template <int n> TL_DEVICE void wgmma_m64k16(float (&d)[n / 2], uint64_t a, uint64_t b, bool accumulate, bfloat16);

#define TL_ACCUMULATORS_4(d, i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define TL_ACCUMULATORS_16(d, i) \
  TL_ACCUMULATORS_4(d, i), TL_ACCUMULATORS_4(d, (i) + 4), TL_ACCUMULATORS_4(d, (i) + 8), TL_ACCUMULATORS_4(d, (i) + 12)
#define TL_ACCUMULATORS_32(d, i) TL_ACCUMULATORS_16(d, i), TL_ACCUMULATORS_16(d, (i) + 16)

template <> TL_DEVICE void wgmma_m64k16<64>(float (&d)[32], uint64_t a, uint64_t b, bool accumulate, half) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, %32, %33, p, 1, 1, 0, 0;\n}"
      : TL_ACCUMULATORS_32(d, 0)
      : "l"(a), "l"(b), "r"(int(accumulate)));
}
template <> TL_DEVICE void wgmma_m64k16<64>(float (&d)[32], uint64_t a, uint64_t b, bool accumulate, bfloat16) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, %32, %33, p, 1, 1, 0, 0;\n}"
      : TL_ACCUMULATORS_32(d, 0)
      : "l"(a), "l"(b), "r"(int(accumulate)));
}
template <> TL_DEVICE void wgmma_m64k16<128>(float (&d)[64], uint64_t a, uint64_t b, bool accumulate, half) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, %64, %65, p, 1, 1, 0, 0;\n}"
      : TL_ACCUMULATORS_32(d, 0), TL_ACCUMULATORS_32(d, 32)
      : "l"(a), "l"(b), "r"(int(accumulate)));
}
template <> TL_DEVICE void wgmma_m64k16<128>(float (&d)[64], uint64_t a, uint64_t b, bool accumulate, bfloat16) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, %64, %65, p, 1, 1, 0, 0;\n}"
      : TL_ACCUMULATORS_32(d, 0), TL_ACCUMULATORS_32(d, 32)
      : "l"(a), "l"(b), "r"(int(accumulate)));
}
template <> TL_DEVICE void wgmma_m64k16<256>(float (&d)[128], uint64_t a, uint64_t b, bool accumulate, half) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
      "}, %128, %129, p, 1, 1, 0, 0;\n}"
      : TL_ACCUMULATORS_32(d, 0), TL_ACCUMULATORS_32(d, 32), TL_ACCUMULATORS_32(d, 64), TL_ACCUMULATORS_32(d, 96)
      : "l"(a), "l"(b), "r"(int(accumulate)));
}
template <> TL_DEVICE void wgmma_m64k16<256>(float (&d)[128], uint64_t a, uint64_t b, bool accumulate, bfloat16) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
      "}, %128, %129, p, 1, 1, 0, 0;\n}"
      : TL_ACCUMULATORS_32(d, 0), TL_ACCUMULATORS_32(d, 32), TL_ACCUMULATORS_32(d, 64), TL_ACCUMULATORS_32(d, 96)
      : "l"(a), "l"(b), "r"(int(accumulate)));
}

#undef TL_ACCUMULATORS_4
#undef TL_ACCUMULATORS_16
#undef TL_ACCUMULATORS_32

}  // namespace tl
