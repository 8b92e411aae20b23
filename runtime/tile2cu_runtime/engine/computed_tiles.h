// The tiles of the grid that the last launches computed, for a test that runs only some of their blocks.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
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
  // Whether a launch computed a tile, after which `later` others ran. Of more than `most_launches` nothing is kept.
  bool contains(const GridPlace& tile, std::uint32_t later);

 private:
  struct Tiles {
    bool some = false;
    std::set<GridPlace> blocks, noted;
  };

  static constexpr std::size_t most_launches = 16;
  std::mutex mutex_;
  std::deque<Tiles> launches_;  // the last one first
};

}  // namespace tile2cu::engine
