// Operands of mma.sync: loads the registers of one k step.
#pragma once
#include "fragment.h"
#include "mma_accumulator.h"
#include "shared_tile.h"

namespace tl {

// One k step of every MMA here is 32 bytes of K: k16 of 16-bit elements, k32 of 8-bit, k64 of 4-bit, k8 of float (as
// tf32) and k4 of double.
template <class T> constexpr int mma_k = elements_in<T>(32);

// The order of K in an MMA. Any order is correct if A and B use the same one. If A is a register-resident accumulator,
// the columns that a lane holds in the accumulator's layout take the positions of those that it holds in memory order.
enum class KOrder { memory, accumulator };

// ---- operands of one k step, for one warp -------------------------------------------------------------------------
// `row` or `col`: the first one of the warp's part; `m`: the number of its tile of 16 rows; `k`: the first of the step.

// An operand in shared memory: every warp can read all of it.
struct InSharedMemory {
  static constexpr KOrder order = KOrder::memory;
  template <class Warps> static constexpr bool fits = true;
};
// A word of an operand: one double, or consecutive k in 32 bits. Lane 4g + t holds the words t and, except for double,
// t + 4 of the step, in each line (a row of A, a column of B).
// [PTX ISA, "Matrix Fragments for mma.m16n8k8", "... for mma.m16n8k32", "... for mma.m16n8k64", "... for mma.m8n8k4
// with .f64"]
template <class T, KOrder order = KOrder::memory> struct MmaWord {
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  static constexpr int elements = sizeof(T) < 4 ? elements_in<T>(4) : 1;
  static constexpr int registers = sizeof(type) / 4, a_line = 2 / registers;

  // The k of element e of the lane's word h, in the step that starts at k.
  static TL_DEVICE int place(int k, int h, int e) {
    const int t = lane() % 4;
    if constexpr (order == KOrder::memory || sizeof(T) == 2)
      return k + t * elements + h * (mma_k<T> / 2) + e;
    else if constexpr (sizeof(T) == 1)
      return k + 16 * h + 8 * (e / 2) + 2 * t + e % 2;
    else if constexpr (sizeof(T) == 4)
      return k + 2 * t + h;
    else  // two steps share 8 of K
      return k / 8 * 8 + 2 * t + k % 8 / 4;
  }
  // Packs the elements into a register.
  static TL_DEVICE void pack(uint32_t* to, const T (&parts)[elements]) {
    if constexpr (is_packed<T>) {
      *to = 0;
      TL_UNROLL
      for (int e = 0; e < elements; ++e) *to |= static_cast<uint32_t>(parts[e].bits()) << 4 * e;
    } else {
      __builtin_memcpy(static_cast<void*>(to), parts, sizeof parts);
    }
  }
  // Loads word h into registers, element by element.
  template <class At> static TL_DEVICE void read(uint32_t* to, const At& at, int k, int h) {
    T parts[elements];
    TL_UNROLL
    for (int e = 0; e < elements; ++e) parts[e] = at(place(k, h, e));
    pack(to, parts);
  }
};
// Operands that ldmatrix cannot load: its transposition moves units of 16 bits, and each lane receives words of 32
// bits.
template <class Tile, bool transposed, KOrder order = KOrder::memory>
constexpr bool is_gathered = sizeof(typename Tile::type) == 8 ||
                             (sizeof(typename Tile::type) != 2 && (transposed || order == KOrder::accumulator));
// `at(line, k)` is the element of A's row or B's column.
template <class T, class At> TL_DEVICE void gather_a(uint32_t (&a)[4], const At& at, int row, int k) {
  using Word = MmaWord<T>;
  TL_UNROLL
  for (int h = 0; h < Word::a_line; ++h) TL_UNROLL
  for (int i = 0; i < 2; ++i) {
    const int line = row + 8 * i + lane() / 4;
    Word::read(a + (2 * h + i) * Word::registers, [&](int at_k) TL_INLINED_LAMBDA { return at(line, at_k); }, k, h);
  }
}
template <class T, KOrder order, class At> TL_DEVICE void gather_b(uint32_t* b, const At& at, int col, int k) {
  using Word = MmaWord<T, order>;
  TL_UNROLL
  for (int h = 0; h < Word::a_line; ++h)
    Word::read(b + h * Word::registers, [&](int at_k) TL_INLINED_LAMBDA { return at(col + lane() / 4, at_k); }, k, h);
}

// A stored M x K in shared memory: one ldmatrix loads its four matrices from 16 rows x 32 bytes.
template <class Tile> struct SharedA : InSharedMemory {
  using type = typename Tile::type;
  static constexpr int rows = Tile::rows, cols = Tile::cols;
  const Tile& tile;
  TL_DEVICE void load(uint32_t (&a)[4], int row, int m, int k) const {
    if constexpr (is_gathered<Tile, false>)
      gather_a<type>(a, [&](int line, int at_k) TL_INLINED_LAMBDA { return *tile.at(line, at_k); }, row + 16 * m, k);
    else
      ldmatrix_x4(a, tile.at(row + 16 * m + lane() % 16, k + lane() / 16 * (mma_k<type> / 2)));
  }
};
// A stored K x M in shared memory: the same matrices, loaded by a transposing ldmatrix.
template <class Tile> struct SharedTransposedA : InSharedMemory {
  using type = typename Tile::type;
  static constexpr int rows = Tile::cols, cols = Tile::rows;
  const Tile& tile;
  TL_DEVICE void load(uint32_t (&a)[4], int row, int m, int k) const {
    if constexpr (is_gathered<Tile, true>)
      gather_a<type>(a, [&](int line, int at_k) TL_INLINED_LAMBDA { return *tile.at(at_k, line); }, row + 16 * m, k);
    else
      ldmatrix_x4_trans(a, tile.at(k + lane() / 16 * 8 + lane() % 8, row + 16 * m + lane() / 8 % 2 * 8));
  }
};
// A in registers, with the layout of an accumulator: two neighbouring m16n8 tiles are one m16k16 operand.
template <class T, class Layout> struct RegisterA {
  using type = T;
  static constexpr int rows = Layout::M, cols = Layout::N;
  static constexpr KOrder order = KOrder::accumulator;
  template <class W> static constexpr bool fits = std::is_same<Layout, MmaOperandA<rows, cols, W>>::value;
  const Fragment<T, Layout>& fragment;
  TL_DEVICE void load(uint32_t (&a)[4], int, int m, int k) const {
    using Word = MmaWord<T>;
    TL_UNROLL
    for (int h = 0; h < Word::a_line; ++h) TL_UNROLL
    for (int i = 0; i < 2; ++i) {
      T parts[Word::elements];
      TL_UNROLL
      for (int e = 0; e < Word::elements; ++e) parts[e] = fragment.reg[register_of(m, k, h, i, e)];
      __builtin_memcpy(static_cast<void*>(a + (2 * h + i) * Word::registers), parts, sizeof parts);
    }
  }

 private:
  // The register that holds element e of word h of row half i: selects the m16n8 tile, then the row half and the
  // element.
  static TL_DEVICE constexpr int register_of(int m, int k, int h, int i, int e) {
    constexpr int size = sizeof(T);
    const int tile = m * Layout::n_tiles + k / 8 + (size == 1 ? 2 * h + e / 2 : size == 2 ? h : 0);
    return tile * 4 + 2 * i + (size <= 2 ? e % 2 : size == 4 ? h : k % 8 / 4);
  }
};

// B stored K x N in shared memory: a transposing ldmatrix loads 16 of K x 16 columns, the operands of two MMAs.
template <class Tile, KOrder k_order> struct SharedB : InSharedMemory {
  using type = typename Tile::type;
  static constexpr int rows = Tile::rows, cols = Tile::cols;
  const Tile& tile;
  TL_DEVICE void load_pair(uint32_t (&b)[4], int k, int col, int n) const {
    if constexpr (is_gathered<Tile, true, k_order>) {
      load_one(b, k, col, n);
      load_one(b + 2, k, col, n + 1);
    } else {
      ldmatrix_x4_trans(b, tile.at(k + lane() % 16, col + 8 * n + lane() / 16 * 8));
    }
  }
  TL_DEVICE void load_one(uint32_t* b, int k, int col, int n) const {
    if constexpr (is_gathered<Tile, true, k_order>)
      gather_b<type, k_order>(
          b, [&](int line, int at_k) TL_INLINED_LAMBDA { return *tile.at(at_k, line); }, col + 8 * n, k);
    else
      ldmatrix_x2_trans(b, tile.at(k + lane() % 16, col + 8 * n));
  }
};
// B stored N x K in shared memory.
template <class Tile, KOrder k_order> struct SharedTransposedB : InSharedMemory {
  using type = typename Tile::type;
  static constexpr int rows = Tile::cols, cols = Tile::rows, half_step = mma_k<type> / 2;
  const Tile& tile;
  TL_DEVICE void load_pair(uint32_t (&b)[4], int k, int col, int n) const {
    if constexpr (is_gathered<Tile, false, k_order>) {
      load_one(b, k, col, n);
      load_one(b + 2, k, col, n + 1);
    } else {
      ldmatrix_x4(b, tile.at(col + 8 * n + lane() / 16 * 8 + lane() % 8, k + lane() / 8 % 2 * half_step));
    }
  }
  TL_DEVICE void load_one(uint32_t* b, int k, int col, int n) const {
    if constexpr (is_gathered<Tile, false, k_order>)
      gather_b<type, k_order>(
          b, [&](int line, int at_k) TL_INLINED_LAMBDA { return *tile.at(line, at_k); }, col + 8 * n, k);
    else
      ldmatrix_x2(b, tile.at(col + 8 * n + lane() % 8, k + lane() / 8 % 2 * half_step));
  }
};
// B in registers.
template <class T, class Registers, class Layout> struct RegisterB {
  using type = T;
  static constexpr int rows = Registers::k_tiles * 8, cols = Registers::along_n::extent;
  static_assert(is_small_float<T>, "a register operand is half or bfloat16");
  template <class W> static constexpr bool fits = std::is_same<typename Registers::Warps, W>::value;
  const Fragment<T, Layout>& fragment;
  TL_DEVICE void load_one(uint32_t (&b)[2], int k, int, int n) const {
    const T* const reg = fragment.reg + (n * Registers::k_tiles + k / 8) * 2;
    TL_UNROLL
    for (int i = 0; i < 2; ++i) b[i] = pack_bits(reg[2 * i], reg[2 * i + 1]);
  }
  TL_DEVICE void load_pair(uint32_t (&b)[4], int k, int col, int n) const {
    uint32_t one[2][2];
    load_one(one[0], k, col, n);
    load_one(one[1], k, col, n + 1);
    TL_UNROLL
    for (int i = 0; i < 4; ++i) b[i] = one[i / 2][i % 2];
  }
};

template <class T, int rows, int cols, class S> TL_DEVICE auto operand_a(const SharedTile<T, rows, cols, S>& tile) {
  return SharedA<SharedTile<T, rows, cols, S>>{{}, tile};
}
template <class Tile> TL_DEVICE auto operand_a(const Transposed<Tile>& a) {
  return SharedTransposedA<Tile>{{}, a.tile};
}
template <class T, class Layout> TL_DEVICE auto operand_a(const Fragment<T, Layout>& a) {
  return RegisterA<T, Layout>{a};
}
template <class Tile, int rows, int cols> TL_DEVICE auto operand_a(const SubTile<Tile, rows, cols>& tile) {
  return SharedA<SubTile<Tile, rows, cols>>{{}, tile};
}
template <KOrder order, class T, int rows, int cols, class S>
TL_DEVICE auto operand_b(const SharedTile<T, rows, cols, S>& tile) {
  return SharedB<SharedTile<T, rows, cols, S>, order>{{}, tile};
}
template <KOrder order, class Tile> TL_DEVICE auto operand_b(const Transposed<Tile>& b) {
  return SharedTransposedB<Tile, order>{{}, b.tile};
}
template <KOrder order, class Tile, int rows, int cols>
TL_DEVICE auto operand_b(const SubTile<Tile, rows, cols>& tile) {
  return SharedB<SubTile<Tile, rows, cols>, order>{{}, tile};
}
template <KOrder order, class T, int K, int N, class W>
TL_DEVICE auto operand_b(const Fragment<T, MmaOperandB<K, N, W>>& b) {
  return RegisterB<T, MmaRegistersB<K, N, W>, MmaOperandB<K, N, W>>{b};
}
template <KOrder order, class T, int N, int K, class W>
TL_DEVICE auto operand_b(const Transposed<Fragment<T, MmaTransposedOperandB<N, K, W>>>& b) {
  return RegisterB<T, MmaRegistersB<K, N, W>, MmaTransposedOperandB<N, K, W>>{b.tile};
}

}  // namespace tl
