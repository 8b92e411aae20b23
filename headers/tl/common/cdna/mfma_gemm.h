// C += A B by MFMA, for wavefronts of 64.
#pragma once
#include "../fragment.h"
#include "../gemm.h"
#include "../shared_tile.h"
#include "mfma_accumulator.h"

namespace tl {

// The distribution of K over lanes, the same for A and B: of `step` consecutive k, the lanes of group g = lane / size
// hold `items`, in pieces of `piece` consecutive ones. Any order of k is valid if A and B share it.
template <class Shape, int items_, int piece_> struct MfmaK {
  static constexpr int items = items_, piece = piece_, pieces = items / piece, step = items * Shape::groups;
  // The k of the first item of piece p, in the step that begins at k, and of any item.
  static TL_DEVICE int first(int k, int p) { return k + piece * (Shape::groups * p + lane() / Shape::size); }
  static TL_DEVICE int of_item(int k, int item) { return first(k, item / piece) + item % piece; }
};

// ---- operands ----------------------------------------------------------------------------------------------------
// A line is a row of A or a column of B. load<Order>(items, line, group, k): this lane's operands of the step of K that
// begins at k, for the `Interleave` instructions of the wave's group of lines; `line` is the wave's first one.

// Loads n consecutive elements by accesses of up to 16 bytes: element-wise loads would unpack and repack bytes.
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
// Operand in shared memory, K-major: a lane loads pieces of a line.
template <class Tile_> struct MfmaAlongK {
  using type = typename Tile_::type;
  static constexpr int lines = Tile_::rows, depth = Tile_::cols;
  static constexpr int piece = 16 / static_cast<int>(sizeof(type));  // the widest read from shared memory
  const Tile_& tile;
  template <class Shape, class Order, int n>
  TL_DEVICE void load(Vec<type, Order::items> (&items)[n], int line, int group, int k) const {
    static_assert(n == 1, "K-major operands are not interleaved");
    TL_UNROLL
    for (int p = 0; p < Order::pieces; ++p) {
      const type* const from = tile.at(line + Shape::size * group + lane() % Shape::size, Order::first(k, p));
      load_registers<Order::piece>(&items[0].at[p * Order::piece], from);
    }
  }
};
// Operand in shared memory, MN-major: a lane loads n consecutive elements of a row of K, one for each of n
// instructions. With one instruction, and on targets with transposing reads, the loads are transposing reads.
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
      const auto read = load_elements<n, width>(
          tile.at(Order::of_item(k, item), line + n * (Shape::size * group + lane() % Shape::size)));
      TL_UNROLL
      for (int t = 0; t < n; ++t) items[t].at[item] = read.at[t];
    }
  }
  // 1-byte elements: loads four rows of K and transposes 4x4 bytes, which gives four consecutive k for each of four
  // instructions.
  template <class Shape, class Order, int n>
  TL_DEVICE void load_quads(Vec<type, Order::items> (&items)[n], int line, int group, int k) const {
    TL_UNROLL
    for (int item = 0; item < Order::items; item += 4) {
      uint32_t row[4][n / 4];
      TL_UNROLL
      for (int r = 0; r < 4; ++r)
        load_bits_to<n>(row[r],
                        tile.at(Order::of_item(k, item) + r, line + n * (Shape::size * group + lane() % Shape::size)));
      TL_UNROLL
      for (int t = 0; t < n; t += 4) {
        const auto columns = transposed_bytes({row[0][t / 4], row[1][t / 4], row[2][t / 4], row[3][t / 4]});
        TL_UNROLL
        for (int i = 0; i < 4; ++i) __builtin_memcpy(static_cast<void*>(&items[t + i].at[item]), &columns.word[i], 4);
      }
    }
  }
  // Transposing reads: 8 bytes along K of this lane's column per read. The 16 lanes of a read have the same k.
  template <class Shape, class Order>
  TL_DEVICE void load_columns(Vec<type, Order::items>& items, int line, int k) const {
    constexpr int each = 8 / static_cast<int>(sizeof(type));
    const int place = lane() % 16 * each, first = line + lane() % Shape::size / 16 * 16 + place % 16;
    TL_UNROLL
    for (int p = 0; p < Order::pieces; ++p) TL_UNROLL
    for (int i = 0; i < Order::piece; i += each) {
      const auto read = load_transposed(tile.at(Order::first(k, p) + i + place / 16, first));
      __builtin_memcpy(static_cast<void*>(&items.at[p * Order::piece + i]), &read, sizeof read);  // whole registers
    }
  }
};
// A in registers, with an accumulator's layout: the runs of columns that a lane holds are its pieces of K.
template <class T, class Layout> struct MfmaRegisterA {
  using type = T;
  static constexpr int lines = Layout::M, depth = Layout::N, piece = Layout::vector;
  const Fragment<T, Layout>& fragment;
  template <class Shape, class Order, int n>
  TL_DEVICE void load(Vec<T, Order::items> (&items)[n], int, int group, int k) const {
    static_assert(n == 1 && std::is_same<Shape, typename Layout::Shape>::value,
                  "A in registers has the instruction shape of its layout, and no interleave");
    static_assert(Order::piece == piece, "a step of K is a run of A's registers");
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

template <class Operand> constexpr bool mfma_in_registers = false;
template <class T, class L> constexpr bool mfma_in_registers<MfmaRegisterA<T, L>> = true;

template <class A> struct MfmaFits {
  template <class Layout> static constexpr bool value = true;
};
template <class T, class L> struct MfmaFits<MfmaRegisterA<T, L>> {
  template <class Layout>
  static constexpr bool value = std::is_same<
      L, MfmaOperandA<L::M, L::N, typename Layout::Warps, typename L::Interleave, typename Layout::Shape>>::value;
};

// ---- the tile ----------------------------------------------------------------------------------------------------

// The steps of K of C += A B: a step has the widest of one shared-memory read, the consecutive registers of A, and one
// instruction; less if K is short. FromA and FromB are operands as above.
template <class FromA, class FromB, class Layout> struct MfmaSteps {
  using Ta = typename FromA::type;
  using Tb = typename FromB::type;
  using Shape = typename Layout::Shape;
  static constexpr int K = FromA::depth, n = Layout::Interleave::count;
  static_assert(FromA::lines == Layout::M && FromB::lines == Layout::N,
                "A has as many rows as C, and B as many columns");
  static_assert(K == FromB::depth, "A has as many columns as B has rows");
  static_assert(MfmaFits<FromA>::template value<Layout>, "A in registers has the layout tl::MfmaOperandA");
  static_assert(std::is_same<Ta, Tb>::value || (is_float8<Ta> && is_float8<Tb>),
                "A and B have the same element type, or are both 8-bit floating point");

  static constexpr int share = K / Shape::groups, piece = smaller(FromA::piece, power_of_two_in(share));
  static constexpr int read = FromA::piece < FromB::piece ? FromB::piece : FromA::piece;
  static constexpr int widest = smaller(mfma_items<Ta>, mfma_items<Tb>);
  static constexpr int items = smaller(read < widest ? widest : read, power_of_two_in(share));
  static constexpr int each = smaller(widest, items);  // per instruction
  using Order = MfmaK<Shape, items, piece>;
  static_assert(K % Order::step == 0 && items % each == 0, "K is a multiple of the MFMA step");
  static constexpr int count = K / Order::step;

  // All operands of one wave for one step.
  struct Step {
    Vec<Ta, items> a[Layout::m_tiles][1];
    Vec<Tb, items> b[Layout::n_groups][n];
    TL_DEVICE void load(const FromA& from_a, const FromB& from_b, int row, int col, int k) {
      TL_UNROLL
      for (int m = 0; m < Layout::m_tiles; ++m) from_a.template load<Shape, Order>(a[m], row, m, k);
      TL_UNROLL
      for (int group = 0; group < Layout::n_groups; ++group)
        from_b.template load<Shape, Order>(b[group], col, group, k);
    }
  };
  // Words of a lane for operands that it reads from shared memory: of one step, and of the next one.
  static constexpr int words_of_a = mfma_in_registers<FromA> ? 0 : int(sizeof(Step::a)) / 4;
  static constexpr int words = smaller(2, count) * (words_of_a + int(sizeof(Step::b)) / 4);
};

// C += A B. a: a shared tile M x K, tl::transposed of one stored K x M, or a fragment with MfmaOperandA; b: a shared
// tile K x N, or tl::transposed of one stored N x K. A shared tile may be tl::rows or tl::cols of one. The operands of
// the next step of K are loaded before the MFMAs of this one.
// Called by: every wave of C's layout. Reads shared memory without a barrier.
template <class A, class B, class T, int M, int N, class W, class I, class Shape>
TL_DEVICE void gemm(const A& a, const B& b, Fragment<T, MfmaAccumulator<M, N, W, I, Shape>>& C) {
  using Layout = MfmaAccumulator<M, N, W, I, Shape>;
  const auto from_a = mfma_operand_a(a);
  const auto from_b = mfma_operand_b(b);
  using Steps = MfmaSteps<std::decay_t<decltype(from_a)>, std::decay_t<decltype(from_b)>, Layout>;
  constexpr int n = I::count;

  TL_OPERAND_READS(typename Steps::Ta);
  const int row = Layout::first_row(), col = Layout::first_col();
  typename Steps::Step step[2];
  step[0].load(from_a, from_b, row, col, 0);
  TL_UNROLL
  for (int k = 0; k < Steps::count; ++k) {
    if (k + 1 < Steps::count) step[(k + 1) % 2].load(from_a, from_b, row, col, (k + 1) * Steps::Order::step);
    TL_UNROLL
    for (int first = 0; first < Steps::items; first += Steps::each) TL_UNROLL
    for (int m = 0; m < Layout::m_tiles; ++m) TL_UNROLL
    for (int tile = 0; tile < Layout::n_groups * n; ++tile) {
      T d[Shape::items];
      TL_UNROLL
      for (int i = 0; i < Shape::items; ++i) d[i] = C.reg[Layout::register_of(m, tile / n, tile % n, i)];
      mfma<Shape::size, Steps::each>(d, &step[k % 2].b[tile / n][tile % n].at[first], &step[k % 2].a[m][0].at[first]);
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
