// A worker's memory that is reused between launches: address space for shared memory, and fiber stacks. Mapping them
// again takes longer than a small kernel runs.
#pragma once
#include <cstddef>

#include "basics.h"
#include "fiber.h"

namespace tile2cu::engine {

class Workspace {
 public:
  static constexpr std::size_t arena_bytes = std::size_t(1)
                                             << 20;     // more than the maximum per block, to detect overruns
  static constexpr std::size_t arena_alignment = 1024;  // the period of the widest swizzle
  static constexpr std::size_t mapping_bytes = max_blocks_per_cluster * arena_bytes + arena_alignment;

  Workspace();
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  // The workspace of a worker index. Launches are serialised, so it is free.
  static Workspace& of_worker(int number);

  // The shared memory of a cluster's first block; those of the others follow.
  char* arena() const { return arena_; }
  FiberStacks& stacks() { return stacks_; }

 private:
  void* mapping_;
  char* arena_;
  FiberStacks stacks_;
};

}  // namespace tile2cu::engine
