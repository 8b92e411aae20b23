// How the threads of a block share a tile in pieces, for copies that no fragment takes part in.
#pragma once
#include "shared_tile.h"

namespace tl {

// rows x cols elements in chunks of `vector` along a row, dealt out to `threads` threads row after row, so that
// neighbours read neighbouring addresses. Turn t of a thread is chunk thread + t * threads.
template <int threads, int rows, int cols, int vector> struct Chunks {
  static constexpr int in_row = cols / vector, count = rows * in_row, turns = (count + threads - 1) / threads;
  // Each turn goes a whole number of rows down, and the column stays.
  static constexpr bool whole_rows = threads % in_row == 0;
  static_assert(cols % vector == 0, "chunks divide a row");

  static TL_DEVICE int row(int turn) {
    if constexpr (rows == 1) return 0;
    if constexpr (whole_rows) return thread() / unsigned(in_row) + turn * (threads / in_row);
    return unsigned(thread() + turn * threads) / in_row;
  }
  static TL_DEVICE int col(int turn) {
    if constexpr (rows == 1) return (thread() + turn * threads) * vector;
    if constexpr (whole_rows) return thread() % unsigned(in_row) * vector;
    return unsigned(thread() + turn * threads) % in_row * vector;
  }
  static TL_DEVICE bool valid(int turn) {
    return count % threads == 0 || (turn + 1) * threads <= count || thread() + turn * threads < count;
  }
};
template <int threads, class Tile, int vector> using ChunksOf = Chunks<threads, Tile::rows, Tile::cols, vector>;

// The `vector` elements at a row and column of a tile, whether it has rows or not.
template <int vector, class Tile> TL_DEVICE auto chunk(Tile&& tile, int row, int col) {
  if constexpr (std::decay_t<Tile>::rank == 1)
    return tile.template packet<vector>(col);
  else
    return tile.template packet<vector>(row, col);
}

}  // namespace tl
