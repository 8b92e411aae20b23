// The TMA boxes of a tile.
#pragma once
#include "../../sm90_primitives.h"
#include "../shared_tile.h"

namespace tl {

// The dimensions of a tensor that a tile spans; its extent in the others is 1. The last one is the tensor's last.
template <int... dims> struct Dims {
  static constexpr int rank = sizeof...(dims);
};
struct LastDims {};  // the last dimensions, as many as the tile's rank

// The tensor dimension of a tile's rows.
template <class Dims_, int rank> struct RowDim;
template <int rank> struct RowDim<LastDims, rank> {
  static constexpr int value = rank - 2;
};
template <int row, int col, int rank> struct RowDim<Dims<row, col>, rank> {
  static constexpr int value = row;
  static_assert(col == rank - 1 && row >= 0 && row < col, "a tile's columns are along the tensor's last dimension");
};

// A staging tile for the TMA store of a fragment: each warp writes and stores its own 16 rows at a time.
template <class T, int rows_, int cols_, class Swizzle> struct StagingTile : SharedTile<T, rows_, cols_, Swizzle> {};

// The widest box of a single row: at most 256 elements, in multiples of 16 bytes.
// [CUDA Driver API, cuTensorMapEncodeTiled, boxDim]
constexpr int widest_box(int cols, int element_bytes) {
  int box = cols < 256 ? cols : 256;
  while (cols % box != 0 || box * element_bytes % 16 != 0) --box;
  return box;
}

// Columns per box: a slab, or a part of it if the tile is a single row.
template <class Tile> struct BoxCols {
  static constexpr int value =
      Tile::rows == 1 ? widest_box(Tile::slab_cols, int(sizeof(typename Tile::type))) : Tile::slab_cols;
};

// Rows per box.
template <class Tile> struct BoxRows {
  static constexpr int value = Tile::rows;
};
template <class T, int rows, int cols, class Swizzle> struct BoxRows<StagingTile<T, rows, cols, Swizzle>> {
  static constexpr int value = 16;
};

}  // namespace tl
