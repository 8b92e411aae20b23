// Loops over the elements of a layout.
#pragma once
#include "fragment.h"

namespace tl {

// The last index of a loop: one element, or a vector of them.
template <class Layout, int dim, int vector>
using LastIndex = std::conditional_t<vector == 1, Index<Layout, dim>, PacketIndex<Layout, dim, vector>>;

// Two-dimensional tensor core layouts with tiles of eight columns.
template <class Layout, class = void> constexpr int columns_in_eights = 0;
template <class Layout>
constexpr int columns_in_eights<Layout, std::void_t<decltype(Layout::n_tiles)>> = Layout::n_tiles;

// Layouts that need a test whether a lane holds an element; for the others valid() is a compile-time constant.
template <class Layout, class = void> constexpr bool has_idle_lanes = true;
template <class Layout> constexpr bool has_idle_lanes<Layout, std::enable_if_t<Layout::valid(0)>> = false;

// body(i, j) per group of 4 `vector` columns, of which this thread holds `vector` elements.
template <int vector, class Layout, class Body> TL_DEVICE void parallel_spread(Layout, const Body& body) {
  constexpr int row = columns_in_eights<Layout> * 4, step = vector * 2;  // registers of a row and of the row 8 below
  static_assert(row > 0 && row % step == 0, "a row is a whole number of vectors");
  TL_UNROLL
  for (int r = 0; r < Layout::registers; r += step) {
    TL_UNROLL
    for (int row_half = 0; row_half < 4; row_half += 2)
      body(Index<Layout, 0>{r + row_half}, SpreadIndex<Layout, 1, vector>{r + row_half});
  }
}

// body(i, j, ...) for the elements from register r on.
template <int vector, class Layout, class Body> TL_DEVICE void visit(const Body& body, int r) {
  if constexpr (Layout::rank == 1)
    body(LastIndex<Layout, 0, vector>{r});
  else if constexpr (Layout::rank == 2)
    body(Index<Layout, 0>{r}, LastIndex<Layout, 1, vector>{r});
  else if constexpr (Layout::rank == 3)
    body(Index<Layout, 0>{r}, Index<Layout, 1>{r}, LastIndex<Layout, 2, vector>{r});
  else
    body(Index<Layout, 0>{r}, Index<Layout, 1>{r}, Index<Layout, 2>{r}, LastIndex<Layout, 3, vector>{r});
}

// body(i, j, ...) for each element that this thread holds; with vector > 1 for each `vector` of them, and the last
// index is a vector. The body is instantiated once per loop; the register number is a constant in each iteration.
template <int vector = 1, class Layout, class Body> TL_DEVICE void parallel(Layout, const Body& body) {
  if constexpr (vector > Layout::vector && columns_in_eights<Layout> > 0) {
    parallel_spread<vector>(Layout{}, body);
  } else {
    static_assert(Layout::vector % vector == 0 || vector == 1, "each thread of the layout holds whole vectors");
    // Consecutive elements share one test, so that the compiler shares the computations that depend on the row only.
    constexpr int tested = has_idle_lanes<Layout> && Layout::registers % Layout::vector == 0 ? Layout::vector : vector;
    if constexpr (tested == vector) {
      TL_UNROLL
      for (int r = 0; r < Layout::registers; r += vector)
        if (Layout::valid(r)) visit<vector, Layout>(body, r);
    } else {
      TL_UNROLL
      for (int first = 0; first < Layout::registers; first += tested) {
        if (!Layout::valid(first)) continue;
        TL_UNROLL
        for (int r = first; r < first + tested; r += vector) visit<vector, Layout>(body, r);
      }
    }
  }
}

// The same for a body that accesses only registers, each only at the element of its iteration. Lanes that hold no
// element execute the body too; their results are not used. Without a branch the compiler merges the loop with its
// neighbours.
template <class Layout, class Body> TL_DEVICE void parallel_in_registers(Layout, const Body& body) {
  TL_UNROLL
  for (int r = 0; r < Layout::registers; ++r) visit<1, Layout>(body, r);
}

// to(i, j) = body(i, j) for each vector. All vectors are computed before the first is stored: loads of the body need
// not wait for stores, which the compiler cannot prove disjoint. `to` is a shared tile that the body does not read.
template <int vector, class Layout, class Tile, class Body>
TL_DEVICE void parallel_into(Layout, Tile& to, const Body& body) {
  static_assert(Layout::vector % vector == 0, "each thread of the layout holds whole vectors");
  static_assert(Layout::rank == 2 && Tile::rank == 2, "a two-dimensional tile");
  Vec<typename Tile::type, vector> computed[Layout::registers / vector];
  TL_UNROLL
  for (int r = 0; r < Layout::registers; r += vector) {
    if (!Layout::valid(r)) continue;
    const auto x = body(Index<Layout, 0>{r}, PacketIndex<Layout, 1, vector>{r});
    if constexpr (packet_size<decltype(x)> == 0) {  // one value for all elements of a vector
      TL_UNROLL
      for (int i = 0; i < vector; ++i) computed[r / vector].at[i] = convert<typename Tile::type>(x);
    } else {
      computed[r / vector] = convert<typename Tile::type>(value(x));
    }
  }
  TL_UNROLL
  for (int r = 0; r < Layout::registers; r += vector)
    if (Layout::valid(r)) to(Index<Layout, 0>{r}, PacketIndex<Layout, 1, vector>{r}) = computed[r / vector];
}

// Whether this thread stores its elements; the other threads hold copies of them.
template <class Layout> TL_DEVICE bool is_writer(Layout) { return Layout::replica() == 0; }

// The same loop, executed only by the threads that store: for bodies that write to memory and to no fragment.
template <int vector = 1, class Layout, class Body> TL_DEVICE void parallel_once(Layout layout, const Body& body) {
  if (is_writer(layout)) parallel<vector>(layout, body);
}

}  // namespace tl
