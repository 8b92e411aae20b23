// Partitions a tile into chunks over the threads of a block, for copies that involve no fragment.
#pragma once
#include "shared_tile.h"

namespace tl {

// rows x cols elements in chunks of `vector` along a row. Chunks are assigned to `threads` threads row by row, so that
// neighbouring threads access neighbouring addresses. In iteration t a thread accesses chunk thread + t * threads.
template <int threads, int rows, int cols, int vector> struct Chunks {
  static constexpr int in_row = cols / vector, count = rows * in_row, iterations = (count + threads - 1) / threads;
  // Each iteration advances by a whole number of rows, and the column does not change.
  static constexpr bool whole_rows = threads % in_row == 0;
  static_assert(cols % vector == 0, "a row is a whole number of chunks");

  static TL_DEVICE int row(int iteration) {
    if constexpr (rows == 1) return 0;
    if constexpr (whole_rows) return thread() / unsigned(in_row) + iteration * (threads / in_row);
    return unsigned(thread() + iteration * threads) / in_row;
  }
  static TL_DEVICE int col(int iteration) {
    if constexpr (rows == 1) return (thread() + iteration * threads) * vector;
    if constexpr (whole_rows) return thread() % unsigned(in_row) * vector;
    return unsigned(thread() + iteration * threads) % in_row * vector;
  }
  static TL_DEVICE bool valid(int iteration) {
    return count % threads == 0 || (iteration + 1) * threads <= count || thread() + iteration * threads < count;
  }
};
template <int threads, class Tile, int vector> using ChunksOf = Chunks<threads, Tile::rows, Tile::cols, vector>;

// The `vector` elements at a row and column of a tile; a one-dimensional tile ignores the row.
template <int vector, class Tile> TL_DEVICE auto chunk(Tile&& tile, int row, int col) {
  if constexpr (std::decay_t<Tile>::rank == 1)
    return tile.template packet<vector>(col);
  else
    return tile.template packet<vector>(row, col);
}

}  // namespace tl
