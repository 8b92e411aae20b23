// Barriers of a block and of a warp.
#pragma once
#include "../threads.h"

namespace tl {

// Waits for all threads of the block; what they wrote to shared and global memory before it is visible after it.
// Called by: every thread of the block. [CUDA C++ Programming Guide, "Synchronization Functions"]
TL_DEVICE void sync_block() { __syncthreads(); }

// Waits until `threads` threads have come to barrier `id` (0..15; 0 is sync_block's, of all threads), by sync or by
// arrive; orders shared memory among them. Called by: whole warps, `threads` is a multiple of 32.
// [PTX ISA, "Parallel Synchronization and Communication Instructions: bar, barrier"]
TL_DEVICE void barrier_sync(int id, int threads) {
  asm volatile("barrier.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
// Counts as having come to barrier `id` without waiting: what this thread wrote is visible to those who wait; nothing
// becomes visible to this thread. Called by: whole warps. [same section]
TL_DEVICE void barrier_arrive(int id, int threads) {
  asm volatile("barrier.arrive.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// The same among the threads that tile operations see: of the block, or of a group. The groups' barriers are the last.
#ifdef TL_GROUP
TL_DEVICE void sync_threads() { barrier_sync(15 - group(), group_threads()); }
#else
TL_DEVICE void sync_threads() { sync_block(); }
#endif

// A barrier of the block that tells in how many threads the predicate holds, or whether it does in any, or in all.
// Called by: every thread of the block. [CUDA C++ Programming Guide, "Synchronization Functions"]
TL_DEVICE int count_of_block(bool predicate) { return __syncthreads_count(predicate); }
TL_DEVICE int any_of_block(bool predicate) { return __syncthreads_or(predicate) != 0; }
TL_DEVICE int all_of_block(bool predicate) { return __syncthreads_and(predicate) != 0; }

// Waits for all lanes of the warp, or those of `lanes`, and orders memory among them. Called by: these lanes.
// [PTX ISA, "Parallel Synchronization and Communication Instructions: bar.warp.sync"]
TL_DEVICE void sync_warp(uint32_t lanes = ~0u) { __syncwarp(lanes); }

// Waits until the kernels before this one on its stream are done, and sees what they wrote. Called by: each thread that
// goes on to read it. A kernel that tl::launch_pdl starts needs it.
// [PTX ISA, "griddepcontrol.wait": prerequisite grids have completed, and all memory operations are made visible]
TL_DEVICE void griddepcontrol_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
// Lets kernels that tl::launch_pdl starts after this one begin, once all blocks came here or ended; what this one
// writes they see when it is done. Called by: any thread of each block. [PTX ISA, "griddepcontrol.launch_dependents"]
TL_DEVICE void griddepcontrol_launch_dependents() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

}  // namespace tl
