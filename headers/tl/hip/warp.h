// Wave collectives. Who: every lane of the wave, at the same call. None of them orders memory.
#pragma once
#include "memory.h"

namespace tl {

// The value of another lane: lane() ^ mask, the given lane, the lane `delta` below (up) or above (down; at the edge a
// lane keeps its own). [AMD Instinct MI300 ISA, "DS_BPERMUTE_B32": the lane's number times 4]
template <class T> TL_DEVICE T shuffle(T value, int lane) {
  static_assert(sizeof(T) % 4 == 0 || sizeof(T) == 2, "a shuffled value has 2 bytes or a multiple of 4");
  constexpr int words = (sizeof(T) + 3) / 4;
  int bits[words] = {};
  __builtin_memcpy(bits, &value, sizeof(T));
  TL_UNROLL
  for (int word = 0; word < words; ++word) bits[word] = __builtin_amdgcn_ds_bpermute(lane * 4, bits[word]);
  __builtin_memcpy(&value, bits, sizeof(T));
  return value;
}
template <class T> TL_DEVICE T shuffle_xor(T value, int mask) { return shuffle(value, lane() ^ mask); }
template <class T> TL_DEVICE T shuffle_up(T value, int delta) {
  return shuffle(value, lane() < delta ? lane() : lane() - delta);
}
template <class T> TL_DEVICE T shuffle_down(T value, int delta) {
  return shuffle(value, lane() + delta < warp_size ? lane() + delta : lane());
}

// Bit l is set when lane l's predicate holds.
TL_DEVICE uint64_t ballot(bool predicate) { return __builtin_amdgcn_ballot_w64(predicate); }

#define TL_HIP_LACKS_LDMATRIX(name)                                                                               \
  template <class Row> TL_DEVICE void name(uint32_t*, const Row*) {                                               \
    static_assert(hip::lacks<Row>, "CDNA has no ldmatrix: operands of its matrix cores are loaded lane by lane"); \
  }
TL_HIP_LACKS_LDMATRIX(ldmatrix_x4)
TL_HIP_LACKS_LDMATRIX(ldmatrix_x4_trans)
TL_HIP_LACKS_LDMATRIX(ldmatrix_x2)
TL_HIP_LACKS_LDMATRIX(ldmatrix_x2_trans)
#undef TL_HIP_LACKS_LDMATRIX

}  // namespace tl
