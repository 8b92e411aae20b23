// Block and warp barriers, and programmatic dependent launch.
#pragma once
#include "../threads.h"

namespace tl {

// __syncthreads: waits for all threads of the block; what they wrote to shared and global memory before it is visible
// after it. Called by: every thread of the block. [CUDA C++ Programming Guide, "Synchronization Functions"]
TL_DEVICE void sync_block() { __syncthreads(); }

// Named barrier `id` (0..15; 0 is sync_block's): waits until `threads` threads, a multiple of 32, have arrived by sync
// or arrive, and orders shared memory among them. Called by: whole warps.
// [PTX ISA, "Parallel Synchronization and Communication Instructions: bar, barrier"]
TL_DEVICE void barrier_sync(int id, int threads) {
  asm volatile("barrier.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
// Arrives at named barrier `id` without waiting (release only): this thread's writes are visible to the threads that
// wait. Called by: whole warps. [same section]
TL_DEVICE void barrier_arrive(int id, int threads) {
  asm volatile("barrier.arrive.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// A barrier of the threads that execute tile operations: of the block, or of a group of TL_GROUP threads. Group g uses
// named barrier 15 - g.
#ifdef TL_GROUP
TL_DEVICE void sync_threads() { barrier_sync(15 - group(), group_threads()); }
#else
TL_DEVICE void sync_threads() { sync_block(); }
#endif

// A block barrier with a reduction: the number of threads whose predicate is true, or whether it is true in any, or in
// all.
// Called by: every thread of the block. [CUDA C++ Programming Guide, "Synchronization Functions"]
TL_DEVICE int count_of_block(bool predicate) { return __syncthreads_count(predicate); }
TL_DEVICE int any_of_block(bool predicate) { return __syncthreads_or(predicate) != 0; }
TL_DEVICE int all_of_block(bool predicate) { return __syncthreads_and(predicate) != 0; }

// Waits for the lanes in the mask, by default all of the warp, and orders memory among them. Called by: these lanes.
// [PTX ISA, "Parallel Synchronization and Communication Instructions: bar.warp.sync"]
TL_DEVICE void sync_warp(uint32_t lanes = ~0u) { __syncwarp(lanes); }

// Programmatic dependent launch: waits until the preceding kernels of the stream have completed and their writes are
// visible. A kernel started by tl::launch_pdl needs it. Called by: each thread before it reads their results.
// [PTX ISA, "griddepcontrol.wait": prerequisite grids have completed, and all memory operations are made visible]
TL_DEVICE void griddepcontrol_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
// Allows kernels that tl::launch_pdl starts after this one to begin, once every block has executed it or exited; it
// does not make this kernel's writes visible to them. Called by: any thread of each block.
// [PTX ISA, "griddepcontrol.launch_dependents"]
TL_DEVICE void griddepcontrol_launch_dependents() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

}  // namespace tl
