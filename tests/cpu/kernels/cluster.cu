// Two blocks of a cluster hand a tile to each other and load one for both, turn after turn, and one fault each;
// comments name the lines that tests expect in findings.
#include <tl/tl.h>
#include <utility>

namespace cluster {

enum Fault {
  none,
  initialised_for_the_block,  // the barriers are shown to the own block only
  read_without_barrier,
  relaxed_arrival,
  overwritten_while_read,  // the next turn's load does not wait for the other block
  ended_while_read,
  arrival_at_the_end,
  copied_without_fence,
  source_overwritten,
  copied_to_an_ended_block,
  mask_without_a_block,
  mask_with_a_block_more,
  block_of_no_cluster,
  mask_of_no_cluster,
  arrived_twice,
  waited_without_arrival,
  one_block_at_the_barrier,
  announced_too_few
};

constexpr int threads = 128, turns = 3;
using Tile = tl::SharedTile<tl::half, 16, 64, tl::Swizzle128B>;

struct Shared {
  Tile loaded, mine, theirs;
  int numbers[threads];
  tl::Barrier there[1], handed[1];
};

// A number from the other block's memory.
template <Fault fault> __device__ __forceinline__ int exchange(Shared& s, int rank) {
  s.numbers[tl::thread()] = 10 * tl::thread() + rank;       // @number
  if (fault == waited_without_arrival) tl::cluster_wait();  // @unarrived
  if (fault == relaxed_arrival)
    tl::cluster_arrive_relaxed();
  else if (fault != read_without_barrier && !(fault == one_block_at_the_barrier && rank == 1))
    tl::cluster_arrive();
  if (fault == arrived_twice) tl::cluster_arrive();                                       // @twice
  if (fault == one_block_at_the_barrier && rank == 1) tl::mbarrier_wait(s.handed[0], 0);  // @elsewhere
  if (fault != read_without_barrier) tl::cluster_wait();                                  // @wait
  const int other = fault == block_of_no_cluster ? 2 : rank ^ 1;
  return tl::in_block(s.numbers, other)[tl::thread()];  // @exchange
}

template <Fault fault> __device__ __forceinline__ void store_fragment(Shared& s, int rank) {
  for (int i = tl::thread(); i < 16 * 64; i += threads)
    s.mine(i / 64, i % 64) = tl::half(float(i % 50 + rank));  // @mine
  if (fault == copied_without_fence) {
    tl::sync_threads();
    if (tl::thread() == 0) {
      tl::mbarrier_arrive_expect(s.handed[0], sizeof(Tile), rank ^ 1);
      tl::bulk_copy_to(rank ^ 1, &s.theirs, &s.mine, sizeof(Tile), s.handed[0]);  // @unfenced
    }
  } else {
    tl::copy_to_block<threads>(rank ^ 1, s.mine, s.theirs, s.handed[0]);  // @handed
  }
  if (fault == source_overwritten) s.mine(0, tl::thread() % 64) = tl::half(7.0f);  // @overwritten
  if (fault == copied_to_an_ended_block) return;
  tl::mbarrier_wait_cluster(s.handed[0], 0);
}

template <Fault fault>
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(threads)
    kernel(const __grid_constant__ tl::TensorMap map, tl::half* loaded, tl::half* handed, int* numbers) {
  auto& s = tl::shared<Shared>();
  const int rank = tl::block_rank();
  tl::mbarrier_init_all(s.there, {threads});  // @initialised
  tl::mbarrier_init_all(s.handed, {1});
  if (fault == initialised_for_the_block)
    tl::sync_block();
  else
    tl::sync_cluster();
  if (fault != initialised_for_the_block) numbers[blockIdx.x * threads + tl::thread()] = exchange<fault>(s, rank);

  constexpr unsigned mask = fault == mask_of_no_cluster ? 0b111 : 0b11;
  for (int turn = 0; turn < turns; ++turn) {
    if (fault == mask_without_a_block || fault == mask_with_a_block_more || fault == announced_too_few) {
      if (tl::thread() == 0) {
        if (fault != mask_with_a_block_more || rank == 0)
          tl::mbarrier_expect(s.there[0], int(sizeof(Tile)) / (fault == announced_too_few ? 2 : 1));
        const unsigned to = fault == mask_without_a_block ? 0b01 : 0b11;
        if (rank == 0) tl::tma_load_box_to(to, &s.loaded, map, {turn * 16, 0}, s.there[0]);  // @masked
      }
    } else {
      tl::tma_copy(map, tl::at(turn * 16, 0), s.loaded, s.there[0], tl::blocks<mask>);  // @load
    }
    tl::mbarrier_arrive(s.there[0]);
    tl::mbarrier_wait(s.there[0], turn & 1);  // @loaded
    for (int i = tl::thread(); i < 16 * 64; i += threads)
      loaded[((blockIdx.x * turns) + turn) * 16 * 64 + i] = s.loaded(i / 64, i % 64);  // @use
    if (fault != overwritten_while_read) tl::sync_cluster();                           // @turn
  }

  store_fragment<fault>(s, rank);
  if (fault != copied_to_an_ended_block) {
    for (int i = tl::thread(); i < 16 * 64; i += threads) handed[blockIdx.x * 16 * 64 + i] = s.theirs(i / 64, i % 64);
  }
  if (fault == ended_while_read) tl::in_block(s.numbers, rank ^ 1)[tl::thread()] = 1;  // @late
  if (fault == arrival_at_the_end) tl::mbarrier_arrive(s.there[0], rank ^ 1);          // @late_arrival
  if (fault != ended_while_read && fault != arrival_at_the_end && fault != copied_to_an_ended_block) tl::sync_cluster();
}

template <Fault fault> int run(const void* in, void* loaded, void* handed, void* numbers) {
  return tl::launch_clusters<Shared>(kernel<fault>, dim3(2), dim3(4), threads, nullptr,
                                     tl::tensor_map<Tile>(in, turns * 16, 64), static_cast<tl::half*>(loaded),
                                     static_cast<tl::half*>(handed), static_cast<int*>(numbers));
}

using Run = int (*)(const void*, void*, void*, void*);
template <int... faults> Run chosen(int fault, std::integer_sequence<int, faults...>) {
  static const Run runs[] = {run<Fault(faults)>...};
  return runs[fault];
}

}  // namespace cluster

extern "C" __attribute__((visibility("default"))) int cluster_run(int fault, const void* in, void* loaded, void* handed,
                                                                  void* numbers) {
  using namespace cluster;
  return chosen(fault, std::make_integer_sequence<int, announced_too_few + 1>{})(in, loaded, handed, numbers);
}
