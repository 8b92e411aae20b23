// For kernels in CuTe's style whose two warpgroups alternate over a loop's iterations (ping-pong): barriers, loads and
// MMAs of slabs of columns, and the exchange between the warpgroups through shared memory.
#pragma once
#include "cute_sm90.h"

namespace tl {

// ---- barriers of slabs ----------------------------------------------------------------------------------------------

// As FullEmptyBarriers, for tiles of `slabs` slabs. Two warpgroups each release a part: the first `first_part` slabs,
// and the others. The tiles of iteration k are in stage k % stages.
template <int stages, int slabs, int first_part> struct SlabBarriers {
  static_assert(0 < first_part && first_part < slabs, "each warpgroup has a part");
  static_assert(stages >= 2, "warpgroup 1 waits for tile k + 1 before it releases tile k");

  uint64_t full_[stages][slabs];  // a phase ends when TMA has filled the slab
  uint64_t empty_[stages][2];     // a phase ends when a warpgroup's four warps have released its part

  // cutlass::arch::fence_barrier_init and a block barrier must follow. Called by: one thread.
  CUTE_DEVICE void init() {
    CUTE_UNROLL
    for (int stage = 0; stage < stages; ++stage) {
      CUTE_UNROLL
      for (int slab = 0; slab < slabs; ++slab) cute::initialize_barrier(full_[stage][slab], 1);
      for (uint64_t& part : empty_[stage]) cute::initialize_barrier(part, 4);
    }
  }
  // Waits until warpgroup `part` has released its slabs of iteration k - stages; in the first `stages` iterations does
  // not wait. Called by: the producer's one thread.
  CUTE_DEVICE void producer_acquire(int k, int part) {
    cute::wait_barrier(empty_[k % stages][part], k / stages & 1 ^ 1);
  }
  // The barrier on which the load of this slab completes. Called by: as above.
  CUTE_DEVICE uint64_t& full(int k, int slab) { return full_[k % stages][slab]; }
  // Waits until TMA has filled this slab. Called by: any thread.
  CUTE_DEVICE void consumer_wait(int k, int slab) {
    while (!cutlass::arch::ClusterBarrier::try_wait(&full_[k % stages][slab], k / stages & 1)) {
    }
  }
  // Releases this warpgroup's part of iteration k for this warp. It may be overwritten when all warps of the warpgroup
  // have released it: the other warpgroup's reads of the part, if there are any, must be complete before this one is
  // called (in a ping-pong loop the owner has read all slabs before tl::fragment_stored). Called by: whole consumer
  // warps.
  CUTE_DEVICE void consumer_release(int k) {
    __syncwarp();  // all lanes have read the stage
    if (threadIdx.x % 32 == 0) cute::arrive_barrier(empty_[k % stages][threadIdx.x / cutlass::NumThreadsPerWarpGroup]);
  }
};

// As tl::tma_load, of one slab of the tile at `start`: announces its bytes at `full` (arrive.expect_tx), on which the
// load completes. A slab is a box. Called by: the producer's one thread.
template <class Map, class Start, class Tile>
CUTE_DEVICE void tma_load_slab(const Map& map, uint64_t& full, const Start& start, Tile&& tile, int slab) {
  using namespace cute;
  const auto box = tma_tile(map, start, extents(tile));
  // ((one box, boxes))
  const auto [from, to] = tma_partition(map, _0{}, Layout<_1>{}, group_modes<0, 2>(tile), group_modes<0, 2>(box));
  auto into = to(make_coord(make_coord(_, slab)));
  set_barrier_transaction_bytes(full, stage_bytes(tile) / decltype(size<0, 1>(to))::value);
  copy(map.with(full), from(make_coord(make_coord(_, slab))), into);
}

// ---- MMAs -----------------------------------------------------------------------------------------------------------

// The columns of a slab: those of the swizzle's atom, of which a shared tile has several.
template <class Tile> constexpr int slab_columns = decltype(cute::size<1, 0>(std::declval<Tile>()))::value;

// As tl::wgmma, of the part of K that is this slab of b's columns. c = a @ b of the slab if `first` is Zero. Called by:
// the MMA's warpgroup.
template <class Mma, class A, class B, class C>
CUTE_DEVICE void wgmma_slab(Mma mma, int warpgroup, const A& a, const B& b, C& c, int slab,
                            cute::GMMA::ScaleOut first = cute::GMMA::ScaleOut::One) {
  using namespace cute;
  const auto slice = mma.get_slice(warpgroup * cutlass::NumThreadsPerWarpGroup);
  const auto tCrB = slice.partition_fragment_B(b);  // descriptors, (V, N, K)
  constexpr int slabs = decltype(size<1>(b))::value / slab_columns<B>, steps = decltype(size<2>(tCrB))::value / slabs;
  static_assert(decltype(size<2>(c))::value == 1, "one instruction covers all columns");
  const auto each_step = [&](const auto& tCrA) {
    CUTE_UNROLL
    for (int m = 0; m < size<1>(c); ++m) {
      mma.accumulate_ = first;
      CUTE_UNROLL
      for (int k = 0; k < steps; ++k) {
        cute::gemm(mma, step_of(tCrA, m, slab * steps + k), step_of(tCrB, 0, slab * steps + k), c(_, m, 0));
        mma.accumulate_ = GMMA::ScaleOut::One;
      }
    }
  };
  if constexpr (is_smem<A>::value)
    each_step(slice.partition_fragment_A(a));  // descriptors, (V, M, K)
  else
    each_step(a);
}

// ---- exchange between the warpgroups --------------------------------------------------------------------------------

// Stores a fragment to shared memory for the other warpgroup; `atom` is a copy atom (stmatrix). The calling warpgroup
// holds the whole tile. Called by: every thread of the warpgroup.
template <class Atom, class Mma, class From, class Tile>
CUTE_DEVICE void store_fragment(const Atom& atom, const Mma& mma, const From& from, Tile&& tile) {
  __syncwarp();  // all lanes have read what they loaded in the iteration before
  const auto store = cute::make_tiled_copy_C(atom, mma);
  const auto slice = slice_of(store);
  auto to = slice.partition_D(by_layout(tile));
  copy(store, slice.retile_S(from), to);
}

// The same for values of this thread's rows; `at` is the rowcol view of the coordinates in the tile.
template <class From, class At, class Values> CUTE_DEVICE void store_rows(const From& from, const At& at, Values&& to) {
  __syncwarp();  // as above
  CUTE_UNROLL
  for (int i = 0; i < cute::size(from); ++i)
    if (threadIdx.x % 4 == 0) to(cute::get<0>(at(i, 0))) = from(i);  // 4 lanes have the row
}
// Loads what the other warpgroup stored. Called by: as above.
template <class Values, class At, class To> CUTE_DEVICE void load_rows(const Values& from, const At& at, To& to) {
  CUTE_UNROLL
  for (int i = 0; i < cute::size(to); ++i) to(i) = from(cute::get<0>(at(i, 0)));
}

// Adds the partial row sums that the threads of two warpgroups have: all threads get the total. `exchange` has one
// element per row, `at` is as above. Both barriers order RAW of `exchange`: warpgroup 1's warps overwrite the rows that
// they themselves have read. Called by: every thread of both.
template <int threads, class Partials, class At, class Values>
CUTE_DEVICE void allreduce_sum(Partials& partials, const At& at, Values&& exchange) {
  allreduce_rows<ReduceSum, Sharing<4>>(partials);
  const bool is_first = threadIdx.x < cutlass::NumThreadsPerWarpGroup;
  if (is_first) store_rows(partials, at, exchange);
  sync_readers<threads>();
  if (!is_first) {
    CUTE_UNROLL
    for (int i = 0; i < cute::size(partials); ++i) partials(i) += exchange(cute::get<0>(at(i, 0)));
    store_rows(partials, at, exchange);
  }
  sync_readers<threads>();
  if (is_first) load_rows(exchange, at, partials);
}

}  // namespace tl
