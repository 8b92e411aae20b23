// C += A B on the matrix cores (MFMA), for waves of 64.
#pragma once
#include "../fragment.h"
#include "../gemm.h"
#include "../shared_tile.h"
#include "mfma_accumulator.h"

namespace tl {

// Which of K a lane holds, for A and B alike: `step` is how much of K a wave takes at once; of it lanes of group
// g = lane / size hold `items`, in pieces of `piece` neighbours. Any order would do, as long as it is one.
template <class Shape, int items_, int piece_> struct MfmaK {
  static constexpr int items = items_, piece = piece_, pieces = items / piece, step = items * Shape::groups;
  static TL_DEVICE int first(int k, int p) { return k + piece * (Shape::groups * p + lane() / Shape::size); }
};

// ---- operands ----------------------------------------------------------------------------------------------------
// Lines are A's rows or B's columns. load<Order>(items, line, tile, k): of the `Interleave` instructions that share a
// group of lines, `tile` being the group's number within the wave, what this lane hands over for the step of K at k.

// n neighbours as whole registers: what returned them one by one would have bytes taken apart and put together again.
template <int n, class T> TL_DEVICE void load_registers(T* to, const T* from) {
  constexpr int width = smaller(n * static_cast<int>(sizeof(T)), 16), each = width / static_cast<int>(sizeof(T));
  TL_UNROLL
  for (int i = 0; i < n; i += each) {
    if constexpr (each == 1)
      to[i] = from[i];
    else
      load_bits_to<width>(to + i, from + i);
  }
}
// In shared memory with K along the rows: a lane reads pieces of a line.
template <class Tile_> struct MfmaAlongK {
  using type = typename Tile_::type;
  static constexpr int lines = Tile_::rows, depth = Tile_::cols;
  static constexpr int piece = 16 / static_cast<int>(sizeof(type));  // the widest read from shared memory
  const Tile_& tile;
  template <class Shape, class Order, int n>
  TL_DEVICE void load(Vec<type, Order::items> (&items)[n], int line, int group, int k) const {
    static_assert(n == 1, "lines are shared one by one");
    TL_UNROLL
    for (int p = 0; p < Order::pieces; ++p) {
      const type* const from = tile.at(line + Shape::size * group + lane() % Shape::size, Order::first(k, p));
      load_registers<Order::piece>(&items[0].at[p * Order::piece], from);
    }
  }
};
// In shared memory with K across the rows: a lane reads n neighbours of a row of K, one for each of n instructions.
// With one instruction, and on a machine that has reads that transpose, a lane reads for its neighbours.
template <class Tile_> struct MfmaAcrossK {
  using type = typename Tile_::type;
  static constexpr int lines = Tile_::cols, depth = Tile_::rows;
  static constexpr int piece = 16 / static_cast<int>(sizeof(type));
  const Tile_& tile;
  template <class Shape, class Order, int n>
  TL_DEVICE void load(Vec<type, Order::items> (&items)[n], int line, int group, int k) const {
    if constexpr (n == 1 && has_transposing_reads<type> && Order::piece % (8 / int(sizeof(type))) == 0)
      return load_columns<Shape, Order>(items[0], line + Shape::size * group, k);
    if constexpr (sizeof(type) == 1 && n % 4 == 0 && Order::piece % 4 == 0)
      return load_quads<Shape, Order>(items, line, group, k);
    constexpr int width = n * static_cast<int>(sizeof(type));
    TL_UNROLL
    for (int item = 0; item < Order::items; ++item) {
      const auto read = load_elements<n, width>(tile.at(Order::first(k, item / Order::piece) + item % Order::piece,
                                                        line + n * (Shape::size * group + lane() % Shape::size)));
      TL_UNROLL
      for (int t = 0; t < n; ++t) items[t].at[item] = read.at[t];
    }
  }
  // Bytes: four neighbours of four rows are four words, and four of K for each of four instructions are four others.
  template <class Shape, class Order, int n>
  TL_DEVICE void load_quads(Vec<type, Order::items> (&items)[n], int line, int group, int k) const {
    TL_UNROLL
    for (int item = 0; item < Order::items; item += 4) {
      uint32_t row[4][n / 4];
      TL_UNROLL
      for (int r = 0; r < 4; ++r)
        load_bits_to<n>(row[r], tile.at(Order::first(k, item / Order::piece) + item % Order::piece + r,
                                        line + n * (Shape::size * group + lane() % Shape::size)));
      TL_UNROLL
      for (int t = 0; t < n; t += 4) {
        const auto columns = transposed_bytes({row[0][t / 4], row[1][t / 4], row[2][t / 4], row[3][t / 4]});
        TL_UNROLL
        for (int i = 0; i < 4; ++i) __builtin_memcpy(static_cast<void*>(&items[t + i].at[item]), &columns.word[i], 4);
      }
    }
  }
  // As many of K of this lane's column at a time as 8 bytes hold. The 16 lanes that read together hold the same of K.
  template <class Shape, class Order>
  TL_DEVICE void load_columns(Vec<type, Order::items>& items, int line, int k) const {
    constexpr int each = 8 / static_cast<int>(sizeof(type));
    const int place = lane() % 16 * each, first = line + lane() % Shape::size / 16 * 16 + place % 16;
    TL_UNROLL
    for (int item = 0; item < Order::items; item += each) {
      const int row = Order::first(k, item / Order::piece) + item % Order::piece;
      const auto read = load_transposed(tile.at(row + place / 16, first));
      __builtin_memcpy(static_cast<void*>(&items.at[item]), &read, sizeof read);  // whole registers
    }
  }
};
// A in registers, in the layout of accumulators: the runs of columns that a lane holds are its pieces of K.
template <class T, class Layout> struct MfmaRegisterA {
  using type = T;
  static constexpr int lines = Layout::M, depth = Layout::N, piece = Layout::vector;
  const Fragment<T, Layout>& fragment;
  template <class Shape, class Order, int n>
  TL_DEVICE void load(Vec<T, Order::items> (&items)[n], int, int group, int k) const {
    static_assert(n == 1 && std::is_same<Shape, typename Layout::Shape>::value, "the accumulator's own instruction");
    static_assert(Order::piece == piece, "K in the order of the registers");
    const T* const reg = fragment.reg + group * Layout::row_registers + k / Shape::groups;
    TL_UNROLL
    for (int i = 0; i < Order::items; ++i) items[0].at[i] = reg[i];
  }
};

template <class Tile> TL_DEVICE auto mfma_operand_a(const Tile& tile) { return MfmaAlongK<Tile>{tile}; }
template <class Tile> TL_DEVICE auto mfma_operand_a(const Transposed<Tile>& a) { return MfmaAcrossK<Tile>{a.tile}; }
template <class T, class Layout> TL_DEVICE auto mfma_operand_a(const Fragment<T, Layout>& a) {
  return MfmaRegisterA<T, Layout>{a};
}
template <class Tile> TL_DEVICE auto mfma_operand_b(const Tile& tile) { return MfmaAcrossK<Tile>{tile}; }
template <class Tile> TL_DEVICE auto mfma_operand_b(const Transposed<Tile>& b) { return MfmaAlongK<Tile>{b.tile}; }

template <class A> struct MfmaFits {
  template <class Layout> static constexpr bool value = true;
};
template <class T, class L> struct MfmaFits<MfmaRegisterA<T, L>> {
  template <class Layout>
  static constexpr bool value = std::is_same<
      L, MfmaOperandA<L::M, L::N, typename Layout::Warps, typename L::Interleave, typename Layout::Shape>>::value;
};

// ---- the tile ----------------------------------------------------------------------------------------------------

// All operands of one wave for one step of K.
template <class Ta, class Tb, class Shape, class Order, int m_tiles, int n_groups, int n> struct MfmaStep {
  Vec<Ta, Order::items> a[m_tiles][1];
  Vec<Tb, Order::items> b[n_groups][n];
  template <class A, class B> TL_DEVICE void load(const A& from_a, const B& from_b, int row, int col, int k) {
    TL_UNROLL
    for (int m = 0; m < m_tiles; ++m) from_a.template load<Shape, Order>(a[m], row, m, k);
    TL_UNROLL
    for (int group = 0; group < n_groups; ++group) from_b.template load<Shape, Order>(b[group], col, group, k);
  }
};

// C += A B. a: a shared tile M x K, tl::transposed of one stored K x M, or a fragment with MfmaOperandA; b: a shared
// tile K x N, or tl::transposed of one stored N x K. A shared tile may be tl::rows or tl::cols of one. The operands of
// the next step of K are loaded before the products of this one are started.
// Called by: every wave of C's layout. Reads shared memory without a barrier.
template <class A, class B, class T, int M, int N, class W, class I, class Shape>
TL_DEVICE void gemm(const A& a, const B& b, Fragment<T, MfmaAccumulator<M, N, W, I, Shape>>& C) {
  using Layout = MfmaAccumulator<M, N, W, I, Shape>;
  const auto from_a = mfma_operand_a(a);
  const auto from_b = mfma_operand_b(b);
  using FromA = std::decay_t<decltype(from_a)>;
  using FromB = std::decay_t<decltype(from_b)>;
  using Ta = typename FromA::type;
  using Tb = typename FromB::type;
  constexpr int K = FromA::depth, m_tiles = Layout::m_tiles, n_groups = Layout::n_groups, n = I::count;
  static_assert(FromA::lines == M && FromB::lines == N, "A has as many rows as C, and B as many columns");
  static_assert(K == FromB::depth, "A has as many columns as B has rows");
  static_assert(MfmaFits<FromA>::template value<Layout>, "A is in registers: its layout is tl::MfmaOperandA");
  static_assert(std::is_same<Ta, Tb>::value || (is_float8<Ta> && is_float8<Tb>),
                "A and B have the same element type, or two of 8-bit floating point");

  // As much of K as one read of shared memory brings, as the registers of A hold side by side, or as one instruction
  // takes; less if K is short.
  constexpr int share = K / Shape::groups, piece = smaller(FromA::piece, power_of_two_in(share));
  constexpr int read = FromA::piece < FromB::piece ? FromB::piece : FromA::piece;
  constexpr int widest = smaller(mfma_items<Ta>, mfma_items<Tb>);
  constexpr int items = smaller(read < widest ? widest : read, power_of_two_in(share));
  constexpr int each = smaller(widest, items);  // what one instruction takes
  using Order = MfmaK<Shape, items, piece>;
  static_assert(K % Order::step == 0 && items % each == 0, "K is a whole number of steps of MFMA");

  const int row = Layout::first_row(), col = Layout::first_col();
  MfmaStep<Ta, Tb, Shape, Order, m_tiles, n_groups, n> step[2];
  step[0].load(from_a, from_b, row, col, 0);
  TL_UNROLL
  for (int k = 0; k < K / Order::step; ++k) {
    if (k + 1 < K / Order::step) step[(k + 1) % 2].load(from_a, from_b, row, col, (k + 1) * Order::step);
    TL_UNROLL
    for (int first = 0; first < items; first += each) TL_UNROLL
    for (int m = 0; m < m_tiles; ++m) TL_UNROLL
    for (int tile = 0; tile < n_groups * n; ++tile) {
      T d[Shape::items];
      TL_UNROLL
      for (int i = 0; i < Shape::items; ++i) d[i] = C.reg[Layout::register_of(m, tile / n, tile % n, i)];
      mfma<Shape::size, each>(d, &step[k % 2].b[tile / n][tile % n].at[first], &step[k % 2].a[m][0].at[first]);
      TL_UNROLL
      for (int i = 0; i < Shape::items; ++i) C.reg[Layout::register_of(m, tile / n, tile % n, i)] = d[i];
    }
  }
}
template <class A, class B, class T, int M, int N, class W, class I, class Shape>
TL_DEVICE void gemm(const A& a, const B& b, Fragment<T, MfmaAccumulator<M, N, W, I, Shape>>& C, Overwrite) {
  clear(C);
  gemm(a, b, C);
}

}  // namespace tl
