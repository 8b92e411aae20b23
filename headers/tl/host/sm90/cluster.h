// Clusters on the CPU engine: as cuda/sm90/cluster.h.
#pragma once
#include "mbarrier.h"
#include "tma.h"

namespace tl {

TL_DEVICE int block_rank() { return tl_engine_block_rank(); }
TL_DEVICE void cluster_arrive() { tl_engine_cluster_arrive(1); }
TL_DEVICE void cluster_arrive_relaxed() { tl_engine_cluster_arrive(0); }
TL_DEVICE void cluster_wait() { tl_engine_cluster_wait(); }
TL_DEVICE void sync_cluster() {
  cluster_arrive();
  cluster_wait();
}
TL_DEVICE void cluster_sync_relaxed() { sync_cluster(); }
template <class T> TL_DEVICE T& in_block(T& own, int rank) { return *static_cast<T*>(tl_engine_in_block(&own, rank)); }
TL_DEVICE void mbarrier_arrive(Barrier& own, int rank) { mbarrier_arrive(in_block(own, rank)); }
TL_DEVICE void mbarrier_arrive_as_reader(Barrier& own, int rank) { mbarrier_arrive(own, rank); }
TL_DEVICE void mbarrier_arrive_expect(Barrier& own, int bytes, int rank) {
  mbarrier_arrive_expect(in_block(own, rank), bytes);
}
TL_DEVICE void mbarrier_wait_cluster(Barrier& barrier, int parity) { mbarrier_wait(barrier, parity); }
TL_DEVICE void mbarrier_arrive_and_wait(Barrier& barrier) { tl_engine_mbarrier_arrive_and_wait(&barrier); }
template <int rank>
TL_DEVICE void tma_load_box_to(uint16_t mask, void* to, const TensorMap& map, const int (&at)[rank], Barrier& barrier) {
  static_assert(rank >= 2 && rank <= 5, "a tensor map has two to five dimensions");
  tl_engine_tma_load_multicast(to, &map, &barrier, at, rank, mask);
}
TL_DEVICE void bulk_copy_to(int rank, void* to, const void* from, int bytes, Barrier& barrier) {
  tl_engine_copy_to_block(tl_engine_in_block(to, rank), from, bytes, &in_block(barrier, rank));
}

}  // namespace tl
