// Includes for kernels in ck_tile's style: ck_tile's tiles, tl's launchers and scalar functions, and functions that
// ck_tile lacks: tiles in LDS with tl's swizzles, windows over pipeline stages, a block GEMM whose warps own contiguous
// parts of C, reductions across warps. C++17. Besides ck_tile's public names, reduce_across_warps uses two of its
// details, get_partition_index and does_p_own_r_ of an encoding.
#pragma once
#include "ck_base.h"
#include "ck_lds.h"

namespace tl {

// ---- warp GEMMs -----------------------------------------------------------------------------------------------------
// The warp GEMM of an instruction with a transposed C, for instructions of which WarpGemmMfmaDispatcher has none. The
// instruction's first operand is B.
template <class Instruction>
using TransposedWarpGemm = ck_tile::WarpGemmImpl<ck_tile::WarpGemmAtrributeMfmaTransposedCDistribution<Instruction>>;

// The `count` elements of a thread from `first` on become those of another tile, as whole words: single bytes would be
// in registers of their own.
template <int first, int count, class To, class From> CK_TILE_DEVICE void copy_elements(To& to, const From& from) {
  using namespace ck_tile;
  constexpr int bytes = count * static_cast<int>(sizeof(typename From::DataType));
  __builtin_memcpy(&to.get_thread_buffer()(number<0>{}), &from.get_thread_buffer()[number<first>{}], bytes);
}

// ---- block GEMM -----------------------------------------------------------------------------------------------------
// C += A B of tiles in registers, by warp GEMMs with TransposeC whose warps own contiguous parts of C: ck_tile's block
// GEMMs distribute single instructions to warps round-robin. Registers: A (m, k), B (group, t, k), C (m, group, q, t,
// r): Interleave::count instructions t share a group of columns, in which a lane holds runs of neighbours. All threads.
template <class WarpGemm, int K, class Interleave = Interleave<1>, class C, class A, class B>
CK_TILE_DEVICE void block_gemm(C& c, const A& a, const B& b) {
  using namespace ck_tile;
  using AWarp = typename WarpGemm::AWarpTensor;
  using BWarp = typename WarpGemm::BWarpTensor;
  using CWarp = typename WarpGemm::CWarpTensor;
  constexpr int in_a = AWarp::get_thread_buffer_size(), in_b = BWarp::get_thread_buffer_size();
  constexpr int in_c = CWarp::get_thread_buffer_size(), run = 4, k = K / WarpGemm::kK, count = Interleave::count;
  constexpr int m = A::get_thread_buffer_size() / (k * in_a), n = B::get_thread_buffer_size() / (k * in_b);
  static_assert(K % WarpGemm::kK == 0 && n % count == 0 && C::get_thread_buffer_size() == m * n * in_c,
                "the tiles are operands of one GEMM");
  static_for<0, k, 1>{}([&](auto step) {
    static_for<0, m, 1>{}([&](auto row) {
      AWarp a_warp;
      copy_elements<(row * k + step) * in_a, in_a>(a_warp, a);
      static_for<0, n, 1>{}([&](auto column) {
        constexpr int group = column / count, t = column % count;
        BWarp b_warp;
        CWarp c_warp;
        copy_elements<(column * k + step) * in_b, in_b>(b_warp, b);
        const auto place = [=](auto e) {
          return number<(row * n + group * count) * in_c + (e / run * count + t) * run + e % run>{};
        };
        static_for<0, in_c, 1>{}([&](auto e) { c_warp.get_thread_buffer()(e) = c.get_thread_buffer()[place(e)]; });
        WarpGemm{}(c_warp, a_warp, b_warp);
        static_for<0, in_c, 1>{}([&](auto e) { c.get_thread_buffer()(place(e)) = c_warp.get_thread_buffer()[e]; });
      });
    });
  });
}

// ---- reductions -----------------------------------------------------------------------------------------------------
// Functions for block_tile_reduce, besides ck_tile's ReduceOp::Add: NaN and a number give the number.
template <class Op> struct Combine {
  template <class T> CK_TILE_DEVICE T operator()(T a, T b) const { return Op::combine(a, Op::of(b)); }
};
using Maximum = Combine<ReduceMax>;
using Minimum = Combine<ReduceMin>;
using AbsSum = Combine<ReduceAbsSum>;
using AbsMaximum = Combine<ReduceAbsMax>;

// Places of a tile at or beyond `extent` of dimension `dim` become `value`: ck_tile's set_tile_if has two dimensions.
template <int dim, class Tile, class T> CK_TILE_DEVICE void set_tile_beyond(Tile& tile, int extent, T value) {
  using namespace ck_tile;
  sweep_tile(tile, [&](auto at) {
    const auto indices = get_x_indices_from_distributed_indices(Tile::get_tile_distribution(), at);
    if (indices[number<dim>{}] >= extent) tile(at) = value;
  });
}

// block_tile_reduce of dimension `dim` of a tile of any rank: ck_tile's reduces the second of two. Of a tile of one
// dimension `into` is of OneValue.
template <int dim, class Into, class Tile, class Function>
CK_TILE_DEVICE void block_tile_reduce_dimension(Into& into, const Tile& tile, const Function& f) {
  using namespace ck_tile;
  constexpr int rank = Tile::get_num_of_dimension();
  sweep_tile(tile, [&](auto at) {
    if constexpr (rank == 1) {
      auto value = into.get_thread_buffer()[number<0>{}];
      into.get_thread_buffer()(number<0>{}) = f(value, tile[at]);
    } else {
      constexpr auto kept =
          generate_tuple([](auto d) { return decltype(at){}[number<(d < dim ? d : d + 1)>{}]; }, number<rank - 1>{});
      auto value = into[kept];
      into(kept) = f(value, tile[at]);
    }
  });
}

// The distribution of one value of which every thread of the block holds a part, or a copy.
template <int threads>
using OneValue = std::conditional_t<
    (threads > 64),
    ck_tile::tile_distribution_encoding<ck_tile::sequence<threads / 64, 64>, ck_tile::tuple<ck_tile::sequence<1>>,
                                        ck_tile::tuple<ck_tile::sequence<0>, ck_tile::sequence<0>>,
                                        ck_tile::tuple<ck_tile::sequence<0>, ck_tile::sequence<1>>,
                                        ck_tile::sequence<1>, ck_tile::sequence<0>>,
    ck_tile::tile_distribution_encoding<ck_tile::sequence<64>, ck_tile::tuple<ck_tile::sequence<1>>,
                                        ck_tile::tuple<ck_tile::sequence<0>>, ck_tile::tuple<ck_tile::sequence<0>>,
                                        ck_tile::sequence<1>, ck_tile::sequence<0>>>;

// How many warps hold a part of each value.
template <class Encoding> CK_TILE_DEVICE constexpr int parts_of_warps() {
  int parts = 1;
  ck_tile::static_for<0, Encoding::NDimR, 1>{}([&](auto r) {
    if constexpr (Encoding::detail::does_p_own_r_[0][r]) parts *= Encoding::rs_lengths_[r];
  });
  return parts;
}

// Combines the values that warps hold for the same row: each warp writes its own to LDS, all threads read all. All
// threads of the block. A barrier precedes the reads, and one the writes, unless `ordered`: no earlier reads precede
// them, or other barriers follow these.
template <bool ordered = false, class Rows, class T, int size, class Function>
CK_TILE_DEVICE void reduce_across_warps(Rows& rows, T (&workspace)[size], const Function& f) {
  using namespace ck_tile;
  using Encoding = typename Rows::StaticTileDistribution::DstrEncode;
  constexpr auto distribution = Rows::get_tile_distribution();
  constexpr int length = distribution.get_lengths()[number<0>{}], parts = parts_of_warps<Encoding>();
  constexpr int extent = size / parts;  // behind which there are idle places
  static_assert(extent * parts == size && extent <= length, "the workspace is of the values of a row");
  const auto rs = distribution.calculate_rs_index_from_ps_index(detail::get_partition_index(distribution));
  int part = 0;
  static_for<0, Encoding::NDimR, 1>{}([&](auto r) {
    if constexpr (Encoding::detail::does_p_own_r_[0][r]) part = part * Encoding::rs_lengths_[r] + rs[r];
  });
  const auto row_of = [&](auto i) { return get_x_indices_from_distributed_indices(distribution, i)[number<0>{}]; };
  if constexpr (!ordered) block_sync_lds();
  sweep_tile(rows, [&](auto i) {
    if (const int row = row_of(i); extent == length || row < extent) workspace[part * extent + row] = rows(i);
  });
  block_sync_lds();
  sweep_tile(rows, [&](auto i) {
    const int row = extent == length ? row_of(i) : tl::min(static_cast<int>(row_of(i)), extent - 1);
    T found = workspace[row];
    TL_UNROLL
    for (int other = 1; other < parts; ++other) found = f(found, workspace[other * extent + row]);
    rows(i) = found;
  });
}

// ---- packed dot products --------------------------------------------------------------------------------------------
// sum + the four 2-bit numbers of a byte, the lowest bits first, less `less` each, times y[0] to y[3]: v_dot4. y is
// aligned to 4 bytes. [CDNA3 ISA, "VOP3P: V_DOT4_I32_I8"]
CK_TILE_DEVICE int dot_of_quarters(uint8_t quarters, int less, const int8_t* y, int sum) {
  const uint32_t four = *reinterpret_cast<const uint32_t*>(y);
  const uint32_t halves = (quarters | quarters << 12) & 0x000f000f;
  const uint32_t bytes = (halves | halves << 6) & 0x03030303;
  return dot_of_bytes(bytes, four, sum - less * dot_of_bytes(0x01010101, four, 0));
}

// ---- votes ----------------------------------------------------------------------------------------------------------
// Whether an element of two tiles of one distribution differs, or is infinite, in any thread of the wave. Whole waves.
template <class Tile> CK_TILE_DEVICE bool any_changed(const Tile& a, const Tile& b) {
  using namespace ck_tile;
  bool found = false;
  static_for<0, Tile::get_thread_buffer_size(), 1>{}([&](auto i) {
    const auto x = a.get_thread_buffer()[i];
    found = found || x != b.get_thread_buffer()[i] || tl::abs(x) == infinity<std::decay_t<decltype(x)>>;
  });
  return ballot(found) != 0;
}

// The registers of an accumulator as vectors of 4, as MFMA writes them: of single values that are merged behind a
// branch clang 19 copies all to other registers.
template <class Tile> struct RunsOf {
  using Run = float __attribute__((ext_vector_type(4)));
  static constexpr int count = Tile::get_thread_buffer_size() / 4;
  Run runs[count];

  CK_TILE_DEVICE explicit RunsOf(const Tile& tile) {
    ck_tile::static_for<0, 4 * count, 1>{}([&](auto i) { runs[i / 4][i % 4] = tile.get_thread_buffer()[i]; });
  }
  // The empty assembly takes whole vectors, so that the compiler merges no single values in front of it.
  CK_TILE_DEVICE void keep_whole() {
    TL_UNROLL
    for (int i = 0; i < count; ++i) asm("" : "+v"(runs[i]));
  }
  CK_TILE_DEVICE void store_to(Tile& tile) const {
    ck_tile::static_for<0, 4 * count, 1>{}([&](auto i) { tile.get_thread_buffer()(i) = runs[i / 4][i % 4]; });
  }
};

// Multiplies the rows of an accumulator by `factor` where `wanted` holds, which is the same for all lanes of the wave.
// Whole waves.
template <class Tile, class Rows> CK_TILE_DEVICE void scale_rows_if(bool wanted, Tile& tile, const Rows& factor) {
  using namespace ck_tile;
  RunsOf<Tile> values(tile);
  constexpr int in_row = values.count / Rows::get_thread_buffer_size();
  static_assert(in_row * Rows::get_thread_buffer_size() == values.count,
                "the registers of a row are one after another");
  if (wanted)
    static_for<0, values.count, 1>{}(
        [&](auto run) { values.runs[run] *= factor.get_thread_buffer()[number<run / in_row>{}]; });
  values.store_to(tile);
}

// change(), which changes the accumulator `tile`, where `wanted` holds.
template <class Tile, class Change> CK_TILE_DEVICE void change_if(bool wanted, Tile& tile, const Change& change) {
  RunsOf<Tile> values(tile);
  if (wanted) {
    change();
    values = RunsOf<Tile>(tile);
  }
  values.keep_whole();
  values.store_to(tile);
}

// ---- conversions ----------------------------------------------------------------------------------------------------
// cast_tile of floats to halves, two at a time, rounded to nearest even: ck_tile's converts single values and packs
// pairs of them by another instruction.
template <class Half, class Tile> CK_TILE_DEVICE auto cast_tile(const Tile& tile) {
  using namespace ck_tile;
  static_assert(std::is_same_v<Half, half> && std::is_same_v<typename Tile::DataType, float>);
  constexpr int count = Tile::get_thread_buffer_size();
  auto result = make_static_distributed_tensor<half>(Tile::get_tile_distribution());
  static_for<0, count / 2, 1>{}([&](auto i) {
    const auto pair = tile.get_thread_buffer().template get_as<array<float, 2>>(i);
    result.get_thread_buffer().template set_as<uint32_t>(i, pack2(pair[0], pair[1], half()));
  });
  if constexpr (count % 2 > 0)
    result.get_thread_buffer()(number<count - 1>{}) = half(tile.get_thread_buffer()[number<count - 1>{}]);
  return result;
}

// Each element of a tile in LDS becomes `value`. All `threads` threads.
template <int threads, class T, class Layout> CK_TILE_DEVICE void fill_tile(LdsTile<T, Layout>& tile, T value) {
  for (int i = static_cast<int>(threadIdx.x); i < tile.elements; i += threads) tile.data[i] = value;
}

}  // namespace tl
