// Lines of a few elements that each turn of a pipelined loop loads by its threads: a turn ahead, in registers.
#pragma once
#include "../copy.h"

namespace tl {

// What `threads` threads hold of n elements on their way from a tensor to shared memory.
template <class T, int n, int threads> struct LineAhead {
  static constexpr int each = (n + threads - 1) / threads;
  T element[each];
};

// Starts to load the line at `from`; the registers are there when they are used. Places outside of the tensor are zero.
// All threads compute their address: what a branch computes stands in front of the products that follow.
// Who: `threads` threads, from thread 0 on.
template <class View, class T, int n, int threads>
TL_DEVICE void load(const Place<View>& from, LineAhead<T, n, threads>& to) {
  static_assert(std::is_same<typename View::T, T>::value, "the line has the tensor's elements");
  TL_UNROLL
  for (int turn = 0; turn < LineAhead<T, n, threads>::each; ++turn) {
    const int i = turn * threads + thread();
    const auto* const place = from.address(i);
    const bool inside = i < n && from.view.inside(0, from.offset[0] + i);
    if constexpr (sizeof(T) == 4)
      to.element[turn] = inside ? bit_cast<T>(load4(place)) : T(0);
    else
      to.element[turn] = inside ? bit_cast<T>(Vec<T, 1>(value(chunk<1>(from, 0, i)))) : T(0);
  }
}

// Stores what has been loaded, converted to the tile's type. Who: the threads that loaded it. Orders nothing: a barrier
// must follow before others read `to`.
template <class T, int n, int threads, class Tile>
TL_DEVICE void store(const LineAhead<T, n, threads>& from, Tile& to) {
  TL_UNROLL
  for (int turn = 0; turn < LineAhead<T, n, threads>::each; ++turn) {
    const int i = turn * threads + thread();
    if (i < n) to(i) = convert<typename Tile::type>(from.element[turn]);
  }
}

}  // namespace tl
