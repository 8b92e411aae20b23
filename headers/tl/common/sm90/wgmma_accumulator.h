// Register layouts of wgmma over a tile.
#pragma once
#include "../../primitives.h"
#include "../fragment.h"
#include "../layout.h"

namespace tl {

constexpr int warpgroup_warps = 4, warpgroup_rows = 64;  // M of one wgmma

// One value per row of a wgmma tile: register r is in m tile r / 2, row half r % 2. Of a warpgroup's 64 rows, warp w
// holds 16 w to 16 w + 15. (T(4,8,4),V2) -> (M64), stride ((0,1,16),8), repeated down the warpgroup's rows.
template <int M, int along_m> struct WgmmaRows {
  static constexpr int rank = 1, vector = 1, extent = M, registers = M / along_m / warpgroup_rows * 2;
  static TL_DEVICE int row(int reg) {
    const int first = warp() / warpgroup_warps % along_m * (M / along_m) + warp() % warpgroup_warps * 16;
    return first + reg / 2 * warpgroup_rows + reg % 2 * 8 + lane() / 4;
  }
  template <int dim> static TL_DEVICE int coordinate(int reg) { return row(reg); }
  static TL_DEVICE constexpr bool valid(int) { return true; }
  static TL_DEVICE int replica() { return lane() % 4 + warp() / (warpgroup_warps * along_m); }
  TL_BOTH static constexpr Spread spread(int) { return {4, 8, 1, warpgroup_warps * along_m}; }
};

// One value per column of a wgmma tile: all warps of a warpgroup hold the same columns. (T32,V2) -> (N8), stride
// ((2,0),1), repeated along the row. `along_m` warpgroups hold the same columns, `along_n` share the row.
template <int N, int along_m, int along_n> struct WgmmaCols {
  static constexpr int rank = 1, vector = 2, extent = N, registers = N / along_n / 4;
  static TL_DEVICE int first_col() { return warp() / (warpgroup_warps * along_m) % along_n * (N / along_n); }
  template <int dim> static TL_DEVICE int coordinate(int reg) {
    return first_col() + reg / 2 * 8 + lane() % 4 * 2 + reg % 2;
  }
  static TL_DEVICE constexpr bool valid(int) { return true; }
  static TL_DEVICE int replica() {
    constexpr int warps = warpgroup_warps * along_m;
    return lane() / 4 + (warp() % warps + warp() / (warps * along_n)) * 8;
  }
  TL_BOTH static constexpr Spread spread(int) { return {1, 4, warpgroup_warps * along_m, along_n}; }
};

// An M x N accumulator: warpgroup g owns the (g % along_m)-th part of M / along_m rows, in m tiles of 64, and of these
// rows the (g / along_m)-th part of N / along_n columns.
// Registers: [m tile][8 columns][row half][2 columns]; of one m64nN tile
//   (T128,V(N/2)) -> (M64,N)  ((4,8,4),(2,2,N/8)):((128,1,16),(64,8,512)), the tile column-major.
// Two neighbouring n8 tiles of 16-bit elements are also the register operand A of an m64nNk16. If `along_n` warpgroups
// share the columns of that MMA, the operand has along_n = 1, and each of them holds a copy.
// [PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16"]
template <int M_, int N_, int along_m = 1, int along_n = 1> struct WgmmaAccumulator {
  static constexpr int rank = 2, M = M_, N = N_, vector = 2;
  static constexpr int own_rows = M / along_m, own_cols = N / along_n;
  static constexpr int m_tiles = own_rows / warpgroup_rows, n_tiles = own_cols / 8;
  static constexpr int registers = m_tiles * n_tiles * 4, tile_registers = n_tiles * 4;
  static_assert(M % (warpgroup_rows * along_m) == 0, "a warpgroup's rows are a multiple of 64");
  static_assert(N > 0 && N % (8 * along_n) == 0, "a warpgroup's columns are a multiple of 8");
  using rows = WgmmaRows<M, along_m>;
  using cols = WgmmaCols<N, along_m, along_n>;

  // The first row and column of this thread's warpgroup.
  static TL_DEVICE int first_row() { return warp() / warpgroup_warps % along_m * own_rows; }
  static TL_DEVICE int first_col() { return cols::first_col(); }
  // The first row of this thread's warp in m tile m.
  static TL_DEVICE int warp_row(int m) { return first_row() + m * warpgroup_rows + warp() % warpgroup_warps * 16; }
  template <int dim> static TL_DEVICE int coordinate(int reg) {
    return dim == 0 ? rows::row(row_register(reg)) : cols::template coordinate<0>(col_register(reg));
  }
  static TL_DEVICE constexpr int row_register(int reg) { return reg / tile_registers * 2 + reg / 2 % 2; }
  static TL_DEVICE constexpr int col_register(int reg) { return reg / 4 % n_tiles * 2 + reg % 2; }
  static TL_DEVICE constexpr bool valid(int) { return true; }
  static TL_DEVICE int replica() { return warp() / (warpgroup_warps * along_m * along_n); }
  // The distribution of a row (dim 1) or a column (dim 0) over lanes and warps.
  TL_BOTH static constexpr Spread spread(int dim) { return dim == 1 ? cols::spread(0) : rows::spread(0); }
};

// The first row and column of the thread's warpgroup, computed once where the fragment is declared. The shuffle makes
// them warp-uniform for the compiler, which then keeps operand descriptors in uniform registers.
template <int M, int N, int along_m, int along_n> struct FragmentState<WgmmaAccumulator<M, N, along_m, along_n>> {
  using Whole = WgmmaAccumulator<M, N, along_m, along_n>;
  int first_row = along_m == 1 ? 0 : shuffle(Whole::first_row(), 0);
  int first_col = along_n == 1 ? 0 : shuffle(Whole::first_col(), 0);
};

template <class Layout> constexpr bool is_wgmma_accumulator = false;
template <int M, int N, int along_m, int along_n>
constexpr bool is_wgmma_accumulator<WgmmaAccumulator<M, N, along_m, along_n>> = true;

}  // namespace tl
