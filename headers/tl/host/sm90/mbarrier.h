// mbarrier objects on the CPU engine: as cuda/sm90/mbarrier.h.
#pragma once
#include "../engine.h"
#include "../kernel.h"

namespace tl {

using Barrier = uint64_t;
TL_DEVICE void mbarrier_init(Barrier& barrier, int arrivals) { tl_engine_mbarrier_init(&barrier, arrivals); }
TL_DEVICE void mbarrier_init_fence() {}
TL_DEVICE void mbarrier_arrive(Barrier& barrier) { tl_engine_mbarrier_arrive(&barrier); }
TL_DEVICE void mbarrier_arrive_expect(Barrier& barrier, int bytes) {
  tl_engine_mbarrier_arrive_expect(&barrier, bytes);
}
TL_DEVICE void cp_async_arrive(Barrier& barrier) { tl_engine_cp_async_arrive(&barrier); }
TL_DEVICE void mbarrier_expect(Barrier& barrier, int bytes) { tl_engine_mbarrier_expect(&barrier, bytes); }
TL_DEVICE void mbarrier_wait(Barrier& barrier, int parity) { tl_engine_mbarrier_wait(&barrier, parity); }
TL_DEVICE void fence_async_proxy() { tl_engine_fence_async_proxy(); }

}  // namespace tl
