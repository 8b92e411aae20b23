#include "computed_tiles.h"

#include <tl/host/engine.h>

namespace tile2cu::engine {

ComputedTiles& ComputedTiles::instance() {
  static ComputedTiles tiles;
  return tiles;
}

void ComputedTiles::begin_launch(bool some) {
  const std::lock_guard lock(mutex_);
  some_ = some;
  blocks_.clear();
  noted_.clear();
}

void ComputedTiles::block_runs(const GridPlace& index) {
  if (!some_) return;
  const std::lock_guard lock(mutex_);
  blocks_.insert(index);
}

void ComputedTiles::note(const GridPlace& tile) {
  if (!some_) return;
  const std::lock_guard lock(mutex_);
  noted_.insert(tile);
}

bool ComputedTiles::contains(const GridPlace& tile) {
  const std::lock_guard lock(mutex_);
  return !some_ || (noted_.empty() ? blocks_ : noted_).count(tile) != 0;
}

}  // namespace tile2cu::engine

using tile2cu::engine::ComputedTiles;

extern "C" {

void tl_engine_note_tile(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  ComputedTiles::instance().note({x, y, z});
}

int tl_engine_computed(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  return ComputedTiles::instance().contains({x, y, z});
}

}  // extern "C"
