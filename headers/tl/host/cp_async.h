// cp.async: copies from global to shared memory that land when their group is waited for.  [PTX ISA, cp.async]
#pragma once
#include "engine.h"
#include "kernel.h"

namespace tl {

// Copies source_bytes (0..bytes) and fills the rest of `bytes` with zeros. Both addresses are multiples of `bytes`.
// In waves of 64, which are AMD's, it is done when it returns (headers/tl/hip/cp_async.h).
template <int bytes> TL_DEVICE void cp_async(void* to, const void* from, int source_bytes) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "cp.async copies 4, 8 or 16 bytes");
  tl_engine_cp_async(to, from, bytes, source_bytes);
  if constexpr (warp_size == 64) tl_engine_cp_async_commit(), tl_engine_cp_async_wait(0);
}
// The same: how long L2 keeps it changes no result.
TL_DEVICE bool spares_l2(int64_t) { return false; }
template <int bytes> TL_DEVICE void cp_async_once(void* to, const void* from, int source_bytes) {
  cp_async<bytes>(to, from, source_bytes);
}
// Closes the calling thread's group.
TL_DEVICE void cp_async_commit() { tl_engine_cp_async_commit(); }
// Waits until at most n of the calling thread's groups are in flight. Other threads need a barrier after it.
template <int n> TL_DEVICE void cp_async_wait() { tl_engine_cp_async_wait(n); }

}  // namespace tl
