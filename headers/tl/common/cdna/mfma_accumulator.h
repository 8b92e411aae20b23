// Register layouts of MFMA over a tile, for wavefronts of 64.
// The transposed GEMM is computed: B's columns are the instruction's first operand, A's rows the second. A lane then
// holds consecutive columns of one row of C, instead of consecutive rows of a column: rows are stored by vector
// accesses, and the accumulator registers are a valid operand A of the next GEMM.
#pragma once
#include "../layout.h"

namespace tl {

// A v_mfma with `size` rows and columns. A lane holds one row of the result, in runs of `run` consecutive columns: row
// lane % size, column run * (lane / size + 64 / size * q) + r. [AMD Instinct MI300 ISA, "Dense Matrix Layouts": the
// formulas of D, with rows and columns exchanged]
template <int size_, int run_> struct MfmaShape {
  static constexpr int size = size_, run = run_;
  static constexpr int groups = 64 / size;  // lanes that share a row
  static constexpr int items = size * size / 64;
};
using Mfma16x16 = MfmaShape<16, 4>;
using Mfma32x32 = MfmaShape<32, 4>;
using Mfma16x16Double = MfmaShape<16, 1>;

// n instructions share a group of columns, and a lane's runs of consecutive columns are n times as long. In tl::gemm
// instruction t has every n-th column of a run, from t on: a lane loads n consecutive elements of a row of B at a time,
// one per instruction. In tl::block_gemm (ck.h) it has the t-th of n shorter runs.
template <int n> struct Interleave {
  static constexpr int count = n;
};

// One value per row: register r of lane l is row size * r + l % size of the wave's rows.
template <int M, class Warps, class Shape> struct MfmaRows {
  static constexpr int rank = 1, vector = 1, warp_rows = M / Warps::m, registers = warp_rows / Shape::size;
  static constexpr int extent = M;
  template <int dim> static TL_DEVICE int coordinate(int reg) {
    return warp() / Warps::n % Warps::m * warp_rows + reg * Shape::size + lane() % Shape::size;
  }
  static TL_DEVICE constexpr bool valid(int) { return true; }
  static TL_DEVICE int replica() { return lane() / Shape::size + warp() % Warps::n + warp() / (Warps::m * Warps::n); }
  TL_BOTH static constexpr Spread spread(int) { return {1, Shape::size, Warps::n, Warps::m}; }
};

// One value per column.
template <int N, class Warps, class Shape, class Interleave> struct MfmaCols {
  static constexpr int rank = 1, vector = Interleave::count * Shape::run, warp_cols = N / Warps::n;
  static constexpr int registers = warp_cols / Shape::groups, extent = N;
  static TL_DEVICE int column(int reg) {
    return vector * (Shape::groups * (reg / vector) + lane() / Shape::size) + reg % vector;
  }
  template <int dim> static TL_DEVICE int coordinate(int reg) { return warp() % Warps::n * warp_cols + column(reg); }
  static TL_DEVICE constexpr bool valid(int) { return true; }
  static TL_DEVICE int replica() { return lane() % Shape::size + warp() / Warps::n * Shape::size; }
  TL_BOTH static constexpr Spread spread(int) { return {Shape::size, Shape::groups, 1, Warps::n}; }
};

// A wave's tile, one row of instructions after another. In CuTe's notation each row of 16x16 instructions is
// (T64,V4 * n) -> (M16,N16 * n)  ((16,4),(4,n)):((1,64),(16,256)), T = lane.
template <int warp_rows_, int warp_cols_, class Shape, class Interleave> struct MfmaWarpTile {
  static constexpr int warp_rows = warp_rows_, warp_cols = warp_cols_;
  static constexpr int m_tiles = warp_rows / Shape::size, n_groups = warp_cols / (Shape::size * Interleave::count);
  static constexpr int vector = Interleave::count * Shape::run;
  static constexpr int row_registers = warp_cols / Shape::groups, registers = m_tiles * row_registers;
  static_assert(m_tiles > 0 && warp_rows % Shape::size == 0, "a wave owns whole instructions along M");
  static_assert(n_groups > 0 && warp_cols % (Shape::size * Interleave::count) == 0,
                "a wave owns whole groups of instructions along N");

  static TL_DEVICE int row(int reg) { return reg / row_registers * Shape::size + lane() % Shape::size; }
  static TL_DEVICE int col(int reg) {
    return vector * (Shape::groups * (reg % row_registers / vector) + lane() / Shape::size) + reg % vector;
  }
  static TL_DEVICE constexpr int row_register(int reg) { return reg / row_registers; }
  static TL_DEVICE constexpr int col_register(int reg) { return reg % row_registers; }
  // The register of element `item` of the result of instruction (m, group, t).
  static TL_DEVICE constexpr int register_of(int m, int group, int t, int item) {
    const int in_group = item / Shape::run * vector + item % Shape::run * Interleave::count + t;
    return m * row_registers + group * Shape::items * Interleave::count + in_group;
  }
  static TL_DEVICE constexpr bool valid(int) { return true; }
};

// An M x N accumulator: wave (wm, wn) owns a contiguous part of (M / m) x (N / n) elements.
template <int M_, int N_, class Warps_, class Interleave_ = Interleave<1>, class Shape_ = Mfma16x16>
struct MfmaAccumulator : MfmaWarpTile<M_ / Warps_::m, N_ / Warps_::n, Shape_, Interleave_> {
  using Tile = MfmaWarpTile<M_ / Warps_::m, N_ / Warps_::n, Shape_, Interleave_>;
  using Warps = Warps_;
  using Interleave = Interleave_;
  using Shape = Shape_;
  using rows = MfmaRows<M_, Warps, Shape>;
  using cols = MfmaCols<N_, Warps, Shape, Interleave>;
  static constexpr int rank = 2, M = M_, N = N_;
  static_assert(warp_size == 64, "MFMA requires wavefronts of 64 lanes");
  static_assert(M % Warps::m == 0 && N % Warps::n == 0, "the tile's extents are divisible by the number of waves");

