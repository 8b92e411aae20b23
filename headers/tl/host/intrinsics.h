// CUDA's integer and SIMD intrinsics, for inline user code. [CUDA Math API, Integer Intrinsics, SIMD Intrinsics]
#pragma once
#include "kernel.h"

namespace tl {
namespace host {
// Lane-wise operation on four bytes or two 16-bit halves of a word, without carries between lanes.
template <int Bits, class Combine> inline unsigned by_lanes(unsigned a, unsigned b, Combine combine) {
  constexpr unsigned mask = (1u << Bits) - 1;
  unsigned result = 0;
  for (int at = 0; at < 32; at += Bits) result |= (combine(a >> at & mask, b >> at & mask) & mask) << at;
  return result;
}
inline unsigned add(unsigned a, unsigned b) { return a + b; }
inline unsigned subtract(unsigned a, unsigned b) { return a - b; }
}  // namespace host
}  // namespace tl

inline unsigned __vadd4(unsigned a, unsigned b) { return tl::host::by_lanes<8>(a, b, tl::host::add); }
inline unsigned __vsub4(unsigned a, unsigned b) { return tl::host::by_lanes<8>(a, b, tl::host::subtract); }
inline unsigned __vadd2(unsigned a, unsigned b) { return tl::host::by_lanes<16>(a, b, tl::host::add); }
inline unsigned __vsub2(unsigned a, unsigned b) { return tl::host::by_lanes<16>(a, b, tl::host::subtract); }

// Byte permutation: each 4-bit selector selects one of the eight bytes of (y, x); bit 3 replicates its sign bit.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const uint64_t bytes = uint64_t(y) << 32 | x;
  unsigned result = 0;
  for (int at = 0; at < 4; ++at) {
    const unsigned which = selector >> 4 * at & 15;
    const unsigned byte = unsigned(bytes >> 8 * (which & 7)) & 0xff;
    result |= (which & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte) << 8 * at;
  }
  return result;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __umulhi(unsigned x, unsigned y) { return unsigned(uint64_t(x) * y >> 32); }
inline int __mulhi(int x, int y) { return int(int64_t(x) * y >> 32); }
template <class T> inline T __ldg(const T* p) { return *p; }
