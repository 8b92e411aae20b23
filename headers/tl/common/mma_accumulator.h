// Layouts of the registers of mma.sync.
#pragma once
#include "layout.h"

namespace tl {

// Rows of an mma tile; register r is row half r. (T32,V2) -> (M16), stride ((0,1),8), repeated over the rows of a warp.
template <int M, class Warps> struct MmaRows {
  static constexpr int rank = 1, vector = 1, warp_rows = M / Warps::m, registers = warp_rows / 8;
  static constexpr int extent = M;
  template <int dim> static TL_DEVICE int coordinate(int reg) {
    return warp() / Warps::n % Warps::m * warp_rows + reg * 8 + lane() / 4;
  }
  static TL_DEVICE constexpr bool valid(int) { return true; }
  static TL_DEVICE int replica() { return lane() % 4 + warp() % Warps::n + warp() / (Warps::m * Warps::n); }
  TL_BOTH static constexpr Spread spread(int) { return {4, 8, Warps::n, Warps::m}; }
};

// Columns of an mma tile. (T32,V2) -> (N8), stride ((2,0),1), repeated over the columns of a warp.
template <int N, class Warps> struct MmaCols {
  static constexpr int rank = 1, vector = 2, warp_cols = N / Warps::n, registers = warp_cols / 4;
  static constexpr int extent = N;
  template <int dim> static TL_DEVICE int coordinate(int reg) {
    return warp() % Warps::n * warp_cols + reg / 2 * 8 + lane() % 4 * 2 + reg % 2;
  }
  static TL_DEVICE constexpr bool valid(int) { return true; }
  static TL_DEVICE int replica() { return lane() / 4 + warp() / Warps::n * 8; }
  TL_BOTH static constexpr Spread spread(int) { return {1, 4, 1, Warps::n}; }
};

// The tile of a warp: m16n8 tiles in row-major order. Each has the registers c0..c3 of the accumulator D of
// mma.m16n8k16, in CuTe's notation (T32,V4) -> (M16,N8)  ((4,8),(2,2)):((32,1),(16,8)), T = lane.
// Two neighbouring tiles are also the A operand of an m16n8k16: ((4,8),(2,2,2)):((32,1),(16,8,128)).
// [PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type"]
template <int warp_rows_, int warp_cols_> struct MmaWarpTile {
  static constexpr int warp_rows = warp_rows_, warp_cols = warp_cols_;
  static constexpr int m_tiles = warp_rows / 16, n_tiles = warp_cols / 8, registers = m_tiles * n_tiles * 4;
  static_assert(m_tiles > 0 && warp_rows % 16 == 0, "M is a multiple of 16 * warps along M");
  static_assert(n_tiles > 0 && warp_cols % 8 == 0, "N is a multiple of 8 * warps along N");

  static TL_DEVICE int row(int reg) { return reg / (n_tiles * 4) * 16 + reg / 2 % 2 * 8 + lane() / 4; }
  static TL_DEVICE int col(int reg) { return reg / 4 % n_tiles * 8 + lane() % 4 * 2 + reg % 2; }
  static TL_DEVICE constexpr int row_register(int reg) { return reg / (n_tiles * 4) * 2 + reg / 2 % 2; }
  static TL_DEVICE constexpr int col_register(int reg) { return reg / 4 % n_tiles * 2 + reg % 2; }
  static TL_DEVICE constexpr bool valid(int) { return true; }
};

// An M x N accumulator: warp (wm, wn) owns a contiguous (M / m) x (N / n) part.
template <int M_, int N_, class Warps_> struct MmaAccumulator : MmaWarpTile<M_ / Warps_::m, N_ / Warps_::n> {
  using Tile = MmaWarpTile<M_ / Warps_::m, N_ / Warps_::n>;
  using Warps = Warps_;
  using rows = MmaRows<M_, Warps>;
  using cols = MmaCols<N_, Warps>;
  static constexpr int rank = 2, M = M_, N = N_, vector = 2;
  static_assert(M % Warps::m == 0 && N % Warps::n == 0, "the tile's extents are divisible by the number of warps");

  template <int dim> static TL_DEVICE int coordinate(int reg) {
    return dim == 0 ? first_row() + Tile::row(reg) : first_col() + Tile::col(reg);
  }
  // The first row and column of this thread's warp.
  static TL_DEVICE int first_row() { return warp() / Warps::n % Warps::m * Tile::warp_rows; }
  static TL_DEVICE int first_col() { return warp() % Warps::n * Tile::warp_cols; }
  static TL_DEVICE int replica() { return warp() / (Warps::m * Warps::n); }
  // The threads that share a row (dim 1 varies) or a column (dim 0 varies).
  TL_BOTH static constexpr Spread spread(int dim) { return dim == 1 ? cols::spread(0) : rows::spread(0); }
};

// An M x K operand A in registers: the warps along M partition the rows, and each warp along N holds a copy.
template <int M_, int K_, class Warps_> struct MmaSharedOperandA : MmaWarpTile<M_ / Warps_::m, K_> {
  using Tile = MmaWarpTile<M_ / Warps_::m, K_>;
  using Warps = Warps_;
  using rows = MmaRows<M_, Warps>;
  using cols = MmaCols<K_, tl::Warps<Warps::m * Warps::n, 1>>;
  static constexpr int rank = 2, M = M_, N = K_, vector = 2;
  static_assert(M % Warps::m == 0, "the tile's extents are divisible by the number of warps");

  template <int dim> static TL_DEVICE int coordinate(int reg) {
    return dim == 0 ? first_row() + Tile::row(reg) : Tile::col(reg);
  }
  static TL_DEVICE int first_row() { return warp() / Warps::n % Warps::m * Tile::warp_rows; }
  static TL_DEVICE int first_col() { return 0; }
  static TL_DEVICE int replica() { return warp() % Warps::n + warp() / (Warps::m * Warps::n); }
  TL_BOTH static constexpr Spread spread(int dim) { return dim == 1 ? cols::spread(0) : rows::spread(0); }
};

// With one warp along N there are no copies, and the layout is that of an accumulator: the result of a GEMM is the A
// operand of the next one.
template <int M, int K, class W>
using MmaOperandA = std::conditional_t<W::n == 1, MmaAccumulator<M, K, Warps<W::m, 1>>, MmaSharedOperandA<M, K, W>>;

// An operand B in registers, with N along `n` and K along `k`: the warps along N partition the columns, and each warp
// along M holds a copy. In each tile of 8 columns and 8 of K, lane 4g + t holds column g, k = 2t and 2t + 1. Two such
// tiles are operand B of one m16n8k16, in CuTe's notation (T32,V4) -> (N8,K16)  ((4,8),(2,2)):((16,1),(8,64)).
// [PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type"]
template <int K, int N, class Warps_> struct MmaRegistersB {
  using Warps = Warps_;
  static constexpr int warp_cols = N / Warps::n, n_tiles = warp_cols / 8, k_tiles = K / 8;
  static constexpr int registers = n_tiles * k_tiles * 2;
  static_assert(N % Warps::n == 0 && warp_cols % 8 == 0, "N is a multiple of 8 * warps");
  static_assert(K % 16 == 0, "K is a multiple of 16");
  using along_k = MmaCols<K, tl::Warps<Warps::m * Warps::n, 1>>;
  using along_n = MmaRows<N, tl::Warps<Warps::n, 1>>;

  static TL_DEVICE constexpr int k_register(int reg) { return reg / 2 % k_tiles * 2 + reg % 2; }
  static TL_DEVICE constexpr int n_register(int reg) { return reg / (2 * k_tiles); }
  static TL_DEVICE int k(int reg) { return along_k::template coordinate<0>(k_register(reg)); }
  static TL_DEVICE int n(int reg) { return along_n::template coordinate<0>(n_register(reg)); }
  static TL_DEVICE constexpr bool valid(int) { return true; }
  static TL_DEVICE int replica() { return warp() / Warps::n; }
};
// Stored K x N.
template <int K, int N_, class Warps> struct MmaOperandB : MmaRegistersB<K, N_, Warps> {
  using Registers = MmaRegistersB<K, N_, Warps>;
  using rows = typename Registers::along_k;
  using cols = typename Registers::along_n;
  static constexpr int rank = 2, M = K, N = N_, vector = 1;
  template <int dim> static TL_DEVICE int coordinate(int reg) {
    return dim == 0 ? Registers::k(reg) : Registers::n(reg);
  }
  static TL_DEVICE constexpr int row_register(int reg) { return Registers::k_register(reg); }
  static TL_DEVICE constexpr int col_register(int reg) { return Registers::n_register(reg); }
  TL_BOTH static constexpr Spread spread(int dim) { return dim == 1 ? cols::spread(0) : rows::spread(0); }
};
// Stored N x K, for tl::transposed(fragment): consecutive k are in consecutive registers.
template <int N_, int K, class Warps> struct MmaTransposedOperandB : MmaRegistersB<K, N_, Warps> {
  using Registers = MmaRegistersB<K, N_, Warps>;
  using rows = typename Registers::along_n;
  using cols = typename Registers::along_k;
  static constexpr int rank = 2, M = N_, N = K, vector = 2;
  template <int dim> static TL_DEVICE int coordinate(int reg) {
    return dim == 0 ? Registers::n(reg) : Registers::k(reg);
  }
  static TL_DEVICE constexpr int row_register(int reg) { return Registers::n_register(reg); }
  static TL_DEVICE constexpr int col_register(int reg) { return Registers::k_register(reg); }
  TL_BOTH static constexpr Spread spread(int dim) { return dim == 1 ? cols::spread(0) : rows::spread(0); }
};

}  // namespace tl
