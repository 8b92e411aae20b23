// Copies from global to shared memory that run while the block goes on (cp.async).
#pragma once
#include "copy.h"

namespace tl {

// How many of the n elements at `first` lie in front of the end of a row, in bytes.
template <class View, int n> TL_DEVICE int bytes_inside(const View& view, int first) {
  constexpr int size = sizeof(typename View::type);
  if (!View::is_ragged(View::last)) return n * size;
  if (unsigned(first) >= unsigned(view.extent[View::last])) return 0;
  return View::has_whole_rows ? n * size : min(n, view.extent[View::last] - first) * size;
}

// Chunks of `bytes` bytes; what lies outside becomes zero. A few at a time: this is the path of narrow chunks.
template <int threads, int bytes, class View, class Tile>
TL_DEVICE void copy_async_chunk(const Place<View>& from, Tile& to, int row, int col) {
  constexpr int vector = bytes / static_cast<int>(sizeof(typename Tile::type));
  if constexpr (bytes < 4) {
    chunk<vector>(to, row, col) = chunk<vector>(from, row, col);
  } else if constexpr (View::rank == 1) {
    const int count = bytes_inside<View, vector>(from.view, from.offset[0] + col);
    cp_async<bytes>(to.at(col), from.address(col), count);
  } else {
    const int count = bytes_inside<View, vector>(from.view, from.offset[1] + col);
    const bool inside = from.view.inside(0, from.offset[0] + row);
    cp_async<bytes>(to.at(row, col), from.address(row, col), inside ? count : 0);
  }
}
template <int threads, int bytes, class View, class Tile>
TL_DEVICE void copy_async_by(const Place<View>& from, Tile& to) {
  using Pieces = ChunksOf<threads, Tile, bytes / static_cast<int>(sizeof(typename Tile::type))>;
  if constexpr (bytes == 16) {
    TL_UNROLL for (int turn = 0; turn < Pieces::turns; ++turn) if (Pieces::valid(turn))
        copy_async_chunk<threads, bytes>(from, to, Pieces::row(turn), Pieces::col(turn));
  } else {
    TL_UNROLL_LITTLE for (int turn = 0; turn < Pieces::turns; ++turn) if (Pieces::valid(turn))
        copy_async_chunk<threads, bytes>(from, to, Pieces::row(turn), Pieces::col(turn));
  }
}

// Starts to copy the tile at `from` into `to`, which has its shape. In 16-byte chunks where rows allow it, else in 8 or
// 4 bytes, else (rows at odd places) element by element, which is not asynchronous.
// Who: `threads` threads of the block, from thread 0 on. The caller commits and waits; tl::cp_async_pipeline does both.
template <int threads, class View, class Tile> TL_DEVICE void copy_async(const Place<View>& from, Tile& to) {
  static_assert(View::rank == Tile::rank, "fix the other dimensions first: A(b, tl::all, tl::all).tile(i, j)");
  static_assert(std::is_same<typename View::T, typename Tile::type>::value,
                "an asynchronous copy does not convert: use tl::copy");
  constexpr int size = sizeof(typename Tile::type), widest = Tile::chunk_bytes;
  if constexpr (View::alignment != 0) {
    constexpr int bytes = smaller(View::alignment, widest);
    copy_async_by<threads, (bytes < size ? size : bytes)>(from, to);
  } else {
    if (widest == 16 && from.aligned(16))
      copy_async_by<threads, widest>(from, to);
    else if (size <= 4 && widest >= 4 && from.aligned(4))
      copy_async_by<threads, (widest < 4 || size > 4 ? size : 4)>(from, to);
    else
      copy_async_by<threads, size>(from, to);
  }
}

}  // namespace tl
