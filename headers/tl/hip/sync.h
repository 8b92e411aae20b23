// Block and wave barriers.
#pragma once
#include "kernel.h"

namespace tl {

// Waits for all threads of the block; what they wrote to shared and global memory before it is visible after it.
// Called by: every thread of the block. [LLVM, "User Guide for AMDGPU Backend": memory model gfx942]
TL_DEVICE void sync_threads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// common/vote.h has votes of a block whose waves exchange counts.
template <class Predicate> TL_DEVICE int count_of_block(Predicate) {
  static_assert(hip::lacks<Predicate>, "CDNA's barrier has no reduction: pass an array in LDS with an int per wave");
  return 0;
}
template <class Predicate> TL_DEVICE int any_of_block(Predicate here) { return count_of_block(here); }
template <class Predicate> TL_DEVICE int all_of_block(Predicate here) { return count_of_block(here); }

TL_DEVICE void sync_block() { sync_threads(); }

// Orders memory among the lanes of a wave, or those in the mask, which execute in lockstep. Called by: these lanes.
TL_DEVICE void sync_warp(uint64_t = ~uint64_t(0)) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

template <class Id> TL_DEVICE void barrier_sync(Id, int) {
  static_assert(hip::lacks<Id>, "CDNA has one barrier per block, and no named barriers");
}
template <class Id> TL_DEVICE void barrier_arrive(Id, int) {
  static_assert(hip::lacks<Id>, "CDNA has one barrier per block, and no named barriers");
}

}  // namespace tl
