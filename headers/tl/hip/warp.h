// Wave collectives. Called by: every lane of the wave, at the same call. They do not order memory.
#pragma once
#include "../threads.h"
#include "memory.h"

namespace tl {

namespace hip {
// Applies `move` to each 32-bit word of the value.
template <class T, class Move> TL_DEVICE T moved(T value, const Move& move) {
  static_assert(sizeof(T) % 4 == 0 || sizeof(T) < 3, "a shuffled value has 1 or 2 bytes, or a multiple of 4");
  constexpr int words = (sizeof(T) + 3) / 4;
  int bits[words] = {};
  __builtin_memcpy(bits, &value, sizeof(T));
  TL_UNROLL
  for (int word = 0; word < words; ++word) bits[word] = move(bits[word]);
  __builtin_memcpy(&value, bits, sizeof(T));
  return value;
}
// The value of lane `from`. [AMD Instinct MI300 ISA, "DS_BPERMUTE_B32": the lane index times 4]
template <class T> TL_DEVICE T value_of_lane(T value, int from) {
  return moved(value, [&](int word) { return __builtin_amdgcn_ds_bpermute(from * 4, word); });
}

// DPP permutes the lanes of an operand within rows of 16, without the LDS. The compiler can fold it into the
// instruction that uses the result. [AMD Instinct MI300 ISA, "Data Parallel Processing (DPP)"]
enum Dpp { quad_1032 = 0xb1, quad_2301 = 0x4e, quad_3210 = 0x1b, row_rotate_8 = 0x128, row_half_mirror = 0x141 };
template <Dpp control> TL_DEVICE int dpp(int word) { return __builtin_amdgcn_mov_dpp(word, control, 0xf, 0xf, true); }

// The word of lane() ^ mask for mask 16 or 32: two copies swap groups of `mask` lanes, after which the first holds the
// words of the even groups, the second those of the odd groups. [AMD CDNA4 ISA, "V_PERMLANE16_SWAP_B32",
// "V_PERMLANE32_SWAP_B32"]
#if defined(__gfx950__)
constexpr bool swaps_lanes(int mask) { return mask == 16 || mask == 32; }
TL_DEVICE int swapped(int word, int mask) {
  const auto both = mask == 16 ? __builtin_amdgcn_permlane16_swap(word, word, false, false)
                               : __builtin_amdgcn_permlane32_swap(word, word, false, false);
  return static_cast<int>(lane() & mask ? both[0] : both[1]);
}
#else
constexpr bool swaps_lanes(int) { return false; }
TL_DEVICE int swapped(int word, int) { return word; }
#endif

// The word of lane() ^ mask without ds_bpermute, for masks that DPP, ds_swizzle or permlane swaps support. `mask` is a
// compile-time constant after inlining. [AMD Instinct MI300 ISA, "DS_SWIZZLE_B32", bit mode: xor mask in bits 10 to 14]
constexpr bool has_short_way(int mask) {
  return mask == 1 || mask == 2 || mask == 4 || mask == 8 || mask == 16 || swaps_lanes(mask);
}
TL_DEVICE int exchanged(int word, int mask) {
  if (mask == 1) return dpp<quad_1032>(word);
  if (mask == 2) return dpp<quad_2301>(word);
  if (mask == 4) return dpp<row_half_mirror>(dpp<quad_3210>(word));  // 7 ^ 3
  if (mask == 8) return dpp<row_rotate_8>(word);
  if (swaps_lanes(mask)) return swapped(word, mask);
  return __builtin_amdgcn_ds_swizzle(word, 16 << 10 | 0x1f);
}
}  // namespace hip

// The value of another lane: lane() ^ mask, a given lane, the lane `delta` below (up) or above (down). Lanes are
// exchanged within groups of `width`, a power of two; past the edge a lane receives its own value.
template <int width = warp_size, class T> TL_DEVICE T shuffle(T value, int lane_) {
  return hip::value_of_lane(value, (lane() & ~(width - 1)) | (lane_ & (width - 1)));
}
template <int width = warp_size, class T> TL_DEVICE T shuffle_xor(T value, int mask) {
  if (__builtin_constant_p(mask) && hip::has_short_way(mask) && mask < width)
    return hip::moved(value, [&](int word) { return hip::exchanged(word, mask); });
  const int from = lane() ^ mask;
  return hip::value_of_lane(value, from > (lane() | (width - 1)) ? lane() : from);
}
template <int width = warp_size, class T> TL_DEVICE T shuffle_up(T value, int delta) {
  return hip::value_of_lane(value, lane() % width < delta ? lane() : lane() - delta);
}
template <int width = warp_size, class T> TL_DEVICE T shuffle_down(T value, int delta) {
  return hip::value_of_lane(value, lane() % width + delta < width ? lane() + delta : lane());
}

// Bit l is set if lane l's predicate is true.
TL_DEVICE uint64_t ballot(bool predicate) { return __builtin_amdgcn_ballot_w64(predicate); }
// match_any: the lanes with the same value as this one. match_all: all lanes if they have the same value, else 0.
template <class T> TL_DEVICE uint64_t match_any(T value) {
  uint64_t same = 0;
  for (int l = 0; l < warp_size; ++l) same |= uint64_t(shuffle(value, l) == value) << l;
  return same;
}
template <class T> TL_DEVICE uint64_t match_all(T value) {
  return ballot(shuffle(value, 0) != value) == 0 ? ballot(true) : 0;
}

#define TL_HIP_LACKS_LDMATRIX(name)                                                                \
  template <class Row> TL_DEVICE void name(uint32_t*, const Row*) {                                \
    static_assert(hip::lacks<Row>, "CDNA has no ldmatrix: each lane loads its own MFMA operands"); \
  }
TL_HIP_LACKS_LDMATRIX(ldmatrix_x4)
TL_HIP_LACKS_LDMATRIX(ldmatrix_x4_trans)
TL_HIP_LACKS_LDMATRIX(ldmatrix_x2)
TL_HIP_LACKS_LDMATRIX(ldmatrix_x2_trans)
#undef TL_HIP_LACKS_LDMATRIX

// first_set: the 1-based position of the lowest set bit, 0 if there is none. popcount: the number of set bits.
TL_DEVICE int first_set(uint32_t bits) { return __builtin_ffs(static_cast<int>(bits)); }
TL_DEVICE int first_set(uint64_t bits) { return __builtin_ffsll(static_cast<long long>(bits)); }
TL_DEVICE uint32_t popcount(uint32_t bits) { return static_cast<uint32_t>(__builtin_popcount(bits)); }
TL_DEVICE uint64_t popcount(uint64_t bits) { return static_cast<uint64_t>(__builtin_popcountll(bits)); }

}  // namespace tl
