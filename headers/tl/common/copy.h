// Copies between global memory, shared memory and registers. Elements are converted if the types differ.
#pragma once
#include "chunks.h"
#include "in_bytes.h"
#include "parallel.h"
#include "tensor.h"

namespace tl {

template <class X> struct IsPlace {
  static constexpr bool value = false;
};
template <class View> struct IsPlace<Place<View>> {
  static constexpr bool value = true;
};
template <class X> struct IsSharedTile {
  static constexpr bool value = false;
};
template <class T, int rows, int cols, class Swizzle> struct IsSharedTile<SharedTile<T, rows, cols, Swizzle>> {
  static constexpr bool value = true;
};
template <class T, int n, class Swizzle> struct IsSharedTile<SharedTile1D<T, n, Swizzle>> {
  static constexpr bool value = true;
};
template <class Tile, int rows, int cols> struct IsSharedTile<SubTile<Tile, rows, cols>> {
  static constexpr bool value = true;
};
template <class Tile, int n, class Start> struct IsSharedTile<SubTile1D<Tile, n, Start>> {
  static constexpr bool value = true;
};
template <class X> constexpr bool is_place = IsPlace<std::decay_t<X>>::value;
template <class X> constexpr bool is_shared_tile = IsSharedTile<std::decay_t<X>>::value;

// ---- memory to memory: executed by all `threads` threads; no barriers ---------------------------------------------

// Copies a tile of Tile's shape in chunks of `bytes` bytes. Each step has up to 16 chunks in flight per thread, so that
// a large tile does not exceed the registers.
template <int threads, int bytes, class Tile, class From, class To>
TL_DEVICE void copy_chunks(const From& from, To&& to) {
  constexpr int vector = elements_in<typename Tile::type>(bytes);
  using Pieces = ChunksOf<threads, Tile, vector>;
  constexpr int steps = (Pieces::iterations + 15) / 16, at_once = (Pieces::iterations + steps - 1) / steps;
  TL_NO_UNROLL
  for (int step = 0; step < steps; ++step) {
    TL_UNROLL
    for (int i = 0; i < at_once; ++i) {
      const int iteration = step * at_once + i;
      if ((steps * at_once == Pieces::iterations || iteration < Pieces::iterations) && Pieces::valid(iteration))
        chunk<vector>(to, Pieces::row(iteration), Pieces::col(iteration)) =
            chunk<vector>(from, Pieces::row(iteration), Pieces::col(iteration));
    }
  }
}
// The same for rows of unknown alignment: the global side is accessed element by element, and the loop is unrolled
// little to limit code size.
template <int threads, int bytes, class Tile, class From, class To>
TL_DEVICE void copy_elements(const From& from, To&& to) {
  constexpr int vector = elements_in<typename Tile::type>(bytes);
  using Pieces = ChunksOf<threads, Tile, vector>;
  TL_UNROLL_LITTLE
  for (int iteration = 0; iteration < Pieces::iterations; ++iteration)
    if (Pieces::valid(iteration))
      chunk<vector>(to, Pieces::row(iteration), Pieces::col(iteration)) =
          chunk<vector>(from, Pieces::row(iteration), Pieces::col(iteration));
}

// The widest chunk that both sides move in one access.
template <class Tile, class Other> TL_BOTH constexpr int chunk_bytes_with() {
  constexpr int most = elements_in<typename Other::type>(16);
  return smaller(Tile::chunk_bytes, bytes_of<typename Tile::type>(most));
}

// Called by: `threads` threads of the block, from thread 0 on. Contains no barrier: tl::sync_threads must follow before
// other threads read `to`.
template <int threads, class View, class Tile>
TL_DEVICE std::enable_if_t<is_shared_tile<Tile> && !goes_in_bytes<View, Tile>> copy(const Place<View>& from, Tile& to) {
  constexpr int bytes = chunk_bytes_with<Tile, Place<View>>();
  constexpr int from_bytes = bytes_of<typename View::type>(elements_in<typename Tile::type>(bytes));
  static_assert(View::rank == Tile::rank, "slice the other dimensions first: A(b, tl::all, tl::all).tile(i, j)");
  if constexpr (View::alignment != 0) {
    copy_chunks<threads, bytes, Tile>(from, to);
  } else {
    if (from.aligned(from_bytes))
      copy_chunks<threads, bytes, Tile>(from.template with_row_start<from_bytes>(), to);
    else
      copy_elements<threads, bytes, Tile>(from.template with_row_start<bytes_of<typename View::type>(1)>(), to);
  }
}
template <int threads, class Tile, class View>
TL_DEVICE std::enable_if_t<is_shared_tile<Tile> && !goes_in_bytes<Tile, View>> copy(const Tile& from,
                                                                                    const Place<View>& to) {
  constexpr int bytes = chunk_bytes_with<Tile, Place<View>>();
  constexpr int to_bytes = bytes_of<typename View::type>(elements_in<typename Tile::type>(bytes));
  static_assert(View::rank == Tile::rank, "slice the other dimensions first: A(b, tl::all, tl::all).tile(i, j)");
  if constexpr (View::alignment != 0) {
    copy_chunks<threads, bytes, Tile>(from, to);
  } else {
    if (to.aligned(to_bytes))
      copy_chunks<threads, bytes, Tile>(from, to.template with_row_start<to_bytes>());
    else
      copy_elements<threads, bytes, Tile>(from, to.template with_row_start<bytes_of<typename View::type>(1)>());
  }
}
template <int threads, class From, class To>
TL_DEVICE std::enable_if_t<is_shared_tile<From> && is_shared_tile<To> && !goes_in_bytes<From, To>> copy(
    const From& from, To& to) {
  static_assert(From::rows == To::rows && From::cols == To::cols, "both tiles have the same shape");
  constexpr int elements =
      smaller(elements_in<typename From::type>(From::chunk_bytes), elements_in<typename To::type>(To::chunk_bytes));
  copy_chunks<threads, bytes_of<typename To::type>(elements), To>(from, to);
}

template <int threads, class From, class To>
TL_DEVICE std::enable_if_t<goes_in_bytes<From, To>> copy(const From& from, To&& to) {
  auto&& bytes = in_bytes(to);
  copy<threads>(in_bytes(from), bytes);
}

// ---- registers to or from memory: executed by every thread of the block; replicas do not store --------------------

// The elements of `vector` registers from r on, as a vector of the shared tile or tensor tile `memory`.
template <int vector, class Layout, class Memory> TL_DEVICE auto packet_at(Memory&& memory, int r) {
  static_assert(std::decay_t<Memory>::rank == Layout::rank, "the fragment and the destination have the same rank");
  if constexpr (Layout::rank == 1)
    return memory.template packet<vector>(Layout::template coordinate<0>(r));
  else if constexpr (Layout::rank == 2)
    return memory.template packet<vector>(Layout::template coordinate<0>(r), Layout::template coordinate<1>(r));
  else
    return memory.template packet<vector>(Layout::template coordinate<0>(r), Layout::template coordinate<1>(r),
                                          Layout::template coordinate<2>(r));
}

// The same for a tile of a tensor; zeros if this lane holds no element in register r.
template <int vector, class Layout, class View> TL_DEVICE auto packet_or_zeros(const Place<View>& memory, int r) {
  const bool wanted = Layout::valid(r);
  if constexpr (Layout::rank == 1)
    return memory.template packet_if<vector>(wanted, Layout::template coordinate<0>(r));
  else if constexpr (Layout::rank == 2)
    return memory.template packet_if<vector>(wanted, Layout::template coordinate<0>(r),
                                             Layout::template coordinate<1>(r));
  else
    return memory.template packet_if<vector>(wanted, Layout::template coordinate<0>(r),
                                             Layout::template coordinate<1>(r), Layout::template coordinate<2>(r));
}

// Whether a layout of one or two dimensions names its extents. (clang treats two partial specialisations with
// std::void_t as the same one: CWG 1558.)
template <class...> struct IfNamed {
  using type = void;
};
template <class Layout, class = void> constexpr bool knows_extents = false;
template <class Layout> constexpr bool knows_extents<Layout, typename IfNamed<decltype(Layout::extent)>::type> = true;
template <class Layout>
constexpr bool knows_extents<Layout, typename IfNamed<decltype(Layout::M), decltype(Layout::N)>::type> = true;
template <class Layout, class View> TL_DEVICE bool lies_inside(const Place<View>& place) {
  static_assert(View::rank == Layout::rank, "the fragment and the destination have the same rank");
  if constexpr (Layout::rank == 1)
    return place.holds({Layout::extent});
  else
    return place.holds({Layout::M, Layout::N});
}
// The number of registers per thread from which the test of the whole tile pays off: benchmarks/RESULTS.md, "Guards".
constexpr int registers_worth_a_test = 32;
// Calls `access` with the tile. If the whole tile is in bounds, which is one test uniform over the threads, the
// accesses are not predicated.
template <class Layout, class View, class Access> TL_DEVICE void guarded(const Place<View>& place, Access access) {
  if constexpr (View::guarded && Layout::registers >= registers_worth_a_test && knows_extents<Layout>) {
    if (lies_inside<Layout>(place)) return access(place.unguarded());
  }
  access(place);
}

template <int vector, class T, class Layout, class Memory>
TL_DEVICE void store_fragment(const Fragment<T, Layout>& from, Memory&& to) {
  if (Layout::replica() != 0) return;
  TL_UNROLL
  for (int r = 0; r < Layout::registers; r += vector)
    if (Layout::valid(r)) packet_at<vector, Layout>(to, r) = load_elements<vector, 1>(&from.reg[r]);
}
// Lanes that hold no element load zeros from a tensor, so that the load needs no branch.
template <int vector, class T, class Layout, class Memory>
TL_DEVICE void load_fragment(Memory&& from, Fragment<T, Layout>& to) {
  TL_UNROLL
  for (int r = 0; r < Layout::registers; r += vector) {
    const InRegisters<T, vector> registers{&to.reg[r]};
    if constexpr (is_place<Memory> && has_idle_lanes<Layout>)
      registers.store(convert<T>(value(packet_or_zeros<vector, Layout>(from, r))));
    else if (Layout::valid(r))
      registers.store(convert<T>(value(packet_at<vector, Layout>(from, r))));
  }
}

template <class T, class Layout, class View>
TL_DEVICE void copy(const Fragment<T, Layout>& from, const Place<View>& to) {
  constexpr int bytes = power_of_two_in(bytes_of<typename View::type>(Layout::vector));
  constexpr int width = smaller(bytes, 16);
  auto wide = [&](const auto& place) TL_INLINED_LAMBDA { store_fragment<Layout::vector>(from, place); };
  if constexpr (View::alignment != 0 || Layout::vector == 1) {
    guarded<Layout>(to, wide);
  } else {
    if (to.aligned(width))
      guarded<Layout>(to.template with_row_start<width>(), wide);
    else
      store_fragment<fewest_written<typename View::T>>(from, to);
  }
}
template <class View, class T, class Layout> TL_DEVICE void copy(const Place<View>& from, Fragment<T, Layout>& to) {
  constexpr int bytes = power_of_two_in(bytes_of<typename View::type>(Layout::vector));
  constexpr int width = smaller(bytes, 16);
  auto wide = [&](const auto& place) TL_INLINED_LAMBDA { load_fragment<Layout::vector>(place, to); };
  if constexpr (View::alignment != 0 || Layout::vector == 1) {
    guarded<Layout>(from, wide);
  } else {
    if (from.aligned(width))
      guarded<Layout>(from.template with_row_start<width>(), wide);
    else
      load_fragment<1>(from, to);
  }
}
// Stores a fragment transposed: its rows and columns are columns and rows of the tile. Accesses single elements.
template <class T, class Layout, class View>
TL_DEVICE void copy(const Transposed<Fragment<T, Layout>>& from, const Place<View>& to) {
  if (Layout::replica() != 0) return;
  TL_UNROLL
  for (int r = 0; r < Layout::registers; ++r) {
    const int row = Layout::template coordinate<0>(r), column = Layout::template coordinate<1>(r);
    if (Layout::valid(r)) to.template packet<1>(column, row) = load_elements<1, 1>(&from.tile.reg[r]);
  }
}

// The number of consecutive elements of a thread that are within one chunk of the shared tile.
template <class Layout, class Tile> TL_BOTH constexpr int vector_in() {
  return smaller(power_of_two_in(Layout::vector), elements_in<typename Tile::type>(Tile::chunk_bytes));
}
template <class T, class Layout, class Tile>
TL_DEVICE std::enable_if_t<is_shared_tile<Tile>> copy(const Fragment<T, Layout>& from, Tile& to) {
  store_fragment<vector_in<Layout, Tile>()>(from, to);
}
template <class Tile, class T, class Layout>
TL_DEVICE std::enable_if_t<is_shared_tile<Tile>> copy(const Tile& from, Fragment<T, Layout>& to) {
  load_fragment<vector_in<Layout, Tile>()>(from, to);
}

// ---- registers to registers --------------------------------------------------------------------------------------

template <class T, class U, class Layout>
TL_DEVICE void copy(const Fragment<T, Layout>& from, Fragment<U, Layout>& to) {
  constexpr int vector = Layout::registers % 2 == 0 ? 2 : 1;  // 16-bit types are converted in pairs
  TL_UNROLL
  for (int r = 0; r < Layout::registers; r += vector)
    InRegisters<U, vector>{&to.reg[r]}.store(convert<U>(load_elements<vector, 1>(&from.reg[r])));
}

// ---- filling a shared tile ---------------------------------------------------------------------------------------

// Called by: `threads` threads of the block, from thread 0 on.
template <int threads, class Tile, class X> TL_DEVICE std::enable_if_t<is_shared_tile<Tile>> fill(Tile& tile, X x) {
  constexpr int vector = elements_in<typename Tile::type>(Tile::chunk_bytes);
  using Pieces = ChunksOf<threads, Tile, vector>;
  TL_UNROLL
  for (int iteration = 0; iteration < Pieces::iterations; ++iteration)
    if (Pieces::valid(iteration)) chunk<vector>(tile, Pieces::row(iteration), Pieces::col(iteration)) = x;
}
template <int threads, class Tile> TL_DEVICE std::enable_if_t<is_shared_tile<Tile>> clear(Tile& tile) {
  fill<threads>(tile, typename Tile::type(0));
}

}  // namespace tl
