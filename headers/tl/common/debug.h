// Assertions and printing in kernels.
#pragma once
#include "copy.h"
#include "math.h"

namespace tl {

// Aborts the launch with an error if the condition is false. The CPU engine reports the source line; a GPU prints the
// thread and the message. Any thread.
TL_DEVICE void device_assert(bool condition, const char* message = "a condition of the kernel does not hold") {
  if (!condition) assertion_failed(message);
}

// Prints a line with a name, the coordinate of an element (the first `rank` of i, j, k), its value, its block and its
// thread.
TL_DEVICE void print_line(const char* name, int rank, int i, int j, int k, double value) {
  const unsigned x = blockIdx.x, y = blockIdx.y, z = blockIdx.z;
  const int t = thread();
  if (rank == 0) print_text("%s = %g in block (%u, %u, %u), thread %d\n", name, value, x, y, z, t);
  if (rank == 1) print_text("%s(%d) = %g in block (%u, %u, %u), thread %d\n", name, i, value, x, y, z, t);
  if (rank == 2) print_text("%s(%d, %d) = %g in block (%u, %u, %u), thread %d\n", name, i, j, value, x, y, z, t);
  if (rank == 3) print_text("%s(%d, %d, %d) = %g in block (%u, %u, %u), thread %d\n", name, i, j, k, value, x, y, z, t);
}
TL_DEVICE void print_line(const char* name, int rank, int i, int j, int k, long long value) {
  const unsigned x = blockIdx.x, y = blockIdx.y, z = blockIdx.z;
  const int t = thread();
  if (rank == 0) print_text("%s = %lld in block (%u, %u, %u), thread %d\n", name, value, x, y, z, t);
  if (rank == 1) print_text("%s(%d) = %lld in block (%u, %u, %u), thread %d\n", name, i, value, x, y, z, t);
  if (rank == 2) print_text("%s(%d, %d) = %lld in block (%u, %u, %u), thread %d\n", name, i, j, value, x, y, z, t);
  if (rank == 3)
    print_text("%s(%d, %d, %d) = %lld in block (%u, %u, %u), thread %d\n", name, i, j, k, value, x, y, z, t);
}

template <class T> TL_DEVICE void print_element(const char* name, int rank, int i, int j, int k, T x) {
  if constexpr (std::is_integral<T>::value)
    print_line(name, rank, i, j, k, static_cast<long long>(x));
  else
    print_line(name, rank, i, j, k, static_cast<double>(convert<FloatOf<T>>(x)));
}

// Prints a number, one line per calling thread.
template <class X> TL_DEVICE std::enable_if_t<!is_shared_tile<X>> print(const char* name, const X& x) {
  if constexpr (packet_size<X> == 0) {
    print_element(name, 0, 0, 0, 0, value(x));
  } else {
    const auto v = value(x);
    TL_UNROLL
    for (int i = 0; i < packet_size<X>; ++i) print_element(name, 1, i, 0, 0, v.at[i]);
  }
}
// Prints a private array, one line per element, from thread 0 of the block.
template <class T, int n> TL_DEVICE void print(const char* name, const T (&array)[n]) {
  if (thread() != 0) return;
  TL_NO_UNROLL
  for (int i = 0; i < n; ++i) print_element(name, 1, i, 0, 0, array[i]);
}
#if defined(TL_ENGINE_INSTRUMENTED)
template <class T, int n> TL_DEVICE void print(const char* name, const CheckedArray<T, n>& array) {
  print(name, array.elements);
}
#endif
// Prints a fragment, one line per element, from the threads that hold this replica of it. Called by: every thread of
// the block, or those that hold the replica.
template <class T, class Layout> TL_DEVICE void print(const char* name, const Fragment<T, Layout>& f, int replica = 0) {
  if (Layout::replica() != replica) return;
  TL_UNROLL
  for (int r = 0; r < Layout::registers; ++r) {
    if (!Layout::valid(r)) continue;
    int at[3] = {Layout::template coordinate<0>(r), 0, 0};
    if constexpr (Layout::rank > 1) at[1] = Layout::template coordinate<1>(r);
    if constexpr (Layout::rank > 2) at[2] = Layout::template coordinate<2>(r);
    print_element(name, Layout::rank, at[0], at[1], at[2], f.reg[r]);
  }
}
// Prints a shared tile, one line per element, from one thread of the block. Reads it without a barrier.
template <class Tile>
TL_DEVICE std::enable_if_t<is_shared_tile<Tile>> print(const char* name, const Tile& tile, int from = 0) {
  if (thread() != from) return;
  TL_NO_UNROLL
  for (int i = 0; i < Tile::rows; ++i) {
    TL_NO_UNROLL
    for (int j = 0; j < Tile::cols; ++j) {
      if constexpr (Tile::rank == 1)
        print_element(name, 1, j, 0, 0, tile(j));
      else
        print_element(name, 2, i, j, 0, tile(i, j));
    }
  }
}

}  // namespace tl
