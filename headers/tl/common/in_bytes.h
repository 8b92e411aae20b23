// Byte views of packed tiles and tensors. Copies use them, because a copy need not unpack elements.
#pragma once
#include "shared_tile.h"
#include "tensor.h"

namespace tl {

template <class X> using ElementOfTile = std::remove_const_t<typename std::decay_t<X>::type>;
// Whether a copy moves whole bytes: both sides have the same packed element type.
template <class From, class To>
constexpr bool goes_in_bytes =
    is_packed<ElementOfTile<From>> && std::is_same<ElementOfTile<From>, ElementOfTile<To>>::value;

template <class T, int rows, int cols, class Swizzle>
TL_DEVICE SharedTile<uint8_t, rows, cols / 2, Swizzle>& in_bytes(SharedTile<T, rows, cols, Swizzle>& tile) {
  return reinterpret_cast<SharedTile<uint8_t, rows, cols / 2, Swizzle>&>(tile);
}
template <class T, int rows, int cols, class Swizzle>
TL_DEVICE const SharedTile<uint8_t, rows, cols / 2, Swizzle>& in_bytes(const SharedTile<T, rows, cols, Swizzle>& tile) {
  return reinterpret_cast<const SharedTile<uint8_t, rows, cols / 2, Swizzle>&>(tile);
}
template <class T, int n> TL_DEVICE SharedTile1D<uint8_t, n / 2>& in_bytes(SharedTile1D<T, n>& tile) {
  return reinterpret_cast<SharedTile1D<uint8_t, n / 2>&>(tile);
}
template <class T, int n> TL_DEVICE const SharedTile1D<uint8_t, n / 2>& in_bytes(const SharedTile1D<T, n>& tile) {
  return reinterpret_cast<const SharedTile1D<uint8_t, n / 2>&>(tile);
}
// Subtiles start at even columns.
template <class Tile, int m, int n> TL_DEVICE auto in_bytes(const SubTile<Tile, m, n>& part) {
  using Bytes = std::remove_reference_t<decltype(in_bytes(*part.tile))>;
  return SubTile<Bytes, m, n / 2>{&in_bytes(*part.tile), part.first_row, part.first_col / 2};
}
template <class Tile, int n, class Start> TL_DEVICE auto in_bytes(const SubTile1D<Tile, n, Start>& part) {
  using Bytes = std::remove_reference_t<decltype(in_bytes(*part.tile))>;
  return SubTile1D<Bytes, n / 2, Start>{&in_bytes(*part.tile), part.first / 2};
}
// The last dimension is contiguous.
template <class T, class Start, int rank, unsigned predicated_dims, bool whole_rows>
TL_DEVICE auto in_bytes(const Place<Tensor<T, Start, rank, predicated_dims, whole_rows>>& from) {
  using Byte = typename PackedPointer<T>::Byte;
  Place<Tensor<Byte, Start, rank, predicated_dims, whole_rows>> place{{from.view.data.byte(), {}, {}}, {}};
  TL_UNROLL
  for (int d = 0; d < rank; ++d) {
    const int each = d == rank - 1 ? 2 : 1;
    place.view.stride[d] = each == 2 ? from.view.stride[d] : from.view.stride[d] / 2;
    place.view.extent[d] = from.view.extent[d] / each;
    place.offset[d] = from.offset[d] / each;
  }
  return place;
}

}  // namespace tl
