// What a worker keeps from launch to launch: address space for shared memory, and the stacks of its fibers. Mapping
// them anew would cost more than a small kernel runs.
#pragma once
#include <cstddef>

#include "basics.h"
#include "fiber.h"

namespace tile2cu::engine {

class Workspace {
 public:
  static constexpr std::size_t arena_bytes = std::size_t(1) << 20;  // more than a block has, to catch overruns
  static constexpr std::size_t arena_alignment = 1024;              // the period of the widest swizzle
  static constexpr std::size_t mapping_bytes = max_blocks_per_cluster * arena_bytes + arena_alignment;

  Workspace();
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  // That of the worker with this number. Launches follow one another, so it is free.
  static Workspace& of_worker(int number);

  // That of a cluster's first block; the others' follow.
  char* arena() const { return arena_; }
  FiberStacks& stacks() { return stacks_; }

 private:
  void* mapping_;
  char* arena_;
  FiberStacks stacks_;
};

}  // namespace tile2cu::engine
