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

// One chunk of `bytes` bytes, of which those outside become zero.
template <int bytes, class View, class Tile>
TL_DEVICE void copy_async_chunk(const Place<View>& from, Tile& to, int row, int col) {
  constexpr int vector = bytes / static_cast<int>(sizeof(typename Tile::type));
  const int count = bytes_inside<View, vector>(from.view, from.offset[View::last] + col);
  if constexpr (View::rank == 1)
    cp_async<bytes>(to.at(col), from.address(col), count);
  else
    cp_async<bytes>(to.at(row, col), from.address(row, col), from.view.inside(0, from.offset[0] + row) ? count : 0);
}
template <int threads, int bytes, class View, class Tile>
TL_DEVICE void copy_async_chunks(const Place<View>& from, Tile& to) {
  using Pieces = ChunksOf<threads, Tile, bytes / static_cast<int>(sizeof(typename Tile::type))>;
  TL_UNROLL for (int turn = 0; turn < Pieces::turns; ++turn) if (Pieces::valid(turn))
      copy_async_chunk<bytes>(from, to, Pieces::row(turn), Pieces::col(turn));
}

// The path for rows that start anywhere: 4 bytes at a time where that is possible (cp.async has nothing narrower), else
// element by element, which waits for each. It is kept small, not fast.
template <int threads, class View, class Tile> TL_DEVICE void copy_async_narrow(const Place<View>& from, Tile& to) {
  constexpr int size = sizeof(typename Tile::type), bytes = size > 4 ? size : smaller(Tile::chunk_bytes, 4);
  constexpr int vector = bytes / size;
  using Pieces = ChunksOf<threads, Tile, vector>;
  const bool asynchronous = bytes >= 4 && from.aligned(bytes);
  TL_UNROLL_LITTLE for (int turn = 0; turn < Pieces::turns; ++turn) {
    if (!Pieces::valid(turn)) continue;
    const int row = Pieces::row(turn), col = Pieces::col(turn);
    if constexpr (bytes >= 4)
      if (asynchronous) copy_async_chunk<bytes>(from, to, row, col);
    if (!asynchronous)
      TL_UNROLL for (int i = 0; i < vector; ++i) chunk<1>(to, row, col + i) = chunk<1>(from, row, col + i);
  }
}

// Starts to copy the tile at `from` into `to`, which has its shape. In 16-byte chunks where rows allow it, else in
// narrower ones, else (rows at odd places) element by element, which is not asynchronous.
// Who: `threads` threads of the block, from thread 0 on. The caller commits and waits; tl::cp_async_pipeline does both.
template <int threads, class View, class Tile> TL_DEVICE void copy_async(const Place<View>& from, Tile& to) {
  static_assert(View::rank == Tile::rank, "fix the other dimensions first: A(b, tl::all, tl::all).tile(i, j)");
  static_assert(std::is_same<typename View::T, typename Tile::type>::value,
                "an asynchronous copy does not convert: use tl::copy");
  constexpr int widest = Tile::chunk_bytes, known = smaller(View::alignment, widest);
  if constexpr (known >= 4) {
    copy_async_chunks<threads, known>(from, to);
  } else if constexpr (known == 0 && widest >= 8) {
    if (from.aligned(widest))
      copy_async_chunks<threads, widest>(from, to);
    else
      copy_async_narrow<threads>(from, to);
  } else {
    copy_async_narrow<threads>(from, to);
  }
}

}  // namespace tl
