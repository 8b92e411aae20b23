// 2-bit numbers, four per byte, and the int8 operands of their dot products: four multiply-adds per instruction.
#pragma once
#include "index.h"
#include "math.h"

namespace tl {

// Four numbers from each of n bytes, the lowest bits first. QuartersLess subtracts `less` from each.
template <int n> struct Quarters {
  Vec<uint8_t, n> bytes;
};
template <int n> struct QuartersLess {
  Quarters<n> quarters;
  int less;
};
template <class Packet> TL_DEVICE auto unpack_uint2(const Packet& packet) {
  return Quarters<packet_size<Packet>>{value(packet)};
}
template <int n> TL_DEVICE QuartersLess<n> operator-(const Quarters<n>& x, int less) { return {x, less}; }

// Elements 4 j to 4 j + 3 of an int8 tile for each j of a vector index, as words.
template <int n> struct Quads {
  Vec<uint32_t, n> words;
};
template <class Tile, class Layout, int dim, int n>
TL_DEVICE Quads<n> groups_of_4(Tile& tile, const PacketIndex<Layout, dim, n>& j) {
  return {bit_cast<Vec<uint32_t, n>>(value(tile.template packet<4 * n>(4 * first_of_vector(j))))};
}

// sum + the dot product of the four numbers of each byte with its word of y, in int8.
template <int n, class Sum> TL_DEVICE Vec<int, n> dp4a(const QuartersLess<n>& x, const Quads<n>& y, const Sum& sum) {
  static_assert(n % 4 == 0, "the bytes are a whole number of 32-bit words");
  Vec<int, n> result = value(sum);
  const auto words = bit_cast<Vec<uint32_t, n / 4>>(x.quarters.bytes);
  TL_UNROLL
  for (int w = 0; w < n / 4; ++w) {
    FourWords part;  // byte b: number p of byte b
    TL_UNROLL
    for (int p = 0; p < 4; ++p) part.word[p] = words.at[w] >> 2 * p & 0x03030303;
    const FourWords byte = transposed_bytes(part);
    TL_UNROLL
    for (int b = 0; b < 4; ++b) {
      const uint32_t quad = y.words.at[4 * w + b];
      // sum (x - less) y = sum x y - less sum y, and sum y is the same for all rows
      result.at[4 * w + b] += -x.less * dot_of_bytes(0x01010101, quad, 0);
      result.at[4 * w + b] = dot_of_bytes(byte.word[b], quad, result.at[4 * w + b]);
    }
  }
  return result;
}
template <int n, class Sum> TL_DEVICE Vec<int, n> dp4a(const Quarters<n>& x, const Quads<n>& y, const Sum& sum) {
  return dp4a(x - 0, y, sum);
}

// The same dot products, all accumulated in the first element: for accumulators of which only the total is used. The
// numbers p of four bytes are one masked word of x; the matching word of y has every fourth element, and is the same
// for all rows. Odd numbers stay at their bit positions, four times as large, and their sum is divided by 4, which is
// exact.
template <int n, class Sum>
TL_DEVICE Vec<int, n> dp4a_total(const QuartersLess<n>& x, const Quads<n>& y, const Sum& sum) {
  static_assert(n % 4 == 0, "the bytes are a whole number of 32-bit words");
  Vec<int, n> result = value(sum);
  const auto words = bit_cast<Vec<uint32_t, n / 4>>(x.quarters.bytes);
  int once = result.at[0], fourfold = 0, total = 0;  // total: the sum of y, the same for all rows
  TL_UNROLL
  for (int w = 0; w < n / 4; ++w) {
    FourWords quads;
    TL_UNROLL
    for (int b = 0; b < 4; ++b) {
      quads.word[b] = y.words.at[4 * w + b];
      total = dot_of_bytes(0x01010101, quads.word[b], total);
    }
    const FourWords fourths = transposed_bytes(quads);
    TL_UNROLL
    for (int p = 0; p < 4; p += 2) {
      const uint32_t pair = words.at[w] >> 2 * p;
      once = dot_of_bytes(pair & 0x03030303, fourths.word[p], once);
      fourfold = dot_of_bytes(pair & 0x0c0c0c0c, fourths.word[p + 1], fourfold);
    }
  }
  result.at[0] = once + (fourfold >> 2) - x.less * total;
  return result;
}
template <int n, class Sum> TL_DEVICE Vec<int, n> dp4a_total(const Quarters<n>& x, const Quads<n>& y, const Sum& sum) {
  return dp4a_total(x - 0, y, sum);
}

}  // namespace tl