  template <int dim> static TL_DEVICE int coordinate(int reg) {
    return dim == 0 ? first_row() + Tile::row(reg) : first_col() + Tile::col(reg);
  }
  // The first row and column of this thread's wave.
  static TL_DEVICE int first_row() { return warp() / Warps::n % Warps::m * Tile::warp_rows; }
  static TL_DEVICE int first_col() { return warp() % Warps::n * Tile::warp_cols; }
  static TL_DEVICE int replica() { return warp() / (Warps::m * Warps::n); }
  // The distribution of a row (dim 1) or a column (dim 0) over lanes and waves.
  TL_BOTH static constexpr Spread spread(int dim) { return dim == 1 ? cols::spread(0) : rows::spread(0); }
};

// An M x K operand A in registers: its rows are distributed over the waves along M, and replicated in the waves along
// N.
template <int M_, int K_, class Warps_, class Interleave_, class Shape_>
struct MfmaSharedOperandA : MfmaWarpTile<M_ / Warps_::m, K_, Shape_, Interleave_> {
  using Tile = MfmaWarpTile<M_ / Warps_::m, K_, Shape_, Interleave_>;
  using Warps = Warps_;
  using Interleave = Interleave_;
  using Shape = Shape_;
  using rows = MfmaRows<M_, Warps, Shape>;
  using cols = MfmaCols<K_, tl::Warps<Warps::m * Warps::n, 1>, Shape, Interleave>;
  static constexpr int rank = 2, M = M_, N = K_;
  static_assert(M % Warps::m == 0, "the tile's extents are divisible by the number of waves");

  template <int dim> static TL_DEVICE int coordinate(int reg) {
    return dim == 0 ? first_row() + Tile::row(reg) : Tile::col(reg);
  }
  static TL_DEVICE int first_row() { return warp() / Warps::n % Warps::m * Tile::warp_rows; }
  static TL_DEVICE int first_col() { return 0; }
  static TL_DEVICE int replica() { return warp() % Warps::n + warp() / (Warps::m * Warps::n); }
  TL_BOTH static constexpr Spread spread(int dim) { return dim == 1 ? cols::spread(0) : rows::spread(0); }
};

// With one wave along N nothing is replicated, and the layout is an accumulator's: a result can be the next GEMM's A.
template <int M, int K, class W, class Interleave = Interleave<1>, class Shape = Mfma16x16>
using MfmaOperandA = std::conditional_t<W::n == 1, MfmaAccumulator<M, K, Warps<W::m, 1>, Interleave, Shape>,
                                        MfmaSharedOperandA<M, K, W, Interleave, Shape>>;

}  // namespace tl
