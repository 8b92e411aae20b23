// The tiles of the grid that a launch computed, for a test that runs only some of its blocks.
#pragma once
#include <array>
#include <cstdint>
#include <mutex>
#include <set>

namespace tile2cu::engine {

using GridPlace = std::array<std::uint32_t, 3>;  // x, y, z

// A block computes the tile at its own index, unless it notes others: blocks that take tiles in another order, or
// several each. Thread-safe.
class ComputedTiles {
 public:
  static ComputedTiles& instance();

  // `some`: not all blocks of the launch run; nothing is kept otherwise.
  void begin_launch(bool some);
  void block_runs(const GridPlace& index);
  void note(const GridPlace& tile);
  bool contains(const GridPlace& tile);

 private:
  std::mutex mutex_;
  bool some_ = false;
  std::set<GridPlace> blocks_, noted_;
};

}  // namespace tile2cu::engine
