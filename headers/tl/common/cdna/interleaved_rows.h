// Shared tiles that are transposed as they are stored, for MFMA operands whose K runs across the rows of global memory.
#pragma once
#include "../shared_tile.h"
#include "mfma_gemm.h"
#include "staged.h"

namespace tl {

// Groups of `count` rows are stored column by column: the elements of a column in rows count * q to count * q +
// count - 1 are neighbours, the operand of one lane and MFMA. Of the tile's 16-byte chunks, chunk c is stored at
// c ^ ((c / 8) % 4): lanes that store 64 bytes each, and lanes that read neighbouring columns, then access all banks.
template <int count_> struct InterleavedRows {
  static constexpr int count = count_;
};
template <class T, int rows_, int cols_, int count>
struct alignas(16) SharedTile<T, rows_, cols_, InterleavedRows<count>> {
  using type = T;
  static constexpr int rank = 2, rows = rows_, cols = cols_;
  static constexpr int chunk_bytes = sizeof(T), chunk_cols = 1;             // neighbours of a row are not contiguous
  static constexpr int lines = 16 / (count * static_cast<int>(sizeof(T)));  // columns of a 16-byte chunk
  static_assert(rows % count == 0 && lines > 0 && rows / count * cols % (32 * lines) == 0,
                "a tile is a whole number of the swizzle's periods, 32 chunks");
  T data[rows * cols];

  static TL_DEVICE constexpr unsigned offset(unsigned row, unsigned col) {
    const unsigned element = (row / count * cols + col) * count + row % count, chunk = element / (lines * count);
    return (chunk ^ chunk / 8 % 4) * (lines * count) + element % (lines * count);
  }
  TL_DEVICE T* at(int row, int col) {
    TL_CHECK_INDEX(row, rows);
    TL_CHECK_INDEX(col, cols);
    return data + offset(row, col);
  }
  TL_DEVICE const T* at(int row, int col) const {
    TL_CHECK_INDEX(row, rows);
    TL_CHECK_INDEX(col, cols);
    return data + offset(row, col);
  }
  TL_DEVICE T& operator()(int row, int col) { return *at(row, col); }
  TL_DEVICE const T& operator()(int row, int col) const { return *at(row, col); }
};

// tl::Staged of such a tile: a thread loads pieces of `count` neighbouring rows.
template <class T, int rows, int cols, int threads, int count>
using StagedRows = Staged<T, rows, cols, threads, T, count>;

// Transposes what a thread has loaded, and stores the columns by 16 bytes. Two columns of two rows make one word each:
// one permutation gives a column's word. Called by: the threads that loaded it. Contains no barrier: one must follow
// before other threads read `to`.
template <class T, int rows, int cols, int threads, int count>
TL_DEVICE void store(const StagedRows<T, rows, cols, threads, count>& from,
                     SharedTile<T, rows, cols, InterleavedRows<count>>& to) {
  using From = StagedRows<T, rows, cols, threads, count>;
  using Pieces = typename From::Pieces;
  static_assert(sizeof(T) == 2 && count == 4, "a chunk is two columns of four rows");
  TL_UNROLL
  for (int iteration = 0; iteration < Pieces::iterations; iteration += count) {
    if (!Pieces::valid(iteration)) continue;
    TL_UNROLL
    for (int word = 0; word < From::bytes / 4; ++word) {
      uint32_t row[count];
      TL_UNROLL
      for (int r = 0; r < count; ++r) row[r] = from.piece[iteration + r].word[word];
      const FourWords columns = {lower_halves(row[0], row[1]), lower_halves(row[2], row[3]),
                                 upper_halves(row[0], row[1]), upper_halves(row[2], row[3])};
      store_bits<16>(to.at(Pieces::row(iteration), Pieces::col(iteration) + 2 * word), columns);
    }
  }
}

// The same without a pipeline, as tl::copy of other shared tiles.
template <int threads, class View, class T, int rows, int cols, int count>
TL_DEVICE void copy(const Place<View>& from, SharedTile<T, rows, cols, InterleavedRows<count>>& to) {
  StagedRows<T, rows, cols, threads, count> registers;
  load(from, registers);
  store(registers, to);
}

// Operand of an MFMA in such a tile: a lane reads the runs of `count` k of n neighbouring columns, one for each of n
// instructions. `piece_`: consecutive k of a lane that the other operand is read by, if this one is A.
template <class Tile_, int piece_> struct MfmaInterleavedRows;
template <class T, int rows, int cols, int count, int piece_>
struct MfmaInterleavedRows<SharedTile<T, rows, cols, InterleavedRows<count>>, piece_> {
  using Tile = SharedTile<T, rows, cols, InterleavedRows<count>>;
  using type = T;
  static constexpr int lines = cols, depth = rows, piece = piece_;
  const Tile& tile;
  // The swizzle repeats after 32 chunks: reads at such distances share an address, whose distance is an immediate.
  static constexpr int period = 32 * Tile::lines;
  template <class Shape, class Order, int n>
  TL_DEVICE void load(Vec<type, Order::items> (&items)[n], int line, int group, int k) const {
    static_assert(n <= Tile::lines && Order::piece % count == 0, "a read is within a chunk");
    const int column = n * Shape::size * group, of_lane = line + n * (lane() % Shape::size);
    TL_UNROLL
    for (int item = 0; item < Order::items; item += count) {
      const int first = Order::of_item(k, item), row = Order::first(0, 0);
      const T* from;
      if constexpr (cols % period == 0)
        from = tile.at(row, of_lane + column % period) + (first - row) * cols + (column - column % period) * count;
      else
        from = tile.at(first, of_lane + column);
      Vec<T, n * count> read;
      load_registers<n * count>(read.at, from);
      TL_UNROLL
      for (int i = 0; i < n * count; ++i) items[i / count].at[item + i % count] = read.at[i];
    }
  }
};
template <class T, int rows, int cols, int count>
TL_DEVICE auto mfma_operand_a(const Transposed<SharedTile<T, rows, cols, InterleavedRows<count>>>& a) {
  return MfmaInterleavedRows<SharedTile<T, rows, cols, InterleavedRows<count>>, 16 / int(sizeof(T))>{a.tile};
}
template <class T, int rows, int cols, int count>
TL_DEVICE auto mfma_operand_b(const SharedTile<T, rows, cols, InterleavedRows<count>>& b) {
  return MfmaInterleavedRows<SharedTile<T, rows, cols, InterleavedRows<count>>, count>{b};
}

}  // namespace tl
