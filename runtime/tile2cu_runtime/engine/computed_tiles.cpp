#include "computed_tiles.h"

#include <tl/host/engine.h>

namespace tile2cu::engine {

ComputedTiles& ComputedTiles::instance() {
  static ComputedTiles tiles;
  return tiles;
}

void ComputedTiles::begin_launch(bool some) {
  const std::lock_guard lock(mutex_);
  launches_.push_front({some, {}, {}});
  if (launches_.size() > most_launches) launches_.pop_back();
}

void ComputedTiles::block_runs(const GridPlace& index) {
  const std::lock_guard lock(mutex_);
  if (launches_.front().some) launches_.front().blocks.insert(index);
}

void ComputedTiles::note(const GridPlace& tile) {
  const std::lock_guard lock(mutex_);
  if (launches_.front().some) launches_.front().noted.insert(tile);
}

bool ComputedTiles::contains(const GridPlace& tile, std::uint32_t later) {
  const std::lock_guard lock(mutex_);
  if (later >= launches_.size()) return true;
  const Tiles& tiles = launches_[later];
  return !tiles.some || (tiles.noted.empty() ? tiles.blocks : tiles.noted).count(tile) != 0;
}

}  // namespace tile2cu::engine

using tile2cu::engine::ComputedTiles;

extern "C" {

void tl_engine_note_tile(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  ComputedTiles::instance().note({x, y, z});
}

int tl_engine_computed(std::uint32_t later, std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  return ComputedTiles::instance().contains({x, y, z}, later);
}

}  // extern "C"
