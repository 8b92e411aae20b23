// Block and warp barriers.
#pragma once
#include "../threads.h"
#include "engine.h"

namespace tl {

// Called by: every thread of the block.
TL_DEVICE void sync_block() { tl_engine_sync_threads(); }
// A block barrier with a reduction: the number of threads whose predicate is true, or whether it is true in any, or in
// all.
TL_DEVICE int count_of_block(bool predicate) { return tl_engine_sync_threads_count(predicate); }
TL_DEVICE int any_of_block(bool predicate) { return tl_engine_sync_threads_count(predicate) != 0; }
TL_DEVICE int all_of_block(bool predicate) { return tl_engine_sync_threads_count(!predicate) == 0; }
// Waits until `threads` threads have arrived at named barrier `id` (0..15).
TL_DEVICE void barrier_sync(int id, int threads) { tl_engine_barrier_sync(id, threads); }
// Arrives without waiting: releases this thread's writes, acquires nothing.
TL_DEVICE void barrier_arrive(int id, int threads) { tl_engine_barrier_arrive(id, threads); }
// A barrier of the threads that execute tile operations: of the block, or of a group of TL_GROUP threads.
#ifdef TL_GROUP
TL_DEVICE void sync_threads() { barrier_sync(15 - group(), group_threads()); }
#else
TL_DEVICE void sync_threads() { sync_block(); }
#endif
// Called by: the lanes in the mask, by default all of the warp.
TL_DEVICE void sync_warp(uint64_t lanes = ~uint64_t(0)) { tl_engine_sync_warp(lanes); }
// Programmatic dependent launch: kernels run one after another, so nothing has to wait.
TL_DEVICE void griddepcontrol_wait() {}
TL_DEVICE void griddepcontrol_launch_dependents() {}

}  // namespace tl

TL_DEVICE void __syncthreads() { tl_engine_sync_threads(); }
TL_DEVICE void __syncwarp(uint64_t mask = ~uint64_t(0)) { tl_engine_sync_warp(mask); }
