// The boxes in which TMA moves a tile.
#pragma once
#include "../../sm90_primitives.h"
#include "../shared_tile.h"

namespace tl {

// The dimensions of a tensor along which a tile lies; in the others its extent is 1. The last one is the tensor's last.
template <int... dims> struct Dims {
  static constexpr int rank = sizeof...(dims);
};
struct LastDims {};  // as many of the last dimensions as the tile has

// The dimension of a tensor along which a tile's rows count.
template <class Dims_, int rank> struct RowDim;
template <int rank> struct RowDim<LastDims, rank> {
  static constexpr int value = rank - 2;
};
template <int row, int col, int rank> struct RowDim<Dims<row, col>, rank> {
  static constexpr int value = row;
  static_assert(col == rank - 1 && row >= 0 && row < col, "a tile's rows lie along the tensor's last dimension");
};

// A fragment's way out to global memory: a tile whose rows each warp writes, and stores, by itself, 16 at a time.
template <class T, int rows_, int cols_, class Swizzle> struct StagingTile : SharedTile<T, rows_, cols_, Swizzle> {};

// The widest part of a row of so many elements that TMA moves at a time: 256 elements, in multiples of 16 bytes.
// [CUDA Driver API, cuTensorMapEncodeTiled, boxDim]
constexpr int widest_box(int cols, int element_bytes) {
  int box = cols < 256 ? cols : 256;
  while (cols % box != 0 || box * element_bytes % 16 != 0) --box;
  return box;
}

// How many columns of a tile TMA moves at a time: a slab, or a part of it where it is a single row.
template <class Tile> struct BoxCols {
  static constexpr int value =
      Tile::rows == 1 ? widest_box(Tile::slab_cols, int(sizeof(typename Tile::type))) : Tile::slab_cols;
};

// How many rows of a tile TMA moves at a time.
template <class Tile> struct BoxRows {
  static constexpr int value = Tile::rows;
};
template <class T, int rows, int cols, class Swizzle> struct BoxRows<StagingTile<T, rows, cols, Swizzle>> {
  static constexpr int value = 16;
};

}  // namespace tl
