// cp.async: asynchronous copies from global to shared memory. [PTX ISA, cp.async]
#pragma once
#include "engine.h"
#include "kernel.h"

namespace tl {

// Issues a copy of source_bytes (0..bytes) and fills the rest of `bytes` with zeros. Both addresses are aligned to
// `bytes`. With a warp size of 64 (AMD) the copy is synchronous, as in headers/tl/hip/cp_async.h.
template <int bytes> TL_DEVICE void cp_async(void* to, const void* from, int source_bytes) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "cp.async copies 4, 8 or 16 bytes");
  tl_engine_cp_async(to, from, bytes, source_bytes);
  if constexpr (warp_size == 64) tl_engine_cp_async_commit(), tl_engine_cp_async_wait(0);
}
// As cp_async: cache hints change no result.
TL_DEVICE bool spares_l2(int64_t) { return false; }
template <int bytes> TL_DEVICE void cp_async_once(void* to, const void* from, int source_bytes) {
  cp_async<bytes>(to, from, source_bytes);
}
// Commits this thread's outstanding copies as a group.
TL_DEVICE void cp_async_commit() { tl_engine_cp_async_commit(); }
// Waits until at most the n most recent groups of this thread are pending. A barrier after it makes the bytes visible
// to other threads.
template <int n> TL_DEVICE void cp_async_wait() { tl_engine_cp_async_wait(n); }

}  // namespace tl
