// TMA loads, stores and reductions of boxes of tensors with two to five dimensions.
// [PTX ISA, "Data Movement and Conversion Instructions: cp.async.bulk.tensor"]
#pragma once
#include "mbarrier.h"

namespace tl {

// The driver's CUtensorMap. A kernel parameter is `const __grid_constant__ tl::TensorMap`.
struct alignas(128) TensorMap {
  uint64_t opaque[16];
};

// Issues the load of a box at these coordinates (outermost first) to shared memory; its bytes complete on `barrier`.
// Out-of-bounds elements are zero; coordinates may be negative. The innermost coordinate is a multiple of 16 bytes.
// Called by: one thread.
#define TL_TMA_LOAD(dims, coordinates, ...)                                                    \
  asm volatile("cp.async.bulk.tensor." dims                                                    \
               ".shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {" coordinates \
               "}], [%2];" ::"r"(shared_address(to)),                                          \
               "l"(&map), "r"(shared_address(&barrier)), __VA_ARGS__                           \
               : "memory")
template <int rank>
TL_DEVICE void tma_load_box(void* to, const TensorMap& map, const int (&at)[rank], Barrier& barrier) {
  static_assert(rank >= 2 && rank <= 5, "a tensor map has two to five dimensions");
  if constexpr (rank == 2) TL_TMA_LOAD("2d", "%3, %4", "r"(at[1]), "r"(at[0]));
  if constexpr (rank == 3) TL_TMA_LOAD("3d", "%3, %4, %5", "r"(at[2]), "r"(at[1]), "r"(at[0]));
  if constexpr (rank == 4) TL_TMA_LOAD("4d", "%3, %4, %5, %6", "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0]));
  if constexpr (rank == 5)
    TL_TMA_LOAD("5d", "%3, %4, %5, %6, %7", "r"(at[4]), "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0]));
}
#undef TL_TMA_LOAD
TL_DEVICE void tma_load_box(void* to, const TensorMap& map, int row, int column, Barrier& barrier) {
  tma_load_box(to, map, {row, column}, barrier);
}

// Issues the store of a box from shared memory; out-of-bounds elements are not written. Coordinates must not be
// negative (illegal instruction on an H200); the innermost is a multiple of 16 bytes. Called by: one thread.
#define TL_TMA_STORE(dims, coordinates, ...)                                                    \
  asm volatile("cp.async.bulk.tensor." dims ".global.shared::cta.bulk_group [%0, {" coordinates \
               "}], [%1];" ::"l"(&map),                                                         \
               "r"(shared_address(from)), __VA_ARGS__                                           \
               : "memory")
template <int rank> TL_DEVICE void tma_store_box(const TensorMap& map, const int (&at)[rank], const void* from) {
  static_assert(rank >= 2 && rank <= 5, "a tensor map has two to five dimensions");
  if constexpr (rank == 2) TL_TMA_STORE("2d", "%2, %3", "r"(at[1]), "r"(at[0]));
  if constexpr (rank == 3) TL_TMA_STORE("3d", "%2, %3, %4", "r"(at[2]), "r"(at[1]), "r"(at[0]));
  if constexpr (rank == 4) TL_TMA_STORE("4d", "%2, %3, %4, %5", "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0]));
  if constexpr (rank == 5)
    TL_TMA_STORE("5d", "%2, %3, %4, %5, %6", "r"(at[4]), "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0]));
}
#undef TL_TMA_STORE
TL_DEVICE void tma_store_box(const TensorMap& map, int row, int column, const void* from) {
  tma_store_box(map, {row, column}, from);
}
// The same as a reduction: adds the floats to those of the box, each atomically; the map has float elements.
// [cp.reduce.async.bulk.tensor]
#define TL_TMA_ADD(dims, coordinates, ...)                                                                 \
  asm volatile("cp.reduce.async.bulk.tensor." dims ".global.shared::cta.add.bulk_group [%0, {" coordinates \
               "}], [%1];" ::"l"(&map),                                                                    \
               "r"(shared_address(from)), __VA_ARGS__                                                      \
               : "memory")
template <int rank> TL_DEVICE void tma_add_box(const TensorMap& map, const int (&at)[rank], const void* from) {
  static_assert(rank >= 2 && rank <= 5, "a tensor map has two to five dimensions");
  if constexpr (rank == 2) TL_TMA_ADD("2d", "%2, %3", "r"(at[1]), "r"(at[0]));
  if constexpr (rank == 3) TL_TMA_ADD("3d", "%2, %3, %4", "r"(at[2]), "r"(at[1]), "r"(at[0]));
  if constexpr (rank == 4) TL_TMA_ADD("4d", "%2, %3, %4, %5", "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0]));
  if constexpr (rank == 5)
    TL_TMA_ADD("5d", "%2, %3, %4, %5, %6", "r"(at[4]), "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0]));
}
#undef TL_TMA_ADD
// Commits the outstanding stores as a bulk async-group. Called by: the thread that issued them.
// [cp.async.bulk.commit_group]
TL_DEVICE void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Waits until all but the n most recent groups are complete. Called by: the thread that issued them.
// [cp.async.bulk.wait_group]
template <int n> TL_DEVICE void tma_store_wait() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(n) : "memory"); }
// The same, but waits only for the reads of shared memory: it may be overwritten, or the block may exit.
template <int n> TL_DEVICE void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(n) : "memory");
}

}  // namespace tl
