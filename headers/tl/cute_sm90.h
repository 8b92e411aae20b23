// Includes for kernels in CuTe's style for sm_90a: CUTLASS's barriers, TMA and wgmma, and functions that CuTe lacks:
// full and empty barriers that consumer warps release, MMAs and TMA copies of whole tiles.
#pragma once
#define TL_SHARED_MEMORY_IN_REGISTER
#include "cute.h"

#ifndef CUTLASS_ENABLE_GDC_FOR_SM90
#define CUTLASS_ENABLE_GDC_FOR_SM90  // without it CUTLASS's functions for dependent launches do nothing
#endif
#include <cutlass/arch/barrier.h>
#include <cutlass/arch/grid_dependency_control.h>
#include <cutlass/arch/reg_reconfig.h>
#include <cutlass/pipeline/sm90_pipeline.hpp>

namespace tl {

// ---- barriers of a TMA pipeline -------------------------------------------------------------------------------------

// The bytes of one stage of shared tiles, whose modes are (rows, columns[, stage]).
template <class... Tiles> CUTE_DEVICE constexpr int stage_bytes(const Tiles&...) {
  return (int(sizeof(typename Tiles::value_type) * decltype(cute::size<0>(std::declval<Tiles>()))::value *
              decltype(cute::size<1>(std::declval<Tiles>()))::value) +
          ...);
}

// The mbarriers of a pipeline's stages, as cutlass::PipelineTmaAsync has them, but each consumer warp arrives once.
template <int stages> struct FullEmptyBarriers {
  static constexpr uint32_t Stages = stages;  // for cutlass::make_producer_start_state
  using PipelineState = cutlass::PipelineState<stages>;

  uint64_t full[stages];   // a phase ends when TMA has filled the stage
  uint64_t empty[stages];  // a phase ends when all consumer warps have released the stage

  // cutlass::arch::fence_barrier_init and a block barrier must follow. Called by: one thread.
  CUTE_DEVICE void init(int consumer_warps) {
    CUTE_UNROLL
    for (int stage = 0; stage < stages; ++stage) {
      cute::initialize_barrier(full[stage], 1);
      cute::initialize_barrier(empty[stage], consumer_warps);
    }
  }
  // Waits until the stage is empty, and adds the expected bytes to its barrier, on which the loads then complete.
  // Called by: the producer's one thread.
  CUTE_DEVICE uint64_t& producer_acquire(const PipelineState& state, int bytes) {
    cute::wait_barrier(empty[state.index()], state.phase());
    cute::set_barrier_transaction_bytes(full[state.index()], bytes);
    return full[state.index()];
  }
  // The same for the tile of an iteration, which it publishes with the stage.
  template <class Iteration>
  CUTE_DEVICE uint64_t& producer_acquire(const PipelineState& state, int bytes,
                                         ActiveIterations<stages, Iteration>& published, const Iteration& iteration) {
    cute::wait_barrier(empty[state.index()], state.phase());
    published.iteration[state.index()] = iteration;
    published.active[state.index()] = true;
    cute::set_barrier_transaction_bytes(full[state.index()], bytes);
    return full[state.index()];
  }
  // Publishes the end of such a loop: a stage without a tile. Called by: the producer's one thread.
  template <class Iteration>
  CUTE_DEVICE void producer_end(const PipelineState& state, ActiveIterations<stages, Iteration>& published) {
    cute::wait_barrier(empty[state.index()], state.phase());
    published.active[state.index()] = false;
    cute::arrive_barrier(full[state.index()]);
  }
  // Waits for the stage. Returns whether it has a tile, and of which iteration; releases it if it has none. Called by:
  // whole consumer warps.
  template <class Iteration>
  CUTE_DEVICE bool consumer_next(const PipelineState& state, const ActiveIterations<stages, Iteration>& published,
                                 Iteration& iteration) {
    consumer_wait(state);
    const bool active = published.active[state.index()];
    if (active)
      iteration = published.iteration[state.index()];
    else
      consumer_release(state);
    return active;
  }
  // Waits until the stage is full. Called by: each consumer thread.
  CUTE_DEVICE void consumer_wait(const PipelineState& state) {
    while (!cutlass::arch::ClusterBarrier::try_wait(&full[state.index()], state.phase())) {
    }
  }
  // Releases the stage for this warp. Called by: whole consumer warps.
  CUTE_DEVICE void consumer_release(const PipelineState& state) { release(state, 0); }
  // The same of a stage that this warp has loaded from (ld.shared, ldmatrix), rather than wgmma: waits until the loads
  // have completed. An arrival does not wait for them, and TMA would overwrite what they have yet to read.
  CUTE_DEVICE void consumer_release_after_loads(const PipelineState& state) {
    cutlass::arch::fence_view_async_shared();
    release(state, 0);
  }
  // As consumer_release, by an arrival that depends on `known`, which is warp-uniform, so that the compiler does not
  // move a wait for MMAs above it.
  CUTE_DEVICE void consumer_release_after(bool known, const PipelineState& state) { release(state, known ? 1 : 0); }
  // Releases a stage without using it: it must be full, or the arrival would count for the phase before.
  CUTE_DEVICE void consumer_skip(const PipelineState& state) { consumer_wait(state), consumer_release(state); }

 private:
  CUTE_DEVICE void release(const PipelineState& state, int by) {
    __syncwarp();  // all lanes have read the stage
    if (threadIdx.x % 32 == by) cute::arrive_barrier(empty[state.index()]);
  }
};

// ---- TMA ------------------------------------------------------------------------------------------------------------

// A kernel's tensor map, or the status of a failed encoding: tl::launch then returns that status and launches nothing.
template <class Copy> struct TmaMapArgument {
  using Map = Copy;
  Map map;
  int status;
  operator const Map&() const { return map; }
};

#ifndef __CUDACC_RTC__
template <class Map> tl_status argument_status(const TmaMapArgument<Map>& argument) { return argument.status; }
template <class Atom, class Threads, class Tile> struct ArgumentFor<cute::TiledCopy<Atom, Threads, Tile>> {
  using type = const TmaMapArgument<cute::TiledCopy<Atom, Threads, Tile>>&;
};

// Encodes a tensor's descriptor as that of a map of the style tl: L2 promotion to 256 bytes where strides are multiples
// of 64. make_tma_copy promotes to 128, with which gemm_batched takes 1.03 times as long (H200), and returns no error.
// The map's type has the box, and which mode of the tensor each of its modes is. Returns 0 or an error code. Host side.
template <int bits, int base, int shift> constexpr int bytes_of(const cute::Swizzle<bits, base, shift>&) {
  return bits == 0 ? 0 : 16 << bits;
}
template <class Map, class Tensor> int encode_descriptor(Map& map, const Tensor& tensor) {
  using namespace cute;
  using Parameters = decltype(map.aux_params_);
  static_assert(is_static<typename Parameters::GmemStrides>::value, "each mode of the map is one mode of the tensor");
  const typename Parameters::TmaGmemBasis modes{};
  constexpr int dims = rank_v<typename Parameters::TmaGmemBasis>, element_bytes = sizeof(typename Tensor::value_type);
  cute::array<uint64_t, dims> extents{}, strides{};
  cute::array<uint32_t, dims> box{};
  for_each(make_seq<dims>{}, [&](auto dim) {
    const auto mode = unwrap(stride<dim>(modes));  // of the tensor
    extents[dim] = uint64_t(basis_get(mode, shape(tensor)));
    strides[dim] = uint64_t(basis_get(mode, stride(tensor))) * element_bytes;
    box[dim] = uint32_t(size<dim>(modes));
  });
  return encode_tensor_map(reinterpret_cast<TensorMap&>(map.tma_desc_), raw_pointer_cast(tensor.data()), element_bytes,
                           dims, extents.data(), strides.data() + 1, box.data(),
                           bytes_of(typename Parameters::TmaSwizzle{}));
}

// The map that make_tma_copy makes, and a status: TL_LAUNCH_FAILED and the driver's error where the encoding fails. No
// map describes a tensor without elements, or whose rows start at no multiples of 16 bytes: the map is then empty, and
// the kernel, or the instance that the launcher chooses, neither loads nor stores by it. Host side.
template <class Op, class Tensor, class Layout>
auto make_tma_map(const Op& op, const Tensor& tensor, const Layout& tile) {
  using Map = decltype(cute::make_tma_copy(op, tensor, tile));
  using T = typename Tensor::value_type;
  const auto is_pitch = [](auto stride) { return int64_t(stride) == 1 || int64_t(stride) * sizeof(T) % 16 == 0; };
  const bool has_elements = !cute::any_of(cute::shape(tensor), [](int extent) { return extent == 0; });
  Map map{};
  if (!has_elements || !cute::all_of(cute::stride(tensor), is_pitch)) return TmaMapArgument<Map>{map, TL_OK};
  const int error = encode_descriptor(map, tensor);
  return TmaMapArgument<Map>{map, error == 0 ? TL_OK : TL_LAUNCH_FAILED + error};
}
#else
template <class Op, class Tensor, class Layout>
auto make_tma_map(const Op& op, const Tensor& tensor, const Layout& tile) {
  return TmaMapArgument<decltype(cute::make_tma_copy(op, tensor, tile))>{};  // kernels have its type alone
}
#endif

// The coordinates of the tile of `shape` at `start` of a map's tensor, whose first modes are the tile's. The extents of
// the tensor are in the map.
template <class Map, class Start, class Shape>
CUTE_DEVICE auto tma_tile(const Map& map, const Start& start, const Shape& tile) {
  using namespace cute;
  static_assert(rank_v<Shape> == 2, "boxes have rows and columns");
  const auto tensor = map.get_tma_tensor(append<rank_v<Start>>(tile, _1{}));
  return domain_offset(start, tensor)(append<rank_v<Start>>(make_coord(_, _), _0{}));
}

// Loads the tile at `start` of a map's tensor, with zeros out of bounds; its bytes arrive at the barrier `full`. Called
// by: one thread.
template <class Map, class Start, class Tile>
CUTE_DEVICE void tma_load(const Map& map, uint64_t& full, const Start& start, Tile&& tile) {
  using namespace cute;
  const auto box = tma_tile(map, start, extents(tile));
  const auto [from, to] = tma_partition(map, _0{}, Layout<_1>{}, group_modes<0, 2>(tile), group_modes<0, 2>(box));
  auto into = to;
  copy(map.with(full), from, into);
}

// The user's own load: the same, whose bytes are added to the phase of `barrier`. Called by: any threads that execute
// tile operations; thread 0 issues it.
template <class Map, class Start, class Tile>
CUTE_DEVICE void tma_copy(const Map& map, cutlass::arch::ClusterTransactionBarrier& barrier, const Start& start,
                          Tile&& tile) {
  if (thread() != 0) return;
  barrier.expect_transaction(stage_bytes(tile));
  tma_load(map, reinterpret_cast<uint64_t&>(barrier), start, tile);
}
// The same for blocks of the cluster (bit i of the mask is the block of rank i), with a map of SM90_TMA_LOAD_MULTICAST:
// the first of them loads the tile, at its own coordinates, for all; others load their own. Each block expects the
// bytes on its own barrier. No thread of these blocks may still access the tile.
template <uint16_t mask, class Map, class Start, class Tile>
CUTE_DEVICE void tma_copy_multicast(const Map& map, cutlass::arch::ClusterTransactionBarrier& barrier,
                                    const Start& start, Tile&& tile) {
  using namespace cute;
  if (thread() != 0) return;
  barrier.expect_transaction(stage_bytes(tile));
  const uint16_t own = uint16_t(1 << block_rank_in_cluster()), first = mask & -mask;
  if ((own & mask) != 0 && own != first) return;  // it receives the tile
  const auto box = tma_tile(map, start, extents(tile));
  const auto [from, to] = tma_partition(map, _0{}, Layout<_1>{}, group_modes<0, 2>(tile), group_modes<0, 2>(box));
  auto into = to;
  copy(map.with(reinterpret_cast<uint64_t&>(barrier), own == first ? mask : own), from, into);
}

// Stores a tile in shared memory at `start` + `offset` of a map's tensor, box by box, but for boxes whose coordinates
// int does not hold: they are out of bounds, and TMA must not store them at the negative ones to which they wrap (an
// illegal instruction on an H200). Called by: one thread.
template <class Map, class Start, class Offset, class Tile>
CUTE_DEVICE void tma_store_boxes(const Map& map, const Start& start, const Offset& offset, Tile&& tile) {
  using namespace cute;
  const auto boxes_at = [&](const auto& place) {
    const auto box = tma_tile(map, place, extents(tile));
    return tma_partition(map, _0{}, Layout<_1>{}, group_modes<0, 2>(tile), group_modes<0, 2>(box));
  };
  const auto [to, from] =
      boxes_at(transform(start, offset, [](int first, int more) { return wrapping_add(first, more); }));
  const auto first = get<0>(boxes_at(start))(_0{});
  const auto offsets = get<0>(boxes_at(offset));
  const auto is_int = [](int begin, int more) { return begin <= cutlass::platform::numeric_limits<int>::max() - more; };
  CUTE_UNROLL
  for (int i = 0; i < size<0, 1>(from); ++i) {
    const auto each = make_coord(make_coord(_, i));
    if (cute::all_of(transform(first, offsets(make_coord(make_coord(_0{}, i))), is_int), [](bool is) { return is; })) {
      auto into = to(each);
      copy(map, from(each), into);
    }
  }
}

// Stores an accumulator through the tile `staging`: each warp writes its rows and fences them for TMA, and one lane
// stores them, in boxes of 16 rows, to the tile at `start` of the map's tensor. TMA reads `staging` until
// tma_store_wait_read. Called by: the threads of the MMA.
template <class Mma, class From, class Tile, class Map, class Start>
CUTE_DEVICE void tma_store_start(const Mma& mma, const From& from, Tile&& staging, const Map& map, const Start& start) {
  using namespace cute;
  using T = typename std::decay_t<Tile>::value_type;
  const auto shape = extents(staging);
  const auto at = coordinates(mma, shape);  // ((2, 2, N / 8), M, N)
  constexpr int columns = decltype(size<0>(at))::value / 4 * 8 * decltype(size<2>(at))::value;
  using Stmatrix = std::conditional_t<columns % 16 == 0, SM90_U32x4_STSM_N, SM90_U32x2_STSM_N>;
  using Atom = std::conditional_t<sizeof(T) == 2, Stmatrix, UniversalCopy<uint_bit_t<2 * sizeof_bits_v<T>>>>;
  const auto stage = make_tiled_copy_C(Copy_Atom<Atom, T>{}, mma);
  const auto slice = stage.get_slice(threadIdx.x);
  const auto rounded = converted<T>(from);
  copy(stage, slice.retile_S(rounded), slice.partition_D(by_layout(staging)));
  tma_store_fence();  // for TMA, what this lane wrote
  __syncwarp();       // and what the others wrote
  if (threadIdx.x % 32 != 0) return;
  CUTE_UNROLL
  for (int m = 0; m < size<1>(at); ++m) {
    const int row = get<0>(at(0, m, 0)), column = get<1>(at(0, m, 0));  // where the warp's 16 rows begin
    const auto box = make_shape(_16{}, Int<columns>{});
    const auto offset = append<rank_v<Start>>(make_coord(row, column), 0);
    tma_store_boxes(map, start, offset, local_tile(staging, box, make_coord(row / 16, column / columns)));
  }
  tma_store_arrive();
}
// The same, until TMA has read the staging tile.
template <class Mma, class From, class Tile, class Map, class Start>
CUTE_DEVICE void tma_store(const Mma& mma, const From& from, Tile&& staging, const Map& map, const Start& start) {
  tma_store_start(mma, from, staging, map, start);
  if (threadIdx.x % 32 == 0) cute::tma_store_wait<0>();
}

// Stores the transpose of an accumulator through the tile `staging`, (columns, rows): all warps write it, by stmatrix;
// then one thread stores it as a whole; returns when TMA has read it. Called by: the first `threads` threads, which
// are those of the MMA.
template <int threads, class Mma, class From, class Tile, class Map, class Start>
CUTE_DEVICE void tma_store_transposed(const Mma& mma, const From& from, Tile&& staging, const Map& map,
                                      const Start& start) {
  using namespace cute;
  using T = typename std::decay_t<Tile>::value_type;
  static_assert(sizeof(T) == 2, "stmatrix transposes elements of 16 bits");
  const auto stage = make_tiled_copy_C(Copy_Atom<SM90_U16x8_STSM_T, T>{}, mma);
  const auto slice = stage.get_slice(threadIdx.x);
  const auto rounded = converted<T>(from);
  copy(stage, slice.retile_S(rounded), slice.partition_D(swap_modes(by_layout(staging))));
  sync_consumers<threads>();  // for TMA, what all threads wrote
  if (threadIdx.x == 0) {
    tma_store_boxes(map, start, repeat<rank_v<Start>>(0), staging);
    tma_store_arrive();
    tma_store_wait<0>();
  }
  sync_readers<threads>();
}

// ---- wgmma ----------------------------------------------------------------------------------------------------------

// Rows m and step k of an operand fragment (V, M, K). A descriptor is a pair of registers: it is advanced by one
// addition of 64 bits, where CuTe adds to its lower half and copies the other.
template <class Operand> CUTE_DEVICE auto step_of(const Operand& operand, int m, int k) {
  using namespace cute;
  if constexpr (std::is_same<std::decay_t<decltype(operand.data())>, GMMA::DescriptorIterator>::value) {
    auto first = operand.data();
    first.desc_.desc_ += uint64_t(operand.layout()(_0{}, m, k));
    return make_tensor(first, take<0, 1>(operand.layout()));
  } else {
    return operand(_, m, k);
  }
}

// A stage of shared tiles (rows, columns, stage), which the producer fills, as an operand of wgmma. Compilers compute
// the descriptors of the first stage in front of the loop, and add the stage's distance to them. Those of a tile at the
// stage's address are computed anew between the wait for the stage and its first MMA.
template <class Tiles> struct Stage {
  Tiles tiles;
  int index;
};
template <class Tiles> CUTE_DEVICE auto stage_of(const Tiles& tiles, int index) { return Stage<Tiles>{tiles, index}; }
template <class Tiles> CUTE_DEVICE auto swap_modes(const Stage<Tiles>& stage) {
  const auto swapped = cute::select<1, 0, 2>(stage.tiles.layout());
  return stage_of(cute::make_tensor(stage.tiles.data(), swapped), stage.index);
}

// The operands of a thread's slice of a TiledMMA, (V, M or N, K): descriptors of shared tiles; a fragment as it is.
template <class Slice, class A> CUTE_DEVICE auto operand_A(const Slice& slice, const A& a) {
  if constexpr (cute::is_smem<A>::value)
    return slice.partition_fragment_A(a);
  else
    return a;
}
template <class Slice, class Tiles> CUTE_DEVICE auto operand_A(const Slice& slice, const Stage<Tiles>& a) {
  return slice.partition_fragment_A(a.tiles)(cute::_, cute::_, cute::_, a.index);
}
template <class Slice, class B> CUTE_DEVICE auto operand_B(const Slice& slice, const B& b) {
  return slice.partition_fragment_B(b);
}
template <class Slice, class Tiles> CUTE_DEVICE auto operand_B(const Slice& slice, const Stage<Tiles>& b) {
  return slice.partition_fragment_B(b.tiles)(cute::_, cute::_, cute::_, b.index);
}

// Issues c = a @ b if `first` is Zero, else c += a @ b. `a` is (M, K), in shared memory or an A operand fragment, and
// `b` is (N, K) in shared memory; either may be a stage_of tiles. `warpgroup` is this thread's, in which descriptors
// are computed for the first thread. Between warpgroup_arrive and warpgroup_commit_batch. Called by: the MMA's
// warpgroups.
template <class Mma, class A, class B, class C>
CUTE_DEVICE void wgmma(Mma mma, int warpgroup, const A& a, const B& b, C& c,
                       cute::GMMA::ScaleOut first = cute::GMMA::ScaleOut::One) {
  using namespace cute;
  const auto slice = mma.get_slice(warpgroup * cutlass::NumThreadsPerWarpGroup);
  const auto tCrB = operand_B(slice, b);
  const auto tCrA = operand_A(slice, a);
  CUTE_UNROLL
  for (int m = 0; m < size<1>(c); ++m) {  // one accumulator after the other: they do not alternate
    CUTE_UNROLL
    for (int n = 0; n < size<2>(c); ++n) {
      mma.accumulate_ = first;
      CUTE_UNROLL
      for (int k = 0; k < size<2>(tCrB); ++k) {
        cute::gemm(mma, step_of(tCrA, m, k), step_of(tCrB, n, k), c(_, m, n));
        mma.accumulate_ = GMMA::ScaleOut::One;
      }
    }
  }
}

// Shared memory to an A operand that has an accumulator's layout, perhaps converted; `atom` is a copy atom (ldmatrix).
// Called by: the MMA's warpgroups.
template <class Atom, class Mma, class Tile, class To>
CUTE_DEVICE void load_operand_A(const Atom& atom, const Mma& mma, const Tile& tile, To& to) {
  using namespace cute;
  using Source = typename Tile::value_type;
  const auto load = make_tiled_copy_C(atom, mma);
  const auto slice = slice_of(load);
  const auto from = slice.partition_S(by_layout(tile));
  if constexpr (std::is_same<Source, typename To::value_type>::value) {
    copy(load, from, slice.retile_D(to));
  } else {
    auto loaded = make_tensor<Source>(shape(to));
    copy(load, from, slice.retile_D(loaded));
    convert(loaded, to);
  }
}

}  // namespace tl
