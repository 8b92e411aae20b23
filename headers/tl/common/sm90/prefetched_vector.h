// Short vectors that the threads of a pipelined loop prefetch into registers, one iteration ahead.
#pragma once
#include "../copy.h"

namespace tl {

// The registers of `threads` threads for n elements, between the load from a tensor and the store to shared memory.
template <class T, int n, int threads> struct PrefetchedVector {
  static constexpr int each = (n + threads - 1) / threads;
  T element[each];
};

// Issues the loads of the vector at `from`; the first use of the registers waits for them. Elements outside of the
// tensor are zero. All threads compute their address: in a branch the compiler would compute it before the MMAs that
// follow. Called by: `threads` threads, from thread 0 on.
template <class View, class T, int n, int threads>
TL_DEVICE void load(const Place<View>& from, PrefetchedVector<T, n, threads>& to) {
  static_assert(std::is_same<typename View::T, T>::value, "the vector has the tensor's element type");
  TL_UNROLL
  for (int step = 0; step < PrefetchedVector<T, n, threads>::each; ++step) {
    const int i = step * threads + thread();
    const auto* const place = from.address(i);
    const bool inside = i < n && from.view.inside(0, wrapping_add(from.offset[0], i));
    if constexpr (sizeof(T) == 4)
      to.element[step] = inside ? bit_cast<T>(load4(place)) : T(0);
    else
      to.element[step] = inside ? bit_cast<T>(Vec<T, 1>(value(chunk<1>(from, 0, i)))) : T(0);
  }
}

// Stores the loaded elements, converted to the tile's type. Called by: the threads that loaded them. Contains no
// barrier: one must follow before other threads read `to`.
template <class T, int n, int threads, class Tile>
TL_DEVICE void store(const PrefetchedVector<T, n, threads>& from, Tile& to) {
  TL_UNROLL
  for (int step = 0; step < PrefetchedVector<T, n, threads>::each; ++step) {
    const int i = step * threads + thread();
    if (i < n) to(i) = convert<typename Tile::type>(from.element[step]);
  }
}

}  // namespace tl
